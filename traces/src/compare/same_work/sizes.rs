//! Whether the operators that take the time solve the same problems.

use super::super::result::{Answer, Basis, Question, WorkAspect};
use super::super::text::{number, percent};
use super::model::near;
use super::workload::Workload;
use super::{Evidence, SAME_AMOUNT, SAME_CALLS, bags, experts};
use crate::ratio::ratio;

/// FLOPs of a step of the same sizes differ by less: recordings may cut a step.
const SAME_ARITHMETIC: f64 = 0.05;

/// From this share of the main work on, operators with the same sizes are the same work.
pub(super) const SAME_SIZES: f64 = 0.8;

/// With shapes for less of the main work than this, nothing is said of sizes.
const ENOUGH_SHAPES: f64 = 0.5;

/// Steps with other numbers of tokens have less than this of their main work in common, or the
/// tokens are not what the work is of.
const FEW_ALIKE: f64 = 0.5;

const UNKNOWN_EXPERTS: &str = "the sizes of GEMMs of experts are not known";

impl Evidence<'_, '_> {
    /// Do the operators that take the time have the same sizes?
    pub(super) fn sizes(&self, works: &[Workload; 2]) -> Question {
        let serves = self.serves();
        let shares = self.shares_alike(works);
        let has_shapes = works.iter().all(|work| work.shaped_share(serves) >= ENOUGH_SHAPES);
        let flops = [0, 1].map(|side| Some(works[side].flops? / self.steps.counts[side]));
        let words = shares.map(|share| format!("{} of the time alike", percent(share)));
        let question = |answer, words: [Option<String>; 2], evidence: &str| {
            let [first, second] = words;
            let evidence = evidence.to_owned();
            Question { about: WorkAspect::Sizes, phase: None, first, second, answer, evidence }
        };
        if let Some((words, evidence)) =
            experts::difference(works).or_else(|| bags::difference(works))
        {
            return question(Answer::Different, words.map(Some), evidence);
        }
        if !has_shapes {
            let evidence = "too few operators with sizes; record with record_shapes=True";
            return question(Answer::Unknown, [None, None], evidence);
        }
        let operators = "sizes of GEMMs, convolutions and attention";
        let are_known = !works.iter().any(Workload::has_unsized);
        if shares.iter().all(|share| *share >= SAME_SIZES) {
            let flops =
                [0, 1].map(|side| Some(works[side].flops_of_weights()? / self.steps.counts[side]));
            // Alike sizes may be called more often.
            if let [Some(first), Some(second)] = flops
                && self.steps.basis != Basis::Recording
                && !self.mix_matters()
                && !near(first, second, SAME_ARITHMETIC)
            {
                let evidence = "arithmetic of a step in GEMMs and convolutions";
                return question(Answer::Different, arithmetic([first, second]), evidence);
            }
            return match are_known {
                true => question(Answer::Same, words.map(Some), operators),
                false => question(Answer::Unknown, words.map(Some), UNKNOWN_EXPERTS),
            };
        }
        if let [Some(first), Some(second)] = flops
            && near(first, second, SAME_AMOUNT)
            && are_known
        {
            return question(Answer::Same, arithmetic([first, second]), "arithmetic of a step");
        }
        question(Answer::Different, words.map(Some), operators)
    }

    /// The share of each side's main work in problems that the other side solves too.
    fn shares_alike(&self, works: &[Workload; 2]) -> [f64; 2] {
        let serves = self.serves();
        [0, 1].map(|side: usize| {
            let (own, other) = (&works[side], &works[1 - side]);
            let both = own.computed.iter().filter(|(key, _)| other.computed.contains_key(*key));
            let both = both.map(|(_, time)| time.of_sizes(serves)).fold(0, u64::saturating_add);
            ratio(both, own.shaped.of_sizes(serves))
        })
    }

    /// Whether a step's work is of the tokens that it looks up: where most of it is alike whatever
    /// their number, as that of a diffusion whose texts differ, it is of something else.
    pub(super) fn is_work_of_tokens(&self, works: &[Workload; 2]) -> bool {
        let (tokens, _) = self.tokens_of_step(works);
        let are_as_many = matches!(
            tokens, [Some(first), Some(second)] if near(first, second, SAME_CALLS)
        );
        are_as_many || self.shares_alike(works).iter().all(|share| *share < FEW_ALIKE)
    }
}

/// FLOPs in words, in the unit that suits both.
fn arithmetic(flops: [f64; 2]) -> [Option<String>; 2] {
    let (unit, name) = match flops[0].min(flops[1]) {
        least if least < 1e11 => (1e9, "GFLOP"),
        _ => (1e12, "TFLOP"),
    };
    flops.map(|flops| Some(format!("{} {name}", number(flops / unit))))
}
