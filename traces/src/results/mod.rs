//! What is found in the traces of one run, in the form that `trace-tool --json` prints: serialize
//! any of these and the object is the same.
//!
//! [`RunInfo`] is what was recorded, [`RanksSummary`] where the time goes, and [`RanksLayers`] what
//! the model is made of. Each has one entry for each rank of the run. The result for two runs is a
//! [`Comparison`](crate::compare::Comparison).

mod idle;
mod info;
mod kernels;
mod layers;
mod rates;

pub use idle::{RankIdle, RanksIdle};
pub use info::{Counts, InfoParts, RankInfo, RunInfo};
pub use kernels::{ClassEvidence, RankKernels, RankTime, RanksSummary};
pub use layers::{FamilyName, LayersFound, PassTime, RankLayers, RanksLayers};
pub use rates::{RankRates, RanksRates};
