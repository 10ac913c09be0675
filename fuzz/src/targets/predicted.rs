//! The inputs of a comparison of predicted and measured kernels: how an operator's time is split,
//! the table of measured kernels, the map, and the trace of a model.

use std::collections::BTreeSet;
use std::path::Path;

use kernel_traces::predicted::{
    Comparison, LiteralError, Measured, ModelTrace, OpMap, Operators, Passes, Rules, original,
    sub_kernel_durations,
};
use trace_tool::scenario_list::ScenarioList;

use super::{file_with, said_of, text};
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

/// Each way has what was predicted and measured of its operators, and errors add up.
pub(super) const OPERATORS: Target = Target {
    name: "operators",
    seeds: || OPERATOR_FILES.map(Into::into).to_vec(),
    run: |bytes| match Operators::from_bytes(bytes, "w.json") {
        Ok(ways) => {
            for way in &ways {
                let (map, measured) = (OpMap::default(), &way.measured);
                let found = Comparison::of(&way.model, &map, measured, Passes::ONE, Rules::Own);
                assert_eq!(
                    measured.rows,
                    measured.kernels.iter().map(|one| one.count).sum::<u64>()
                );
                let totals = found.totals;
                let rounding = 1e-6 * (totals.absolute_error_us + totals.predicted_us.abs());
                assert!(totals.absolute_error_us + rounding >= totals.error_us.abs());
            }
            String::new()
        }
        Err(error) => error.to_string(),
    },
};

/// The JSON and the CSV of a workload.
const OPERATOR_FILES: [&str; 2] = [
    r#"{"kind": "workload-report", "operators": [
        {"way": "unfused", "problem": "relu/f32/m4.n4", "times": 2, "evidence": "measured",
         "predicted_ms": {"value": 0.3, "low": 0.2, "high": 0.4}, "measured_ms": 0.2},
        {"way": "unfused", "problem": "add/f32/m4.n4", "times": 1, "evidence": "interpolated",
         "predicted_ms": 0.1, "measured_ms": 0.2},
        {"way": "best-partition", "problem": "add_relu/f32/m4.n4", "times": 1,
         "evidence": "unknown", "predicted_ms": null, "measured_ms": 0.25}]}"#,
    "row,way,problem,times,evidence,predicted_ms,measured_ms,verdict\r\n\
     way,unfused,,3,,0.4,0.4,\r\n\
     operator,unfused,relu/f32/m4.n4,2,measured,0.3,0.2,\r\n\
     operator,best-partition,add_relu/f32/m4.n4,1,unknown,,0.25,\r\n",
];

/// Figures for a pass can be computed from what is read.
pub(super) const PASSES: Target = Target {
    name: "passes",
    seeds: || {
        let seeds =
            ["{\"n_forward_passes\": 3}", "{\"a\": [1.5], \"n_forward_passes\": 2.0}", "{}"];
        seeds.map(Into::into).to_vec()
    },
    run: |bytes| {
        let path = file_with("passes.json", bytes);
        let said = [Rules::Own, Rules::Original].map(|rules| match Passes::load(&path, rules) {
            Ok(passes) => {
                assert!(passes.is_usable(rules));
                String::new()
            }
            Err(error) => error.to_string(),
        });
        said_of(&path, &said.concat())
    },
};

/// Each scenario of a list has a name of its own and a limit that can be kept, in both formats.
pub(super) const SCENARIOS: Target = Target {
    name: "scenarios",
    seeds: || SCENARIO_LISTS.map(Into::into).to_vec(),
    run: |bytes| {
        text(bytes, |text| {
            // An error of TOML ends with what is wrong, and one of YAML begins with it.
            let said = |error: &str, at: usize| {
                let lines: Vec<&str> = error.trim_end().lines().collect();
                lines.get(at * lines.len().saturating_sub(1)).unwrap_or(&"").to_string()
            };
            let read = |name: &str, at: usize| match ScenarioList::parse(Path::new(name), text) {
                Ok(ScenarioList { scenarios }) => {
                    let names: BTreeSet<_> = scenarios.iter().map(|one| &one.name).collect();
                    assert!(!names.is_empty() && names.len() == scenarios.len());
                    let mut limits = scenarios.iter().filter_map(|one| one.max_wmape);
                    assert!(limits.all(|limit| limit.is_finite() && limit >= 0.0));
                    String::new()
                }
                Err(error) => said(&error, at),
            };
            read("s.toml", 1) + &read("s.yaml", 0)
        })
    },
};

const SCENARIO_LISTS: [&str; 3] = [
    "[[scenarios]]\nname = \"a\"\npredicted = \"m.json\"\nmeasured = \"k.csv\"\npasses = 3\n\
     [[scenarios]]\nname = \"b\"\npredicted = \"m.json\"\nmeasured = \"k.csv\"\n\
     op_map = \"map.yaml\"\npasses_from = \"p.json\"\nmax_wmape = 15.5\n",
    "scenarios:\n  - {name: a, predicted: m.json, measured: t.json, measured_by: class}\n",
    "---\n# alone\n- name: a\n  predicted: m.json\n  measured: k.csv\n  process: empirical\n",
];
