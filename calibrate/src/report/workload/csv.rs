//! A model run in several ways as CSV: a record for each way, and for each problem of each way.

use cli_support::sheet::{Sheet, number};

use super::{Operator, WayReport, WorkloadReport};
use crate::plan::workload::Way;
use crate::report::estimated::Range;

/// `calibrate trace validate --operators` reads these, by name.
const HEADER: [&str; 21] = [
    "row",
    "way",
    "problem",
    "times",
    "evidence",
    "predicted_ms",
    "predicted_low_ms",
    "predicted_high_ms",
    "measured_ms",
    "measured_low_ms",
    "measured_high_ms",
    "error_pct",
    "speedup",
    "speedup_low",
    "speedup_high",
    "verdict",
    "predicted_now_ms",
    "predicted_now_low_ms",
    "predicted_now_high_ms",
    "error_now_pct",
    "predicted_speedup",
];

impl WorkloadReport {
    /// The ways and their problems as a table for programs.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let header = HEADER.map(str::to_owned).to_vec();
        let ways = self.ways.iter().map(of_way);
        let operators = self.operators.iter().map(of_operator);
        Sheet { header, rows: ways.chain(operators).collect() }
    }
}

fn key(way: Way) -> String {
    way.words().replace(' ', "-")
}

fn of_way(way: &WayReport) -> Vec<String> {
    let mut row =
        vec!["way".to_owned(), key(way.way), String::new(), way.kernels.to_string(), String::new()];
    row.extend(Range::cells(way.predicted_ms));
    row.extend(Range::cells(way.measured_ms));
    row.push(number(way.error_pct));
    row.extend(Range::cells(way.speedup));
    row.push(way.verdict.map_or_else(String::new, |verdict| verdict.to_string()));
    row.extend(Range::cells(way.predicted_now_ms));
    row.push(number(way.error_now_pct));
    row.push(number(way.predicted_speedup));
    row
}

fn of_operator(operator: &Operator) -> Vec<String> {
    let mut row = vec![
        "operator".to_owned(),
        key(operator.way),
        operator.problem.to_string(),
        operator.times.to_string(),
        operator.evidence.name().to_owned(),
    ];
    row.extend(Range::cells(operator.predicted_ms));
    row.extend([number(operator.measured_ms), String::new(), String::new()]);
    row.push(number(operator.error_pct));
    row.extend([String::new(), String::new(), String::new(), String::new()]);
    row.extend(Range::cells(operator.predicted_now_ms));
    row.push(number(operator.error_now_pct));
    row.push(String::new());
    row
}
