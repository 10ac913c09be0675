//! The last stage: what people read.

mod calibration;
mod progress;
mod selftest;

pub use calibration::page;
pub use progress::Progress;
pub use selftest::selftest;
