//! What a run measures: problems, and the A/A runs that every run begins with.

use fusion_cost_model::Problem;
use serde::{Deserialize, Serialize};

use crate::launch::Comparison;

/// What the noise floor is measured on: a problem of a few microseconds and one that streams
/// through memory.
const CONTROLS: [&str; 2] = ["add_relu/f32/m64.n1024", "add_relu/f32/m4096.n1024"];

/// One thing that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Subject {
    /// The problem.
    pub problem: Problem,
    /// Which variants.
    pub comparison: Comparison,
    /// Tells several measurements of the same thing apart.
    pub repetition: u32,
}

impl Subject {
    /// A problem's two variants.
    #[must_use]
    pub const fn fusion(problem: Problem) -> Self {
        Self { problem, comparison: Comparison::UnfusedFused, repetition: 0 }
    }
}

/// The A/A runs that every run begins with.
///
/// # Errors
///
/// Never, since the texts are fixed; they are parsed like any other.
pub fn controls() -> anyhow::Result<Vec<Subject>> {
    let control = |text: &&str| -> anyhow::Result<Subject> {
        let comparison = Comparison::UnfusedUnfused;
        Ok(Subject { problem: text.parse()?, comparison, repetition: 0 })
    };
    CONTROLS.iter().map(control).collect()
}
