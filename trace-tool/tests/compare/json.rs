//! The JSON and its schema.

use std::fs;
use std::path::PathBuf;

use kernel_traces::compare::{Comparison, LayerComparison};
use serde_json::Value;
use trace_tool::report::{CompareReport, trace_compare_json};

use super::{example, schema};

fn docs(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    fs::read_to_string(path).unwrap()
}

fn faults(value: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(&docs("trace-compare.schema.json")).unwrap();
    schema::faults(&schema, value)
}

/// Fails if an output is not as the schema says.
pub(super) fn check(text: &str) -> Value {
    let value: Value = serde_json::from_str(text).unwrap();
    let faults = faults(&value);
    assert!(faults.is_empty(), "{faults:#?}");
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
fn an_output_with_a_fault_is_not_as_the_schema_says() {
    let good = json(&example::comparison());
    let faults_after = |plant: fn(&mut Value)| {
        let mut value = good.clone();
        plant(&mut value);
        faults(&value)
    };
    let missing = faults_after(|it| drop(it["gap"].as_object_mut().unwrap().remove("gap_ns")));
    assert!(matches!(missing.as_slice(), [one] if one.starts_with("/gap:")), "{missing:?}");
    let additional = faults_after(|it| it["gap"]["causes"][0]["surprise"] = Value::from(1));
    assert!(
        matches!(additional.as_slice(), [one] if one.contains("/gap/causes/0/surprise")),
        "{additional:?}"
    );
    let wrong_type = faults_after(|it| it["verdict"] = Value::from(1));
    assert!(matches!(wrong_type.as_slice(), [one] if one.starts_with("/verdict:")));
    let wrong_name = faults_after(|it| it["basis"] = Value::from("guess"));
    assert!(matches!(wrong_name.as_slice(), [one] if one.starts_with("/basis:")));
    let one_side_only = faults_after(|it| {
        let alignment = &mut it["layer_alignments"][0]["operations"][0];
        alignment.as_object_mut().unwrap().remove("amd_count");
    });
    assert_eq!(one_side_only.len(), 1, "{one_side_only:?}");
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
