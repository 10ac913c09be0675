//! Where the time goes by what a trace is made of: phases, steps, patterns and layers.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::group::Group;
use super::layers::{LayerTime, PatternTime, layer_times, pattern_times};
use super::{ByDuration, Partition, Taxonomy, Times, total_ns};
use crate::ratio::ratio;
use crate::segment::{MarkKind, Phase, Steps};
use crate::{Classes, Segments, Trace};

/// Where the time of a trace goes, by phase, step, pattern and layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SegmentSummary {
    /// The phases, if there are any.
    pub phases: Vec<PhaseTime>,
    /// The marked steps, in the order of the host.
    pub steps: Vec<StepTime>,
    /// The distinct layers, the most frequent first.
    pub patterns: Vec<PatternTime>,
    /// The layers of the model, by number.
    pub layers: Vec<LayerTime>,
}

/// The kernels of a phase. All times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseTime {
    /// The phase; none for the kernels of no phase.
    pub phase: Option<Phase>,
    /// The steps that are in this phase as a whole; where no mark tells phases, how often it ran.
    pub steps: usize,
    /// How long its kernels take.
    #[serde(flatten)]
    pub times: Times,
    /// Their part of the durations of all kernels.
    pub share: f64,
    /// Its kernels by class, the longest first. Shares are of the phase.
    pub by_class: Vec<Group>,
}

/// A step, and the kernels that were launched in it. All times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepTime {
    /// Its number, from zero.
    pub step: usize,
    /// What its mark is called.
    pub name: String,
    /// Who marked it.
    pub kind: MarkKind,
    /// Its phase, if its mark or the marks in it say so.
    pub phase: Option<Phase>,
    /// When it began on the host, since the zero of the trace.
    pub host_start_ns: i64,
    /// How long it took on the host.
    pub host_ns: u64,
    /// How long its kernels take.
    #[serde(flatten)]
    pub times: Times,
}

impl SegmentSummary {
    /// Sums up a trace by its segments.
    #[must_use]
    pub fn of(trace: &Trace, classes: &Classes, segments: &Segments, taxonomy: Taxonomy) -> Self {
        let by_duration = ByDuration::of(&trace.kernels.duration_ns);
        let whole_ns = total_ns(trace);
        let Segments { steps, layers, .. } = segments;
        Self {
            phases: phases_in(trace, classes, steps, taxonomy, &by_duration),
            steps: step_times(trace, steps, &by_duration),
            patterns: pattern_times(trace, classes, layers, &by_duration, whole_ns),
            layers: layer_times(layers),
        }
    }
}

/// The time of every phase that kernels are of, in the order of [`Phase::ALL`], and then of those
/// of no phase. None if no step has a phase.
#[must_use]
pub fn phase_times(
    trace: &Trace,
    classes: &Classes,
    steps: &Steps,
    taxonomy: Taxonomy,
) -> Vec<PhaseTime> {
    if !steps.have_phases() {
        return Vec::new();
    }
    phases_in(trace, classes, steps, taxonomy, &ByDuration::of(&trace.kernels.duration_ns))
}

fn phases_in(
    trace: &Trace,
    classes: &Classes,
    steps: &Steps,
    taxonomy: Taxonomy,
    by_duration: &ByDuration,
) -> Vec<PhaseTime> {
    if !steps.have_phases() {
        return Vec::new();
    }
    let whole_ns = total_ns(trace);
    let kinds = Partition::by(trace.kernels.len(), |kernel| {
        Some((steps.phase(kernel), *trace.kernels.name.get(kernel)?, classes.id(kernel)))
    });
    let by_phase = kinds.coarser(|&(phase, ..)| Some(phase));
    let times = by_phase.times(by_duration);
    // Kernels of one number have the same class.
    let examples: FxHashMap<u32, usize> =
        kinds.keys().iter().map(|&(.., class)| class).zip(kinds.examples()).collect();
    let mut phases: Vec<PhaseTime> = by_phase
        .keys()
        .iter()
        .zip(times)
        .map(|(&phase, times)| {
            let label = |&(of, name, class): &(Option<Phase>, _, u32)| {
                let classification = classes.get(*examples.get(&class)?);
                (of == phase).then(|| taxonomy.label(classification, trace.names.text(name)))
            };
            let by_class = kinds
                .coarser(label)
                .groups(by_duration, times.total_ns, |label| (label.clone(), label.clone()));
            PhaseTime {
                phase,
                steps: steps.runs(phase),
                times,
                share: ratio(times.total_ns, whole_ns),
                by_class,
            }
        })
        .collect();
    let place = |phase: &PhaseTime| (phase.phase.is_none(), phase.phase);
    phases.sort_by_key(place);
    phases
}

