//! `calibrate list`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{PathBuf, absolute};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use cli_support::width::Width;
use cli_support::{plain, say};
use fusion_cost_model::{Backend, Chain, DType, Family, Op, PATTERNS};

use crate::cli::{ListArgs, Listed};
use crate::exit::InterruptedError;
use crate::machine::fingerprint;
use crate::run::{introduced, why_unusable};
use crate::stop::Stop;
use crate::worker::{Device, Gpu, NoAnswer, SURVEY_LIMIT, SurveyTask, probe};
use crate::{exit, profiles, runtimes};

/// Prints the names that can be used.
///
/// # Errors
///
/// When stdout cannot be written.
pub fn list(args: &ListArgs) -> anyhow::Result<u8> {
    let all = [
        Listed::Patterns,
        Listed::Ops,
        Listed::Shapes,
        Listed::Workloads,
        Listed::Hardware,
        Listed::Devices,
    ];
    // Runtimes are started to be listed, so they must be named.
    let wanted = args.what.map_or_else(|| all.to_vec(), |what| vec![what]);
    let starts_processes = |kind: &Listed| matches!(kind, Listed::Devices | Listed::Runtimes);
    let stop = if wanted.iter().any(starts_processes) { Stop::listen()? } else { Stop::default() };
    let (width, mut sections) = (Width::of_stdout(), Vec::new());
    for kind in wanted {
        sections.push(match kind {
            Listed::Patterns => patterns(width)?,
            Listed::Ops => ops(width),
            Listed::Shapes => shapes(width)?,
            Listed::Workloads => workloads(width)?,
            Listed::Hardware => hardware(width)?,
            Listed::Devices => devices(&args.gpu_lib_dir, width, &stop)?,
            Listed::Runtimes => runtimes(width, &stop)?,
        });
    }
    std::io::stdout().write_all(plain::text(&sections.join("\n")).as_bytes())?;
    Ok(exit::DONE)
}

/// A line of a list, whose last column goes on below itself where the page is too narrow for it.
fn line(width: Width, lead: &str, last: &str) -> String {
    let hang = lead.chars().count();
    if width.holds(hang + last.chars().count()) {
        return format!("{lead}{last}").trim_end().to_owned() + "\n";
    }
    width.wrap(lead, last, hang)
}

fn patterns(width: Width) -> anyhow::Result<String> {
    let mut text = String::from("Patterns, for --fusion (or a family, or all):\n");
    for family in Family::ALL {
        let _ = writeln!(text, "  {family}");
        for pattern in PATTERNS.iter().filter(|pattern| pattern.family == family) {
            let chain = Chain::new(pattern.ops)?;
            let lead = format!("    {:<26}{:<36}", pattern.name, chain.to_string());
            text += &line(width, &lead, &chain.form().size_syntax());
        }
    }
    text.push_str("  Any other chain of ops works too: --fusion conv2d+bias+hardswish\n");
    Ok(text)
}

fn ops(width: Width) -> String {
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
        let lead = format!("  {:<18}{kind:<11}{:<30}", op.name(), operands.join(", "));
        text += &line(width, &lead, &also);
    }
    text + &line(
        width,
        "  ",
        "Names are read in upper or lower case, with or without nn., aten::, torch. and the like.",
    )
}

fn shapes(width: Width) -> anyhow::Result<String> {
    let mut text = String::from("Sets of sizes, for --shapes (or a .toml file):\n");
    for name in profiles::shape_names() {
        let set = profiles::find_shapes(name)?;
        let count: usize =
            set.all_chains().iter().map(|chain| set.problems(chain, DType::F32).len()).sum();
        let lead = format!("  {name:<11}{count:>4} problems: ");
        text += &line(width, &lead, &set.description);
    }
    Ok(text)
}

fn workloads(width: Width) -> anyhow::Result<String> {
    let mut text = String::from("Workloads, for `calibrate workload` (or an ONNX or JSON file):\n");
    for name in profiles::workload_names() {
        let model = profiles::find_model(name, &[])?;
        let description = model.description.unwrap_or_default();
        text += &line(width, &format!("  {name:<16}"), &description);
    }
    Ok(text)
}

fn hardware(width: Width) -> anyhow::Result<String> {
    let mut text =
        String::from("Machines with a data sheet, for --hardware (or auto, or a file):\n");
    for spec in profiles::hardware()? {
        let peak = spec
            .peak_gflops(DType::F32)
            .map_or_else(String::new, |gflops| format!("{gflops:>9.0} GFLOP/s f32"));
        let lead = format!(
            "  {:<24}{:<5}{peak} {:>6.0} GB/s  ",
            spec.id, spec.processor, spec.memory.bandwidth_gb_per_s
        );
        text += &line(width, &lead, &spec.name);
    }
    Ok(text)
}

/// The runtimes that are built in, each asked for its version, or what to install for it.
fn runtimes(width: Width, stop: &Stop) -> anyhow::Result<String> {
    let mut text = String::from("Runtimes, for --runtime (or a .toml file):\n");
    for (name, answer) in answers(&runtimes::names(), &|name| answer_of(name, stop)) {
        text += &line(width, &format!("  {name:<13}"), &answer?);
    }
    Ok(text)
}

