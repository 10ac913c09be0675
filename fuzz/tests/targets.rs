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
    graph,
    graph_changed,
);
