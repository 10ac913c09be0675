//! The example in C compiles without a warning, leaks nothing, and answers as the one in Rust.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use fusion_cost_model::{FusionCostModel, Policy, Target, WhenUnknown};

#[allow(dead_code, reason = "a test does not start `main`")]
#[path = "../../../examples/partitioner.rs"]
mod partitioner;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion"];
const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// A compiler of C or C++, if there is one.
fn compiler(variable: &str, usual: &str) -> Option<OsString> {
    let name = std::env::var_os(variable).unwrap_or_else(|| usual.into());
    let runs = Command::new(&name).arg("--version").output().is_ok_and(|it| it.status.success());
    if !runs {
        eprintln!("skipped: there is no `{}`", name.display());
    }
    runs.then_some(name)
}

/// The library, next to this test: Cargo has built it for the test.
fn library() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let library = this.with_file_name("libfusion_cost_model_c.a");
    assert!(library.exists(), "{} is missing", library.display());
    library
}

/// What a static library in Rust needs of the system.
fn system_libraries() -> &'static [&'static str] {
    if cfg!(target_os = "linux") { &["-lpthread", "-lm", "-ldl"] } else { &[] }
}

/// Compiles and runs a program, and returns what it printed.
fn run(mut compile: Command, program: &Path) -> Result<String, String> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/example.toml");
    for command in [compile.arg("-o").arg(program), Command::new(program).arg(file)] {
        let done = command.output().map_err(|error| error.to_string())?;
        if !done.status.success() {
            return Err(format!("{command:?}: {}", String::from_utf8_lossy(&done.stderr)));
        }
        if command.get_program() == program {
            return String::from_utf8(done.stdout).map_err(|error| error.to_string());
        }
    }
    unreachable!("the second command is the program")
}

/// What the example in Rust prints.
fn expected() -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/example.toml");
    let model = FusionCostModel::load(file).unwrap();
    let policy = Policy::new(WhenUnknown::Conservative);
    let graph = partitioner::graph().unwrap();
    let best = model.on(Target::cpu(2)).partition_graph(&graph, &policy).unwrap();
    let mut lines = String::new();
    for segment in &best.segments {
        let (kernel, evidence) = (segment.problem.unwrap(), segment.estimate.evidence());
        lines += &format!("{kernel}: {evidence}, saves {:.3} ms\n", segment.saved_ms.value);
    }
    lines + &format!("{:.3} ms less than one kernel per op\n", best.saved_ms.value)
}

#[test]
fn the_example_answers_as_the_one_in_rust() {
    let Some(cc) = compiler("CC", "cc") else { return };
    let folder = tempfile::tempdir().unwrap();
    let trivial = folder.path().join("trivial.c");
    std::fs::write(&trivial, "int main(void) { return 0; }\n").unwrap();
    let mut sanitized = Command::new(&cc);
    sanitized.args(SANITIZERS).arg(&trivial);
    let has_sanitizers = run(sanitized, &folder.path().join("trivial"));
    if let Err(reason) = &has_sanitizers {
        eprintln!("without sanitizers: {reason}");
    }
    let mut compile = Command::new(&cc);
    compile.args(["-std=c11", "-g"]).args(WARNINGS);
    if has_sanitizers.is_ok() {
        compile.args(SANITIZERS);
    }
    compile.arg(format!("-I{ROOT}/include")).arg(format!("{ROOT}/examples/partitioner.c"));
    compile.arg(library()).args(system_libraries());
    let printed =
        run(compile, &folder.path().join("partitioner")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(printed, expected());
}

#[test]
fn the_header_is_one_of_cpp_too() {
    let Some(cxx) = compiler("CXX", "c++") else { return };
    let mut check = Command::new(cxx);
    check.args(["-std=c++11", "-fsyntax-only", "-x", "c++"]).args(WARNINGS);
    let done = check.arg(format!("{ROOT}/include/fusion_cost_model.h")).output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{errors}");
}
