//! A model run in several ways, predicted and measured: `text` for people, `csv` for tables, and these
//! types as JSON.

mod csv;
mod figures;
mod gains;
mod memory;
mod speed;
mod text;

use std::collections::BTreeMap;

use fusion_cost_model::calibration::{Disturbed, Verdict};
use fusion_cost_model::{Evidence, OnTarget, Problem};
use serde::{Serialize, Serializer};

use super::estimated::Range;
use super::partition::{OpaqueNodes, SplitModel};
use crate::measure::Cause;
use crate::plan::workload::{Way, Ways};
use crate::run::workload::MeasuredWorkload;

pub use gains::{Gain, Times};
pub use speed::{MeasuredAgain, Speed};

/// A model run in several ways.
#[derive(Debug, Clone, Serialize)]
pub struct WorkloadReport {
    /// What the file is, for those who read it.
    pub kind: &'static str,
    /// Of its form.
    pub schema_version: u32,
    /// What was asked.
    #[serde(flatten)]
    pub question: Question,
    /// How much is known of the problems of all ways.
    pub known: Known,
    /// What predictions have beside the records.
    pub memory: Memory,
    /// The ways.
    pub ways: Vec<WayReport>,
    /// Where the best partition differs from one kernel per op, the largest gains first.
    pub gains: Vec<Gain>,
    /// The problems of each way, the ones that take longest first.
    pub operators: Vec<Operator>,
    /// What could be one kernel and is better apart.
    pub apart: Vec<Apart>,
    /// Nodes that the vocabulary cannot express: in no way's time.
    pub opaque: Vec<OpaqueNodes>,
    /// What is taken for granted, and of how many groups of nodes.
    pub assumed: BTreeMap<String, usize>,
    /// How it was measured; `None` where it was only predicted.
    pub measurement: Option<Measurement>,
}

/// What was asked.
#[derive(Debug, Clone, Serialize)]
pub struct Question {
    /// The workload, or the file of the model.
    pub workload: String,
    /// What it is, if it says so.
    pub description: Option<String>,
    /// Numbers of its open dimensions.
    pub dims: BTreeMap<String, u64>,
    /// The calibration file.
    pub profile: String,
    /// Where the kernels run.
    #[serde(serialize_with = "as_text")]
    pub target: fusion_cost_model::Target,
    /// The speedup from which the best partition fuses.
    pub threshold: f64,
    /// How many ops there are.
    pub ops: usize,
}

/// How much is known of the different problems of all ways.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Known {
    /// All.
    pub problems: usize,
    /// Those that were measured.
    pub measured: usize,
    /// Those that follow from others that were.
    pub interpolated: usize,
    /// Those known by a roofline only.
    pub roofline: usize,
    /// Those that nothing is known about.
    pub unknown: usize,
    /// Those that were not measured.
    #[serde(serialize_with = "as_texts")]
    pub missing: Vec<Problem>,
}

/// What the caches may not keep of a model: weights, results, and inputs from outside.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Memory {
    /// The bytes, each touched once in a run of the best partition.
    pub bytes: u64,
    /// How much longer every way takes for it than its problems by themselves; `None` where no bandwidth
    /// was measured that would tell it.
    pub extra_ms: Option<f64>,
    /// Layers of the best partition.
    pub layers: usize,
    /// Those of them that take longer by the bandwidth of memory alone, since no kernels with cold caches
    /// were measured that would tell it.
    pub by_bandwidth: usize,
}

/// A way to run a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WayReport {
    /// Which one.
    pub way: Way,
    /// Another way with the very same kernels, which was measured instead.
    pub same_as: Option<Way>,
    /// How many kernels it has.
    pub kernels: usize,
    /// The time that is expected, with [`WorkloadReport::memory`]; `None` where that of a kernel is
    /// not known.
    pub predicted_ms: Option<Range>,
    /// The time that was measured.
    pub measured_ms: Option<Range>,
    /// Predicted less measured time, in per cent of the latter.
    pub error_pct: Option<f64>,
    /// The time that is expected at the speed of the machine during the run, see [`Speed`]; `None`
    /// where it is not known to be another one than that of the profile.
    pub predicted_now_ms: Option<Range>,
    /// That less the measured time, in per cent of the latter.
    pub error_now_pct: Option<f64>,
    /// The unfused time over this one, as it is expected.
    pub predicted_speedup: Option<f64>,
    /// The same as it was measured, in pairs.
    pub speedup: Option<Range>,
    /// What that says.
    #[serde(serialize_with = "as_optional_text")]
    pub verdict: Option<Verdict>,
}

/// A problem of a way, in all of its places together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Operator {
    /// The way.
    pub way: Way,
    /// What it computes.
    #[serde(serialize_with = "as_text")]
    pub problem: Problem,
    /// In how many places.
    pub times: usize,
    /// What the prediction rests on.
    #[serde(serialize_with = "as_text")]
    pub evidence: Evidence,
    /// The time of all places that the cost model expects.
    pub predicted_ms: Option<Range>,
    /// The time of all places that was measured, each in its place of the sequence.
    pub measured_ms: Option<f64>,
    /// Predicted less measured time, in per cent of the latter.
    pub error_pct: Option<f64>,
    /// The time of all places that is expected at the speed of the machine during the run.
    pub predicted_now_ms: Option<Range>,
    /// That less the measured time, in per cent of the latter.
    pub error_now_pct: Option<f64>,
}

/// Ops that could be one kernel and are better apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Apart {
    /// What the one kernel would compute.
    #[serde(serialize_with = "as_text")]
    pub problem: Problem,
    /// In how many places.
    pub times: usize,
    /// What it would gain.
    pub speedup: Option<Range>,
    /// What that rests on.
    #[serde(serialize_with = "as_text")]
    pub evidence: Evidence,
}

