//! Runs every target for a moment, or for as long as the environment says; see docs/fuzzing.md.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::env;
use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use fuzz_targets::{drive, named};
use twox_hash::XxHash3_64;

/// Seconds of each target, unless `FUZZ_SECONDS` says otherwise.
const SECONDS: f64 = 0.2;

fn from_environment<T: FromStr<Err: Debug>>(name: &str, otherwise: T) -> T {
    env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

fn run(name: &str) {
    let target = named(name).unwrap();
    // A finding, once more.
    if let Ok(path) = env::var("FUZZ_INPUT") {
        println!("{name}: {}", (target.run)(&fs::read(path).unwrap()));
        return;
    }
    let time = Duration::from_secs_f64(from_environment("FUZZ_SECONDS", SECONDS));
    match drive(target, from_environment("FUZZ_SEED", 1), time) {
        Ok(found) => println!(
            "fuzz {name}: {} inputs, {} kept, at most {:.0} ms",
            found.executions,
            found.kept,
            found.slowest.as_secs_f64() * 1e3
        ),
        Err(finding) => {
            let number = XxHash3_64::oneshot(&finding.input);
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{number:016x}"));
            fs::write(&path, &finding.input).unwrap();
            panic!(
                "{}; once more: FUZZ_INPUT={} cargo test --test targets {name} -- --exact",
                finding.what,
                path.display()
            );
        }
    }
}

/// With cargo-fuzz too, and said what must hold of it.
#[test]
fn every_target_has_a_fuzzer_and_a_line_in_the_documentation() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_to_string(folder.join("../docs/fuzzing.md")).unwrap();
    for name in fuzz_targets::TARGETS.iter().map(|target| target.name) {
        assert!(folder.join(format!("libfuzzer/src/bin/{name}.rs")).is_file(), "{name}");
        let is_its_row = |line: &str| {
            let cell = line.strip_prefix("| ").and_then(|row| row.split(" | ").next());
            cell.is_some_and(|cell| cell.split(", ").any(|one| one == format!("`{name}`")))
        };
        assert!(docs.lines().any(is_its_row), "{name}");
    }
}

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            run(stringify!($name));
        })*

        #[test]
        fn every_target_is_run() {
            let names = fuzz_targets::TARGETS.iter().map(|target| target.name);
            assert!(names.eq([$(stringify!($name)),*]));
        }
    };
}

targets!(
    calibration,
    hardware,
    shapes,
    workload,
    command_line,
    defaults,
    problem_list,
    runtime,
    runtime_answer,
    machine_states,
    compiled_kernel,
    gpu_library,
    imported,
    import_json,
    journal,
    worker,
    problem,
    trace,
    trace_changed,
    trace_repeated,
    trace_compressed,
    trace_head,
    trace_index,
    kernel_name,
    nsys_lines,
    nsys_database,
    rocprof,
    rocprof_table,
    predicted,
    operators,
    passes,
    scenarios,
    graph,
    graph_changed,
);
