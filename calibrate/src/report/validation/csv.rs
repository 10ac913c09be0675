//! The records and their estimates as CSV.

use cli_support::sheet::{Sheet, number};

use super::super::estimated::Range;
use super::{LeftOut, Validation};

const HEADER: [&str; 12] = [
    "problem",
    "evidence",
    "octaves_beyond",
    "fused_ms",
    "estimated_fused_ms",
    "estimated_fused_low_ms",
    "estimated_fused_high_ms",
    "speedup",
    "estimated_speedup",
    "estimated_speedup_low",
    "estimated_speedup_high",
    "fuse",
];

impl Validation {
    /// The records as a table for programs.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let header = HEADER.map(str::to_owned).to_vec();
        Sheet { header, rows: self.records.iter().map(row).collect() }
    }
}

fn row(left_out: &LeftOut) -> Vec<String> {
    let mut row = vec![
        left_out.problem.clone(),
        left_out.evidence.to_owned(),
        number(left_out.octaves_beyond),
        number(left_out.fused_ms),
    ];
    row.extend(Range::cells(left_out.estimated_fused_ms));
    row.push(number(left_out.speedup));
    row.extend(Range::cells(left_out.estimated_speedup));
    row.push(left_out.fuse.map_or_else(String::new, |fuse| fuse.to_string()));
    row
}
