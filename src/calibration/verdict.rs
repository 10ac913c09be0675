//! What a measurement says about fusing a problem.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a measurement says about fusing a problem.
///
/// A verdict starts at `Ambiguous` and must earn another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// The fused variant is faster: the interval excludes 1, and the speedup itself differs from 1
    /// by more than the noise floor.
    Faster,
    /// The fused variant is slower, by the same rule.
    Slower,
    /// The whole interval is close to 1: within the noise floor, but at least 2 % and at most 5 %.
    Same,
    /// The chain has a single op. Both variants are the same kernel, and its time is what was
    /// measured.
    Single,
    /// The measurement does not decide.
    Ambiguous,
    /// The measurement must not be used.
    Invalid,
}

/// The least and the most that the margin of [`Verdict::Same`] can be, as a ratio minus 1: a smaller
/// difference does not matter to a decision about fusion, and a larger one does, however noisy the
/// machine.
const SAME_MARGIN: [f64; 2] = [0.02, 0.05];

impl Verdict {
    /// Every verdict, in the order in which they are counted.
    pub const ALL: [Self; 6] =
        [Self::Faster, Self::Slower, Self::Same, Self::Single, Self::Ambiguous, Self::Invalid];

    /// A ratio that differs from 1 by less than this counts as 1, however quiet the machine: no noise
    /// floor is lower.
    pub const LEAST_NOISE_FLOOR: f64 = 0.01;

    /// The word in files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Faster => "FASTER",
            Self::Slower => "SLOWER",
            Self::Same => "SAME",
            Self::Single => "SINGLE",
            Self::Ambiguous => "AMBIGUOUS",
            Self::Invalid => "INVALID",
        }
    }

    /// The verdict that follows from a speedup with its interval on a machine with a noise floor,
    /// given as a ratio minus 1, if nothing else is wrong with the two variants.
    #[must_use]
    pub fn by_interval(speedup: f64, [low, high]: [f64; 2], noise_floor: f64) -> Self {
        let [log, low, high] = [speedup, low, high].map(f64::ln);
        let [floor, margin] = [noise_floor, Self::same_margin(noise_floor)].map(f64::ln_1p);
        let is_clear = low > 0.0 || high < 0.0;
        if low > 0.0 && log > floor {
            Self::Faster
        } else if high < 0.0 && log < -floor {
            Self::Slower
        } else if is_clear && log.abs() > SAME_MARGIN[0].ln_1p() {
            // Too far from 1 to be called the same, whatever the floor.
            Self::Ambiguous
        } else if low >= -margin && high <= margin {
            Self::Same
        } else {
            Self::Ambiguous
        }
    }

    /// How far from 1 an interval may reach to be [`Verdict::Same`], as a ratio minus 1: as far as
    /// the noise floor, within limits. On a quiet machine intervals are about as wide as the floor,
    /// and none would lie within it; on a noisy one everything would.
    #[must_use]
    pub const fn same_margin(noise_floor: f64) -> f64 {
        let [least, most] = SAME_MARGIN;
        noise_floor.clamp(least, most)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_by_hand() {
        for (speedup, ends, floor, expected) in [
            (1.10, [1.05, 1.15], 0.01, Verdict::Faster),
            (0.90, [0.85, 0.95], 0.01, Verdict::Slower),
            (1.005, [0.99, 1.015], 0.01, Verdict::Same),
            (1.03, [1.02, 1.04], 0.04, Verdict::Ambiguous),
            (1.03, [0.99, 1.07], 0.01, Verdict::Ambiguous),
            (1.04, [0.96, 1.049], 0.2, Verdict::Same),
            (1.04, [0.96, 1.051], 0.2, Verdict::Ambiguous),
        ] {
            assert_eq!(Verdict::by_interval(speedup, ends, floor), expected, "{speedup} {ends:?}");
        }
    }

    #[test]
    fn a_word_for_each() {
        for verdict in Verdict::ALL {
            assert_eq!(serde_json::to_string(&verdict).unwrap(), format!("\"{verdict}\""));
        }
    }
}
