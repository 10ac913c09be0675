//! The last stage: what people read.

mod calibration;
mod coverage;
mod drift;
mod progress;
mod selftest;

pub use calibration::page;
pub use coverage::coverage;
pub use drift::drift;
pub use progress::Progress;
pub use selftest::selftest;
