//! Any bytes as a graph, in ONNX or JSON: no panic, and what is read is whole.

#![no_main]

#[allow(dead_code, reason = "each target needs some of the checks")]
#[path = "../../graphs/tests/checks/mod.rs"]
mod checks;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| checks::read(bytes));
