//! `calibrate list`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{PathBuf, absolute};

use cli_support::plain;
use fusion_cost_model::{Backend, Chain, DType, Family, Op, PATTERNS};

use crate::cli::{ListArgs, Listed};
use crate::machine::fingerprint;
use crate::worker::{Device, Gpu, SURVEY_LIMIT, SurveyTask, probe};
use crate::{exit, profiles};

/// Prints the names that can be used.
///
/// # Errors
///
/// When stdout cannot be written.
pub fn list(args: &ListArgs) -> anyhow::Result<u8> {
    let all = [Listed::Patterns, Listed::Ops, Listed::Shapes, Listed::Hardware, Listed::Devices];
    let wanted = all.into_iter().filter(|kind| args.what.is_none_or(|what| what == *kind));
    let mut sections = Vec::new();
    for kind in wanted {
        sections.push(match kind {
            Listed::Patterns => patterns()?,
            Listed::Ops => ops(),
            Listed::Shapes => shapes()?,
            Listed::Hardware => hardware()?,
            Listed::Devices => devices(&args.gpu_lib_dir)?,
        });
    }
    std::io::stdout().write_all(plain::text(&sections.join("\n")).as_bytes())?;
    Ok(exit::DONE)
}

fn patterns() -> anyhow::Result<String> {
    let mut text = String::from("Patterns, for --fusion (or a family, or all):\n");
    for family in Family::ALL {
        let _ = writeln!(text, "  {family}");
        for pattern in PATTERNS.iter().filter(|pattern| pattern.family == family) {
            let chain = Chain::new(pattern.ops)?;
            let _ = writeln!(
                text,
                "    {:<26}{:<36}{}",
                pattern.name,
                chain.to_string(),
                chain.form().size_syntax()
            );
        }
    }
    text.push_str("  Any other chain of ops works too: --fusion conv2d+bias+hardswish\n");
    Ok(text)
}

fn ops() -> String {
    let mut text = String::from("Ops, for chains:\n");
    for op in Op::all() {
        let kind = match op {
            op if op.is_pointwise() => "pointwise",
            op if op.is_row() => "row",
            Op::MaxPool => "pooling",
            Op::Conv2d => "conv",
            _ => "GEMM",
        };
        let operands: Vec<&str> = op.operands().iter().map(|operand| operand.name).collect();
        let foreign: Vec<&str> = op.foreign_names().collect();
        let also =
            if foreign.is_empty() { String::new() } else { format!("also {}", foreign.join(", ")) };
        let line = format!("  {:<13}{kind:<11}{:<30}{also}", op.name(), operands.join(", "));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.push_str(
        "  Names are read in upper or lower case, with or without nn., aten::, torch. and the like.\n",
    );
    text
}

fn shapes() -> anyhow::Result<String> {
    let mut text = String::from("Sets of sizes, for --shapes (or a .toml file):\n");
    for name in profiles::shape_names() {
        let set = profiles::find_shapes(name)?;
        let count: usize =
            set.all_chains().iter().map(|chain| set.problems(chain, DType::F32).len()).sum();
        let _ = writeln!(text, "  {name:<11}{count:>4} problems: {}", set.description);
    }
    Ok(text)
}

fn hardware() -> anyhow::Result<String> {
    let mut text =
        String::from("Machines with a data sheet, for --hardware (or auto, or a file):\n");
    for spec in profiles::hardware()? {
        let peak = spec
            .peak_gflops(DType::F32)
            .map_or_else(String::new, |gflops| format!("{gflops:>9.0} GFLOP/s f32"));
        let _ = writeln!(
            text,
            "  {:<24}{:<5}{peak} {:>6.0} GB/s  {}",
            spec.id, spec.processor, spec.memory.bandwidth_gb_per_s, spec.name
        );
    }
    Ok(text)
}

/// What this machine can run on. Nothing that is missing or broken is an error: each backend is
/// looked for in a process of its own, which a library may end.
fn devices(library_folders: &[PathBuf]) -> anyhow::Result<String> {
    let observed = fingerprint::observe();
    let cores =
        observed.physical_cores.map_or_else(String::new, |cores| format!("{cores} cores, "));
    let mut text = format!(
        "Devices of this machine, for --backend and --device:\n  cpu   {}: {cores}{} threads, {:.1} \
         GiB; {}\n",
        observed.cpu_model,
        observed.logical_cores,
        observed.memory_bytes as f64 / f64::from(1 << 30),
        observed.features.join(" ")
    );
    let library_folders: Vec<PathBuf> =
        library_folders.iter().map(absolute).collect::<Result<_, _>>()?;
    for (backend, label) in [
        (Backend::Cuda, "NVIDIA GPUs; emulated and compiled, never run on hardware"),
        (Backend::Hip, "AMD GPUs; emulated and compiled, never run on hardware"),
    ] {
        let gpu = Gpu { library_folders: library_folders.clone(), ..Gpu::default() };
        let _ = writeln!(text, "  {:<6}{label}", backend.name());
        for line in found(&Device::gpu(backend, gpu)) {
            let _ = writeln!(text, "        {line}");
        }
    }
    Ok(text)
}

/// The GPUs of a backend in words, or why there are none.
fn found(device: &Device) -> Vec<String> {
    probe(device, SurveyTask, SURVEY_LIMIT).unwrap_or_else(|reason| vec![reason.to_string()])
}
