//! From an estimate to a decision.

use thiserror::Error;

use super::answer::{Estimate, Interval};

/// What to do about a pair of neighbouring kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Fuse: the whole interval of the speedup is at or above the threshold.
    Fuse,
    /// Keep the kernels apart: the whole interval is below the threshold.
    Keep,
    /// The threshold lies inside the interval.
    TooClose,
    /// Nothing is known.
    Unknown,
}

/// What to assume about a problem that nothing is known about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WhenUnknown {
    /// Keep the kernels apart.
    Conservative,
    /// Fuse.
    Optimistic,
    /// Fuse if the roofline on the measured ceilings reaches the threshold; keep where no
    /// ceilings were measured.
    Roofline,
    /// Answer with [`Undecided`].
    Error,
}

/// How a caller wants to decide. There is no default: what to do when nothing is known is a
/// choice that only the caller can make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// The speedup from which fusing is worth it.
    pub threshold: f64,
    /// What to assume when nothing is known.
    pub when_unknown: WhenUnknown,
}

impl Policy {
    /// The threshold of the design that this model grew from: a fifth faster.
    pub const THRESHOLD: f64 = 1.2;

    /// The usual threshold of [`Self::THRESHOLD`].
    #[must_use]
    pub const fn new(when_unknown: WhenUnknown) -> Self {
        Self { threshold: Self::THRESHOLD, when_unknown }
    }

    /// The same policy with another threshold.
    #[must_use]
    pub const fn with_threshold(self, threshold: f64) -> Self {
        Self { threshold, ..self }
    }
}

/// A decision and what it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision<'m> {
    /// What the evidence says.
    pub action: Action,
    /// The evidence.
    pub estimate: Estimate<'m>,
    /// What to do in the end, by the policy: `None` where the policy is
    /// [`WhenUnknown::Error`] and nothing is known.
    pub fuse: Option<bool>,
}

/// Nothing is known, and the policy forbids to guess.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("nothing was measured for {question}, and the policy is not to guess")]
pub struct Undecided {
    /// What was asked.
    pub question: String,
}

impl Policy {
    pub(super) fn action(&self, speedup: Option<Interval>) -> Action {
        match speedup {
            None => Action::Unknown,
            Some(speedup) if speedup.low >= self.threshold => Action::Fuse,
            Some(speedup) if speedup.high < self.threshold => Action::Keep,
            Some(_) => Action::TooClose,
        }
    }

    /// What to do in the end. A speedup that is too close to the threshold is decided by its
    /// value: either choice costs little.
    pub(super) fn resolve(
        &self,
        speedup: Option<Interval>,
        roofline: impl FnOnce() -> Option<f64>,
    ) -> Option<bool> {
        match speedup {
            Some(speedup) => Some(speedup.value >= self.threshold),
            None => match self.when_unknown {
                WhenUnknown::Conservative => Some(false),
                WhenUnknown::Optimistic => Some(true),
                WhenUnknown::Roofline => {
                    Some(roofline().is_some_and(|speedup| speedup >= self.threshold))
                }
                WhenUnknown::Error => None,
            },
        }
    }
}
