//! An ONNX file with changes at any places, by the fuzzer's bytes.

#![no_main]

#[path = "../../graphs/tests/checks/mod.rs"]
mod checks;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| checks::read(&checks::changed_model(bytes)));
