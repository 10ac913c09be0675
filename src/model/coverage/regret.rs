//! What a decision is expected to lose.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::Coverage;
use crate::cost::Traffic;
use crate::model::answer::{Estimate, Interval};
use crate::model::policy::Policy;
use crate::vocabulary::Problem;

/// What is believed of the logarithm of a speedup that nothing is known of.
const NOTHING_SD: f64 = 0.3;

/// The standard deviation of a speedup that was measured.
pub(super) const MEASURED_SD: f64 = 0.01;

/// Bytes per millisecond of a machine that nothing is known of: 10 GB/s.
const GUESSED_BYTES_PER_MS: f64 = 1e7;

/// What is believed of a decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Belief {
    /// How far the logarithm of the speedup is above that of the threshold.
    above: f64,
    /// Its standard deviation.
    pub(super) sd: f64,
    threshold: f64,
    /// The fused time.
    pub(super) weight_ms: f64,
    /// Whether there is something to decide.
    pub(super) decides: bool,
    /// Whether the policy decides by what is known.
    pub(super) counts: bool,
    is_unknown: bool,
    /// What the policy does. It is not always what the speedup says: where the threshold lies in its
    /// interval, the choice is the one that can lose less, and where the policy does not decide by what
    /// is known, it assumes something.
    fuses: bool,
}

impl Belief {
    pub(super) fn of(
        problem: &Problem,
        estimate: &Estimate<'_>,
        policy: &Policy,
        fuses: bool,
    ) -> Self {
        let ln_threshold = policy.threshold.ln();
        let (above, sd) = match estimate.speedup() {
            Some(Interval { value, low, high, .. }) => {
                /// Standard deviations of a normal distribution in a 95 % interval.
                const IN_AN_INTERVAL: f64 = 2.0 * 1.96;
                (value.ln() - ln_threshold, (high / low).ln() / IN_AN_INTERVAL)
            }
            None => (-ln_threshold, NOTHING_SD),
        };
        #[expect(clippy::cast_precision_loss, reason = "a guess")]
        let guess = || Traffic::of(problem).fused_bytes as f64 / GUESSED_BYTES_PER_MS;
        Self {
            above,
            sd,
            threshold: policy.threshold,
            weight_ms: estimate.fused_ms().map_or_else(guess, |time| time.value),
            decides: !problem.chain().is_single(),
            counts: policy.counts(estimate),
            is_unknown: estimate.speedup().is_none(),
            fuses,
        }
    }

    /// What a decision by this is expected to lose, in milliseconds; `None` where nothing is known.
    pub(super) fn regret_ms(&self) -> Option<f64> {
        (!self.is_unknown).then(|| self.weight_ms * self.regret())
    }

    /// The same as a share of the fused time.
    pub(super) fn regret(&self) -> f64 {
        if !self.decides {
            return 0.0;
        }
        let margin = if self.fuses { self.above } else { -self.above };
        self.threshold * shortfall(margin, self.sd)
    }

    /// What is expected to be lost by a decision that is made when more is measured, which leaves a
    /// standard deviation. How a measurement comes out is not known, but by how much it may move the
    /// estimate: what that is worth is taken from what is lost without it.
    pub(super) fn regret_after(&self, sd: f64) -> f64 {
        if !self.decides {
            return 0.0;
        }
        let moves = (self.sd * self.sd - sd * sd).max(0.0).sqrt();
        let distance = self.above.abs();
        let lost = shortfall(distance, self.sd) - shortfall(distance, moves);
        self.threshold * lost.max(0.0)
    }

    /// Whether the decision is safe as it is.
    pub(super) fn is_safe(&self) -> bool {
        self.counts && self.regret() <= Coverage::SAFE
    }

    /// The same when more is measured.
    pub(super) fn is_safe_after(&self, sd: f64) -> bool {
        self.regret_after(sd) <= Coverage::SAFE
    }
}

/// By how much a normal variable is below 0 in the mean, where it counts only when it is.
fn shortfall(mean: f64, sd: f64) -> f64 {
    if sd <= 0.0 {
        return (-mean).max(0.0);
    }
    let z = mean / sd;
    let density = (-0.5 * z * z).exp() / (2.0 * PI).sqrt();
    (sd * (density - z * below(-z))).max(0.0)
}

/// The normal distribution function, to seven digits (Abramowitz and Stegun, 7.1.26).
fn below(z: f64) -> f64 {
    let x = z.abs() * FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let terms = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    let sum = terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    let tail = 0.5 * sum * (-x * x).exp();
    if z < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_is_that_of_tables() {
        for (z, expected) in
            [(0.0, 0.5), (1.0, 0.841_344_75), (-1.96, 0.024_997_9), (3.0, 0.998_65)]
        {
            assert!((below(z) - expected).abs() < 1e-6, "{z}: {}", below(z));
        }
    }

    /// Fusing gains 2 %, likely but not surely.
    const LIKELY: Belief = Belief {
        above: 0.02,
        sd: 0.1,
        threshold: 1.0,
        weight_ms: 1.0,
        decides: true,
        counts: true,
        is_unknown: false,
        fuses: true,
    };

    #[test]
    fn what_is_measured_well_loses_nothing_and_what_says_nothing_changes_nothing() {
        let belief = LIKELY;
        assert!((belief.regret_after(0.1) - belief.regret()).abs() < 1e-12);
        assert!(belief.regret_after(0.0) < 1e-12);
        let by_sd = [0.02, 0.05, 0.08].map(|sd| belief.regret_after(sd));
        assert!(by_sd.is_sorted() && by_sd[2] < belief.regret(), "{by_sd:?}");
        assert!(!belief.is_safe() && belief.is_safe_after(0.03));
    }

    #[test]
    fn a_decision_against_what_is_likelier_is_expected_to_lose_more() {
        let against = Belief { fuses: false, ..LIKELY };
        assert!((against.regret() - LIKELY.regret() - 0.02).abs() < 1e-9);
    }

    #[test]
    fn a_shortfall_is_large_only_near_the_threshold() {
        assert!((shortfall(0.0, 1.0) - 0.398_942).abs() < 1e-5);
        assert!((shortfall(1.0, 1.0) - 0.083_315).abs() < 1e-5);
        assert!((shortfall(-1.0, 1.0) - 1.083_315).abs() < 1e-5);
        assert_eq!(shortfall(0.2, 0.0), 0.0);
        assert_eq!(shortfall(-0.2, 0.0), 0.2);
        assert!(shortfall(0.5, 0.05) < 1e-12);
    }
}
