//! The last stage: what people read.

mod progress;
mod table;
mod units;

pub use progress::Progress;
pub use table::tables;
pub use units::{milliseconds, percent, ratio};
