//! The ranks of one run side by side: what each of them did, which rank waits for which in
//! collectives, and which rank stands for all.
//!
//! Traces of many ranks do not fit into memory together. So [`RankRecord`] keeps of each what is
//! needed here: the times of its device, and its collectives with their [`Operation`]. [`Skew`]
//! compares the collectives: `groups` finds the queues of different ranks that ran the same ones,
//! with what profilers say (`named`) or else `alignment` as the evidence, `waits` adds up who waits
//! for whom, `bandwidth` says how fast the data moved, and `straggler` whether one rank stands
//! out. [`Representative`] chooses the rank that is nearest to the
//! medians.
//!
//! Clocks of different ranks differ, so starts are never compared. A collective that all ranks
//! enter ends on all of them at about the same time. So the rank that arrives last has the shortest
//! kernel, and what the kernels of the others take longer is waiting.

mod alignment;
mod bandwidth;
mod groups;
mod named;
mod operation;
mod operators;
mod record;
mod representative;
mod skew;
mod straggler;
mod survey;
#[cfg(test)]
mod tests;
mod waits;
mod warning;

pub use operation::{Operation, Participation};
pub use record::{RankName, RankRecord};
pub use representative::{Medians, Representative};
pub use skew::{RankSkew, Reason, Skew, Unmatched};
pub use straggler::{NoStraggler, Straggler};
pub use survey::RankSurvey;
pub use waits::{CollectiveTime, GroupSkew, MemberSkew};
pub use warning::SkewWarning;
