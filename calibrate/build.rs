//! Rebuilds the program when a data file is added, since `include_dir` notices only changed ones,
//! and passes it its build settings, for the calibration files that it writes.

use std::path::PathBuf;
use std::process::Command;

#[path = "src/build_info/lock_file.rs"]
mod lock_file;

/// The crates that kernels are made of.
const KERNEL_CRATES: [&str; 2] = ["gemm", "pulp"];

fn main() {
    println!("cargo:rerun-if-changed=profiles");
    println!("cargo:rerun-if-changed=runtimes");
    tell("CALIBRATE_COMPILER", &compiler());
    tell("CALIBRATE_COMPILER_FLAGS", &compiler_flags());
    tell("CALIBRATE_PROFILE", &variable("PROFILE"));
    tell("CALIBRATE_OPT_LEVEL", &variable("OPT_LEVEL"));
    tell("CALIBRATE_CRATES", &crates());
}

/// Sets a variable that the program reads with `env!`.
fn tell(name: &str, value: &str) {
    // A line break would end the instruction to Cargo.
    println!("cargo:rustc-env={name}={}", value.replace(['\n', '\r'], " "));
}

fn variable(name: &str) -> String {
    println!("cargo:rerun-if-env-changed={name}");
    std::env::var(name).unwrap_or_default()
}

/// The compiler and its version.
fn compiler() -> String {
    let output = Command::new(variable("RUSTC")).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

/// The flags in addition to those of the build profile, separated by spaces.
fn compiler_flags() -> String {
    // Cargo joins the flags with the ASCII unit separator, since a flag may contain spaces.
    variable("CARGO_ENCODED_RUSTFLAGS").replace('\u{1f}', " ")
}

/// The kernels' crates with their versions, separated by commas.
fn crates() -> String {
    let lock_file = lock_file::find(&PathBuf::from(variable("CARGO_MANIFEST_DIR")));
    let text = lock_file.and_then(|path| {
        println!("cargo:rerun-if-changed={}", path.display());
        std::fs::read_to_string(path).ok()
    });
    lock_file::describe(&text.unwrap_or_default(), &KERNEL_CRATES).join(",")
}
