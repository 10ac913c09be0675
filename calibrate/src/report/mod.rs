//! The last stage: what people read.

mod calibration;
mod estimated;
pub mod partition;
mod progress;
mod selftest;
pub mod validation;

pub use calibration::page;
pub use estimated::decision_words;
pub use progress::Progress;
pub use selftest::selftest;
