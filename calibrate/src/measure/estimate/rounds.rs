//! Of each round of a process two numbers: the logarithm of the ratio, and the middle of both times.

use super::super::samples::{Pair, Round, Samples};
use super::super::schedule::Order;
use super::super::statistics::{mean, median};

/// The logarithm of the ratio in each process that has undisturbed pairs, in order: what the
/// correlation of successive processes is found from.
#[must_use]
pub fn log_ratios(processes: &[&Samples]) -> Vec<f64> {
    by_process(processes, false).iter().map(|(_, rounds)| mean_of(rounds)[0]).collect()
}

/// For each process with usable pairs its number and, for each of its rounds, the logarithm of the
/// ratio and the middle of the logarithms of both times.
pub(super) fn by_process(processes: &[&Samples], all: bool) -> Vec<(usize, Vec<[f64; 2]>)> {
    let used = |pair: &&Pair| all || pair.is_kept();
    let rounds = processes.iter().enumerate().map(|(index, process)| {
        let ratios = of_rounds(process, used);
        let middle = |round: &Round| {
            let middles = round.pairs.iter().filter(used).map(Pair::log_middle);
            median(&middles.collect::<Vec<_>>())
        };
        let rounds = process.rounds.iter().zip(ratios);
        (index, rounds.filter_map(|(round, ratio)| Some([ratio?, middle(round)])).collect())
    });
    rounds.filter(|(_, rounds): &(usize, Vec<[f64; 2]>)| !rounds.is_empty()).collect()
}

/// The mean of each of the two.
pub(super) fn mean_of(rounds: &[[f64; 2]]) -> [f64; 2] {
    [0, 1].map(|which| mean(&rounds.iter().map(|round| round[which]).collect::<Vec<_>>()))
}

/// The logarithm of the ratio in each round of a process, if it has undisturbed pairs: the median of
/// the pairs that began with one variant, and of those that began with the other, and the mean of
/// the two, in which what the second place in a pair costs cancels. A round whose pairs of one
/// order were all dropped is corrected by what that place costs in the other rounds.
fn of_rounds(process: &Samples, used: impl Fn(&&Pair) -> bool) -> Vec<Option<f64>> {
    let of_order = |round: &Round, order| {
        let pairs = round.pairs.iter().filter(&used).filter(|pair| pair.order == order);
        let ratios: Vec<f64> = pairs.map(Pair::log_ratio).collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    };
    let rounds: Vec<[Option<f64>; 2]> = process
        .rounds
        .iter()
        .map(|round| [Order::FirstSecond, Order::SecondFirst].map(|order| of_order(round, order)))
        .collect();
    let differences: Vec<f64> = rounds
        .iter()
        .filter_map(|[first, second]| first.zip(*second))
        .map(|(first, second)| 0.5 * (first - second))
        .collect();
    let position = if differences.is_empty() { 0.0 } else { mean(&differences) };
    let of_round = |round: &[Option<f64>; 2]| match *round {
        [Some(first), Some(second)] => Some(0.5 * (first + second)),
        [Some(first), None] => Some(first - position),
        [None, Some(second)] => Some(second + position),
        [None, None] => None,
    };
    rounds.iter().map(of_round).collect()
}

/// How much the logarithm of the ratio changed from the first round of a process to its last one.
pub(super) fn change_within(process: &Samples, used: impl Fn(&&Pair) -> bool) -> Option<f64> {
    let rounds = of_rounds(process, used);
    let [Some(first), .., Some(last)] = rounds[..] else { return None };
    Some(last - first)
}

/// The back-to-back pass of a process against its last round, which has the same layout.
pub(super) fn order_sensitivity(process: &Samples, used: impl Fn(&&Pair) -> bool) -> Option<f64> {
    let last_round = of_rounds(process, used).last().copied().flatten()?;
    Some(process.back_to_back - last_round)
}
