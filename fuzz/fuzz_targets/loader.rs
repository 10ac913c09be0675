//! Any bytes as a trace: no panic, and both parsers agree.

#![no_main]

#[allow(dead_code, reason = "each target needs some of the checks")]
#[path = "../../traces/tests/checks/mod.rs"]
mod checks;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    checks::load(bytes);
    checks::summarise(bytes);
});