fn step_times(trace: &Trace, steps: &Steps, by_duration: &ByDuration) -> Vec<StepTime> {
    let by_step = Partition::by(trace.kernels.len(), |kernel| steps.step(kernel));
    let mut times = vec![Times::default(); steps.list.len()];
    for (&step, found) in by_step.keys().iter().zip(by_step.times(by_duration)) {
        if let Some(times) = times.get_mut(step) {
            *times = found;
        }
    }
    let listed = steps.list.iter().zip(times).enumerate();
    let time = |(number, (step, times)): (usize, (&crate::segment::Step, Times))| StepTime {
        step: number,
        name: trace.names.text(step.name).to_owned(),
        kind: step.kind,
        phase: step.phase,
        host_start_ns: step.start_ns,
        host_ns: step.duration_ns,
        times,
    };
    listed.map(time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::synthetic::{self, Annotation, Communication, KernelTruth, Model, Plan, Truth};

    fn summed(plan: &Plan) -> (SegmentSummary, Truth, Trace) {
        let (text, truth) = synthetic::text(plan).unwrap();
        let trace = Trace::from_json(&text, &Options::default()).unwrap();
        let classes = Classes::of(&trace);
        let segments = Segments::of(&trace, &classes);
        let summary = SegmentSummary::of(&trace, &classes, &segments, Taxonomy::Classes);
        let phases = phase_times(&trace, &classes, &segments.steps, Taxonomy::Classes);
        assert_eq!(phases, summary.phases);
        (summary, truth, trace)
    }

    fn time(truth: &Truth, is_of: impl Fn(&KernelTruth) -> bool) -> (usize, u64) {
        let kernels = truth.kernels.iter().filter(|kernel| is_of(kernel));
        kernels.fold((0, 0), |sum, kernel| (sum.0 + 1, sum.1 + kernel.duration_ns))
    }

    fn serving() -> Plan {
        Plan {
            layers: 4,
            steps: 5,
            annotations: vec![Annotation::Vllm],
            copies: true,
            ..Plan::default()
        }
    }

    #[test]
    fn phases_and_steps_have_the_kernels_that_were_launched_in_them() {
        let (summary, truth, trace) = summed(&serving());
        let phases: Vec<_> =
            summary.phases.iter().map(|phase| (phase.phase, phase.steps)).collect();
        // One copy of each step is launched behind its mark.
        let expected = [(Some(Phase::Prefill), 3), (Some(Phase::Decode), 2), (None, 0)];
        assert_eq!(phases, expected);
        for phase in &summary.phases {
            let told = |kernel: &KernelTruth| {
                kernel.phase.map(|phase| format!("{phase:?}").to_lowercase())
            };
            let name = phase.phase.map(|phase| phase.name().to_owned());
            let (count, total_ns) = time(&truth, |kernel| told(kernel) == name);
            assert_eq!((phase.times.count, phase.times.total_ns), (count, total_ns), "{name:?}");
            let by_class: u64 = phase.by_class.iter().map(|group| group.total_ns).sum();
            assert_eq!(by_class, total_ns);
            let shares: f64 = phase.by_class.iter().map(|group| group.share).sum();
            assert!((shares - 1.0).abs() < 1e-9);
        }
        assert_eq!(summary.steps.len(), 5);
        for step in &summary.steps {
            let is_of = |kernel: &KernelTruth| kernel.step == u32::try_from(step.step).ok();
            assert_eq!((step.times.count, step.times.total_ns), time(&truth, is_of));
            assert!(step.host_ns > 0 && step.name.starts_with("execute_context_"));
        }
        let all: usize = summary.phases.iter().map(|phase| phase.times.count).sum();
        assert_eq!(all, trace.kernels.len());
    }

    #[test]
    fn positions_and_layers_add_up() {
        for model in Model::ALL {
            let plan = Plan { model, communication: Communication::None, ..serving() };
            let (summary, _, trace) = summed(&plan);
            assert_eq!(summary.patterns.is_empty(), model == Model::Bag, "{model:?}");
            for pattern in &summary.patterns {
                assert_eq!(pattern.positions.len(), pattern.kernels, "{model:?}");
                let sum: u64 = pattern.positions.iter().map(|at| at.times.total_ns).sum();
                assert_eq!(sum, pattern.total_ns);
                for (number, at) in pattern.positions.iter().enumerate() {
                    assert_eq!((at.position, at.times.count), (number, pattern.layers));
                    assert!(at.class.split('+').any(|part| part == pattern.classes[number]));
                    assert!(at.names >= 1 && trace.names.iter().any(|(_, name)| name == at.kernel));
                }
            }
            let sum = |times: &mut dyn Iterator<Item = (usize, u64)>| {
                times.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
            };
            let patterns = sum(&mut summary.patterns.iter().map(|one| (one.layers, one.total_ns)));
            let layers = sum(&mut summary.layers.iter().map(|one| (one.count, one.total_ns)));
            assert_eq!(patterns, layers, "{model:?}");
            for layer in &summary.layers {
                assert!(
                    layer.min_ns as f64 <= layer.mean_ns && layer.mean_ns <= layer.max_ns as f64
                );
            }
            let has_backward = summary.layers.iter().any(|layer| layer.is_backward);
            assert_eq!(has_backward, model == Model::Training);
        }
    }

    #[test]
    fn the_most_frequent_name_stands_for_a_position() {
        // In every fourth layer the attention has another name.
        let variation = synthetic::Variation::SlidingWindow;
        let (summary, _, _) = summed(&Plan { layers: 8, variation, ..serving() });
        let pattern = &summary.patterns[0];
        let attention = pattern.positions.iter().find(|at| at.class == "ATTN").unwrap();
        assert_eq!(attention.names, 2);
        let others = pattern.positions.iter().filter(|at| at.class == "KVCACHE");
        assert!(others.into_iter().all(|at| at.names == 1));
    }

    #[test]
    fn nothing_has_no_parts() {
        let trace = Trace::default();
        let (classes, segments) = (Classes::default(), Segments::default());
        let summary = SegmentSummary::of(&trace, &classes, &segments, Taxonomy::Classes);
        let SegmentSummary { phases, steps, patterns, layers } = summary;
        assert!(phases.is_empty() && steps.is_empty() && patterns.is_empty() && layers.is_empty());
    }
}
