//! A synthetic trace of any kind with changes at any places, all by the fuzzer's bytes.

#![no_main]

#[allow(dead_code, reason = "each target needs some of the checks")]
#[path = "../../traces/tests/checks/mod.rs"]
mod checks;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = checks::changed_trace(bytes);
    checks::load(&text);
    // Eight megabytes of spaces are slow, so not always.
    if let [.., b'0'..=b'7', low] = bytes {
        checks::load_cut_at(&text, usize::from(*low) * text.len() / 256);
    }
    checks::summarise(&text);
});
