//! Any text as the name of a kernel; a second line as its operator, a third as its frame.

#![no_main]

#[allow(dead_code, reason = "each target needs some of the checks")]
#[path = "../../traces/tests/checks/mod.rs"]
mod checks;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| checks::classify(bytes));
