//! Whether both sides ran the same phase, or the same mix of phases.

use super::super::basis::{marked_steps, trains};
use super::super::result::{Answer, Basis, PhasePart, Question, WorkAspect};
use super::super::side::Chosen;
use super::super::text::{list, number};
use super::super::updates::{self, Difference};
use super::model::SAME_COUNT;
use super::workload::Workload;
use super::{Evidence, SAME_AMOUNT};
use crate::classify::AttnPhase;
use crate::segment::Phase;

/// A sequence of at least this many tokens is a prompt where another has one token.
const PROMPT: u64 = 8;

impl Evidence<'_, '_> {
    /// The same phase? Where one phase is all that both show, sizes that are alike leave no room for
    /// another.
    pub(super) fn phase(&self, works: &[Workload; 2], sizes: &Question) -> Question {
        let asked = self.phase_that_shows(works);
        let is_only_one = sizes.answer == Answer::Same && self.show_one_phase(works);
        if asked.answer != Answer::Unknown || !is_only_one {
            return asked;
        }
        let evidence = "the only phase that shows, and sizes that are alike".to_owned();
        Question { answer: Answer::Same, evidence, ..asked }
    }

    fn phase_that_shows(&self, works: &[Workload; 2]) -> Question {
        let question = |answer, [first, second]: [Option<String>; 2], evidence: &str| Question {
            about: WorkAspect::Phase,
            phase: None,
            first,
            second,
            answer,
            evidence: evidence.to_owned(),
        };
        let names = self.names_of_phases(works);
        let words = names.each_ref().map(|names| (!names.is_empty()).then(|| names.join(", ")));
        if let Some(phase) = self.options.phase {
            let words = [(); 2].map(|()| Some(phase.name().to_owned()));
            return question(Answer::Same, words, "only this phase is compared");
        }
        if names.iter().all(|names| !names.is_empty()) {
            if !self.steps.are_alike_beside_training() {
                return self.beside_training(words);
            }
            if let Some(passes) = self.passes_of_marks() {
                let words = [0, 1].map(|side: usize| {
                    let phases = names[side].join(", ");
                    Some(format!("{phases} in {} passes a marked step", number(passes[side])))
                });
                return question(Answer::Different, words, "passes of marked steps");
            }
            let has_backward = names.iter().any(|names| names.contains(&Phase::Backward.name()));
            let difference = has_backward
                .then(|| updates::difference(self.sides, self.steps, self.step_ns, SAME_AMOUNT));
            if let Some(difference) = difference.flatten() {
                return of_updates(&names, &difference);
            }
            let are_common = names[0].iter().any(|name| names[1].contains(name));
            if are_common && self.mix_matters() {
                return question(Answer::Different, self.shares_of_phases(), "shares of phases");
            }
            let is_only_one = names[0].len() == 1
                && names[0] == names[1]
                && self.sides.iter().all(|side| side.knows_all_phases());
            if are_common && !self.steps.by_phase && !is_only_one && self.have_phases_of_steps() {
                return question(Answer::Unknown, words, "the shares of phases are not known");
            }
            let answer = if are_common { Answer::Same } else { Answer::Different };
            let mut evidence = self.phases_by().join(", ");
            let recompute = Phase::Recompute.name();
            if names[0].contains(&recompute) != names[1].contains(&recompute) {
                evidence.push_str("; what a checkpoint runs once more is a part of a step");
            }
            if are_common && self.steps.have_different_mixes() {
                evidence.push_str("; their shares make less than 2 % of a difference");
            }
            return question(answer, words, &evidence);
        }
        if let [Some(first), Some(second)] = works.each_ref().map(|work| work.is_training)
            && (first || second)
        {
            let word = |is: bool| Some(if is { "training" } else { "inference" }.to_owned());
            let answer = if first == second { Answer::Same } else { Answer::Different };
            return question(answer, [word(first), word(second)], "operators of a backward pass");
        }
        let sequences = works.each_ref().map(|work| work.sequence);
        if let [Some(first), Some(second)] = sequences
            && first.min(second) == 1
            && first.max(second) >= PROMPT
        {
            let word =
                |length: u64| Some(if length == 1 { "decode" } else { "prefill" }.to_owned());
            return question(
                Answer::Different,
                [word(first), word(second)],
                "tokens of a sequence",
            );
        }
        if let [Some(first), Some(second)] = works.each_ref().map(|work| work.attention) {
            let word = |phase: AttnPhase| Some(phase.name().to_owned());
            // Kernels for prompts also verify drafts, and decode large batches.
            if [first, second] == [AttnPhase::Decode; 2] {
                return question(Answer::Same, [word(first), word(second)], "kernels of attention");
            }
        }
        if let [Some(first), Some(second)] = sequences
            && (first == 1) == (second == 1)
        {
            let word =
                |length: u64| Some(if length == 1 { "decode" } else { "forward" }.to_owned());
            return question(Answer::Same, [word(first), word(second)], "tokens of a sequence");
        }
        if works.iter().all(|work| work.is_training == Some(false) && work.convolutions > 0) {
            let word = || Some("inference".to_owned());
            return question(Answer::Same, [word(), word()], "no operators of a backward pass");
        }
        question(Answer::Unknown, words, "no marks of steps")
    }

