//! The last stage: the text report.

mod progress;
mod selftest;
mod table;

pub use progress::Progress;
pub use selftest::selftest;
pub use table::tables;