/// How a model was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measurement {
    /// The machine.
    pub machine: String,
    /// Whether the profile is of this machine, so that predicted and measured times are about the same.
    pub is_of_profile: bool,
    /// Fresh processes of each pair of ways, the fewest of all.
    pub processes: usize,
    /// Pairs of samples in all of them.
    pub pairs: usize,
    /// Those that nothing disturbed.
    pub pairs_kept: usize,
    /// Those that something disturbed, by cause.
    pub disturbed: Disturbed,
    /// How many processors other programs kept busy meanwhile, in the mean, for the pair of ways with the
    /// most; `None` where the system does not report it.
    pub others_busy: Option<f64>,
    /// Whether all pairs of samples of some ways count, since small services of the system disturbed
    /// most of them.
    pub services_count: bool,
    /// How fast the machine was during the run, against the profile; `None` where nothing of this
    /// machine's profile could be measured again.
    pub speed: Option<Speed>,
    /// Seed of the inputs, the memory layouts and the order of the samples.
    pub seed: u64,
    /// The unfused way against a copy of itself, whose truth is 1.
    pub against_itself: Option<Range>,
    /// How far from 1 a ratio must be to count, as a ratio minus 1.
    pub noise_floor: f64,
    /// How many different problems were proved right first.
    pub proved: usize,
    /// How far the results of two ways were apart at most, over their size.
    pub results_apart: f64,
    /// How many states the machine was in.
    pub states: usize,
}

/// How a run was made, beside what it measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredOn {
    /// The machine.
    pub machine: String,
    /// Whether the profile is of it.
    pub is_of_profile: bool,
    /// The seed.
    pub seed: u64,
}

fn as_text<S: Serializer>(value: &impl ToString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_string())
}

fn as_optional_text<S: Serializer, T: ToString>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().map(ToString::to_string).serialize(serializer)
}

fn as_texts<S: Serializer>(values: &[impl ToString], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(ToString::to_string))
}

impl WorkloadReport {
    /// What is predicted by what is known of a target, and of the same one with cold caches; and what
    /// was measured, if it was.
    #[must_use]
    pub fn of(
        question: Question,
        ways: &Ways,
        split: &SplitModel,
        [on, cold]: [OnTarget<'_>; 2],
        measured: Option<(&MeasuredWorkload, MeasuredOn)>,
    ) -> Self {
        let of_run = measured.as_ref().map(|(measured, _)| *measured);
        let memory = memory::ModelMemory::of(ways.of_way(Way::BestPartition), on, cold);
        let speed = of_run.and_then(|measured| Speed::of(&measured.again));
        let figures = figures::Figures {
            ways,
            on,
            memory,
            splits: &split.splits,
            measured: of_run,
            speed: speed.as_ref().filter(|speed| speed.is_another()),
        };
        let mut operators: Vec<Operator> =
            Way::ALL.into_iter().flat_map(|way| figures.operators(way)).collect();
        let size = |one: &Operator| {
            let predicted = one.predicted_ms.map_or(0.0, |time| time.value);
            one.measured_ms.unwrap_or(predicted)
        };
        operators.sort_by(|a, b| a.way.cmp(&b.way).then(size(b).total_cmp(&size(a))));
        Self {
            kind: "workload-report",
            schema_version: 1,
            known: figures.known(),
            memory: figures.memory(),
            ways: Way::ALL.into_iter().map(|way| figures.way(way)).collect(),
            gains: gains::of(&figures),
            operators,
            apart: apart(split),
            opaque: split.opaque.clone(),
            assumed: split.assumed.clone(),
            measurement: measured.map(|(measured, run)| measurement(measured, run, speed.clone())),
            question,
        }
    }
}

/// What is better apart, equal kernels once.
fn apart(split: &SplitModel) -> Vec<Apart> {
    let mut all: Vec<Apart> = Vec::new();
    for kernel in &split.apart {
        let Some(problem) = kernel.problem else { continue };
        match all.iter_mut().find(|known| known.problem == problem) {
            Some(known) => known.times += 1,
            None => {
                let (speedup, evidence) = (kernel.speedup, kernel.evidence);
                all.push(Apart { problem, times: 1, speedup, evidence });
            }
        }
    }
    all
}

fn measurement(measured: &MeasuredWorkload, run: MeasuredOn, speed: Option<Speed>) -> Measurement {
    let estimates = || measured.pairs.iter().map(|pair| &pair.estimate);
    let itself = measured.pairs.iter().find(|pair| pair.ways[0] == pair.ways[1]);
    let MeasuredOn { machine, is_of_profile, seed } = run;
    Measurement {
        machine,
        is_of_profile,
        processes: estimates().map(|one| one.processes).min().unwrap_or(0),
        pairs: estimates().map(|one| one.pairs).sum(),
        pairs_kept: estimates().map(|one| one.pairs_kept).sum(),
        disturbed: estimates().map(|one| one.disturbed).fold(Disturbed::default(), Cause::sum),
        others_busy: measured.pairs.iter().filter_map(|pair| pair.others_busy).reduce(f64::max),
        services_count: measured
            .pairs
            .iter()
            .any(|pair| pair.estimate.mostly_disturbed && pair.verdict != Verdict::Invalid),
        speed,
        seed,
        against_itself: itself.map(|pair| figures::ratio(&pair.estimate)),
        noise_floor: measured.noise_floor,
        proved: measured.proved,
        results_apart: measured.apart,
        states: measured.states.len(),
    }
}