/// When it is said first which runtimes are waited for, and how long after that again.
const WAITS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(30)];

/// The answers of some runtimes, which are asked at the same time: one that hangs is given minutes. Where
/// the system has no more threads, or little room for them, they are asked one after the other.
fn answers<'a, T: Send>(
    names: &'a [String],
    ask: &(impl Fn(&str) -> T + Sync),
) -> BTreeMap<&'a str, T> {
    let mut answers = BTreeMap::new();
    let (answered, answer) = mpsc::channel();
    let has_room = has_room_for_threads();
    thread::scope(|scope| {
        for name in names {
            let answered = answered.clone();
            // The receiver is there until all have answered.
            let answer = move || drop(answered.send((name.as_str(), ask(name))));
            let begins = |answer| thread::Builder::new().spawn_scoped(scope, answer).is_ok();
            if !has_room || !begins(answer.clone()) {
                answer();
            }
        }
        drop(answered);
        let [mut wait, later] = WAITS;
        loop {
            match answer.recv_timeout(wait) {
                Ok((name, answer)) => drop(answers.insert(name, answer)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let left = names.iter().filter(|name| !answers.contains_key(name.as_str()));
                    let left: Vec<&str> = left.map(String::as_str).collect();
                    say!("waiting for {}", left.join(", "));
                    wait = later;
                }
            }
        }
    });
    answers
}

/// Whether the system limits the addresses of this process to less than a few threads should have: each
/// reserves tens of megabytes for its heap, and one that finds too few as it begins ends the program.
#[cfg(unix)]
fn has_room_for_threads() -> bool {
    use nix::sys::resource::{Resource, getrlimit};

    const ENOUGH: u64 = 4 << 30;
    getrlimit(Resource::RLIMIT_AS).map_or(true, |(bytes, _)| bytes >= ENOUGH)
}

/// No limit is known.
#[cfg(not(unix))]
const fn has_room_for_threads() -> bool {
    true
}

/// What a runtime says of itself, or why it cannot be used.
fn answer_of(name: &str, stop: &Stop) -> anyhow::Result<String> {
    let device = Device::cpu(1, false).with_runtimes([name])?;
    let choice = &device.runtimes[0];
    Ok(match introduced(&device, choice, stop) {
        Ok(used) => format!("{}, on {}", used.version, used.device),
        Err(NoAnswer::Stopped) => return Err(InterruptedError.into()),
        Err(reason) => {
            let is_missing = matches!(reason, NoAnswer::NoDevice(_));
            let begins = if is_missing { "not found" } else { "does not work" };
            format!("{begins}: {}", why_unusable(choice, &reason))
        }
    })
}

/// What this machine can run on. Nothing that is missing or broken is an error: each backend is
/// looked for in a process of its own, which a library may end.
fn devices(library_folders: &[PathBuf], width: Width, stop: &Stop) -> anyhow::Result<String> {
    let observed = fingerprint::observe();
    let cores =
        observed.physical_cores.map_or_else(String::new, |cores| format!("{cores} cores, "));
    let cpu = format!(
        "{}: {cores}{} threads, {:.1} GiB; {}",
        observed.cpu_model,
        observed.logical_cores,
        observed.memory_bytes as f64 / f64::from(1 << 30),
        observed.features.join(" ")
    );
    let mut text = String::from("Devices of this machine, for --backend and --device:\n");
    text += &line(width, "  cpu   ", &cpu);
    let library_folders: Vec<PathBuf> =
        library_folders.iter().map(absolute).collect::<Result<_, _>>()?;
    for (backend, label) in [
        (Backend::Cuda, "NVIDIA GPUs; emulated and compiled, never run on hardware"),
        (Backend::Hip, "AMD GPUs; emulated and compiled, never run on hardware"),
    ] {
        let gpu = Gpu { library_folders: library_folders.clone(), ..Gpu::default() };
        text += &line(width, &format!("  {:<6}", backend.name()), label);
        for found in found(&Device::gpu(backend, gpu), stop)? {
            text += &line(width, "        ", &found);
        }
    }
    Ok(text)
}

/// The GPUs of a backend in words, or why there are none.
fn found(device: &Device, stop: &Stop) -> Result<Vec<String>, InterruptedError> {
    match probe(device, SurveyTask, SURVEY_LIMIT, stop) {
        Ok(surveyed) => Ok(surveyed.lines),
        Err(NoAnswer::Stopped) => Err(InterruptedError),
        Err(reason) => Ok(vec![reason.to_string()]),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn runtimes_are_asked_at_the_same_time() {
        let names = ["b", "a", "c"].map(str::to_owned);
        let all_are_asked = Barrier::new(names.len());
        let answers = answers(&names, &|name| {
            all_are_asked.wait();
            name.to_uppercase()
        });
        let expected = [("a", "A"), ("b", "B"), ("c", "C")];
        assert!(answers.iter().map(|(name, answer)| (*name, answer.as_str())).eq(expected));
    }
}
