//! Whether both sides did the same work: the same model in the same phase, with the same batch,
//! tokens and number type. Where they did not, the times of a step say nothing about the devices.
//!
//! `workload` is the work of a side, from the shapes of its operators, with the `lookups` of
//! tokens, and the `marks` of its steps; `model` asks whether it is one model, with the same
//! `weights`, `heads` and `masks` of attention, `phase` whether both ran the same phases, `sizes`
//! whether they solved the same problems, with what is known of `experts` and of `bags` of lookups,
//! and `context` how far their attention looks back; `first_steps` may take longer than others;
//! `matched` is what is alike whatever else differs.

mod bags;
mod carried;
mod context;
mod experts;
mod first_steps;
mod heads;
mod lookups;
mod marks;
mod masks;
mod matched;
mod model;
mod phase;
mod sizes;
mod votes;
mod weights;
mod workload;

use super::basis::Steps;
use super::models::Mismatch;
use super::result::{Answer, Basis, Headline, PhasePart, Question, SameWork, WorkAspect, WorkRate};
use super::side::{Chosen, CompareOptions, on_both};
use super::text::number;
use crate::segment::Phase;
use context::Answered;
use first_steps::FirstSteps;
use marks::MarkedSize;
use model::near;
use workload::Workload;

/// Numbers of tokens, sequences and FLOPs that differ by less are the same.
const SAME_AMOUNT: f64 = 0.02;

/// Calls of a step that differ by less are as often: recordings may cut a step.
const SAME_CALLS: f64 = 0.1;

/// What is compared, as far as it is known before the questions.
pub(super) struct Evidence<'e, 't> {
    pub(super) sides: &'e [Chosen<'t>; 2],
    pub(super) steps: &'e Steps,
    pub(super) mismatch: Option<&'e Mismatch>,
    pub(super) options: &'e CompareOptions,
    /// The smaller share of a side's time in classes that the other has, if it is little.
    pub(super) little_in_common: Option<f64>,
    /// The times of a step, and of a step of each phase.
    pub(super) step_ns: [f64; 2],
    pub(super) phases: &'e [PhasePart],
}

impl Evidence<'_, '_> {
    /// Asks all questions.
    pub(super) fn same_work(&self) -> SameWork {
        let works = on_both(&|side| Workload::of(&self.sides[side], self.options.phase));
        let mut matched = matched::matched(&works);
        let sizes = self.sizes(&works);
        let mut questions = vec![
            model::question(self.sides, &works, self.steps, self.mismatch, self.little_in_common),
            self.phase(&works, &sizes),
        ];
        let marked = self.marked(&works);
        let is_marked = marked.iter().any(|one| one.about == WorkAspect::Tokens);
        questions.extend(marked);
        if !is_marked {
            questions.extend(self.shaped(&works));
        }
        let contexts = self.contexts(&works);
        questions.extend(contexts.iter().flat_map(|one| one.questions.iter().cloned()));
        questions.push(sizes);
        questions.extend(self.amount(&works));
        questions.push(of_words(
            WorkAspect::Dtype,
            works.each_ref().map(|work| work.dtype.clone()),
            "operands",
        ));
        let (headline, rates) = self.headline(&works, &questions, &contexts);
        // What attention may decide is not said.
        let is_open = contexts.iter().any(|one| one.decides(&rates));
        let (headline, rates) =
            if is_open { (Headline::Withheld, Vec::new()) } else { (headline, rates) };
        let first_steps = self.first_steps().filter(|_| headline != Headline::Withheld);
        let Some(FirstSteps { question, usual }) = first_steps else {
            return SameWork { headline, questions, rates, matched };
        };
        questions.push(question);
        // They are in the means of calls, too, and in the times for a token or of a phase.
        matched.ratio = None;
        let (headline, rates) = match headline.is_of_a_step() {
            true => (Headline::OfUsualSteps, vec![usual]),
            false => (Headline::Withheld, Vec::new()),
        };
        SameWork { headline, questions, rates, matched }
    }

    /// What the marks of steps say of their sizes, phase by phase.
    fn marked(&self, works: &[Workload; 2]) -> Vec<Question> {
        let mut questions = Vec::new();
        for (phase, first) in &works[0].marked {
            if !self.is_compared(*phase) {
                continue;
            }
            let Some((_, second)) = works[1].marked.iter().find(|(other, _)| other == phase) else {
                continue;
            };
            let mut ask = |about, of: fn(&MarkedSize) -> Option<f64>| {
                let sizes = [of(first), of(second)];
                if sizes.iter().any(Option::is_some) {
                    questions.push(Question {
                        phase: *phase,
                        ..of_numbers(about, sizes, SAME_AMOUNT, "marks of steps, mean of a step")
                    });
                }
            };
            ask(WorkAspect::Batch, |size| size.sequences);
            ask(WorkAspect::Tokens, |size| size.tokens);
        }
        questions
    }

    fn is_compared(&self, phase: Option<Phase>) -> bool {
        self.steps.compares(phase)
    }

