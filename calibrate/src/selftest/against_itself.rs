//! Kernels of this machine measured against themselves: the truth is 1.

use std::collections::BTreeMap;

use fusion_cost_model::calibration::{FusionRecord, NoiseFloor, RunEnd, Verdict};
use serde::Serialize;

use super::{Answer, LEAST_COVERAGE, LEAST_DECIDED, MOST_FALSE_VERDICTS, share};
use crate::digits::rounded;
use crate::judge::noise_floor;
use crate::plan::{Comparison, Subject};
use crate::record::{Context, record};
use crate::run::{Measured, Observer, Outcome, RunSettings, Session, State};
use crate::stop::Stop;
use crate::worker::Workers;

/// From a microsecond to some milliseconds, bound by launches, caches, memory and arithmetic.
const CASES: [&str; 12] = [
    "add_relu/f32/m16.n256",
    "linear_bias_relu/f32/m128.k128.n128",
    "add_layernorm/f32/m512.n1024",
    "conv_bn_relu/f32/n1.c64.h28.w28.k64.r3.s3.pad1",
    "attention_head/f32/b1.h4.q128.d64",
    "mul_add_relu/f32/m1024.n1024",
    "linear_bias_gelu/f32/m4096.k64.n256",
    "mlp/f32/m32.k256.n1024.o256",
    "sigmoid_mul/f32/m256.n1024",
    "linear_bias_relu/f32/m512.k512.n512",
    "conv_bias/f32/n1.c192.h28.w28.k192.r3.s3.pad1.groups192",
    "add_relu/f32/m4096.n1024",
];

/// What the A/A runs of one problem gave.
#[derive(Debug, Clone, Serialize)]
pub struct Case {
    /// The problem.
    pub problem: String,
    /// How often it was measured against itself.
    pub runs: usize,
    /// How often the 95 % interval contained 1.
    pub contained: usize,
    /// How often the answer was AMBIGUOUS or INVALID.
    pub undecided: usize,
    /// How often it was FASTER or SLOWER, which is wrong.
    pub false_verdicts: usize,
    /// Half the width of the intervals, as a ratio minus 1, in the mean.
    pub half_width: f64,
    /// The ratios with their intervals.
    pub ratios: Vec<[f64; 3]>,
    /// How often each reason was given, by its code.
    pub reasons: BTreeMap<String, usize>,
}

/// What all A/A runs gave.
#[derive(Debug, Clone, Serialize)]
pub struct AgainstItself {
    /// The noise floor that they were judged by, as a ratio minus 1.
    pub noise_floor: f64,
    /// The A/A runs that made it.
    pub noise: Vec<NoiseFloor>,
    /// By problem.
    pub cases: Vec<Case>,
    /// All runs.
    pub runs: usize,
    /// Runs whose interval contained 1.
    pub contained: usize,
    /// Runs that were AMBIGUOUS or INVALID.
    pub undecided: usize,
    /// Runs whose interval contained 1, or that were AMBIGUOUS or INVALID: both are right.
    pub right: usize,
    /// Runs that were FASTER or SLOWER.
    pub false_verdicts: usize,
    /// Whether the user stopped it before all runs were made.
    pub interrupted: bool,
}

impl AgainstItself {
    /// Whether the intervals keep their promise.
    #[must_use]
    pub fn answer(&self) -> Answer {
        if self.interrupted || self.runs == 0 {
            return Answer::Undecided;
        }
        let right = Answer::of_share(self.right, self.runs, LEAST_COVERAGE);
        let not_false = self.runs - self.false_verdicts;
        let not_false = Answer::of_share(not_false, self.runs, 1.0 - MOST_FALSE_VERDICTS);
        let decided = share(self.runs - self.undecided, self.runs) >= LEAST_DECIDED;
        let decided = if decided { Answer::Passed } else { Answer::Undecided };
        Answer::of_all([right, not_false, decided].into_iter())
    }
}

/// What is measured in `runs` runs: the cases in turn, each variant against itself in turn.
///
/// # Errors
///
/// Never, since the texts are fixed; they are parsed like any other.
pub fn subjects(runs: u32) -> anyhow::Result<Vec<Subject>> {
    let cases = CASES.len() as u32;
    (0..runs)
        .map(|run| {
            let repetition = run / cases;
            let comparison = match repetition % 2 {
                0 => Comparison::UnfusedUnfused,
                _ => Comparison::FusedFused,
            };
            // The run's own controls have the first numbers.
            let repetition = repetition + 1;
            let problem = CASES[(run % cases) as usize].parse()?;
            Ok(Subject { comparison, repetition, ..Subject::fusion(problem) })
        })
        .collect()
}

