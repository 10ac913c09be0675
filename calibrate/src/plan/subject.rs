//! What a run measures.

use std::fmt;

use fused_kernels::{Setup, Variant};
use fusion_cost_model::{CacheState, Clock, Family, Implementation, Problem, Rewrite};
use serde::{Deserialize, Serialize};

/// Which two things are measured against each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Comparison {
    /// What the calibration is for.
    UnfusedFused,
    /// An A/A run: the truth is 1.
    UnfusedUnfused,
    /// The other A/A run.
    FusedFused,
    /// An A/A run whose second side is prepared by itself, with tensors and kernels of its own.
    UnfusedCopy,
    /// The same of the fused variant.
    FusedCopy,
}

impl Comparison {
    /// The two variants.
    #[must_use]
    pub const fn variants(self) -> [Variant; 2] {
        match self {
            Self::UnfusedFused => [Variant::Unfused, Variant::Fused],
            Self::UnfusedUnfused | Self::UnfusedCopy => [Variant::Unfused, Variant::Unfused],
            Self::FusedFused | Self::FusedCopy => [Variant::Fused, Variant::Fused],
        }
    }

    /// Whether the second side has tensors of its own, so that what their placement does to a time
    /// does not cancel.
    #[must_use]
    pub const fn has_copy(self) -> bool {
        matches!(self, Self::UnfusedCopy | Self::FusedCopy)
    }
}

/// One thing that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Subject {
    /// The problem.
    pub problem: Problem,
    /// Which variants.
    pub comparison: Comparison,
    /// What its times begin and end with.
    pub clock: Clock,
    /// Whose kernels run.
    pub implementation: Implementation,
    /// What the ops become before they are fused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Rewrite>,
    /// Tells several measurements of the same thing apart.
    pub repetition: u32,
}

impl Subject {
    /// A problem on a CPU; see [`Self::of`].
    #[must_use]
    pub const fn fusion(problem: Problem) -> Self {
        Self::of(problem, Clock::Host, Implementation::Native)
    }

    /// A problem's two variants; or, where both are the one kernel of a single op, that kernel and
    /// a copy of it.
    #[must_use]
    pub const fn of(problem: Problem, clock: Clock, implementation: Implementation) -> Self {
        let comparison = if problem.chain().is_single() {
            Comparison::UnfusedCopy
        } else {
            Comparison::UnfusedFused
        };
        Self { problem, comparison, clock, implementation, rewrite: None, repetition: 0 }
    }

    /// The same with the ops rewritten before they are fused.
    #[must_use]
    pub const fn rewritten(self, rewrite: Rewrite) -> Self {
        Self { rewrite: Some(rewrite), ..self }
    }

    /// The family of its chain.
    #[must_use]
    pub fn family(&self) -> Family {
        Family::of(self.problem.chain().form())
    }

    /// How a backend is to run it.
    #[must_use]
    pub const fn setup(&self, cache: CacheState) -> Setup {
        let Self { clock, implementation, rewrite, .. } = *self;
        Setup { cache, clock, implementation, rewrite }
    }
}

impl fmt::Display for Subject {
    /// The problem, with the clock and the implementation where they are not those of a CPU, and with
    /// the rewrite where there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clock, implementation, .. } = *self;
        let clock = (!clock.is_host()).then(|| clock.to_string());
        let whose = (!implementation.is_native()).then(|| implementation.to_string());
        let rewrite = self.rewrite.map(|rewrite| rewrite.to_string());
        let ways: Vec<String> = [clock, whose, rewrite].into_iter().flatten().collect();
        write!(f, "{}", self.problem)?;
        if ways.is_empty() { Ok(()) } else { write!(f, " ({})", ways.join(", ")) }
    }
}

/// The clocks that occur among subjects, each once, in the order of [`Clock::ALL`].
#[must_use]
pub fn clocks_of(subjects: &[Subject]) -> Vec<Clock> {
    let occurs = |clock: &Clock| subjects.iter().any(|subject| subject.clock == *clock);
    Clock::ALL.into_iter().filter(occurs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(text: &str, clock: Clock) -> Subject {
        Subject::of(text.parse().unwrap(), clock, Implementation::Native)
    }

    #[test]
    fn a_single_op_is_measured_against_a_copy() {
        for clock in Clock::ALL {
            let comparison = |text| subject(text, clock).comparison;
            assert_eq!(comparison("relu/f32/m3.n4"), Comparison::UnfusedCopy);
            assert_eq!(comparison("add_relu/f32/m3.n4"), Comparison::UnfusedFused);
        }
    }

    #[test]
    fn only_what_is_not_plain_is_named() {
        let problem = "add_relu/f32/m1.n1".parse().unwrap();
        assert_eq!(Subject::fusion(problem).to_string(), "add_relu/f32/m1.n1");
        let vendor = Subject::of(problem, Clock::Device, Implementation::Vendor);
        assert_eq!(vendor.to_string(), "add_relu/f32/m1.n1 (device, vendor)");
        let native = Subject::of(problem, Clock::LaunchInclusive, Implementation::Native);
        assert_eq!(native.to_string(), "add_relu/f32/m1.n1 (launch-inclusive)");
        let folded = Subject::fusion(problem).rewritten(Rewrite::BnFolded);
        assert_eq!(folded.to_string(), "add_relu/f32/m1.n1 (bn_folded)");
    }
}