    /// What the shapes of operators say of batch, sequence and tokens.
    fn shaped(&self, works: &[Workload; 2]) -> Vec<Question> {
        #[expect(clippy::cast_precision_loss, reason = "sizes")]
        let size = |size: Option<u64>| size.map(|size| size as f64);
        let batch = works.each_ref().map(|work| size(work.batch));
        let sequence = works.each_ref().map(|work| size(work.sequence));
        let (tokens, shown_by) = self.tokens_of_step(works);
        let mut questions = vec![
            of_numbers(WorkAspect::Batch, batch, SAME_AMOUNT, "sizes of inputs"),
            of_numbers(WorkAspect::Sequence, sequence, SAME_AMOUNT, "sizes of inputs"),
        ];
        questions.retain(|one| one.first.is_some() || one.second.is_some());
        // Those of a step of another mix are others.
        let is_of_steps = self.steps.basis != Basis::Recording && !self.mix_matters();
        if is_of_steps && tokens.iter().all(Option::is_some) {
            // Recordings that begin or end in a pass have its tokens and not all of its layers.
            questions.push(of_numbers(WorkAspect::Tokens, tokens, SAME_CALLS, shown_by));
        }
        questions
    }

    /// The tokens of a step on both sides, and what shows them: tokens that are looked up, else those
    /// that attention has at once, which are those of a pass.
    fn tokens_of_step(&self, works: &[Workload; 2]) -> ([Option<f64>; 2], &'static str) {
        if works.iter().all(|work| work.tokens.is_some()) {
            let tokens = [0, 1].map(|side| self.looked_up(&works[side], side));
            return (tokens, "tokens looked up");
        }
        #[expect(clippy::cast_precision_loss, reason = "tokens")]
        let attended = works.each_ref().map(|work| work.attended.map(|tokens| tokens as f64));
        let is_of_passes = self.steps.basis == Basis::Layers;
        (if is_of_passes { attended } else { [None; 2] }, "tokens of attention")
    }

    #[expect(clippy::cast_precision_loss, reason = "tokens")]
    fn looked_up(&self, work: &Workload, side: usize) -> Option<f64> {
        let steps = self.steps.counts[side];
        let tokens = work.tokens.filter(|_| steps > 0.0)? as f64;
        // Where the recording begins in a step, its tokens may have been looked up before.
        let looked_up = tokens / steps;
        let of_batch =
            work.batch.zip(work.sequence).map(|(batch, sequence)| batch as f64 * sequence as f64);
        Some(of_batch.filter(|tokens| near(looked_up, *tokens, 0.5)).unwrap_or(looked_up))
    }

