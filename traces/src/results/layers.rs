//! What the model of a trace is made of.

use serde::Serialize;

use crate::segment::{
    Assignments, Family, Layers, Marker, NoLayers, OtherModel, Phase, PhaseFinding,
};
use crate::{
    Classes, LayerTime, PatternTime, PhaseTime, RankFile, SegmentSummary, Segments, StepTime,
    Taxonomy, Trace,
};

/// What traces are made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RanksLayers {
    /// Each trace.
    pub ranks: Vec<RankLayers>,
}

/// What a trace is made of. All times are in nanoseconds; all numbers of steps, passes, layers,
/// patterns and positions begin with zero.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RankLayers {
    /// The file.
    pub file: String,
    /// The rank, if it is known.
    pub rank: Option<u64>,
    /// Kernels, copies and fills.
    pub kernels: usize,
    /// The kind of model.
    pub family: FamilyName,
    /// How many kernels came to their steps in which way; all are zero without steps.
    pub assignments: Assignments,
    /// The phases, if any are known.
    pub phases: Vec<PhaseTime>,
    /// What shows the phases, where no mark tells them.
    pub phase_evidence: Vec<PhaseFinding>,
    /// The marked steps, in the order of the host.
    pub steps: Vec<StepTime>,
    /// The layers of the model.
    pub layers: LayersFound,
    /// The distinct layers, the most frequent first.
    pub patterns: Vec<PatternTime>,
}

/// The kind of model, and what shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FamilyName {
    /// `dense`, `mixture of experts`, `state space`, `hybrid`, `hybrid mixture of experts` or
    /// `unknown`.
    pub name: &'static str,
    /// What shows it.
    #[serde(flatten)]
    pub evidence: Family,
}

/// The layers of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LayersFound {
    /// How many the model has; zero if none were found.
    pub count: u32,
    /// What each of them begins with.
    pub marker: Option<Marker>,
    /// The type of the recorded modules that are called like layers.
    pub module: Option<String>,
    /// How many modules of that type there are.
    pub modules: Option<usize>,
    /// Passes through other models, whose kernels are in no layer.
    pub others: Vec<OtherModel>,
    /// Why none were found.
    pub none_because: Option<NoLayers>,
    /// The passes through the model, device by device.
    pub passes: Vec<PassTime>,
    /// Each layer, by its number.
    pub by_number: Vec<LayerTime>,
}

/// A pass through the model, forward or backward.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PassTime {
    /// The device.
    pub device: i64,
    /// The stream on it; none if the layers have kernels of all its streams.
    pub stream: Option<i64>,
    /// How many layers it has.
    pub layers: usize,
    /// Whether it computes gradients.
    pub is_backward: bool,
    /// Whether the recording began or ended in it.
    pub is_cut: bool,
    /// The durations of the kernels of its layers together, in nanoseconds.
    pub total_ns: u64,
}

impl RanksLayers {
    /// The run of these traces.
    #[must_use]
    pub const fn new(ranks: Vec<RankLayers>) -> Self {
        Self { ranks }
    }
}

impl RankLayers {
    /// What a trace is made of.
    #[must_use]
    pub fn of(file: &RankFile, trace: &Trace, classes: &Classes, segments: &Segments) -> Self {
        let summary = SegmentSummary::of(trace, classes, segments, Taxonomy::Classes);
        Self::with(file, trace, segments, summary)
    }

    /// What the steps and layers of a phase are made of.
    #[must_use]
    pub fn of_phase(
        file: &RankFile,
        trace: &Trace,
        classes: &Classes,
        segments: &Segments,
        phase: Phase,
    ) -> Self {
        let is_one = |kernel: usize| segments.steps.phase(kernel) == Some(phase);
        let layers = segments.layers.only(is_one);
        let segments = Segments { layers, ..segments.clone() };
        let mut summary = SegmentSummary::of(trace, classes, &segments, Taxonomy::Classes);
        summary.phases.retain(|one| one.phase == Some(phase));
        summary.steps.retain(|step| step.phase.is_none() || step.phase == Some(phase));
        Self::with(file, trace, &segments, summary)
    }

    fn with(file: &RankFile, trace: &Trace, segments: &Segments, summary: SegmentSummary) -> Self {
        let SegmentSummary { phases, steps, patterns, layers } = summary;
        let family = FamilyName { name: segments.family.name(), evidence: segments.family.clone() };
        Self {
            file: file.named.display().to_string(),
            rank: file.rank,
            kernels: trace.kernels.len(),
            family,
            assignments: segments.steps.assignments,
            phases,
            phase_evidence: segments.steps.findings.clone(),
            steps,
            layers: LayersFound::new(&segments.layers, layers),
            patterns,
        }
    }
}

impl LayersFound {
    fn new(layers: &Layers, by_number: Vec<LayerTime>) -> Self {
        let passes = layers.passes.iter().map(|pass| {
            let of_pass = layers.list.get(pass.layers.clone()).unwrap_or_default();
            PassTime {
                device: pass.device,
                stream: pass.stream,
                layers: pass.layers.len(),
                is_backward: pass.is_backward,
                is_cut: pass.is_cut,
                total_ns: of_pass.iter().fold(0, |sum, one| u64::saturating_add(sum, one.total_ns)),
            }
        });
        let (module, modules) = layers.modules.clone().unzip();
        Self {
            count: layers.count,
            marker: layers.marker,
            module,
            modules,
            others: layers.others.clone(),
            none_because: layers.none_because,
            passes: passes.collect(),
            by_number,
        }
    }
}
