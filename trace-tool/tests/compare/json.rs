//! The JSON, its schema and the page about it.

use std::fs;
use std::path::PathBuf;

use kernel_traces::compare::{Comparison, LayerComparison};
use serde_json::Value;
use trace_tool::report::{CompareReport, trace_compare_json};

use super::example;

fn docs(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    fs::read_to_string(path).unwrap()
}

/// Fails if an output is not as the schema says.
pub(super) fn check(text: &str) -> Value {
    let schema: Value = serde_json::from_str(&docs("trace-compare.schema.json")).unwrap();
    let value: Value = serde_json::from_str(text).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    value
}

fn json(comparison: &Comparison) -> Value {
    let records = example::records(comparison);
    let report = CompareReport { records: &records, ..example::report(comparison) };
    check(&trace_compare_json(report).unwrap())
}

#[test]
fn it_is_as_the_schema_says() {
    let value = json(&example::comparison());
    assert_eq!(value["gap"]["gap_ns"], 1_705_000.0);
    assert_eq!(value["fusions"][0]["operation"], "ADD+NORM");
    assert_eq!(value["metadata"]["trace1_platform"], "AMD");
    assert_eq!(value["operations"][0]["trace1_total_ms"], 71.3);
    assert_eq!(value["layer_alignments"][0]["operations"][3]["amd_count"], 230);
    assert_eq!(value["fusion_opportunities"][0]["fused_by"], "NVIDIA");
    assert_eq!(value["fusion_analysis"]["summary"]["nvidia_fuses"], 1);
    assert_eq!(value["same_kernel_analysis"]["summary"]["nvidia_faster"], 1);
    assert_eq!(value["architecture"]["trace2"]["type"], "dense");
    assert_eq!(value["fusion_records"][0]["patterns"][0], "add_layernorm");
}

#[test]
fn a_schema_that_lacks_a_key_is_not_met() {
    let comparison = example::comparison();
    let mut value = json(&comparison);
    value["gap"]["causes"][0]["surprise"] = Value::from(1);
    let text = value.to_string();
    assert!(std::panic::catch_unwind(|| check(&text)).is_err());
}

#[test]
fn numbers_that_are_none_are_null() {
    let mut comparison = example::comparison();
    comparison.same_kernels[0].ratio.value = f64::INFINITY;
    comparison.same_kernels[0].ratio.interval = Some((1.0, f64::NAN));
    let value = json(&comparison);
    assert_eq!(value["same_kernels"][0]["ratio"]["value"], Value::Null);
    assert_eq!(value["same_kernels"][0]["ratio"]["interval"][1], Value::Null);
    assert_eq!(value["same_kernel_analysis"]["kernels"][0]["ratio"], Value::Null);
    assert_eq!(value["same_kernel_analysis"]["summary"]["mean_ratio"], Value::Null);
}

#[test]
fn a_comparison_with_nothing_in_it_is_as_the_schema_says_too() {
    let mut comparison = example::comparison();
    comparison.layers = LayerComparison::default();
    comparison.layers.none_because = Some("there is no attention".to_owned());
    comparison.fusions.clear();
    comparison.same_kernels.clear();
    comparison.kernels.clear();
    comparison.gap.causes.clear();
    (comparison.first.vendor, comparison.second.vendor) = ("AMD", "AMD");
    let value = json(&comparison);
    assert_eq!(value["fusion_analysis"]["summary"]["trace1_fuses"], 0);
    assert_eq!(value["same_kernel_analysis"]["summary"]["mean_ratio"], Value::Null);
}

#[test]
fn the_page_about_it_has_every_key_of_the_schema() {
    let schema: Value = serde_json::from_str(&docs("trace-compare.schema.json")).unwrap();
    let page = docs("trace-compare-schema.md");
    let mut missing = Vec::new();
    find(&schema, &mut |key, meaning| {
        let line = page.lines().any(|line| {
            let key = line.contains(&format!("{key}` |"));
            key && meaning.is_none_or(|meaning| line.contains(meaning))
        });
        if !line {
            missing.push(key.to_owned());
        }
    });
    assert!(missing.is_empty(), "docs/trace-compare-schema.md lacks {missing:?}");
}

/// Every property of a schema, with its description.
fn find(schema: &Value, found: &mut impl FnMut(&str, Option<&str>)) {
    match schema {
        Value::Object(object) => {
            for (key, inner) in object {
                if let ("properties", Value::Object(properties)) = (key.as_str(), inner) {
                    for (name, property) in properties {
                        found(name, property["description"].as_str());
                    }
                }
                find(inner, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| find(inner, found)),
        _ => {}
    }
}
