//! What A/A runs of one kind gave.

use std::collections::BTreeMap;

use fusion_cost_model::calibration::{FusionRecord, NoiseFloor, RunEnd, Verdict};
use serde::Serialize;

use crate::digits::rounded;
use crate::judge::noise_floor;
use crate::record::{Context, record};
use crate::run::{Measured, Outcome, RunSettings, State};
use crate::selftest::{
    Answer, LEAST_COVERAGE, LEAST_DECIDED, LEAST_FOUND, MOST_FALSE_VERDICTS, share,
};

/// What a variant is measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Itself, in the same tensors: what their placement does to a time cancels.
    SharedTensors,
    /// A copy with tensors of its own, which is as hard as measuring two variants.
    OwnTensors,
    /// A copy that has a little less to do.
    Planted,
}

impl Kind {
    /// The words in reports.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::SharedTensors => "kernels against themselves in the same tensors",
            Self::OwnTensors => "kernels against a copy with tensors of its own",
            Self::Planted => "kernels against a copy with less to do",
        }
    }

    /// The verdict that is right, unless it is AMBIGUOUS or INVALID.
    #[must_use]
    pub const fn right_verdict(self) -> Verdict {
        match self {
            Self::SharedTensors | Self::OwnTensors => Verdict::Same,
            Self::Planted => Verdict::Faster,
        }
    }

    fn is_of(self, measured: &Measured) -> bool {
        measured.subject.comparison.has_copy() == (self != Self::SharedTensors)
    }
}

/// What the A/A runs of one problem gave.
#[derive(Debug, Clone, Serialize)]
pub struct Case {
    /// The problem.
    pub problem: String,
    /// How often it was measured.
    pub runs: usize,
    /// How often the 95 % interval contained the truth.
    pub contained: usize,
    /// How often the answer was AMBIGUOUS or INVALID.
    pub undecided: usize,
    /// How often it was a verdict that is wrong.
    pub false_verdicts: usize,
    /// How often it was the verdict that is right.
    pub found: usize,
    /// Half the width of the intervals, as a ratio minus 1, in the mean.
    pub half_width: f64,
    /// The ratios with their intervals.
    pub ratios: Vec<[f64; 3]>,
    /// How often each reason was given, by its code.
    pub reasons: BTreeMap<String, usize>,
}

/// What all A/A runs of one kind gave.
#[derive(Debug, Clone, Serialize)]
pub struct AgainstItself {
    /// What was measured against what.
    pub kind: Kind,
    /// The true ratio.
    pub truth: f64,
    /// The noise floor of all controls, as a ratio minus 1.
    pub noise_floor: f64,
    /// The run's own controls.
    pub noise: Vec<NoiseFloor>,
    /// By problem.
    pub cases: Vec<Case>,
    /// All runs.
    pub runs: usize,
    /// Runs whose interval contained the truth.
    pub contained: usize,
    /// Runs that were AMBIGUOUS or INVALID.
    pub undecided: usize,
    /// Runs whose interval contained the truth, or that were AMBIGUOUS or INVALID: both are right.
    pub right: usize,
    /// Runs with a verdict that is wrong.
    pub false_verdicts: usize,
    /// Runs with the verdict that is right.
    pub found: usize,
    /// Half the width of the intervals, as a ratio minus 1, in the mean.
    pub half_width: f64,
    /// Whether the user stopped it before all runs were made.
    pub interrupted: bool,
}

impl AgainstItself {
    /// Evaluates the runs of one kind.
    pub(super) fn of(
        kind: Kind,
        truth: f64,
        problems: &[&str],
        settings: &RunSettings,
        outcome: &Outcome,
    ) -> Self {
        let Outcome { noise, measured, end, .. } = outcome;
        let context = Context::of(settings, outcome);
        let finished = |one: &&Measured| one.state == State::Finished && kind.is_of(one);
        let records: Vec<FusionRecord> = measured
            .iter()
            .filter(finished)
            .filter_map(|Measured { subject, processes, estimate, .. }| {
                Some(record(subject, processes, estimate.as_ref()?, &context))
            })
            .collect();
        let judged = Judged { kind, truth };
        let cases: Vec<Case> =
            problems.iter().filter_map(|problem| judged.case(problem, &records)).collect();
        let sum = |of: fn(&Case) -> usize| cases.iter().map(of).sum();
        let is_right = |one: &&FusionRecord| judged.contains(one) || is_undecided(one);
        Self {
            kind,
            truth,
            noise_floor: rounded(noise_floor(noise).exp_m1()),
            noise: noise.clone(),
            runs: records.len(),
            contained: sum(|case| case.contained),
            undecided: sum(|case| case.undecided),
            right: records.iter().filter(is_right).count(),
            false_verdicts: sum(|case| case.false_verdicts),
            found: sum(|case| case.found),
            half_width: half_width(records.iter()),
            cases,
            interrupted: *end != RunEnd::Complete,
        }
    }

    /// Whether the intervals keep their promise, and a planted difference is found.
    #[must_use]
    pub fn answer(&self) -> Answer {
        if self.interrupted || self.runs == 0 {
            return Answer::Undecided;
        }
        let right = Answer::of_share(self.right, self.runs, LEAST_COVERAGE);
        let not_false = self.runs - self.false_verdicts;
        let not_false = Answer::of_share(not_false, self.runs, 1.0 - MOST_FALSE_VERDICTS);
        let decided = if self.kind == Kind::Planted {
            Answer::of_share(self.found, self.runs, LEAST_FOUND)
        } else if self.is_mostly_undecided() {
            Answer::Undecided
        } else {
            Answer::Passed
        };
        Answer::of_all([right, not_false, decided].into_iter())
    }

