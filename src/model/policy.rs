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
    /// Decide by the roofline on the measured ceilings, and by what fusion gained of it elsewhere;
    /// keep where no ceilings were measured.
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
    /// The usual threshold: whatever is faster is worth it.
    pub const THRESHOLD: f64 = 1.0;

    /// The threshold of [`Self::by_a_fifth`].
    pub const A_FIFTH: f64 = 1.2;

    /// Fuses what is expected to be faster: the threshold is [`Self::THRESHOLD`].
    ///
    /// Over 255 measured problems, a partitioner that knows every speedup and fuses from 1.2 on loses
    /// 2.5 % of the time. One that always fuses loses 0.19 %, and one that fuses whatever is faster
    /// loses nothing.
    #[must_use]
    pub const fn new(when_unknown: WhenUnknown) -> Self {
        Self { threshold: Self::THRESHOLD, when_unknown }
    }

    /// Fuses what is a fifth faster: the policy of the design that this model grew from, for those
    /// to whom a fused kernel costs something that its time does not show, such as compiling it.
    #[must_use]
    pub const fn by_a_fifth(when_unknown: WhenUnknown) -> Self {
        Self { threshold: Self::A_FIFTH, when_unknown }
    }

    /// The same policy with another threshold.
    #[must_use]
    pub const fn with_threshold(self, threshold: f64) -> Self {
        Self { threshold, ..self }
    }

    /// `None` when nothing is known and the policy is not to guess.
    pub(super) fn decide<'m>(&self, estimate: Estimate<'m>) -> Option<Decision<'m>> {
        let speedup = estimate.speedup().filter(|_| self.counts(&estimate));
        let Some(Interval { value, low, high }) = speedup else {
            return Some(Decision::Unknown { fuse: self.assume()?, estimate });
        };
        Some(if low >= self.threshold {
            Decision::Fuse(estimate)
        } else if high < self.threshold {
            Decision::Keep(estimate)
        } else {
            Decision::TooClose { estimate, fuse: value >= self.threshold }
        })
    }

    /// Whether the policy decides by evidence of this kind.
    pub(super) fn counts(&self, estimate: &Estimate<'_>) -> bool {
        estimate.evidence().is_from_kernels() || self.when_unknown == WhenUnknown::Roofline
    }

    /// What to do when nothing is known.
    pub(super) const fn assume(&self) -> Option<bool> {
        match self.when_unknown {
            WhenUnknown::Conservative | WhenUnknown::Roofline => Some(false),
            WhenUnknown::Optimistic => Some(true),
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
    /// Nothing is known that the policy decides by, so it assumes something.
    #[non_exhaustive]
    Unknown {
        /// What it assumes.
        fuse: bool,
        /// A roofline that it does not decide by, or nothing.
        estimate: Estimate<'m>,
    },
}

impl<'m> Decision<'m> {
    /// Whether to fuse.
    #[must_use]
    pub const fn should_fuse(&self) -> bool {
        match self {
            Self::Fuse(_) => true,
            Self::Keep(_) => false,
            Self::TooClose { fuse, .. } | Self::Unknown { fuse, .. } => *fuse,
        }
    }

    /// What is known.
    #[must_use]
    pub const fn estimate(&self) -> Estimate<'m> {
        match self {
            Self::Fuse(estimate)
            | Self::Keep(estimate)
            | Self::TooClose { estimate, .. }
            | Self::Unknown { estimate, .. } => *estimate,
        }
    }
}
