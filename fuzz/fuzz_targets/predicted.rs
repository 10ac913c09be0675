//! Any bytes as the inputs of a comparison of predicted and measured kernels: how an operator's
//! time is split, the table of measured kernels, the map, and the trace of a model.

#![no_main]

use kernel_traces::predicted::{
    Comparison, LiteralError, Measured, ModelTrace, OpMap, Passes, Rules, original,
    sub_kernel_durations,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match sub_kernel_durations(&text) {
        Ok(pairs) => assert!(pairs.iter().all(|(_, us)| us.is_finite())),
        Err(LiteralError::Syntax { at, .. }) => assert!(at <= text.len()),
        Err(LiteralError::NotPairs) => {}
    }
    for rules in [Rules::Own, Rules::Original] {
        let measured = Measured::from_csv(bytes, "k.csv", None, rules);
        if let Ok(found) = &measured {
            let kept: u64 = found.kernels.iter().map(|kernels| kernels.count).sum();
            assert_eq!(kept + found.skipped.sum(), found.rows);
        }
        let map = OpMap::from_yaml(&text, rules);
        let model = ModelTrace::from_json(bytes, "m.json", None);
        // Of any bytes, at most one of them is what it should be.
        let (Ok(model), map) = (model, map.unwrap_or_default()) else { continue };
        let measured = measured.unwrap_or_default();
        let found = Comparison::of(&model, &map, &measured, Passes::ONE, rules);
        assert_eq!(original::rows(&found).len(), found.rows.len());
        let totals = found.totals;
        assert!(totals.absolute_error_us + 1e-6 * totals.predicted_us >= totals.error_us.abs());
    }
});
