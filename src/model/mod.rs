//! The cost model: answers about fusion from a calibration.

mod answer;
mod lookup;
mod policy;

pub use answer::{Estimate, Evidence, Interval, Measured};
pub use lookup::{FusionCostModel, HardwareMismatch, SizelessError, Target};
pub use policy::{Action, Decision, Policy, Undecided, WhenUnknown};
