//! From an estimate to a decision.

use super::answer::{Estimate, Interval};

/// What to assume about a problem that nothing is known about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenUnknown {
    /// Keep the kernels apart.
    Conservative,
    /// Fuse.
    Optimistic,
    /// Fuse if the roofline on the measured ceilings reaches the threshold; keep where no
    /// ceilings were measured.
    Roofline,
    /// Answer with an error.
    Error,
}

/// How a caller wants to decide. There is no default: what to do when nothing is known is a
/// choice that only the caller can make.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
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

    /// `None` when nothing is known and the policy is not to guess.
    pub(super) fn decide<'m>(
        &self,
        estimate: Estimate<'m>,
        roofline: impl FnOnce() -> Option<f64>,
    ) -> Option<Decision<'m>> {
        let Some(Interval { value, low, high }) = estimate.speedup() else {
            let fuse = self.assume(roofline)?;
            return Some(Decision::Unknown { fuse });
        };
        Some(if low >= self.threshold {
            Decision::Fuse(estimate)
        } else if high < self.threshold {
            Decision::Keep(estimate)
        } else {
            Decision::TooClose { estimate, fuse: value >= self.threshold }
        })
    }

    /// What to do when nothing is known.
    pub(super) fn assume(&self, roofline: impl FnOnce() -> Option<f64>) -> Option<bool> {
        match self.when_unknown {
            WhenUnknown::Conservative => Some(false),
            WhenUnknown::Optimistic => Some(true),
            WhenUnknown::Roofline => {
                Some(roofline().is_some_and(|speedup| speedup >= self.threshold))
            }
            WhenUnknown::Error => None,
        }
    }
}

/// Whether to fuse, and what that rests on.
///
/// [`should_fuse`](Self::should_fuse) is what to do; the variants say why.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Decision<'m> {
    /// Fuse: the whole interval of the speedup is at or above the threshold.
    Fuse(Estimate<'m>),
    /// Keep the kernels apart: the whole interval is below the threshold.
    Keep(Estimate<'m>),
    /// The threshold lies inside the interval. The value decides, for either choice costs little.
    #[non_exhaustive]
    TooClose {
        /// What is known.
        estimate: Estimate<'m>,
        /// Whether its value is at or above the threshold.
        fuse: bool,
    },
    /// Nothing is known, and the policy decides.
    #[non_exhaustive]
    Unknown {
        /// What it assumes.
        fuse: bool,
    },
}

impl<'m> Decision<'m> {
    /// Whether to fuse.
    #[must_use]
    pub const fn should_fuse(&self) -> bool {
        match self {
            Self::Fuse(_) => true,
            Self::Keep(_) => false,
            Self::TooClose { fuse, .. } | Self::Unknown { fuse } => *fuse,
        }
    }

    /// What is known.
    #[must_use]
    pub const fn estimate(&self) -> Estimate<'m> {
        match self {
            Self::Fuse(estimate) | Self::Keep(estimate) | Self::TooClose { estimate, .. } => {
                *estimate
            }
            Self::Unknown { .. } => Estimate::UNKNOWN,
        }
    }
}
