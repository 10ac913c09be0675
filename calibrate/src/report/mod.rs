//! The last stage: what people read.

mod progress;
mod selftest;
mod table;
mod trace;
mod units;

pub use progress::Progress;
pub use selftest::selftest;
pub use table::tables;
pub use trace::{
    ClassEvidence, Counts, RankInfo, RankTime, RanksSummary, trace_file, trace_info, trace_kernels,
    trace_ranks_kernels,
};
pub use units::{gibibytes, milliseconds, percent, ratio};
