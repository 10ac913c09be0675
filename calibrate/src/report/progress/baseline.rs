//! An older calibration that every problem is held against as soon as it is measured.

use std::collections::HashMap;

use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Verdict};
use fusion_cost_model::compare::Figure;
use fusion_cost_model::{Backend, CacheState, Clock, Implementation, Problem, Rewrite};

use crate::measure::Estimate;
use crate::plan::Subject;
use crate::units::ratio;

/// What a run measures of a problem.
type Question = (Problem, Clock, Implementation, Option<Rewrite>);

/// An older calibration.
#[derive(Debug, Clone, Default)]
pub struct Baseline {
    /// The speedup of a chain, or the time of a single op, in milliseconds.
    known: HashMap<Question, Figure>,
}

impl Baseline {
    /// The valid records of a calibration that a run on some threads of a backend measures again.
    #[must_use]
    pub fn of(
        calibration: &HardwareCalibration,
        backend: Backend,
        threads: u32,
        cache: CacheState,
    ) -> Self {
        let is_of_run = |one: &&FusionRecord| {
            (one.backend, one.threads, one.cache_state) == (backend, threads, cache)
                && one.verdict != Verdict::Invalid
        };
        let question =
            |one: &FusionRecord| (one.problem, one.clock, one.implementation, one.rewrite);
        let records = calibration.records.iter().filter(is_of_run);
        Self { known: records.map(|one| (question(one), figure(one))).collect() }
    }

    /// Whether it has the record of a subject.
    #[must_use]
    pub fn holds(&self, subject: &Subject) -> bool {
        self.known.contains_key(&Self::question(subject))
    }

    fn question(subject: &Subject) -> Question {
        let Subject { problem, clock, implementation, rewrite, .. } = *subject;
        (problem, clock, implementation, rewrite)
    }

    /// What was estimated over what it was: speedups of chains, times of single ops.
    pub(super) fn change(&self, subject: &Subject, estimate: &Estimate) -> Option<Figure> {
        let before = self.known.get(&Self::question(subject))?;
        let now = if subject.problem.chain().is_single() {
            let [time, _] = estimate.of_one_kernel().times;
            let ms = |seconds: f64| seconds * 1e3;
            Figure { value: ms(time.seconds), interval: Some([ms(time.low), ms(time.high)]) }
        } else {
            Figure { value: estimate.ratio, interval: Some([estimate.low, estimate.high]) }
        };
        Some(now.over(before))
    }

    /// The change in words, to stand behind what was found.
    pub(super) fn in_words(&self, subject: &Subject, estimate: &Estimate) -> String {
        let Some(change) = self.change(subject, estimate) else {
            return "; not in the baseline".to_owned();
        };
        let what = if subject.problem.chain().is_single() { "time" } else { "speedup" };
        let change = match change.interval {
            Some([low, high]) => ratio(change.value, low, high),
            None => format!("{:.3}", change.value),
        };
        format!("; {change} times the baseline's {what}")
    }
}

fn figure(record: &FusionRecord) -> Figure {
    if record.problem.chain().is_single() {
        let timing = &record.unfused_timing;
        let interval = timing.low_ms.zip(timing.high_ms).map(|(low, high)| [low, high]);
        return Figure { value: record.unfused_latency_ms, interval };
    }
    let interval = Some([record.speedup_low, record.speedup_high]);
    Figure { value: record.speedup_factor, interval }
}
