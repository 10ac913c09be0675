//! The kernels of a split as CSV.

use cli_support::sheet::{Sheet, number};

use super::super::estimated::Range;
use super::{Kernel, SplitModel};

const HEADER: [&str; 18] = [
    "problem",
    "nodes",
    "evidence",
    "octaves_beyond",
    "decision",
    "unfused_ms",
    "unfused_low_ms",
    "unfused_high_ms",
    "fused_ms",
    "fused_low_ms",
    "fused_high_ms",
    "speedup",
    "speedup_low",
    "speedup_high",
    "saved_ms",
    "saved_low_ms",
    "saved_high_ms",
    "saved_by_next_ms",
];

impl SplitModel {
    /// The kernels of the best split as a table for programs.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let header = HEADER.map(str::to_owned).to_vec();
        Sheet { header, rows: self.kernels.iter().map(row).collect() }
    }
}

fn row(kernel: &Kernel) -> Vec<String> {
    let mut row = vec![
        kernel.problem.map_or_else(String::new, |problem| problem.to_string()),
        kernel.nodes.join(" "),
        kernel.evidence.name().to_owned(),
        number(kernel.octaves_beyond),
        kernel.decision.unwrap_or_default().to_owned(),
    ];
    for range in [kernel.unfused_ms, kernel.fused_ms, kernel.speedup, kernel.saved_ms] {
        row.extend(Range::cells(range));
    }
    row.push(number(kernel.saved_by_next_ms.map(|saved| saved.value)));
    row
}
