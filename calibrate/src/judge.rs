//! The fourth stage: what a measurement says, and what it does not.

use std::fmt;

use fusion_cost_model::calibration::Verdict;

use crate::measure::Estimate;
use crate::prove::WrongResult;

/// A ratio that differs from 1 by less than this counts as 1, however quiet the machine.
pub const LEAST_FLOOR: f64 = 0.01;

/// A measured speedup above its ceiling by more than this factor contradicts the model.
const CEILING_MARGIN: f64 = 1.1;

/// Something that a reader of a verdict should know.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// Everything was measured in one process.
    WithinProcess,
    /// Neither beyond the noise floor with an interval that excludes 1, nor within the floor.
    Undecided {
        /// The noise floor as a ratio minus 1.
        floor: f64,
    },
    /// The speedup is above what the roofline allows.
    AboveCeiling {
        /// What it allows.
        ceiling: f64,
    },
    /// The result was right before the timing and wrong after it.
    WrongAfterTiming(WrongResult),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WithinProcess => f.write_str(
                "within-process: one process, so the interval does not cover what differs between \
                 processes",
            ),
            Self::Undecided { floor } => write!(
                f,
                "neither a speedup beyond the noise floor of {:.1} % with an interval that \
                 excludes 1, nor an interval within the floor; measure on a quieter machine",
                floor * 100.0
            ),
            Self::AboveCeiling { ceiling } => write!(
                f,
                "above the ceiling of {ceiling:.2}: the roofline does not explain the whole gain \
                 (write-allocate traffic, cache effects, or a wrong model)"
            ),
            Self::WrongAfterTiming(wrong) => write!(f, "after the timing: {wrong}"),
        }
    }
}

/// A verdict with its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// What the measurement says.
    pub verdict: Verdict,
    /// Why it is not a better one, and what a reader should know.
    pub reasons: Vec<Reason>,
}

/// What the judgement is based on.
#[derive(Debug, Clone, PartialEq)]
pub struct Case<'a> {
    /// The measurement.
    pub estimate: &'a Estimate,
    /// How far from 1 this machine measures a ratio whose truth is 1, in the logarithm.
    pub floor: f64,
    /// The speedup that the roofline allows.
    pub ceiling: Option<f64>,
    /// What was wrong with the result after the timing.
    pub wrong: Option<WrongResult>,
}

/// Judges a measurement. The verdict starts at AMBIGUOUS and must earn another one.
#[must_use]
pub fn judge(case: &Case<'_>) -> Judgement {
    let mut reasons = vec![Reason::WithinProcess];
    if let Some(wrong) = &case.wrong {
        reasons.push(Reason::WrongAfterTiming(wrong.clone()));
        return Judgement { verdict: Verdict::Invalid, reasons };
    }
    let Estimate { ratio, low, high, .. } = *case.estimate;
    let floor = case.floor.max(LEAST_FLOOR.ln_1p());
    let (log, low, high) = (ratio.ln(), low.ln(), high.ln());
    let verdict = if low > 0.0 && log > floor {
        Verdict::Faster
    } else if high < 0.0 && log < -floor {
        Verdict::Slower
    } else if low >= -floor && high <= floor {
        Verdict::Same
    } else {
        reasons.push(Reason::Undecided { floor: floor.exp_m1() });
        Verdict::Ambiguous
    };
    if let Some(ceiling) = case.ceiling.filter(|ceiling| ratio > ceiling * CEILING_MARGIN) {
        reasons.push(Reason::AboveCeiling { ceiling });
    }
    Judgement { verdict, reasons }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Quartiles;

    fn verdict(low: f64, ratio: f64, high: f64, floor: f64) -> Judgement {
        let quartiles = Quartiles { q1: 1.0, median: 1.0, q3: 1.0 };
        let estimate =
            Estimate { ratio, low, high, seconds: [quartiles; 2], pairs: 64, pairs_kept: 64 };
        judge(&Case { estimate: &estimate, floor, ceiling: Some(1.5), wrong: None })
    }

    #[test]
    fn verdicts_by_where_the_interval_lies() {
        for (low, ratio, high, floor, expected) in [
            (1.15, 1.20, 1.25, 0.01, Verdict::Faster),
            (0.70, 0.75, 0.80, 0.01, Verdict::Slower),
            (0.995, 1.0, 1.005, 0.005, Verdict::Same),
            (0.95, 1.10, 1.30, 0.01, Verdict::Ambiguous),
            // Excludes 1, but by less than the machine's noise.
            (1.01, 1.02, 1.03, 0.05, Verdict::Same),
            (1.01, 1.02, 1.09, 0.05, Verdict::Ambiguous),
            (f64::NAN, f64::NAN, f64::NAN, 0.01, Verdict::Ambiguous),
            (0.0, 2.0, f64::INFINITY, 0.01, Verdict::Ambiguous),
        ] {
            let judgement = verdict(low, ratio, high, floor);
            assert_eq!(judgement.verdict, expected, "{low} {ratio} {high} floor {floor}");
            let undecided =
                judgement.reasons.iter().any(|reason| matches!(reason, Reason::Undecided { .. }));
            assert_eq!(undecided, expected == Verdict::Ambiguous);
        }
    }

    #[test]
    fn a_gain_above_the_ceiling_is_flagged_and_kept() {
        let judgement = verdict(1.8, 1.9, 2.0, 0.01);
        assert_eq!(judgement.verdict, Verdict::Faster);
        assert!(judgement.reasons.contains(&Reason::AboveCeiling { ceiling: 1.5 }));
        let judgement = verdict(1.5, 1.6, 1.7, 0.01);
        assert!(!judgement.reasons.contains(&Reason::AboveCeiling { ceiling: 1.5 }));
    }
}
