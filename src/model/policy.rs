//! From an estimate to a decision.

use super::answer::{Estimate, Evidence, Interval};

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

    /// From an estimate, and the least speedup that was measured in the family of the problem. `None`
    /// when nothing is known and the policy is not to guess.
    pub(super) fn decide<'m>(
        &self,
        estimate: Estimate<'m>,
        least_gain: Option<f64>,
    ) -> Option<Decision<'m>> {
        let speedup = estimate.speedup().filter(|_| self.counts(&estimate));
        let Some(interval @ Interval { value, low, high }) = speedup else {
            return Some(Decision::Unknown { fuse: self.assume()?, estimate });
        };
        Some(if low >= self.threshold {
            Decision::Fuse(estimate)
        } else if high < self.threshold {
            Decision::Keep(estimate)
        } else {
            let is_measured = estimate.evidence() == Evidence::Measured;
            let least_gain = least_gain.filter(|_| !is_measured);
            let fuse = least_gain.map_or(value >= self.threshold, |least_gain| {
                self.risks_less_by_fusing(interval, least_gain)
            });
            Decision::TooClose { estimate, fuse }
        })
    }

    /// Whether fusing can lose less than keeping apart can, of an interval around the threshold. An
    /// estimate far from what was measured has an interval that reaches as far downwards as upwards;
    /// losses are seldom as large as gains. So it counts downwards only as far as fusing lost in the
    /// family.
    fn risks_less_by_fusing(&self, interval: Interval, least_gain: f64) -> bool {
        let low = interval.low.max(least_gain).min(self.threshold);
        interval.high * low >= self.threshold * self.threshold
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
    /// The threshold lies inside the interval. The value decides where it was measured, for either
    /// choice costs little. Elsewhere the choice is the one that can lose less: fusing is taken to lose
    /// no more than it was measured to lose in the family.
    #[non_exhaustive]
    TooClose {
        /// What is known.
        estimate: Estimate<'m>,
        /// What to do.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_close_is_fused_where_that_can_lose_less() {
        for (low, high, least_gain, threshold, fuse) in [
            // As far downwards as upwards, in a family that lost 4 % at most, and in one that lost half.
            (0.53, 1.88, 0.96, 1.0, true),
            (0.53, 1.88, 0.5, 1.0, false),
            // What the estimate excludes is not feared.
            (0.99, 1.02, 0.5, 1.0, true),
            (0.9, 1.02, 0.85, 1.0, false),
            // Whatever gained in all of the family, as long as it can be enough.
            (0.9, 1.21, 1.5, 1.2, true),
            (0.9, 1.3, 0.96, 1.2, false),
            (0.9, 1.7, 1.1, 1.2, true),
        ] {
            let policy = Policy::new(WhenUnknown::Conservative).with_threshold(threshold);
            let interval = Interval { value: 1.0, low, high };
            let found = policy.risks_less_by_fusing(interval, least_gain);
            assert_eq!(found, fuse, "[{low}, {high}], {least_gain}, {threshold}");
        }
    }
}
