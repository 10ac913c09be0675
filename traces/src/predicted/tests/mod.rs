//! Odd inputs of every kind, and what must hold of all comparisons.

mod comparison;
mod inputs;
mod literals;
mod properties;
mod tables;

use serde_json::{Value, json};

use super::*;

fn model(events: &Value) -> ModelTrace {
    ModelTrace::from_json(events.to_string().as_bytes(), "model.json", None).unwrap()
}

/// An operator of process 1.
fn event(name: &str, dur: impl Into<Value>, args: Value) -> Value {
    let dur: Value = dur.into();
    json!({"ph": "X", "name": name, "pid": 1, "tid": 0, "ts": 0, "dur": dur, "args": args})
}

fn measured(csv: &str) -> Measured {
    Measured::from_csv(csv.as_bytes(), "kernels.csv", None, Rules::Own).unwrap()
}

/// Why a table cannot be read.
fn refusal(csv: &[u8], by: Option<MeasuredBy>) -> String {
    Measured::from_csv(csv, "kernels.csv", by, Rules::Own).unwrap_err().to_string()
}

fn compare(events: &Value, map: &str, csv: &str, rules: Rules) -> Comparison {
    let map = OpMap::from_yaml(map, rules).unwrap();
    let measured = Measured::from_csv(csv.as_bytes(), "kernels.csv", None, rules).unwrap();
    Comparison::of(&model(events), &map, &measured, Passes::ONE, rules)
}

fn row<'c>(comparison: &'c Comparison, kernel: &str) -> &'c Row {
    comparison.rows.iter().find(|row| row.kernel_type == kernel).unwrap()
}

fn codes(warnings: &[InputWarning]) -> Vec<&'static str> {
    warnings.iter().map(InputWarning::code).collect()
}

/// Types, times and counts.
fn figures(measured: &Measured) -> Vec<(&str, f64, u64)> {
    let kernels = measured.kernels.iter();
    kernels.map(|one| (one.kernel_type.as_str(), one.total_us, one.count)).collect()
}

fn process(pid: impl Into<Value>, name: &str) -> Value {
    let pid: Value = pid.into();
    json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}})
}

fn of_process(pid: impl Into<Value>) -> Value {
    let pid: Value = pid.into();
    json!({"ph": "X", "name": "op", "pid": pid, "dur": 1})
}

const HEADER: &str = "Type,Duration(us),Start Time(us)\n";
