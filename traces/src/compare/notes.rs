//! The warnings of a comparison.

use super::basis::Steps;
use super::identical::are_one_recording;
use super::models::Mismatch;
use super::result::{
    Answer, Basis, ClassPart, Comparison, Headline, Part, SideSummary, WorkAspect,
};
use super::side::Chosen;
use super::text::number;
use super::warnings::{CompareWarning, Severity};
use crate::Warning;
use crate::ratio::ratio;

/// From this share of the durations on, unknown kernels are warned of.
const MUCH_UNCLASSIFIED: f64 = 0.05;

/// Times of centuries, which broken traces have, are not kept to the nanosecond.
const RELATIVE_ROUNDING: f64 = 1e-12;

/// Below this share of the time in classes that both sides have, they hardly ran the same work.
const LITTLE_IN_COMMON: f64 = 0.5;

/// From this relative difference on, sides have different numbers of steps.
const SAME_STEPS: f64 = 1e-9;

/// What a reader of the comparison must know, the important first.
pub(super) fn notes(
    sides: &[Chosen<'_>; 2],
    labels: &[String; 2],
    steps: &Steps,
    mismatch: Option<&Mismatch>,
    comparison: &Comparison,
) -> Vec<CompareWarning> {
    let mut notes = Notes::default();
    notes.of_headline(comparison);
    notes.of_copies(sides, labels);
    if let Some(mismatch) = mismatch {
        notes.mismatch(mismatch, labels);
    }
    for (side, summary) in sides.iter().zip([&comparison.first, &comparison.second]) {
        notes.of_side(side, summary);
    }
    notes.of_work(labels, comparison);
    notes.of_steps(sides, labels, steps);
    notes.of_sum(sides, comparison);
    notes.list.sort_by_key(|note| std::cmp::Reverse(note.severity));
    notes.list
}

/// The share of each side's time in classes that the other has; none of a side without kernels.
fn shares_in_common(classes: &[ClassPart]) -> [Option<f64>; 2] {
    // A fused kernel has something in common with each of its parts.
    let is_on = |side: usize, part: &Part| [part.first_amount, part.second_amount][side].count > 0;
    [0, 1].map(|side| {
        let others: Vec<&str> = classes
            .iter()
            .filter(|class| is_on(1 - side, &class.part))
            .flat_map(|class| class.class.split('+'))
            .collect();
        let (mut all_ns, mut common_ns) = (0_u64, 0_u64);
        for class in classes {
            let total_ns = [class.part.first_amount, class.part.second_amount][side].total_ns;
            all_ns = all_ns.saturating_add(total_ns);
            if class.class.split('+').any(|part| others.contains(&part)) {
                common_ns = common_ns.saturating_add(total_ns);
            }
        }
        (all_ns > 0).then(|| ratio(common_ns, all_ns))
    })
}

/// The smaller share, if it is so small that the sides hardly ran the same work.
pub(super) fn little_in_common(classes: &[ClassPart]) -> Option<f64> {
    let shares = shares_in_common(classes).into_iter().flatten();
    shares.min_by(f64::total_cmp).filter(|share| *share < LITTLE_IN_COMMON)
}

#[derive(Default)]
struct Notes {
    list: Vec<CompareWarning>,
}

impl Notes {
    fn add(
        &mut self,
        code: &'static str,
        severity: Severity,
        file: Option<&str>,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.list.push(CompareWarning {
            code,
            severity,
            file: file.map(str::to_owned),
            message: message.into(),
            advice: advice.into(),
        });
    }

    fn mismatch(&mut self, mismatch: &Mismatch, labels: &[String; 2]) {
        let code = match mismatch {
            Mismatch::NoLayers { .. } => "no-layers",
            Mismatch::Counts(_) | Mismatch::Families(_) => "different-models",
        };
        let advice = match mismatch {
            Mismatch::NoLayers { .. } => {
                "classes are compared instead, and fusions are looked for only in calls of \
                 operators that both sides have; recording the \
                 modules (with_modules=True, or with_stack=True) may show the layers"
            }
            Mismatch::Counts(_) => {
                "classes are compared instead, and no fusions are looked for; if it is one model, \
                 record at least one whole step of it on both sides"
            }
            Mismatch::Families(_) => {
                "classes are compared instead, and no fusions are looked for; compare traces of \
                 one model"
            }
        };
        self.add(code, Severity::Warning, None, mismatch.reason(labels), advice);
    }

    fn of_side(&mut self, side: &Chosen<'_>, summary: &SideSummary) {
        let trace = side.side.trace;
        let name = Some(side.side.name);
        for warning in &trace.warnings {
            let severity = match warning {
                Warning::BadMetadata { .. } | Warning::TrailingData { .. } => Severity::Info,
                _ => Severity::Warning,
            };
            self.add(warning.code(), severity, name, warning.to_string(), warning.advice());
        }
        if summary.unclassified_share > MUCH_UNCLASSIFIED {
            let message = format!(
                "{:.1} % of the time is in kernels that no rule knows",
                100.0 * summary.unclassified_share
            );
            let advice = "the gap of the classes is uncertain by as much; recording with stacks \
                          (with_stack=True) may tell what these kernels are";
            self.add("unclassified", Severity::Warning, name, message, advice);
        }
        if side.devices > 1 {
            let message = format!(
                "{} devices ran something; the one with the longest durations, {}, is compared",
                side.devices, side.device
            );
            let advice = "record one trace for each process and device";
            self.add("several-devices", Severity::Warning, name, message, advice);
        }
        if trace.frames.is_empty() {
            let advice = "layers and unclear kernels are identified by names and order alone; \
                          recording with with_stack=True helps";
            self.add(
                "no-python-stacks",
                Severity::Info,
                name,
                "there are no Python stacks",
                advice,
            );
        }
        let segments = side.side.segments;
        if !segments.steps.have_phases() {
            let advice = "prefill and decode cannot be distinguished; serving systems mark their \
                          steps when they profile, and sizes (record_shapes=True) may show them";
            let message = "nothing shows a phase";
            self.add("no-phases", Severity::Info, name, message, advice);
        }
        let cut = segments.layers.passes.iter().filter(|pass| pass.is_cut).count();
        if cut > 0 {
            let message = format!(
                "the recording begins or ends inside of {cut} of {} passes through the model",
                segments.layers.passes.len()
            );
            let advice = "they count as far as they are there; what comes once a step, outside of \
                          layers, may count too much or too little";
            self.add("cut-passes", Severity::Info, name, message, advice);
        }
    }

    /// Traces of different work can be compared, and mean nothing.
    fn of_work(&mut self, labels: &[String; 2], comparison: &Comparison) {
        for (side, share) in shares_in_common(&comparison.gap.classes).into_iter().enumerate() {
            if let Some(share) = share.filter(|share| *share < LITTLE_IN_COMMON) {
                let message = format!(
                    "only {:.0} % of the time of {} is in classes of kernels that {} has, too",
                    100.0 * share,
                    labels[side],
                    labels[1 - side]
                );
                let advice = "compare traces of the same work; of different work the gap says \
                              nothing about the devices";
                self.add("little-in-common", Severity::Warning, None, message, advice);
            }
        }
    }

    /// A recording against itself is seldom what somebody meant to compare.
    fn of_copies(&mut self, sides: &[Chosen<'_>; 2], labels: &[String; 2]) {
        if are_one_recording(sides.each_ref().map(|side| side.side.trace)) {
            let message = format!(
                "{} and {} are the same recording: all kernels have the same names and times",
                labels[0], labels[1]
            );
            let advice = "there is nothing to compare; name another trace";
            self.add("same-recording", Severity::Warning, None, message, advice);
        }
    }

    /// Whether the times of a step may be compared.
    fn of_headline(&mut self, comparison: &Comparison) {
        if comparison.is_doubted() {
            let advice = "see to it that model, batch, tokens, context and dtype are the same; \
                          recording with record_shapes=True lets the comparison do that, and marks \
                          of steps may tell the context";
            self.add("unconfirmed-work", Severity::Info, None, comparison.doubt(), advice);
        }
        let headline = comparison.same_work.headline;
        if let Some(code) = headline.warning() {
            let questions = &comparison.same_work.questions;
            let differs = questions.iter().any(|one| one.answer == Answer::Different);
            let is_phase_known = questions
                .iter()
                .all(|one| one.about != WorkAspect::Phase || one.answer != Answer::Unknown);
            let advice = match headline {
                Headline::Withheld if !differs && is_phase_known => {
                    "gaps and ratios below may be of different work; see to it that the contexts \
                     are as long; marks of steps may tell them, and some operators of attention \
                     (record_shapes=True) do"
                }
                Headline::Withheld if !differs => {
                    "gaps and ratios below may be of different work; the server's own marks of \
                     steps show the phases, or sizes (record_shapes=True) do; compare one phase \
                     with --phase"
                }
                Headline::Withheld => {
                    "gaps and ratios below are of different work; compare traces of the same \
                     model and phase, or one phase with --phase"
                }
                Headline::OfUsualSteps => {
                    "gaps and ratios below contain the first steps; record after a warm-up, as \
                     with a schedule of the profiler that skips steps"
                }
                Headline::OfEachPhase => {
                    "gaps and ratios below contain the different shares of phases; compare one \
                     phase with --phase"
                }
                _ => {
                    "gaps and ratios below are of steps of different sizes; only the times for \
                     a token or a TFLOP, and the operators with the same sizes, are alike"
                }
            };
            let message = comparison.differences();
            self.add(code, Severity::Warning, None, message, advice);
        }
    }

    fn of_steps(&mut self, sides: &[Chosen<'_>; 2], labels: &[String; 2], steps: &Steps) {
        let [first, second] = steps.counts;
        if (first - second).abs() > SAME_STEPS * first.max(second) {
            let message = format!(
                "{} has {} {} and {} has {}",
                labels[0],
                number(first),
                if steps.basis == Basis::Layers { "passes through the model" } else { "steps" },
                labels[1],
                number(second)
            );
            let advice = "everything is compared for one of them";
            self.add("different-steps", Severity::Info, None, message, advice);
        }
        let marked = sides.each_ref().map(|side| side.side.segments.steps.list.len());
        if steps.basis == Basis::Recording && marked[0] != marked[1] {
            let advice = "the recordings are compared as a whole; if they have different numbers \
                          of steps, the gap means little; mark steps with profiler.step()";
            let message = "steps are marked, or layers found, on one side only";
            self.add("no-steps", Severity::Warning, None, message, advice);
        }
        let have = sides.each_ref().map(|side| side.side.segments.steps.have_phases());
        if have[0] != have[1] {
            let who = if have[0] { &labels[0] } else { &labels[1] };
            let message = format!("only the phases of {who} are known");
            let advice = "if the two have prefill and decode in different shares, the gap comes \
                          from that; mark the steps on both sides";
            self.add("phases-on-one-side", Severity::Warning, None, message, advice);
        }
        if steps.by_phase && steps.have_different_mixes() {
            let advice = "phases are compared in the mean of both shares, and what the difference \
                          makes is a part of its own; --phase compares one";
            let message = "the recordings have their phases in different shares";
            self.add("different-phases", Severity::Info, None, message, advice);
        }
    }

    /// The parts are made to add up; if they do not, no number is to be trusted.
    fn of_sum(&mut self, sides: &[Chosen<'_>; 2], comparison: &Comparison) {
        let Comparison { first, second, gap, .. } = comparison;
        #[expect(clippy::cast_precision_loss, reason = "a tolerance")]
        let kernels = (first.kernels + second.kernels).max(1) as f64;
        let most_ns = kernels.max(RELATIVE_ROUNDING * (gap.first_ns + gap.second_ns));
        let mut missed_ns = gap.rounding_ns;
        for (side, summary) in sides.iter().zip([first, second]).filter(|(side, _)| side.is_whole) {
            #[expect(clippy::cast_precision_loss, reason = "for people")]
            let off_ns = side.attribution.span_ns.abs_diff(summary.span_ns) as f64;
            // Whole numbers have nothing to round.
            missed_ns = if off_ns > 0.0 { missed_ns.max(off_ns + most_ns) } else { missed_ns };
        }
        if missed_ns > most_ns {
            let message = format!(
                "the parts of the gap miss it by {missed_ns:.0} ns, more than rounding explains"
            );
            let advice = "this is a defect of the comparison; please report it with the traces";
            self.add("parts-do-not-add-up", Severity::Warning, None, message, advice);
        }
    }
}
