//! The comparisons of the original script, figure by figure, on data that is not part of the
//! repository.

use std::fs;
use std::path::{Path, PathBuf};

use kernel_traces::predicted::{
    Comparison, InputWarning, Measured, ModelTrace, OpMap, Passes, Rules, Status, original,
};
use serde_json::Value;

/// The names of the original's scenarios and their files.
const SCENARIOS: [(&str, &str, &str, &str); 4] = [
    ("Qwen3 PF", "qwen3_pf_trace", "qwen3-32b_pf_4112tok", "qwen3_prefill_m6"),
    ("Qwen3 DC", "qwen3_dc_trace", "qwen3-32b_dc_16tok", "qwen3_decode_m6"),
    ("DSv3 PF", "dsv3_pf_trace", "dsv3_pf_4099tok", "dsv3_prefill_m6"),
    ("DSv3 DC", "dsv3_dc_trace", "dsv3_dc_1tok", "dsv3_decode_m6"),
];

/// The cases and their maps.
const CASES: [(&str, &str); 2] =
    [("adversarial_flat_map", "map_flat"), ("adversarial_nested_map", "map_nested")];

/// The folder `shared/opcompare` above the crate.
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
fn folder() -> PathBuf {
    let start = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = start.ancestors().map(|folder| folder.join("shared/opcompare"));
    folders.find(|folder| folder.is_dir()).expect("a folder shared/opcompare above the crate")
}

fn compare(folder: &Path, case: (&str, &str), scenario: usize, rules: Rules) -> Comparison {
    let (_, predicted, measured, passes) = SCENARIOS[scenario];
    let results = folder.join(case.0).join("results");
    let model = ModelTrace::load(results.join(format!("{predicted}.json")), None).unwrap();
    let map = OpMap::load(folder.join(case.1).join("op_mapping.yaml"), rules).unwrap();
    let csv = folder.join(case.0).join("traces").join(format!("{measured}.csv"));
    let measured = Measured::load(csv, None, rules).unwrap();
    let passes = Passes::load(results.join(format!("{passes}.json")), Rules::Original).unwrap();
    Comparison::of(&model, &map, &measured, passes, rules)
}

#[test]
#[ignore = "needs the recorded comparisons in ../shared/opcompare"]
fn the_original_rules_give_the_original_figures() {
    let folder = folder();
    for case in CASES {
        let path = folder.join(case.0).join("results/op_comparison.json");
        let expected: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert_eq!(expected.as_object().unwrap().len(), SCENARIOS.len());
        for (number, (name, ..)) in SCENARIOS.into_iter().enumerate() {
            let rows = original::rows(&compare(&folder, case, number, Rules::Original));
            let rows = serde_json::to_value(rows).unwrap();
            let expected = expected[name].as_array().unwrap();
            assert_eq!(rows.as_array().unwrap().len(), expected.len(), "{case:?} {name}");
            for (row, expected) in rows.as_array().unwrap().iter().zip(expected) {
                assert_eq!(row, expected, "{case:?} {name}");
            }
        }
    }
}

#[test]
#[ignore = "needs the recorded comparisons in ../shared/opcompare"]
fn the_shape_of_the_map_makes_no_difference_under_the_own_rules() {
    let folder = folder();
    for number in 0..3 {
        let [flat, nested] = CASES.map(|case| compare(&folder, case, number, Rules::Own));
        assert_eq!(flat, nested);
        let row = |name: &str| flat.rows.iter().find(|row| row.kernel_type == name).unwrap();
        let product = row("MatMulV2");
        assert_eq!((product.status, product.predicted_count), (Status::Partial, 5));
        assert!((product.predicted_us - 119.77).abs() < 1e-9);
        // Only the model has it, so there is not an error in per cent.
        assert_eq!((row("A").error_pct, row("A").count_error_pct), (None, None));
        assert!(row("A").is_model_only());
        assert_eq!(row("RmsNorm").status, Status::Unmodelled);
        // Two broadcasts without a start: each counts.
        let passes = flat.passes as f64;
        assert_eq!(row("hcom_broadcast_").measured_us, 7.0 / passes);
        let starts = InputWarning::BadStarts { count: 2, line: 8, as_zero: false };
        assert!(flat.warnings.contains(&starts), "{:?}", flat.warnings);
        assert_eq!(flat.zero_cost_events, 1);
        assert_eq!((flat.skipped.aicpu, flat.skipped.no_type), (2, 1));
        assert_eq!(flat.skipped.recorded_twice, 1);
        assert!(!flat.rows.iter().any(|row| row.kernel_type == "aten.view.default"));
    }
}

#[test]
#[ignore = "needs the recorded comparisons in ../shared/opcompare"]
fn a_real_map_is_read() {
    let folder = folder();
    let map = OpMap::load(folder.join("op_mapping_real.yaml"), Rules::Own).unwrap();
    assert_eq!(map.warnings, []);
    assert!(map.len() > 120, "{}", map.len());
    assert_eq!(map.kernel_type("torch.ops.aten.mm.default"), Some("MatMulV2"));
    assert!(map.is_zero_cost("aten.view.default"));
    // At the top level there are only policies.
    let original = OpMap::load(folder.join("op_mapping_real.yaml"), Rules::Original).unwrap();
    assert!(original.is_empty());
}
