//! Any bytes as what a trace says about its run, alone and before events.

#![no_main]

#[allow(dead_code, reason = "each target needs some of the checks")]
#[path = "../../traces/tests/checks/mod.rs"]
mod checks;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| checks::metadata(bytes));
