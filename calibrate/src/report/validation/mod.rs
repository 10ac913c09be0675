//! How well the records of a calibration estimate each other: `text` for people, `csv` for tables,
//! and these types as JSON.

mod csv;
mod text;

use std::collections::BTreeMap;

use fusion_cost_model::{Accuracy, Errors, Evidence, Family, Policy, Regret, Trial};
use serde::Serialize;

use super::estimated::{EVIDENCE, Range};

/// How well the records of a calibration estimate each other.
#[derive(Debug, Clone, Serialize)]
pub struct Validation {
    /// What was asked.
    #[serde(flatten)]
    pub question: Question,
    /// All records.
    pub all: Group,
    /// The records of each family.
    pub by_family: Vec<Group>,
    /// The records of each chain.
    pub by_pattern: Vec<Group>,
    /// The records that were estimated from the same evidence.
    pub by_evidence: Vec<Group>,
    /// Every record.
    pub records: Vec<LeftOut>,
}

/// What was asked.
#[derive(Debug, Clone, Serialize)]
pub struct Question {
    /// The calibration file.
    pub file: String,
    /// Whose records.
    pub target: String,
    /// What was left out at a time: `shape` or `problem`.
    pub leave_out: &'static str,
    /// The speedup from which fusing is worth it.
    pub threshold: f64,
    /// The largest regret that is allowed, as a share.
    pub max_regret: Option<f64>,
}

/// Some of the records.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// What they have in common.
    pub name: String,
    /// How many there are.
    pub records: usize,
    /// How far their fused times are off.
    pub time: Option<Errors>,
    /// How far their speedups are off.
    pub speedup: Option<Errors>,
    /// What decisions cost.
    pub regret: Option<Regret>,
}

/// A record and its estimate.
#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    /// The problem.
    pub problem: String,
    /// What the estimate rests on.
    pub evidence: &'static str,
    /// How far beyond the sizes that were left it lies.
    pub octaves_beyond: f64,
    /// The fused time.
    pub fused_ms: f64,
    /// The same, estimated.
    pub estimated_fused_ms: Option<Range>,
    /// The speedup; `None` of a single op.
    pub speedup: Option<f64>,
    /// The same, estimated.
    pub estimated_speedup: Option<Range>,
    /// Whether it would be fused by the estimate.
    pub fuse: Option<bool>,
}

impl Validation {
    /// What trials say, which were decided by a policy.
    #[must_use]
    pub fn of(question: Question, trials: &[Trial<'_>], policy: &Policy) -> Self {
        let group = |name: String, trials: Vec<&Trial<'_>>| {
            let Accuracy { records, time, speedup, regret, .. } = Accuracy::of(trials, policy);
            Group { name, records, time, speedup, regret }
        };
        let family = |trial: &Trial<'_>| Family::of(trial.record.problem.chain().form());
        let of_family = |one: Family| trials.iter().filter(|trial| family(trial) == one).collect();
        let of_evidence = |one: Evidence| {
            trials.iter().filter(|trial| trial.estimate.evidence() == one).collect()
        };
        let mut by_pattern: BTreeMap<(Family, String), Vec<&Trial<'_>>> = BTreeMap::new();
        for trial in trials {
            let name = trial.record.problem.chain().name();
            by_pattern.entry((family(trial), name)).or_default().push(trial);
        }
        let any = |group: &Group| group.records > 0;
        Self {
            all: group("all".to_owned(), trials.iter().collect()),
            by_family: Family::ALL
                .iter()
                .map(|&one| group(one.name().to_owned(), of_family(one)))
                .filter(any)
                .collect(),
            by_pattern: by_pattern
                .into_iter()
                .map(|((_, name), trials)| group(name, trials))
                .collect(),
            by_evidence: EVIDENCE
                .iter()
                .map(|&one| group(one.name().to_owned(), of_evidence(one)))
                .filter(any)
                .collect(),
            records: trials.iter().map(left_out).collect(),
            question,
        }
    }

    /// Whether the decisions cost more than is allowed; `None` if there is no limit, or nothing to
    /// decide.
    #[must_use]
    pub fn exceeds(&self) -> Option<bool> {
        Some(self.all.regret?.decided > self.question.max_regret?)
    }
}

fn left_out(trial: &Trial<'_>) -> LeftOut {
    let Trial { record, estimate, fuse, .. } = trial;
    LeftOut {
        problem: record.problem.to_string(),
        evidence: estimate.evidence().name(),
        octaves_beyond: estimate.octaves_beyond(),
        fused_ms: record.fused_latency_ms,
        estimated_fused_ms: estimate.fused_ms().map(Range::from),
        speedup: fuse.map(|_| record.speedup_factor),
        estimated_speedup: estimate.speedup().filter(|_| fuse.is_some()).map(Range::from),
        fuse: *fuse,
    }
}
