//! Synthetic traces with known truth, for tests and benchmarks.
//!
//! A small model of serving and training: a [`Plan`] says which model runs for which steps, how its
//! kernels are launched, what is marked, and what is odd about the file. `kernels` has the
//! kernels by their names at both vendors, `model` puts them into blocks, `step` says what one
//! step launches and in which graphs, `schedule` gives everything a time on the host and on the
//! devices, `generate` writes it, and `json` spells it as the profiler would. [`Truth`] is what
//! a reader of the trace must find.
//!
//! A [`PairPlan`] is two such plans that differ in one thing, a [`Difference`]: `edit` does
//! something in another way with the kernels of `alternatives`, `pace` gives both sides times
//! that can be compared, and `pairs` lists pairs of every kind. [`PairTruth`] is what
//! a comparison of the two traces must find.

mod alternatives;
mod annotation;
mod difference;
mod edit;
mod generate;
mod json;
mod kernels;
mod lockstep;
mod model;
mod oddity;
mod pace;
mod pair;
mod pairs;
mod plan;
mod random;
mod ranks;
mod schedule;
mod step;
mod truth;

use std::io::{self, Write};

pub use annotation::Annotation;
pub use difference::{Difference, Fused, OneSided, Planted};
pub use edit::Edit;
pub use lockstep::{COLLECTIVE_ELEMENTS, CollectiveTruth, Lockstep, Naming};
pub use oddity::Oddity;
pub use pace::Pace;
pub use pair::{PairPlan, PairTruth, Side, pair_text};
pub use pairs::pair_plans;
pub use plan::{Communication, Launching, Model, Phase, Plan, Timing, Variation};
pub use ranks::write_ranks;
pub use truth::{Counts, KernelTruth, Pattern, Truth};

/// Writes a trace.
///
/// # Errors
///
/// When the writer cannot write.
pub fn write(plan: &Plan, out: &mut impl Write) -> io::Result<Truth> {
    let truth = generate::trace(plan, out)?;
    out.flush()?;
    Ok(truth)
}

/// The text of a trace in memory.
///
/// # Errors
///
/// None that a vector could give.
pub fn text(plan: &Plan) -> io::Result<(Vec<u8>, Truth)> {
    let mut text = Vec::new();
    let truth = write(plan, &mut text)?;
    Ok((text, truth))
}
