//! The cost model: answers about fusion from a calibration.
//!
//! What is measured is looked up ([`lookup`]), what is not is estimated, from the most trusted
//! evidence on ([`known`]): records of the same chain ([`cloud`]), records of a similar one
//! ([`compose`]), an [`older`] file, or ceilings ([`on_paper`]). A cloud holds [`observation`]s: a
//! fitted [`roofline`] and, over it, a smooth surface ([`kriging`]). [`partition`] asks about all
//! parts of a graph, [`validate`] about what was measured, as if it had not been, and [`coverage`]
//! says what to measure next.

mod answer;
mod at_sizes;
mod cloud;
mod compose;
mod covariance;
mod coverage;
mod features;
mod hidden;
mod known;
mod kriging;
mod lanes;
mod likelihood;
mod lookup;
mod matern;
mod matrix;
mod neighbourhoods;
mod observation;
mod older;
mod on_paper;
mod on_target;
mod partition;
mod passes;
mod policy;
mod prediction;
mod roofline;
mod search;
mod shorter;
mod siblings;
mod spread;
mod surroundings;
mod target;
mod validate;

pub use answer::{Estimate, Evidence, Interval, SpeedupRange};
pub use coverage::{Coverage, Covered, NextPoint};
pub use lookup::FusionCostModel;
pub use on_target::OnTarget;
pub use partition::{
    Alternative, GraphNode, NodeOps, Partition, PossibleKernel, Segment, possible_kernels,
};
pub use policy::{Decision, Policy, WhenUnknown};
pub use target::Target;
pub use validate::{Accuracy, Errors, LeaveOut, Regret, Trial};
