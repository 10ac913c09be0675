//! What was measured of one problem on two sides.

use std::fmt;

use serde::Serialize;

use super::figure::Figure;
use super::side::Measured;
use crate::vocabulary::{CacheState, Family, Problem};

/// What two measurements of a problem say about the difference of their speedups.
///
/// As a record's verdict, it starts at `Undecided` and must earn another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairVerdict {
    /// Fusing it gains more on the first side: the ratio of the speedups is below 1 by more than the
    /// larger noise floor, its interval excludes 1, and the adjusted chance is below 0.05.
    MoreOnFirst,
    /// Fusing it gains more on the second side, by the same rule.
    MoreOnSecond,
    /// The whole interval of the ratio is within 5 % of 1: a smaller difference of two speedups does
    /// not matter.
    Same,
    /// The measurements do not decide.
    Undecided,
}

/// The margin of [`PairVerdict::Same`]. Two intervals that never claim to resolve less than 1 % have
/// a ratio known to 1.4 % at best, so that the margin of a record would be too narrow.
const SAME_MARGIN: f64 = 0.05;

impl PairVerdict {
    /// Every verdict, in the order in which they are counted.
    pub const ALL: [Self; 4] = [Self::MoreOnFirst, Self::MoreOnSecond, Self::Same, Self::Undecided];

    pub(super) fn of(ratio: &Figure, adjusted_p: Option<f64>, noise_floor: f64) -> Self {
        let Some((interval, p)) = ratio.interval.zip(adjusted_p) else { return Self::Undecided };
        let [low, high] = interval.map(f64::ln);
        let is_beyond_noise = ratio.value.ln().abs() > noise_floor.ln_1p();
        if p < 0.05 && is_beyond_noise && low > 0.0 {
            Self::MoreOnSecond
        } else if p < 0.05 && is_beyond_noise && high < 0.0 {
            Self::MoreOnFirst
        } else if low >= -SAME_MARGIN.ln_1p() && high <= SAME_MARGIN.ln_1p() {
            Self::Same
        } else {
            Self::Undecided
        }
    }

    /// Whether it says that the sides differ.
    #[must_use]
    pub const fn differs(self) -> bool {
        matches!(self, Self::MoreOnFirst | Self::MoreOnSecond)
    }
}

/// What a side's own record says about fusing a problem, at a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Fuse: the whole interval is at or above the threshold.
    Fuse,
    /// Keep the kernels apart: the whole interval is below it.
    Keep,
    /// The threshold lies inside the interval.
    TooClose,
    /// The speedup has no interval to decide by.
    Unknown,
}

impl Choice {
    /// What a speedup decides at a threshold.
    #[must_use]
    pub fn of(speedup: &Figure, threshold: f64) -> Self {
        match speedup.interval {
            None => Self::Unknown,
            Some([low, _]) if low >= threshold => Self::Fuse,
            Some([_, high]) if high < threshold => Self::Keep,
            Some(_) => Self::TooClose,
        }
    }

    /// Whether it is a decision.
    #[must_use]
    pub const fn is_decided(self) -> bool {
        matches!(self, Self::Fuse | Self::Keep)
    }

    /// The words in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fuse => "fuse",
            Self::Keep => "keep",
            Self::TooClose => "too close",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A problem that was measured on two sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// The problem, as the first side has it.
    pub problem: Problem,
    /// What the caches held.
    pub cache_state: CacheState,
    /// Its family.
    pub family: Family,
    /// The second side, as an index of [`Comparison::sides`](super::Comparison::sides); the first one
    /// is 0.
    pub side: usize,
    /// What was measured on the first side.
    pub first: Measured,
    /// What was measured on the second side.
    pub second: Measured,
    /// The second side's speedup over the first one's.
    pub ratio: Figure,
    /// The chance of such a difference if both are the same; `None` where an interval is missing, or
    /// is one within a process.
    pub p: Option<f64>,
    /// The same with all pairs of the comparison in mind, by the method of Holm.
    pub adjusted_p: Option<f64>,
    /// What it says.
    pub verdict: PairVerdict,
    /// How large a difference of the speedups the interval leaves room for, as a ratio minus 1.
    pub could_hide: Option<f64>,
    /// What to do on each side.
    pub choices: [Choice; 2],
    /// The second side's time over the first one's, unfused and fused.
    pub times: [Figure; 2],
    /// What both times changed by beyond what all records have in common, as a ratio, where that is
    /// more than noise: the machine, not fusion. Only of the same machine.
    pub moved: Option<f64>,
}

impl Pair {
    /// Whether one side fuses what the other one keeps apart.
    #[must_use]
    pub fn flips(&self) -> bool {
        let [first, second] = self.choices;
        first.is_decided() && second.is_decided() && first != second
    }

    /// How far apart the speedups are, in the logarithm and without the sign.
    #[must_use]
    pub fn distance(&self) -> f64 {
        self.ratio.value.ln().abs()
    }
}

/// How large a difference an interval of a ratio leaves room for.
pub(super) fn could_hide(ratio: &Figure) -> Option<f64> {
    let [low, high] = ratio.interval?;
    Some(high.max(1.0 / low) - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_must_be_earned() {
        let of = |value, low, high, p| PairVerdict::of(&Figure::new(value, low, high), p, 0.01);
        assert_eq!(of(1.1, 1.05, 1.15, Some(0.01)), PairVerdict::MoreOnSecond);
        assert_eq!(of(0.9, 0.85, 0.95, Some(0.01)), PairVerdict::MoreOnFirst);
        // The interval of this record excludes 1, but one of many does so by chance.
        assert_eq!(of(1.1, 1.05, 1.15, Some(0.2)), PairVerdict::Undecided);
        assert_eq!(of(1.1, 1.05, 1.15, None), PairVerdict::Undecided);
        assert_eq!(of(1.003, 0.96, 1.04, Some(1.0)), PairVerdict::Same);
        assert_eq!(of(1.003, 0.95, 1.04, Some(1.0)), PairVerdict::Undecided);
        // Clear, and of no matter.
        assert_eq!(of(1.008, 1.004, 1.012, Some(0.001)), PairVerdict::Same);
        assert_eq!(PairVerdict::of(&Figure::bare(2.0), Some(0.0), 0.01), PairVerdict::Undecided);
    }

    #[test]
    fn decisions_are_made_by_the_interval() {
        let of = |low, high| Choice::of(&Figure::new(0.5 * (low + high), low, high), 1.2);
        assert_eq!(of(1.2, 1.3), Choice::Fuse);
        assert_eq!(of(1.1, 1.19), Choice::Keep);
        assert_eq!(of(1.1, 1.3), Choice::TooClose);
        assert_eq!(Choice::of(&Figure::bare(2.0), 1.2), Choice::Unknown);
    }

    #[test]
    fn what_could_hide_is_the_farther_end() {
        let hidden = could_hide(&Figure::new(1.0, 0.9, 1.05)).unwrap();
        assert!((hidden - (1.0 / 0.9 - 1.0)).abs() < 1e-12);
    }
}
