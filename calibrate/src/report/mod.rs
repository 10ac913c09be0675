//! The last stage: what people read.

mod block;
mod calibration;
mod compare;
mod coverage;
pub mod doctor;
mod drift;
mod estimated;
pub mod figures;
pub mod html;
mod imported;
pub mod partition;
mod plan;
mod progress;
mod reasons;
mod selftest;
pub mod validation;
pub mod workload;

pub use calibration::page;
pub use compare::{CompareReport, CompareTable};
pub use coverage::coverage;
pub use drift::drift;
pub use estimated::{Range, decision_words};
pub use imported::imported;
pub use plan::plan;
pub use progress::{Baseline, Progress, ProgressLines};
pub use selftest::selftest;
