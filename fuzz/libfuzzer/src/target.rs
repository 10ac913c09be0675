// A binary of `src/bin`, whose name is that of its target.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(target) = fuzz_targets::named(env!("CARGO_BIN_NAME")) {
        (target.run)(bytes);
    }
});