    /// Are the operators that both have called as often? A recording without steps may have more
    /// of them, and so may a step.
    fn amount(&self, works: &[Workload; 2]) -> Option<Question> {
        if self.steps.basis == Basis::Layers || self.mix_matters() {
            return None;
        }
        if let Some(passes) = self.forward_passes() {
            return Some(passes);
        }
        let mut calls = [0_u64; 2];
        for (key, first) in works[0].calls.iter().filter(|(_, calls)| calls.main_ns > 0) {
            if let Some(second) = works[1].calls.get(key) {
                calls[0] += first.count;
                calls[1] += second.count;
            }
        }
        if calls.contains(&0) {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "counts of calls")]
        let of_step = [0, 1].map(|side| Some(calls[side] as f64 / self.steps.counts[side]));
        let share = if self.steps.basis == Basis::Recording { SAME_AMOUNT } else { SAME_CALLS };
        Some(of_numbers(WorkAspect::Amount, of_step, share, "calls of operators that both have"))
    }

    /// The passes of training in a step, or in recordings without steps, if they are not as many.
    #[expect(clippy::cast_precision_loss, reason = "counts of passes")]
    fn forward_passes(&self) -> Option<Question> {
        let passes = [0, 1].map(|side: usize| {
            let mut found = self.sides[side].side.segments.steps.findings.iter();
            let forward = found.find(|one| one.phase == Phase::Forward)?;
            Some(forward.runs as f64 / self.steps.counts[side])
        });
        let asked = of_numbers(WorkAspect::Amount, passes, SAME_CALLS, "passes forward");
        (asked.answer == Answer::Different).then_some(asked)
    }

    /// What may be said of the times, and the times for tokens or FLOPs.
    fn headline(
        &self,
        works: &[Workload; 2],
        questions: &[Question],
        contexts: &[Answered],
    ) -> (Headline, Vec<WorkRate>) {
        let is =
            |about, answer| questions.iter().any(|one| one.about == about && one.answer == answer);
        let is_other_mix = self.mix_matters();
        if is(WorkAspect::Model, Answer::Different)
            || is(WorkAspect::Phase, Answer::Different) && !is_other_mix
        {
            return (Headline::Withheld, Vec::new());
        }
        // Who serves reads a prompt in a step or decodes from it, which takes other times.
        let is_of_sizes = is(WorkAspect::Sizes, Answer::Same);
        let may_serve =
            || self.serves() || !is_of_sizes && self.sides.iter().any(Chosen::has_unlike_passes);
        if is(WorkAspect::Phase, Answer::Unknown) && may_serve() {
            return (Headline::Withheld, Vec::new());
        }
        let mut differing = questions.iter().filter(|one| one.answer == Answer::Different);
        if is_other_mix && differing.all(|one| one.about == WorkAspect::Phase) {
            let rates = self.of_each_phase();
            let headline =
                if rates.is_empty() { Headline::Withheld } else { Headline::OfEachPhase };
            return (headline, rates);
        }
        let differs = questions.iter().any(|one| one.answer == Answer::Different);
        if !differs {
            let is_known = questions.iter().all(|one| one.answer == Answer::Same);
            let headline = if is_known { Headline::OfAStep } else { Headline::Unconfirmed };
            return (headline, Vec::new());
        }
        // As many tokens of more arithmetic each are not a measure.
        let has_sizes_of_steps = questions
            .iter()
            .any(|one| one.answer == Answer::Different && one.about != WorkAspect::Sizes);
        // Of a layer alone the tokens of a step are not its work alone, but in the same relation.
        let by_token = self.by_token(works);
        // A token of a longer sequence attends to more.
        let is_same_token = contexts.iter().all(|one| !one.is_other_for_a_token)
            && !is(WorkAspect::Sequence, Answer::Different);
        if !by_token.is_empty() && has_sizes_of_steps && is_same_token {
            return (Headline::ForAToken, by_token);
        }
        let flops = works.each_ref().map(|work| work.flops);
        if let [Some(first), Some(second)] = flops
            && self.options.layer.is_none()
            && !is_other_mix
        {
            let units = [first, second];
            let units = [0, 1].map(|side| units[side] / self.steps.counts[side] / 1e12);
            if let Some(rate) = rate(None, units, self.step_ns) {
                return (Headline::ForATflop, vec![rate]);
            }
        }
        (Headline::Withheld, Vec::new())
    }

    /// The times of a step of each phase that both sides have.
    fn of_each_phase(&self) -> Vec<WorkRate> {
        let both = self.phases.iter().filter(|part| !part.phase.is_part_of_step());
        both.filter_map(|part| rate(Some(part.phase), [1.0; 2], [part.first_ns?, part.second_ns?]))
            .collect()
    }

    /// The times for a token, of each phase that both sides have; none if the tokens of one are
    /// not known.
    fn by_token(&self, works: &[Workload; 2]) -> Vec<WorkRate> {
        let tokens = |side: usize, phase: Option<Phase>| {
            let sizes = works[side].marked.iter().find(|(of, _)| *of == phase);
            sizes.and_then(|(_, size)| size.tokens)
        };
        // The parts of a step of training are of the same tokens.
        let of_phases = || self.phases.iter().filter(|part| !part.phase.is_part_of_step());
        if self.steps.by_phase && of_phases().next().is_some() {
            let both = of_phases()
                .filter_map(|part| Some((part.phase, [part.first_ns?, part.second_ns?])));
            let rates: Option<Vec<WorkRate>> = both
                .map(|(phase, times)| {
                    let units = [tokens(0, Some(phase))?, tokens(1, Some(phase))?];
                    rate(Some(phase), units, times)
                })
                .collect();
            return rates.unwrap_or_default();
        }
        let (shown, _) = self.tokens_of_step(works);
        let of_step = [0, 1].map(|side| {
            let marked = tokens(side, None).filter(|_| works[side].marked.len() == 1);
            marked.or_else(|| shown[side].filter(|_| self.is_work_of_tokens(works)))
        });
        let rate = match of_step {
            [Some(first), Some(second)] => rate(None, [first, second], self.step_ns),
            _ => None,
        };
        rate.into_iter().collect()
    }
}

fn rate(phase: Option<Phase>, units: [f64; 2], step_ns: [f64; 2]) -> Option<WorkRate> {
    let is_positive = |value: &f64| *value > 0.0 && value.is_finite();
    if !units.iter().chain(&step_ns).all(is_positive) {
        return None;
    }
    let [first_ns, second_ns] = [0, 1].map(|side| step_ns[side] / units[side]);
    let [first_units, second_units] = units;
    Some(WorkRate {
        phase,
        first_units,
        second_units,
        first_ns,
        second_ns,
        ratio: first_ns / second_ns,
    })
}

fn of_numbers(about: WorkAspect, values: [Option<f64>; 2], share: f64, evidence: &str) -> Question {
    let answer = match values {
        [Some(first), Some(second)] if near(first, second, share) || first == second => {
            Answer::Same
        }
        [Some(_), Some(_)] => Answer::Different,
        _ => Answer::Unknown,
    };
    let [first, second] = values.map(|value| value.map(number));
    Question { about, phase: None, first, second, answer, evidence: evidence.to_owned() }
}

fn of_words(about: WorkAspect, words: [Option<String>; 2], evidence: &str) -> Question {
    let answer = match &words {
        [Some(first), Some(second)] if first == second => Answer::Same,
        [Some(_), Some(_)] => Answer::Different,
        _ => Answer::Unknown,
    };
    let [first, second] = words;
    Question { about, phase: None, first, second, answer, evidence: evidence.to_owned() }
}
