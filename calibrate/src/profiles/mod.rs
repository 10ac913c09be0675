//! The data sheets, sets of sizes, workloads and calibrations under `profiles/`, built into the
//! program.

mod models;
mod node_line;
mod shapes;
mod workloads;

use std::path::Path;

use anyhow::Context;
use cli_support::input;
use fusion_cost_model::Error;
use fusion_cost_model::hardware::HardwareSpec;
use include_dir::{Dir, include_dir};

use crate::exit::UsageError;

pub use models::{Model, find_model, given_dims, graph_error};
pub use shapes::{ShapeSet, ShapesError};
pub use workloads::{Workload, WorkloadError};

static HARDWARE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/profiles/hardware");
static SHAPES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/profiles/shapes");
static WORKLOADS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/profiles/workloads");
static CALIBRATIONS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/profiles/calibrations");

/// The TOML files of a folder: stem and text, by name.
fn files(folder: &'static Dir<'_>) -> Vec<(&'static str, &'static str)> {
    let mut named: Vec<_> = folder
        .files()
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "toml"))
        .filter_map(|file| Some((file.path().file_stem()?.to_str()?, file.contents_utf8()?)))
        .collect();
    named.sort_unstable();
    named
}

/// Every machine with a data sheet.
///
/// # Errors
///
/// When a built-in file is damaged, which a test rules out.
pub fn hardware() -> anyhow::Result<Vec<HardwareSpec>> {
    files(&HARDWARE)
        .into_iter()
        .map(|(stem, text)| {
            HardwareSpec::from_toml(text).with_context(|| format!("profiles/hardware/{stem}.toml"))
        })
        .collect()
}

/// The calibrations and imported profiles of the project: stem and text, by name.
#[must_use]
pub fn calibrations() -> Vec<(&'static str, &'static str)> {
    files(&CALIBRATIONS)
}

/// Whether a name on the command line means a file and not something built in.
fn is_path(name: &str) -> bool {
    name.contains(['/', '\\']) || name.ends_with(".toml")
}

/// The bytes of a file of sizes or a data sheet at most; the largest one that is built in has 7 kB.
const MOST_BYTES: u64 = 1 << 20;

fn read(path: &str) -> anyhow::Result<String> {
    let text = input::text(Path::new(path), MOST_BYTES);
    text.map_err(|error| UsageError(format!("cannot read {path}: {error}")).into())
}

/// A machine by id, name, alias, or the path of a hardware file.
///
/// # Errors
///
/// [`UsageError`] or [`Error`] when there is none, with the nearest names.
pub fn find_hardware(name: &str) -> anyhow::Result<HardwareSpec> {
    if is_path(name) {
        return HardwareSpec::from_toml(&read(name)?)
            .map_err(|error| UsageError(format!("{name}: {error}")).into());
    }
    let known = hardware()?;
    if let Some(spec) = known.iter().find(|spec| spec.is_called(name)) {
        return Ok(spec.clone());
    }
    let names = known.iter().flat_map(|spec| {
        std::iter::once(spec.id.as_str()).chain(spec.aliases.iter().map(String::as_str))
    });
    Err(Error::unknown_name("hardware", name, names))
        .context("see `calibrate list hardware`, or use auto")
}

/// The names of the built-in sets of sizes.
#[must_use]
pub fn shape_names() -> Vec<&'static str> {
    files(&SHAPES).into_iter().map(|(stem, _)| stem).collect()
}

/// The names of the built-in workloads.
#[must_use]
pub fn workload_names() -> Vec<&'static str> {
    files(&WORKLOADS).into_iter().map(|(stem, _)| stem).collect()
}

