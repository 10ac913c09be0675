//! From samples to a ratio with its interval.

use fusion_cost_model::calibration::Disturbed;

use super::sample::{Pair, Round, Samples};
use super::schedule::Order;
use super::statistics::{Quartiles, mean, mean_and_error, median, quartiles, t_factor};

/// Processes that an interval over processes needs. With two, Student's t would stretch it to 12.7
/// standard errors, and one has no spread at all.
pub const LEAST_PROCESSES: usize = 3;

/// What is taken as independent in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Each process counts once.
    Processes,
    /// Too few processes: each round counts once, and what differs between processes is not in the
    /// interval.
    Rounds,
}

/// What a measurement says about the ratio of two variants.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The first variant's time over the second's.
    pub ratio: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// The ends of the 99 % interval.
    pub wide: [f64; 2],
    /// What the intervals are made over.
    pub unit: Unit,
    /// Seconds per run of each variant.
    pub seconds: [Quartiles; 2],
    /// Fresh processes with undisturbed pairs.
    pub processes: usize,
    /// Rounds of all of them.
    pub rounds: usize,
    /// Pairs that were taken.
    pub pairs: usize,
    /// Pairs that nothing disturbed.
    pub pairs_kept: usize,
    /// Whether so few pairs are undisturbed that the numbers are those of all pairs. They must not
    /// be used.
    pub mostly_disturbed: bool,
    /// Ticks of the clock in the shortest sample.
    pub ticks: u64,
    /// What the logarithm of the ratio would have been off by, had the variants been measured one
    /// after the other; `None` when every last round was disturbed.
    pub order_sensitivity: Option<f64>,
    /// Whether that is more than what the back-to-back passes differ by between processes.
    pub is_order_sensitive: bool,
    /// The disturbed pairs by cause.
    pub disturbed: Disturbed,
}

impl Estimate {
    /// Half the width of the 95 % interval, in the logarithm.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        0.5 * (self.high / self.low).ln()
    }
}

