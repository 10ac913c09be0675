//! The inputs of a comparison of predicted and measured kernels: how an operator's time is split,
//! the table of measured kernels, the map, and the trace of a model.

use kernel_traces::predicted::{
    Comparison, LiteralError, Measured, ModelTrace, OpMap, Passes, Rules, original,
    sub_kernel_durations,
};

use crate::Target;

/// Every row is counted or left out for a reason, and errors add up.
pub(super) const PREDICTED: Target =
    Target { name: "predicted", seeds: || SEEDS.map(Into::into).to_vec(), run };

/// An input of each kind.
const SEEDS: [&str; 5] = [
    r#"[('MatMulV2', 22.77), ("it's\x41", -8e-05), ]"#,
    "\u{feff}Type,Duration(us)\t,Start Time(us)\r\nMatMul,1.5,1\r\nhcom_a_,2\t,1000.25\t\r\n",
    "file,rank,start_ns,duration_ns,kind,class,label,name\na,0,1,1500,kernel,GEMM,GEMM,k\n",
    "operator_mappings:\n  aten.mm: {kernel_type: MatMul}\n  aten.view: {zero_cost: yes}\n",
    r#"{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "empirical"}},
        {"ph": "X", "name": "all_reduce", "pid": 1, "dur": 31, "args": {"kernel_type": "A,B",
        "sub_kernel_durations": "[('A', 22.77), ('B', 8.29)]"}}]}"#,
];

fn run(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match sub_kernel_durations(&text) {
        Ok(pairs) => assert!(pairs.iter().all(|(_, us)| us.is_finite())),
        Err(LiteralError::Syntax { at, .. }) => assert!(at <= text.len()),
        Err(LiteralError::NotPairs) => {}
    }
    let mut said = Vec::new();
    for rules in [Rules::Own, Rules::Original] {
        let measured = Measured::from_csv(bytes, "k.csv", None, rules);
        if let Ok(found) = &measured {
            let kept: u64 = found.kernels.iter().map(|kernels| kernels.count).sum();
            assert_eq!(kept + found.skipped.sum(), found.rows);
        }
        let map = OpMap::from_yaml(&text, rules);
        let model = ModelTrace::from_json(bytes, "m.json", None);
        said.extend(measured.as_ref().err().map(ToString::to_string));
        said.extend(map.as_ref().err().map(ToString::to_string));
        said.extend(model.as_ref().err().map(ToString::to_string));
        // Of any bytes, at most one of them is what it should be.
        let (Ok(model), map) = (model, map.unwrap_or_default()) else { continue };
        let measured = measured.unwrap_or_default();
        let found = Comparison::of(&model, &map, &measured, Passes::ONE, rules);
        assert_eq!(original::rows(&found).len(), found.rows.len());
        let totals = found.totals;
        // Predictions may be negative; sums of large ones are rounded.
        let rounding = 1e-6 * (totals.absolute_error_us + totals.predicted_us.abs());
        assert!(totals.absolute_error_us + rounding >= totals.error_us.abs());
    }
    said.join(" ").replace('\n', " ")
}
