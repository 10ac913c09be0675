//! Real traces give the kernels that a plain JSON parser finds in them.

use crate::real;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use kernel_traces::{IndexPolicy, IndexUse, Options, Trace, Vendor, index, trace_files};
use serde_json::Value;

fn text_of(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    MultiGzDecoder::new(File::open(path).unwrap()).read_to_end(&mut text).unwrap();
    text
}

/// Counts and summed microseconds of what ran on devices, of calls, and of operators.
fn independent(text: &[u8]) -> [(u64, f64); 3] {
    let value: Value = serde_json::from_str(&String::from_utf8_lossy(text)).unwrap();
    let events = value.get("traceEvents").unwrap_or(&value).as_array().unwrap();
    let of = |categories: &[&str]| {
        let mut result = (0, 0.0);
        for event in events {
            let category = event["cat"].as_str().unwrap_or_default().to_lowercase();
            if event["ph"] == "X" && categories.contains(&category.as_str()) {
                result.0 += 1;
                result.1 += event["dur"].as_f64().unwrap();
            }
        }
        result
    };
    [
        of(&["kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"]),
        of(&["cuda_runtime", "cuda_driver", "runtime"]),
        of(&["cpu_op", "operator"]),
    ]
}

/// The traces in the folder.
fn files() -> Vec<PathBuf> {
    let mut files = trace_files(real::folder()).unwrap();
    files.retain(|file| file.extension().is_some_and(|end| end == "gz"));
    assert!(!files.is_empty());
    files
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn kernels_are_those_of_an_independent_count() {
    for file in files() {
        let trace = Trace::load(&file, &Options::default(), &mut |_, _| {}).unwrap();
        let text = text_of(&file);
        let tables = [
            (trace.kernels.len(), trace.kernels.total_ns()),
            (trace.launches.len(), trace.launches.total_ns()),
            (trace.ops.len(), trace.ops.total_ns()),
        ];
        for ((count, total_ns), (true_count, true_us)) in tables.into_iter().zip(independent(&text))
        {
            assert_eq!(count as u64, true_count, "{}", file.display());
            // The sum of floats is the one that is off.
            let off = (total_ns as f64 / 1e3 - true_us).abs();
            assert!(off <= 1e-9 * true_us + 1e-6, "{}: {off} us", file.display());
        }
        let only_no_kernels = trace.warnings.iter().all(|warning| warning.code() == "no-kernels");
        assert!(only_no_kernels, "{}: {:?}", file.display(), trace.warnings);
        let options = Options { strict: true, ..Options::default() };
        assert_eq!(Trace::from_json(&text, &options).unwrap(), trace, "{}", file.display());
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("mi") {
            assert_eq!(trace.vendor(), Vendor::Amd, "{name}");
        } else if ["h100", "a100", "v100"].iter().any(|device| name.starts_with(device)) {
            assert_eq!(trace.vendor(), Vendor::Nvidia, "{name}");
        }
    }
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn each_comes_back_from_its_index() {
    let cache = tempfile::tempdir().unwrap();
    let policy = IndexPolicy::In(cache.path().to_owned());
    let options = Options::default();
    for file in files() {
        index::build(&file, &options, &policy, &mut |_, _| {}).unwrap();
        let (trace, used) = Trace::open(&file, &options, &policy, &mut |_, _| {}).unwrap();
        assert!(matches!(used, IndexUse::Read), "{}: {used:?}", file.display());
        let expected = Trace::load(&file, &options, &mut |_, _| {}).unwrap();
        assert!(trace == expected, "{}", file.display());
    }
}
