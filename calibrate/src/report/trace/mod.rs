//! Traces as tables.

mod info;
mod kernels;
mod ranks;

pub use info::{Counts, RankInfo, trace_file, trace_info};
pub use kernels::{trace_kernels, trace_ranks_kernels};
pub use ranks::{ClassEvidence, RankTime, RanksSummary};

use super::units::milliseconds;

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn time(ns: u64) -> String {
    milliseconds(ns as f64 / 1e6)
}