    /// Whether fewer runs were decided than are wanted.
    #[must_use]
    pub fn is_mostly_undecided(&self) -> bool {
        share(self.runs - self.undecided, self.runs) < LEAST_DECIDED
    }
}

/// What records are held against.
struct Judged {
    kind: Kind,
    truth: f64,
}

impl Judged {
    fn case(&self, problem: &str, records: &[FusionRecord]) -> Option<Case> {
        let records: Vec<&FusionRecord> =
            records.iter().filter(|record| record.problem.to_string() == problem).collect();
        let count =
            |is: &dyn Fn(&FusionRecord) -> bool| records.iter().filter(|record| is(record)).count();
        let is_found = |record: &FusionRecord| record.verdict == self.kind.right_verdict();
        (!records.is_empty()).then(|| Case {
            problem: problem.to_owned(),
            runs: records.len(),
            contained: count(&|record| self.contains(record)),
            undecided: count(&is_undecided),
            false_verdicts: count(&|record| !is_undecided(record) && !is_found(record)),
            found: count(&is_found),
            half_width: half_width(records.iter().copied()),
            ratios: records
                .iter()
                .map(|record| [record.speedup_factor, record.speedup_low, record.speedup_high])
                .collect(),
            reasons: reasons(&records),
        })
    }

    fn contains(&self, record: &FusionRecord) -> bool {
        record.speedup_low <= self.truth && record.speedup_high >= self.truth
    }
}

fn half_width<'a>(records: impl Iterator<Item = &'a FusionRecord>) -> f64 {
    let widths = records.map(|record| 0.5 * (record.speedup_high / record.speedup_low).ln());
    rounded(crate::measure::mean(&widths.collect::<Vec<_>>()).exp_m1())
}

fn reasons(records: &[&FusionRecord]) -> BTreeMap<String, usize> {
    let mut reasons = BTreeMap::new();
    for reason in records.iter().flat_map(|record| &record.reasons) {
        *reasons.entry(reason.code.name().to_owned()).or_default() += 1;
    }
    reasons
}

fn is_undecided(record: &FusionRecord) -> bool {
    matches!(record.verdict, Verdict::Ambiguous | Verdict::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::WhyUndecided;

    fn good(kind: Kind) -> AgainstItself {
        AgainstItself {
            kind,
            truth: 1.0,
            noise_floor: 0.01,
            noise: Vec::new(),
            cases: Vec::new(),
            runs: 60,
            contained: 56,
            undecided: 0,
            right: 56,
            false_verdicts: 1,
            found: 54,
            half_width: 0.01,
            interrupted: false,
        }
    }

    fn changed(kind: Kind, change: fn(&mut AgainstItself)) -> Answer {
        let mut changed = good(kind);
        change(&mut changed);
        changed.answer()
    }

    #[test]
    fn an_answer_needs_decisions_and_all_of_the_runs() {
        for kind in [Kind::SharedTensors, Kind::OwnTensors] {
            assert_eq!(good(kind).answer(), Answer::Passed);
            assert_eq!(changed(kind, |all| all.right = 55), Answer::Undecided);
            assert_eq!(changed(kind, |all| all.right = 50), Answer::Failed);
            assert_eq!(changed(kind, |all| all.false_verdicts = 2), Answer::Undecided);
            assert_eq!(changed(kind, |all| all.false_verdicts = 6), Answer::Failed);
            assert_eq!(changed(kind, |all| all.undecided = 31), Answer::Undecided);
            assert_eq!(changed(kind, |all| all.interrupted = true), Answer::Undecided);
            assert_eq!(changed(kind, |all| all.runs = 0), Answer::Undecided);
        }
    }

    #[test]
    fn an_undecided_answer_has_its_reason() {
        let why = |change: fn(&mut AgainstItself)| {
            let mut changed = good(Kind::OwnTensors);
            change(&mut changed);
            WhyUndecided::of(&[], &[good(Kind::SharedTensors), changed])
        };
        assert_eq!(why(|all| all.right = 55), WhyUndecided::TooFewRuns);
        assert_eq!(why(|all| all.undecided = 31), WhyUndecided::TooNoisy);
        let noisy_and_interrupted = |all: &mut AgainstItself| {
            (all.undecided, all.interrupted) = (31, true);
        };
        assert_eq!(why(noisy_and_interrupted), WhyUndecided::NotFinished);
        assert_eq!(why(|all| all.runs = 0), WhyUndecided::NotFinished);
        // It was stopped before the next part began.
        assert_eq!(why(|_| {}), WhyUndecided::NotFinished);
        assert_eq!(WhyUndecided::of(&[], &[]), WhyUndecided::NotFinished);
    }

    #[test]
    fn a_planted_difference_must_be_found() {
        let kind = Kind::Planted;
        assert_eq!(good(kind).answer(), Answer::Passed);
        assert_eq!(changed(kind, |all| all.found = 53), Answer::Undecided);
        assert_eq!(changed(kind, |all| all.found = 40), Answer::Failed);
    }
}