    /// How many passes of training each side has in a marked step, if they are not as many: the
    /// gradients of several may be added up in one.
    fn passes_of_marks(&self) -> Option<[f64; 2]> {
        if self.steps.basis != Basis::Layers || !self.sides.iter().all(trains) {
            return None;
        }
        let marked = self.sides.each_ref().map(|side| marked_steps(side).iter().sum::<f64>());
        let passes = [0, 1].map(|side: usize| self.steps.counts[side] / marked[side]);
        let factor = (passes[0] / passes[1]).max(passes[1] / passes[0]);
        (factor.is_finite() && factor > SAME_COUNT).then_some(passes)
    }

    /// The phases that marks or kernels show on each side.
    fn names_of_phases(&self, works: &[Workload; 2]) -> [Vec<&'static str>; 2] {
        [0, 1].map(|side: usize| {
            let steps = &self.sides[side].side.segments.steps;
            let marked = works[side].marked.iter().filter_map(|(phase, _)| *phase);
            let derived = steps.findings.iter().map(|found| found.phase);
            let mut phases: Vec<Phase> = marked.chain(derived).collect();
            phases.sort_unstable();
            phases.dedup();
            phases.into_iter().map(Phase::name).collect()
        })
    }

    /// Whether the same single phase is all that both sides show.
    fn show_one_phase(&self, works: &[Workload; 2]) -> bool {
        let [first, second] = self.names_of_phases(works);
        first.len() == 1 && first == second
    }

    /// Whether a side serves: its steps may be prefill, decode or both, in any shares.
    pub(super) fn serves(&self) -> bool {
        self.have_phases_of_steps() || self.sides.iter().any(Chosen::has_cache)
    }

    /// Whether a side has steps of some phases, which its recording may have in any shares. The parts
    /// of a step of training are in every step.
    fn have_phases_of_steps(&self) -> bool {
        self.sides.iter().any(|side| {
            let steps = &side.side.segments.steps;
            let marked = steps.list.iter().filter_map(|step| step.phase);
            let mut phases = marked.chain(steps.findings.iter().map(|found| found.phase));
            phases.any(|phase| !phase.is_part_of_step())
        })
    }

    /// Whether a step of the recordings is not the same mix of phases.
    pub(super) fn mix_matters(&self) -> bool {
        self.options.phase.is_none()
            && self.steps.by_phase
            && self.steps.mix_matters(self.phases, self.step_ns, SAME_AMOUNT)
    }

    /// How many steps of each phase the sides have, in words.
    fn shares_of_phases(&self) -> [Option<String>; 2] {
        let steps = |part: &PhasePart| [part.first_steps, part.second_steps];
        [0, 1].map(|side: usize| {
            let all = self.phases.iter().filter(|part| steps(part)[side] > 0.0);
            let all =
                all.map(|part| format!("{} {}", number(steps(part)[side]), part.phase.name()));
            Some(list(&all.collect::<Vec<_>>()))
        })
    }

    /// Other passes run between those of training, and their times are not told apart from its.
    fn beside_training(&self, phases: [Option<String>; 2]) -> Question {
        let with_passes = |side: usize| {
            let beside = self.steps.beside_training[side];
            let phases = phases[side].as_deref().unwrap_or_default();
            match beside > 0.0 {
                true => Some(format!("{phases}, and {} other passes a step", number(beside))),
                false => Some(phases.to_owned()),
            }
        };
        Question {
            about: WorkAspect::Phase,
            phase: None,
            first: with_passes(0),
            second: with_passes(1),
            answer: Answer::Different,
            evidence: "passes without gradients run between those of training".to_owned(),
        }
    }

    /// What the phases of either side are known by, each once.
    fn phases_by(&self) -> Vec<&'static str> {
        let mut by = Vec::new();
        for side in self.sides {
            let steps = &side.side.segments.steps;
            let found = steps.findings.iter().map(|found| found.by.describe());
            let marks = (!steps.are_derived()).then_some("marks of steps");
            for one in marks.into_iter().chain(found) {
                if !by.contains(&one) {
                    by.push(one);
                }
            }
        }
        by.sort_unstable();
        by
    }
}

/// The weights are changed in other ways, or may be.
fn of_updates(names: &[Vec<&str>; 2], difference: &Difference) -> Question {
    let words = [0, 1].map(|side: usize| {
        let phases = names[side].join(", ");
        Some(match difference {
            Difference::Passes(passes) => {
                format!("{phases} once in {} passes", number(passes[side]))
            }
            Difference::Optimizers(optimizers) => format!("{phases} with {}", optimizers[side]),
            Difference::Unknown => phases,
        })
    });
    let (answer, evidence) = match difference {
        Difference::Passes(_) => (Answer::Different, "passes before the optimizer runs"),
        Difference::Optimizers(_) => (Answer::Different, "the optimizer"),
        Difference::Unknown => (Answer::Unknown, "which optimizer runs is not known"),
    };
    let [first, second] = words;
    let evidence = evidence.to_owned();
    Question { about: WorkAspect::Phase, phase: None, first, second, answer, evidence }
}