/// Estimates the ratio: the logarithm of each undisturbed pair's ratio, a median for each round,
/// the mean of its rounds for each process, the mean over the processes with an interval by
/// Student's t, and back.
///
/// Processes are what is independent: they differ in the placement of code, stack and pages, and
/// lie apart in time. `None` for no processes.
#[must_use]
pub fn estimate(processes: &[Samples]) -> Option<Estimate> {
    if processes.is_empty() {
        return None;
    }
    let pairs =
        || processes.iter().flat_map(|process| &process.rounds).flat_map(|round| &round.pairs);
    let kept = |pair: &&Pair| pair.causes.is_empty();
    let (taken, undisturbed) = (pairs().count(), pairs().filter(kept).count());
    let by_process = |all: bool| -> Vec<Vec<f64>> {
        let used = |pair: &&Pair| all || pair.causes.is_empty();
        let rounds = processes
            .iter()
            .map(|process| of_rounds(process, used).into_iter().flatten().collect::<Vec<f64>>());
        rounds.filter(|rounds| !rounds.is_empty()).collect()
    };
    // The numbers of a measurement that is thrown away for its disturbances are shown all the same.
    let is_too_few = |rounds: &[Vec<f64>]| rounds.iter().map(Vec::len).sum::<usize>() < 2;
    let rounds = by_process(false);
    let mostly_disturbed = 2 * undisturbed < taken || is_too_few(&rounds);
    let rounds = if mostly_disturbed { by_process(true) } else { rounds };
    let used = |pair: &&Pair| mostly_disturbed || pair.causes.is_empty();
    let of_processes: Vec<f64> = rounds.iter().map(|rounds| mean(rounds)).collect();
    let (unit, values) = if of_processes.len() >= LEAST_PROCESSES {
        (Unit::Processes, of_processes)
    } else {
        (Unit::Rounds, rounds.concat())
    };
    let (centre, error) = mean_and_error(&values);
    let degrees = values.len().saturating_sub(1);
    let [half, wide] = [0.95, 0.99].map(|covered| t_factor(degrees, covered) * error);
    let seconds = [0, 1].map(|variant| {
        let seconds = pairs().filter(used).map(|pair| pair.seconds[variant]);
        quartiles(&seconds.collect::<Vec<_>>())
    });
    let sensitivities: Vec<f64> =
        processes.iter().filter_map(|process| order_sensitivity(process, used)).collect();
    let (sensitivity, error_of_it) = mean_and_error(&sensitivities);
    let half_of_it = t_factor(sensitivities.len().saturating_sub(1), 0.95) * error_of_it;
    Some(Estimate {
        ratio: centre.exp(),
        low: (centre - half).exp(),
        high: (centre + half).exp(),
        wide: [(centre - wide).exp(), (centre + wide).exp()],
        unit,
        seconds,
        processes: rounds.len(),
        rounds: processes.iter().map(|process| process.rounds.len()).sum(),
        pairs: taken,
        pairs_kept: undisturbed,
        mostly_disturbed,
        ticks: processes.iter().map(|process| process.ticks).min().unwrap_or(0),
        order_sensitivity: (!sensitivities.is_empty()).then_some(sensitivity),
        is_order_sensitive: sensitivity.abs() > half_of_it,
        disturbed: count_causes(processes),
    })
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

/// The back-to-back pass of a process against its last round, which has the same layout.
fn order_sensitivity(process: &Samples, used: impl Fn(&&Pair) -> bool) -> Option<f64> {
    let last_round = of_rounds(process, used).last().copied().flatten()?;
    Some(process.back_to_back - last_round)
}

/// How many pairs each cause disturbed. A cause that some process could not observe has no number.
fn count_causes(processes: &[Samples]) -> Disturbed {
    let mut disturbed = Disturbed::default();
    for &cause in &processes[0].observable {
        if processes.iter().all(|process| process.observable.contains(&cause)) {
            *cause.count_of(&mut disturbed) = Some(0);
        }
    }
    let pairs = processes.iter().flat_map(|process| &process.rounds).flat_map(|round| &round.pairs);
    for cause in pairs.flat_map(|pair| &pair.causes) {
        if let Some(count) = cause.count_of(&mut disturbed) {
            *count += 1;
        }
    }
    disturbed
}

#[cfg(test)]
mod tests {
    use super::super::disturbance::Cause;
    use super::*;

    fn pair(seconds: [f64; 2], order: Order) -> Pair {
        Pair { seconds, order, causes: Vec::new() }
    }

    /// A process from the pairs of its rounds, in turns one way and the other.
    fn process(rounds: &[&[(f64, f64)]]) -> Samples {
        let orders = [Order::FirstSecond, Order::SecondFirst];
        let round = |pairs: &&[(f64, f64)]| Round {
            pairs: pairs
                .iter()
                .zip(orders.iter().cycle())
                .map(|(&(a, b), &order)| pair([a, b], order))
                .collect(),
        };
        Samples {
            rounds: rounds.iter().map(round).collect(),
            iterations: [1, 1],
            ticks: 5000,
            back_to_back: 0.0,
            observable: vec![Cause::Migration],
            sensors: None,
        }
    }

    #[test]
    fn a_spike_in_a_round_does_not_move_the_ratio() {
        let round: &[(f64, f64)] =
            &[(2.0, 1.0), (2.0, 1.0), (2.0, 1.0), (90.0, 1.0), (2.0, 1.0), (2.0, 1.0)];
        let estimate = estimate(&[process(&[round, round, round])]).unwrap();
        assert!((estimate.ratio - 2.0).abs() < 1e-12);
        assert!((estimate.high / estimate.low - 1.0).abs() < 1e-9);
        assert_eq!((estimate.pairs, estimate.pairs_kept), (18, 18));
        assert_eq!(estimate.seconds[0].median, 2.0);
        assert_eq!(estimate.unit, Unit::Rounds);
    }

    #[test]
    fn the_interval_comes_from_the_processes_and_is_symmetric_in_the_logarithm() {
        let processes = [2.0, 4.0, 8.0].map(|ratio| process(&[&[(ratio, 1.0)], &[(ratio, 1.0)]]));
        let estimate = estimate(&processes).unwrap();
        assert_eq!((estimate.unit, estimate.processes, estimate.rounds), (Unit::Processes, 3, 6));
        assert!((estimate.ratio - 4.0).abs() < 1e-12);
        // Standard error ln(2) / sqrt(3); t with two degrees: 4.302653 and 9.924843.
        let error = 2.0_f64.ln() / 3.0_f64.sqrt();
        assert!((estimate.half_width() - 4.302_652_729_7 * error).abs() < 1e-9);
        assert!(((estimate.ratio / estimate.low).ln() - 4.302_652_729_7 * error).abs() < 1e-9);
        assert!(((estimate.wide[1] / estimate.ratio).ln() - 9.924_843_200_9 * error).abs() < 1e-9);
    }

    #[test]
    fn fewer_processes_are_measured_by_their_rounds() {
        let two = [2.0, 4.0].map(|ratio| process(&[&[(ratio, 1.0)], &[(ratio, 1.0)]]));
        let estimate = estimate(&two).unwrap();
        assert_eq!((estimate.unit, estimate.processes), (Unit::Rounds, 2));
        let error = (4.0 * (2.0_f64.ln() / 2.0).powi(2) / 3.0 / 4.0).sqrt();
        assert!((estimate.half_width() - 3.182_446_305_3 * error).abs() < 1e-9);
    }

    #[test]
    fn a_drift_that_hits_both_variants_cancels() {
        let drifting: Vec<(f64, f64)> =
            (0..8).map(|i| 1.0 + f64::from(i)).map(|slow| (3.0 * slow, 2.0 * slow)).collect();
        let estimate = estimate(&[process(&[&drifting, &drifting])]).unwrap();
        assert!((estimate.ratio - 1.5).abs() < 1e-12);
    }

    #[test]
    fn the_place_in_the_pair_cancels_also_when_pairs_are_dropped() {
        // The second sample of a pair takes 20 % longer; the truth is 3.
        let mut process = process(&[&[(3.0, 1.2), (3.6, 1.0)], &[(3.0, 1.2), (3.6, 1.0)]]);
        for round in &mut process.rounds {
            let more = [round.pairs[0].clone(), round.pairs[0].clone()];
            round.pairs.extend(more);
        }
        let estimate = estimate(&[process]).unwrap();
        assert!((estimate.ratio - 3.0).abs() < 1e-12, "{}", estimate.ratio);
    }

    #[test]
    fn the_place_in_the_pair_cancels_also_in_rounds_that_lost_one_order() {
        // The second sample of a pair takes 20 % longer; the truth is 3.
        let round: &[(f64, f64)] = &[(3.0, 1.2), (3.6, 1.0)];
        let mut process = process(&[round; 6]);
        process.rounds[1].pairs[0].causes = vec![Cause::Migration];
        process.rounds[2].pairs[1].causes = vec![Cause::Migration];
        process.rounds[4].pairs[1].causes = vec![Cause::Migration];
        let estimate = estimate(&[process]).unwrap();
        assert!((estimate.ratio - 3.0).abs() < 1e-12, "{}", estimate.ratio);
        assert!((estimate.high / estimate.low - 1.0).abs() < 1e-9);
    }

    #[test]
    fn processes_without_an_undisturbed_pair_do_not_count() {
        let whole = process(&[&[(2.0, 1.0)], &[(2.1, 1.0)]]);
        let mut lost = whole.clone();
        lost.rounds.iter_mut().flat_map(|round| &mut round.pairs).for_each(|pair| {
            pair.causes = vec![Cause::Steal];
        });
        let estimate = estimate(&[whole.clone(), lost, whole]).unwrap();
        assert_eq!((estimate.processes, estimate.unit), (2, Unit::Rounds));
    }

    #[test]
    fn without_a_last_round_there_is_no_order_sensitivity() {
        let mut process = process(&[&[(2.0, 1.0)], &[(2.0, 1.0)], &[(2.0, 1.0)]]);
        process.rounds[2].pairs[0].causes = vec![Cause::Steal];
        assert_eq!(estimate(&[process]).unwrap().order_sensitivity, None);
    }

    #[test]
    fn disturbed_pairs_are_dropped_and_counted() {
        let mut process = process(&[&[(2.0, 1.0), (2.0, 1.0), (9.0, 1.0)], &[(2.0, 1.0)]]);
        process.rounds[0].pairs[2].causes = vec![Cause::Migration];
        let estimate = estimate(&[process.clone()]).unwrap();
        assert_eq!((estimate.pairs, estimate.pairs_kept), (4, 3));
        assert!((estimate.ratio - 2.0).abs() < 1e-12 && !estimate.mostly_disturbed);
        assert_eq!(estimate.seconds[0].q3, 2.0);
        assert_eq!(estimate.disturbed.migration, Some(1));
        assert_eq!(estimate.disturbed.page_fault, None, "not observable here");
        // What one of the processes cannot observe is not counted for any.
        let blind = Samples { observable: Vec::new(), ..process.clone() };
        assert_eq!(super::estimate(&[process, blind]).unwrap().disturbed.migration, None);
    }

    #[test]
    fn mostly_disturbed_measurements_still_have_finite_numbers() {
        let mut process = process(&[&[(2.0, 1.0), (3.0, 1.0)], &[(2.5, 1.0), (2.0, 1.0)]]);
        for pair in process.rounds.iter_mut().flat_map(|round| &mut round.pairs).skip(1) {
            pair.causes = vec![Cause::Steal];
        }
        let estimate = estimate(&[process]).unwrap();
        assert!(estimate.mostly_disturbed);
        assert_eq!((estimate.pairs, estimate.pairs_kept), (4, 1));
        assert!(estimate.low > 0.0 && estimate.high.is_finite());
    }

    #[test]
    fn the_back_to_back_pass_is_held_against_the_last_round() {
        let mut process = process(&[&[(9.0, 1.0)], &[(2.0, 1.0)]]);
        process.back_to_back = 2.2_f64.ln();
        let one = estimate(&[process.clone()]).unwrap();
        assert!((one.order_sensitivity.unwrap() - 1.1_f64.ln()).abs() < 1e-12);
        assert!(!one.is_order_sensitive, "one process tells nothing of its spread");
        let other = Samples { back_to_back: 2.21_f64.ln(), ..process.clone() };
        assert!(estimate(&[process.clone(), other, process.clone()]).unwrap().is_order_sensitive);
        let opposite = Samples { back_to_back: 1.8_f64.ln(), ..process.clone() };
        assert!(!estimate(&[process.clone(), opposite, process]).unwrap().is_order_sensitive);
    }

    #[test]
    fn nothing_gives_nothing() {
        assert_eq!(estimate(&[]), None);
    }
}