/// A set of sizes by name or path.
///
/// # Errors
///
/// [`UsageError`] when there is none, or it is damaged; an [`Error`] when a built-in one is.
pub fn find_shapes(name: &str) -> anyhow::Result<ShapeSet> {
    if is_path(name) {
        return ShapeSet::from_toml(&read(name)?)
            .map_err(|error| UsageError(format!("{name}: {error}")).into());
    }
    let wanted = name.to_ascii_lowercase();
    match files(&SHAPES).into_iter().find(|(stem, _)| *stem == wanted) {
        Some((_, text)) => {
            Ok(ShapeSet::from_toml(text).with_context(|| format!("profiles/shapes/{name}.toml"))?)
        }
        None => {
            let unknown = Error::unknown_name("shape set", name, shape_names());
            let advice = "see `calibrate list shapes`, or name a .toml file";
            Err(UsageError(format!("{unknown}; {advice}")).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fusion_cost_model::FileKind;
    use fusion_cost_model::calibration::HardwareCalibration;
    use fusion_cost_model::hardware::Processor;
    use fusion_cost_model::imported::ImportedProfile;
    use fusion_cost_model::{Chain, DType, PATTERNS, Problem};

    #[test]
    fn every_machine_is_whole_and_found_by_all_its_names() {
        let machines = hardware().unwrap();
        assert!(machines.len() >= 24);
        for (stem, _) in files(&HARDWARE) {
            assert_eq!(find_hardware(stem).unwrap().id, stem, "id and file name differ");
        }
        for machine in &machines {
            for name in machine.aliases.iter().chain([&machine.id, &machine.name]) {
                let found: Vec<_> = machines.iter().filter(|other| other.is_called(name)).collect();
                assert_eq!(found.len(), 1, "{name} is not unique");
            }
            assert!(machine.peak_gflops(DType::F32).is_some(), "{} has no f32 peak", machine.id);
            for peak in &machine.peaks {
                assert!(!peak.source.is_empty() && !peak.how.is_empty(), "{}", machine.id);
            }
        }
    }

    #[test]
    fn machines_are_told_from_their_siblings() {
        let machines = hardware().unwrap();
        let detected = |reported: &str| -> Vec<String> {
            let found = machines.iter().filter(|machine| machine.is_detected_as(reported));
            found.map(|machine| machine.id.clone()).collect()
        };
        for (reported, id) in [
            ("12th Gen Intel(R) Core(TM) i7-12700K", "i7-12700k"),
            ("13th Gen Intel(R) Core(TM) i9-13900K", "i9-13900k"),
            ("AMD Ryzen 9 7950X 16-Core Processor", "ryzen-9-7950x"),
            ("AMD EPYC 9654 96-Core Processor", "epyc-9654"),
            ("Intel(R) Xeon(R) Platinum 8480+", "xeon-platinum-8480plus"),
            ("NVIDIA H200", "h200"),
            ("NVIDIA H100 80GB HBM3", "h100-sxm"),
            ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
            ("NVIDIA GeForce RTX 4090", "rtx-4090"),
            ("AMD Instinct MI300X", "mi300x"),
            ("AMD Ryzen 9 9950X 16-Core Processor", "ryzen-9-9950x"),
            ("AMD EPYC 9755 128-Core Processor", "epyc-9755"),
            ("Intel(R) Xeon(R) 6980P", "xeon-6980p"),
            ("NVIDIA B200", "b200"),
            ("NVIDIA GB200", "gb200"),
            ("NVIDIA GeForce RTX 5090", "rtx-5090"),
            ("AMD Instinct MI355X", "mi355x"),
            ("AMD Instinct MI250X", "mi250x"),
        ] {
            assert_eq!(detected(reported), [id], "{reported}");
        }
        for sibling in [
            "13th Gen Intel(R) Core(TM) i9-13900KS",
            "AMD Ryzen 9 7950X3D 16-Core Processor",
            "AMD EPYC 9654P 96-Core Processor",
            "Intel(R) Xeon(R) Platinum 8480C",
            "Intel(R) Xeon(R) Processor",
            "NVIDIA H200 NVL",
            "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
            "NVIDIA A100-SXM4-80GB MIG 3g.40gb",
            "NVIDIA H100 PCIe",
            "NVIDIA GeForce RTX 4090 D",
            "NVIDIA GeForce RTX 4090 Laptop GPU",
            "AMD Ryzen 9 9950X3D 16-Core Processor",
            "Intel(R) Xeon(R) 6979P",
            "Apple M4",
            "Apple M4 Pro",
            // Of several machines, which only their users can name.
            "Neoverse-V2",
            "Apple M4 Max",
            "NVIDIA B300",
            "NVIDIA GB300",
            "NVIDIA GeForce RTX 5090 D",
            "NVIDIA GeForce RTX 5090 Laptop GPU",
            "AMD Instinct MI350X",
        ] {
            assert_eq!(detected(sibling), Vec::<String>::new(), "{sibling}");
        }
    }

    #[test]
    fn matrix_peaks_of_gpus_are_the_dense_ones() {
        let machine = |id: &str| find_hardware(id).unwrap();
        // Sparse figures would be twice these.
        for (id, dtype, gflops) in [
            ("a100-80gb", DType::Bf16, 312e3),
            ("h100-sxm", DType::Bf16, 989.4e3),
            ("h200", DType::F8, 1979e3),
            ("mi300x", DType::F16, 1307.4e3),
            ("b200", DType::Bf16, 2250e3),
            ("gb200", DType::F8, 5000e3),
            ("rtx-5090", DType::Bf16, 209.5e3),
            ("mi355x", DType::F8, 5033.2e3),
            // Of one of its two dies, which a program sees as a GPU.
            ("mi250x", DType::F16, 191.5e3),
        ] {
            let peak = machine(id).peak_gflops(dtype).unwrap();
            assert!((peak / gflops - 1.0).abs() < 0.001, "{id} {dtype}: {peak}");
            assert_eq!(machine(id).processor, Processor::Gpu);
        }
    }

    #[test]
    fn every_shape_set_is_whole() {
        for name in ["quick", "standard", "resnet50", "bert-base", "llama-8b", "peers"] {
            let set = find_shapes(name).unwrap();
            assert_eq!(set.name, name);
            assert!(!set.all_chains().is_empty(), "{name} is empty");
        }
    }

    /// What a cost model needs: one chain of each anchor at eight sizes or more, a quarter of them
    /// odd, and every op of the patterns by itself.
    #[test]
    fn the_standard_sizes_are_dense_for_each_anchor_and_have_the_single_ops() {
        let set = find_shapes("standard").unwrap();
        for (chain, keys) in [
            ("linear_bias_relu", &["m", "k", "n"][..]),
            ("conv_bn_relu", &["c", "h", "k"]),
            ("attention_head", &["q", "kv"]),
            ("add_relu", &["m", "n"]),
        ] {
            let problems = set.problems(&chain.parse().unwrap(), DType::F32);
            let is_odd = |problem: &&Problem| {
                let mut sizes = problem.sizes().iter();
                sizes.any(|(key, value)| keys.contains(&key.key) && value > 1 && value % 2 == 1)
            };
            let odd = problems.iter().filter(is_odd).count();
            assert!(problems.len() >= 8 && 4 * odd >= problems.len(), "{chain}: {odd} are odd");
        }
        let chains = set.all_chains();
        for pattern in PATTERNS {
            assert!(chains.contains(&Chain::new(pattern.ops).unwrap()), "{}", pattern.name);
            for op in pattern.ops {
                assert!(chains.contains(&Chain::new(&[*op]).unwrap()), "{op}");
            }
        }
    }

    #[test]
    fn every_calibration_of_the_project_can_be_read() {
        let all = calibrations();
        assert!(all.len() >= 2);
        for (stem, text) in all {
            let records = match FileKind::of(text) {
                Some(FileKind::Imported) => ImportedProfile::from_toml(text).unwrap().records.len(),
                _ => HardwareCalibration::from_toml(text).unwrap().records.len(),
            };
            assert!(records > 0, "{stem}");
        }
    }

    #[test]
    fn unknown_names_suggest_near_ones() {
        let message = format!("{:#}", find_hardware("i7-12700x").unwrap_err());
        assert!(message.contains("`i7-12700k`"), "{message}");
        let message = format!("{:#}", find_shapes("resnet").unwrap_err());
        assert!(message.contains("`resnet50`"), "{message}");
    }
}
