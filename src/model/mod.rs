//! The cost model: answers about fusion from a calibration.

mod answer;
mod lookup;
mod on_target;
mod policy;
mod target;

pub use answer::{Estimate, Evidence, Interval, SpeedupRange};
pub use lookup::FusionCostModel;
pub use on_target::OnTarget;
pub use policy::{Decision, Policy, WhenUnknown};
pub use target::Target;
