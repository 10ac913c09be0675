//! Whether both sides ran the same model.

use rustc_hash::FxHashSet;

use super::super::basis::Steps;
use super::super::models::Mismatch;
use super::super::result::{Answer, Basis, Question, WorkAspect};
use super::super::side::Chosen;
use super::super::text::{number, percent};
use super::workload::{Weights, Workload};
use super::{heads, masks, weights};
use crate::ratio::ratio;

/// Of one model so much of the calls with weights have sizes that the other side has too.
pub(super) const SAME_WEIGHTS: f64 = 0.9;

/// Where one side joins the weights of several GEMMs, their sum over a step differs by less.
pub(super) const SAME_SUM: f64 = 0.02;

/// Fewer sizes of weights show no model.
const LEAST_SIZES: usize = 3;

/// Counts that differ by less are the same.
const EQUAL_COUNT: f64 = 1.02;

/// A model that spends so much of its time in convolutions has more than what cuts an image into
/// tokens.
const OF_CONVOLUTIONS: f64 = 0.1;

/// Counts that differ by this factor are of different models: recordings may cut a step.
pub(super) const SAME_COUNT: f64 = 1.25;

/// A model is what has the same layers and the same weights.
pub(super) fn question(
    sides: &[Chosen<'_>; 2],
    works: &[Workload; 2],
    steps: &Steps,
    mismatch: Option<&Mismatch>,
    little_in_common: Option<f64>,
) -> Question {
    let layers = sides.each_ref().map(|side| side.side.segments.layers.count);
    let families = sides.each_ref().map(|side| side.side.segments.family.name());
    let described = [0, 1].map(|side| match (layers[side], families[side]) {
        (0, "unknown") => None,
        (0, family) => Some(family.to_owned()),
        (layers, "unknown") => Some(format!("{layers} layers")),
        (layers, family) => Some(format!("{layers} layers, {family}")),
    });
    let question = |answer, evidence: String, [first, second]: [Option<String>; 2]| Question {
        about: WorkAspect::Model,
        phase: None,
        first,
        second,
        answer,
        evidence,
    };
    let counted = works.each_ref().map(of_weights);
    let have_weights = works.iter().all(|work| work.weights.len() >= LEAST_SIZES);
    if have_weights && let Some(difference) = weights::difference(works, steps) {
        return question(Answer::Different, difference.to_owned(), counted);
    }
    if let Some(words) = heads::difference(works) {
        return question(Answer::Different, "heads of attention".to_owned(), words.map(Some));
    }
    if let Some(words) = masks::difference(works) {
        let words = words.map(|words| Some(words.to_owned()));
        return question(Answer::Different, "masks of attention".to_owned(), words);
    }
    if let Some(Mismatch::Counts(counts)) = mismatch
        && are_called_by_layer(works, *counts)
    {
        return question(Answer::Different, "layers and their kernels".to_owned(), described);
    }
    // Layers that are found by repetition alone may be one or several of the model.
    if are_called_alike(works) {
        let sizes = "sizes and numbers of weights".to_owned();
        return question(Answer::Same, sizes, counted);
    }
    if let Some(Mismatch::Counts(_) | Mismatch::Families(_)) = mismatch {
        return question(Answer::Different, "layers and their kernels".to_owned(), described);
    }
    if let Some(share) = little_in_common {
        let evidence =
            format!("only {} of the time is in classes that both sides have", percent(share));
        return question(Answer::Different, evidence, described);
    }
    if let Some(words) = one_convolves(works) {
        let evidence = "convolutions, which only one side has".to_owned();
        return question(Answer::Different, evidence, words.map(Some));
    }
    if have_weights {
        let shares = [shared(&works[0], &works[1]), shared(&works[1], &works[0])];
        let least = shares[0].min(shares[1]);
        let described = if described[0] == described[1] { counted } else { described };
        if least >= SAME_WEIGHTS {
            // A deeper network may have no other sizes.
            if let Some((Answer::Different, counts)) = by_convolutions(works, steps) {
                let evidence = "number of convolutions".to_owned();
                return question(Answer::Different, evidence, counts.map(Some));
            }
            return question(Answer::Same, "sizes of weights".to_owned(), described);
        }
        let sums = [0, 1].map(|side| sum_of_weights(&works[side], steps.counts[side]));
        if steps.basis != Basis::Recording && near(sums[0], sums[1], SAME_SUM) {
            return question(Answer::Same, "sum of the weights of a step".to_owned(), described);
        }
        let evidence =
            format!("only {} of the calls have weights of the same sizes", percent(least));
        return question(Answer::Different, evidence, described);
    }
    if let Some((answer, counts)) = by_convolutions(works, steps) {
        return question(answer, "number of convolutions".to_owned(), counts.map(Some));
    }
    if layers[0] > 0 && layers[0] == layers[1] {
        return question(Answer::Same, "layers and their kernels".to_owned(), described);
    }
    question(Answer::Unknown, "neither layers nor sizes of weights".to_owned(), described)
}

/// The weights of a side in words.
fn of_weights(work: &Workload) -> Option<String> {
    Some(format!("{} sizes of weights", work.weights.len()))
}

/// Whether both sides have the same calls with weights, each as often as the others: one recording
/// may be longer.
fn are_called_alike(works: &[Workload; 2]) -> bool {
    let [first, second] = works;
    let all: u64 = first.weights.values().chain(second.weights.values()).sum();
    let mut both = 0;
    for (weights, count) in &first.weights {
        both += second.weights.get(weights).map_or(0, |other| count + other);
    }
    let is_model = works.iter().all(|work| work.weights.len() >= LEAST_SIZES);
    let is_alike = spread(works).is_some_and(|spread| spread <= SAME_COUNT);
    is_model && ratio(both, all) >= SAME_WEIGHTS && is_alike
}

/// Whether some weights are called more often than others by as much as one side has more layers:
/// those of layers, and those that the model has once.
fn are_called_by_layer(works: &[Workload; 2], counts: [u32; 2]) -> bool {
    let [least, most] = [counts[0].min(counts[1]), counts[0].max(counts[1])].map(f64::from);
    // Half a layer: another number of layers is no explanation.
    spread(works).is_some_and(|spread| (spread * least - most).abs() < 0.5)
}

/// By what factor the weights differ in how often one side calls them against the other.
fn spread([first, second]: &[Workload; 2]) -> Option<f64> {
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for (weights, count) in &first.weights {
        let Some(other) = second.weights.get(weights) else { continue };
        #[expect(clippy::cast_precision_loss, reason = "counts of calls")]
        let factor = *count as f64 / (*other).max(1) as f64;
        (least, most) = (least.min(factor), most.max(factor));
    }
    (least > 0.0 && most > 0.0).then(|| most / least)
}

/// The convolutions of two recordings with operators, if one has none and the other one spends
/// much of its time in them.
fn one_convolves(works: &[Workload; 2]) -> Option<[String; 2]> {
    let convolves = |work: &Workload| {
        work.convolutions > 0 && ratio(work.convolutions_ns, work.all_ns) >= OF_CONVOLUTIONS
    };
    // A replayed graph has kernels and no operators.
    let has_none = |work: &Workload| {
        work.convolutions == 0 && work.convolutions_ns == 0 && work.is_training.is_some()
    };
    let [first, second] = works;
    let is_one = (convolves(first) && has_none(second)) || (convolves(second) && has_none(first));
    is_one.then(|| works.each_ref().map(|work| format!("{} convolutions", work.convolutions)))
}

/// The convolutions of a step, or for each GEMM where steps are not known.
fn by_convolutions(works: &[Workload; 2], steps: &Steps) -> Option<(Answer, [String; 2])> {
    if works.iter().any(|work| work.convolutions == 0) {
        return None;
    }
    let of_step = steps.basis != Basis::Recording;
    #[expect(clippy::cast_precision_loss, reason = "counts of calls")]
    let counts = [0, 1].map(|side| {
        let work = &works[side];
        let units = if of_step { steps.counts[side] } else { work.gemms as f64 };
        // Less than one is of no step, as that behind the last step of a diffusion.
        let count = work.convolutions as f64 / units;
        (units > 0.0 && !(of_step && count < 1.0)).then_some(count)
    });
    let [Some(first), Some(second)] = counts else { return None };
    let unit = if of_step { "a step" } else { "for each GEMM" };
    let words = [first, second].map(|count| format!("{} convolutions {unit}", number(count)));
    let factor = (first / second).max(second / first);
    let answer = match () {
        () if factor <= EQUAL_COUNT => Answer::Same,
        () if factor <= SAME_COUNT => Answer::Unknown,
        () => Answer::Different,
    };
    Some((answer, words))
}

/// The share of a side's calls with weights whose sizes the other side has.
fn shared(own: &Workload, other: &Workload) -> f64 {
    let exact: FxHashSet<&Weights> = other.weights.keys().collect();
    // The place of the tokens is free: that of the rows going forward, that of the sum for the
    // gradients of weights.
    let mut free: FxHashSet<(bool, u64, u64)> = FxHashSet::default();
    for weights in other.weights.keys() {
        if let Weights::Gemm([m, n, k]) = *weights {
            free.insert((true, n, k));
            free.insert((false, m, n));
        }
    }
    let is_shared = |weights: &Weights| match weights {
        Weights::Gemm([m, n, k]) => {
            free.contains(&(true, *n, *k)) || free.contains(&(false, *m, *n))
        }
        _ => exact.contains(weights),
    };
    let all: u64 = own.weights.values().sum();
    let both = own.weights.iter().filter(|(weights, _)| is_shared(weights));
    ratio(both.map(|(_, count)| *count).sum(), all)
}

/// The elements of the weights of GEMMs that a step reads.
#[expect(clippy::cast_precision_loss, reason = "compared to some per cent")]
fn sum_of_weights(work: &Workload, steps: f64) -> f64 {
    let sizes = work.weights.iter().filter_map(|(weights, count)| match weights {
        Weights::Gemm([_, n, k]) => Some((*n as f64) * (*k as f64) * (*count as f64)),
        _ => None,
    });
    // In any order of the table the same.
    let mut sizes: Vec<f64> = sizes.collect();
    sizes.sort_by(f64::total_cmp);
    if steps > 0.0 { sizes.iter().sum::<f64>() / steps } else { 0.0 }
}

/// Whether two amounts differ by less than a share.
pub(super) fn near(first: f64, second: f64, share: f64) -> bool {
    first > 0.0 && second > 0.0 && (first - second).abs() <= share * first.max(second)
}
