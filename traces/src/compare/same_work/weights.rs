//! Whether both sides computed with the same weights, weight by weight.
//!
//! Most weights of two models may be alike, as of one with another vocabulary or with adapters. So
//! what one side has more of must be in the other in another form: one side may join the weights of
//! several GEMMs, which then have as many elements.

use std::collections::{BTreeMap, BTreeSet};

use super::super::basis::Steps;
use super::super::result::Basis;
use super::model::{SAME_COUNT, SAME_SUM, SAME_WEIGHTS, near};
use super::workload::{Weights, Workload};

/// Sums of elements that differ by less are of the same weights: recordings may cut a step.
const SAME_ELEMENTS: f64 = 0.1;

/// Adapters of a higher rank are not told from what a model may have.
const MOST_RANKS: u64 = 256;

/// An adapter is so much longer than its rank at least.
const LEAST_LENGTH: u64 = 4;

/// The calls of each weight in a step, by its sizes.
type Calls = BTreeMap<Vec<u64>, f64>;

/// What of the weights differs, if anything does; nothing is said where sizes are not known.
pub(super) fn difference(works: &[Workload; 2], steps: &Steps) -> Option<&'static str> {
    let tables = works.each_ref().map(largest_table);
    if let [Some(first), Some(second)] = tables
        && !near(first, second, SAME_SUM)
    {
        return Some("sizes of the vocabulary");
    }
    if adapters(&works[0]).is_empty() != adapters(&works[1]).is_empty() {
        return Some("adapters, which only one side has");
    }
    let are_known = works.iter().all(|work| work.flops_of_weights().is_some());
    // An evaluation between steps uses the weights of the same model more often.
    if !are_known || !steps.are_alike_beside_training() {
        return None;
    }
    let mut calls = works.each_ref().map(calls_by_size);
    // Another library's bags are not seen.
    if works.iter().all(|work| !work.bags.calls.is_empty()) {
        for (calls, work) in calls.iter_mut().zip(works) {
            for (table, count) in &work.bags.calls {
                #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
                let count = *count as f64;
                *calls.entry(table.to_vec()).or_default() += count;
            }
        }
    }
    let scales = match steps.basis {
        Basis::Recording => [1.0, usual_ratio(&calls)?],
        Basis::Layers | Basis::MarkedSteps => steps.counts.map(|count| 1.0 / count),
    };
    for (calls, scale) in calls.iter_mut().zip(scales) {
        calls.values_mut().for_each(|count| *count *= scale);
    }
    let one_call = scales[0].max(scales[1]);
    let more = [0, 1].map(|side| Excess::of(&calls[side], &calls[1 - side], one_call));
    let is_same_sum = near(more[0].elements, more[1].elements, SAME_ELEMENTS);
    (!is_same_sum && !more.iter().all(Excess::is_little))
        .then_some("weights that only one side computes with, or more often")
}

/// What a side has more of than the other.
struct Excess {
    elements: f64,
    calls: f64,
    all_elements: f64,
    all_calls: f64,
}

impl Excess {
    fn of(own: &Calls, other: &Calls, one_call: f64) -> Self {
        let mut excess = Self { elements: 0.0, calls: 0.0, all_elements: 0.0, all_calls: 0.0 };
        for (sizes, calls) in own {
            #[expect(clippy::cast_precision_loss, reason = "sizes")]
            let elements: f64 = sizes.iter().map(|size| *size as f64).product();
            excess.all_elements += calls * elements;
            excess.all_calls += calls;
            let others = other.get(sizes).copied().unwrap_or(0.0);
            // A recording that ends in a step has a call less.
            let are_as_often =
                others > 0.0 && (*calls <= SAME_COUNT * others || calls - others <= one_call);
            if *calls > others && !are_as_often {
                excess.elements += (calls - others) * elements;
                excess.calls += calls - others;
            }
        }
        excess
    }

    fn is_little(&self) -> bool {
        self.elements <= SAME_SUM * self.all_elements
            && self.calls <= (1.0 - SAME_WEIGHTS) * self.all_calls
    }
}

/// The calls of each weight. Of a GEMM one size is the number of tokens, and no size of a weight.
fn calls_by_size(work: &Workload) -> Calls {
    let is_tokens = |size: &u64| work.tokens_of_calls.contains(size);
    let mut all = Calls::new();
    for (weights, count) in &work.weights {
        let sizes = match weights {
            Weights::Gemm([m, n, k]) => {
                let mut sizes = match [m, n, k].map(is_tokens) {
                    // The gradient of weights is a sum over tokens.
                    [false, _, true] if work.is_training == Some(true) => vec![*m, *n],
                    _ => vec![*n, *k],
                };
                sizes.sort_unstable();
                sizes
            }
            Weights::Conv(sizes) => sizes.clone(),
            Weights::Embedding(_) => continue,
        };
        #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
        let count = *count as f64;
        *all.entry(sizes).or_default() += count;
    }
    all
}

/// The ranks of adapters: a GEMM makes rows so short, and another one makes them long again. Beside
/// joined weights they are too little to make a difference of all elements.
fn adapters(work: &Workload) -> BTreeSet<u64> {
    let gemms = || {
        work.weights.keys().filter_map(|weights| match *weights {
            // The gradient of weights is a sum over tokens.
            Weights::Gemm([_, n, k]) if !work.tokens_of_calls.contains(&k) => Some((n, k)),
            _ => None,
        })
    };
    let is_rank = |rank: u64, length: u64| {
        (1..=MOST_RANKS).contains(&rank)
            && length >= rank.saturating_mul(LEAST_LENGTH)
            && !work.tokens_of_calls.contains(&rank)
    };
    let shorter: BTreeSet<u64> = gemms().filter(|(n, k)| is_rank(*n, *k)).map(|(n, _)| n).collect();
    gemms().filter(|(n, k)| is_rank(*k, *n) && shorter.contains(k)).map(|(_, k)| k).collect()
}

/// How many times as often the first side calls what both call, of the call in the middle.
fn usual_ratio([first, second]: &[Calls; 2]) -> Option<f64> {
    let both = first.iter().filter_map(|(sizes, calls)| Some((*calls, *second.get(sizes)?)));
    let mut ratios: Vec<(f64, f64)> =
        both.map(|(first, second)| (first / second, first.min(second))).collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = ratios.iter().map(|(_, calls)| calls).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let mut middle = ratios.into_iter().skip_while(|(_, calls)| {
        below += calls;
        below < half
    });
    middle.next().map(|(ratio, _)| ratio)
}

/// The elements of the largest table that tokens are looked up in.
fn largest_table(work: &Workload) -> Option<f64> {
    let tables = work.weights.keys().filter_map(|weights| match weights {
        #[expect(clippy::cast_precision_loss, reason = "sizes")]
        Weights::Embedding([vocabulary, width]) => Some(*vocabulary as f64 * *width as f64),
        _ => None,
    });
    tables.max_by(f64::total_cmp)
}
