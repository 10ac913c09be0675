//! The last stage: what people read.

mod progress;
mod selftest;
mod table;
mod trace;
mod units;

pub use progress::Progress;
pub use selftest::selftest;
pub use table::tables;
pub use trace::{trace_info, trace_kernels};
pub use units::{gibibytes, milliseconds, percent, ratio};
