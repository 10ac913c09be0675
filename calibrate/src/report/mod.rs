//! The last stage: what people read.

mod calibration;
mod coverage;
mod drift;
mod estimated;
pub mod partition;
mod progress;
mod selftest;
pub mod validation;

pub use calibration::page;
pub use coverage::coverage;
pub use drift::drift;
pub use estimated::decision_words;
pub use progress::Progress;
pub use selftest::selftest;
