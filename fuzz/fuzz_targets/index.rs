//! The index of a synthetic trace with changes at any places, all by the fuzzer's bytes.

#![no_main]

#[allow(dead_code, reason = "each target needs some of the checks")]
#[path = "../../traces/tests/checks/mod.rs"]
mod checks;

use checks::Choices;
use kernel_traces::index::{Checksums, read_bytes, to_bytes};
use kernel_traces::{Options, Trace, synthetic};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // Bytes that are not an index at all.
    let _ = read_bytes(bytes, Checksums::Ignored);
    let mut choices = Choices::new(bytes);
    let Ok((text, _)) = synthetic::text(&choices.plan()) else { return };
    let Ok(trace) = Trace::from_json(&text, &Options::default()) else { return };
    let Ok(whole) = to_bytes(&trace) else { return };
    assert!(read_bytes(&whole, Checksums::Verified).is_ok_and(|read| read == trace));
    let mut changed = whole.clone();
    while !choices.is_empty() && !changed.is_empty() {
        if choices.below(2) == 0 {
            choices.change(&mut changed);
        } else {
            // Another length is seen at once; another value is not.
            let at = choices.below(changed.len());
            changed[at] = choices.below(256) as u8;
        }
    }
    let verified = read_bytes(&changed, Checksums::Verified);
    assert!(changed == whole || verified.is_err(), "a changed index was read");
    if let Ok(read) = read_bytes(&changed, Checksums::Ignored) {
        checks::analyse(&read);
    }
});