/// Makes A/A runs.
///
/// # Errors
///
/// When no worker can be started, or one fails.
pub fn measure(
    workers: &mut dyn Workers,
    settings: RunSettings,
    runs: u32,
    stop: &Stop,
    observer: impl Observer,
) -> anyhow::Result<AgainstItself> {
    let subjects = subjects(runs)?;
    let session = Session::new(workers, settings, &subjects, stop)?;
    let outcome = session.observed_by(observer).run()?;
    for Measured { subject, state, .. } in &outcome.measured {
        if let State::Wrong(reason) | State::Failed(reason) = state {
            anyhow::bail!("{}: {reason}", subject.problem);
        }
    }
    Ok(evaluate(&settings, &outcome))
}

fn evaluate(settings: &RunSettings, outcome: &Outcome) -> AgainstItself {
    let Outcome { noise, measured, end, .. } = outcome;
    let context = Context::of(settings, outcome, &[]);
    let finished = |measured: &&Measured| measured.state == State::Finished;
    let records: Vec<FusionRecord> = measured
        .iter()
        .filter(finished)
        .filter_map(|Measured { subject, processes, estimate, .. }| {
            Some(record(subject, processes, estimate.as_ref()?, &context))
        })
        .collect();
    let cases: Vec<Case> = CASES.iter().filter_map(|problem| case(problem, &records)).collect();
    let sum = |of: fn(&Case) -> usize| cases.iter().map(of).sum();
    AgainstItself {
        noise_floor: rounded(noise_floor(noise).exp_m1()),
        noise: noise.clone(),
        runs: records.len(),
        contained: sum(|case| case.contained),
        undecided: sum(|case| case.undecided),
        right: records.iter().filter(|record| contains_one(record) || is_undecided(record)).count(),
        false_verdicts: sum(|case| case.false_verdicts),
        cases,
        interrupted: *end != RunEnd::Complete,
    }
}

fn case(problem: &str, records: &[FusionRecord]) -> Option<Case> {
    let records: Vec<&FusionRecord> =
        records.iter().filter(|record| record.problem.to_string() == problem).collect();
    let count = |is: fn(&FusionRecord) -> bool| records.iter().filter(|record| is(record)).count();
    let widths = records.iter().map(|record| 0.5 * (record.speedup_high / record.speedup_low).ln());
    let half_width = crate::measure::mean(&widths.collect::<Vec<_>>()).exp_m1();
    (!records.is_empty()).then(|| Case {
        problem: problem.to_owned(),
        runs: records.len(),
        contained: count(contains_one),
        undecided: count(is_undecided),
        false_verdicts: count(|record| matches!(record.verdict, Verdict::Faster | Verdict::Slower)),
        half_width: rounded(half_width),
        ratios: records
            .iter()
            .map(|record| [record.speedup_factor, record.speedup_low, record.speedup_high])
            .collect(),
        reasons: reasons(&records),
    })
}

fn reasons(records: &[&FusionRecord]) -> BTreeMap<String, usize> {
    let mut reasons = BTreeMap::new();
    for reason in records.iter().flat_map(|record| &record.reasons) {
        *reasons.entry(reason.code.name().to_owned()).or_default() += 1;
    }
    reasons
}

fn contains_one(record: &FusionRecord) -> bool {
    record.speedup_low <= 1.0 && record.speedup_high >= 1.0
}

fn is_undecided(record: &FusionRecord) -> bool {
    matches!(record.verdict, Verdict::Ambiguous | Verdict::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn an_answer_needs_decisions_and_all_of_the_runs() {
        let good = AgainstItself {
            noise_floor: 0.01,
            noise: Vec::new(),
            cases: Vec::new(),
            runs: 60,
            contained: 56,
            undecided: 0,
            right: 56,
            false_verdicts: 1,
            interrupted: false,
        };
        assert_eq!(good.answer(), Answer::Passed);
        let change = |change: fn(&mut AgainstItself)| {
            let mut changed = good.clone();
            change(&mut changed);
            changed.answer()
        };
        assert_eq!(change(|all| all.right = 55), Answer::Undecided);
        assert_eq!(change(|all| all.right = 50), Answer::Failed);
        assert_eq!(change(|all| all.false_verdicts = 2), Answer::Undecided);
        assert_eq!(change(|all| all.false_verdicts = 6), Answer::Failed);
        assert_eq!(change(|all| all.undecided = 31), Answer::Undecided);
        assert_eq!(change(|all| all.interrupted = true), Answer::Undecided);
        assert_eq!(change(|all| all.runs = 0), Answer::Undecided);
    }

    #[test]
    fn every_run_is_of_its_own_and_both_variants_have_their_turn() {
        let subjects = subjects(60).unwrap();
        assert_eq!(subjects.iter().collect::<HashSet<_>>().len(), 60);
        let fused = subjects.iter().filter(|one| one.comparison == Comparison::FusedFused).count();
        assert_eq!(fused, 24);
        for case in CASES {
            assert_eq!(case.parse::<fusion_cost_model::Problem>().unwrap().to_string(), case);
        }
    }
}
