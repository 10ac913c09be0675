//! From samples to a ratio with its interval.

use fusion_cost_model::calibration::Disturbed;

use super::interval::{Method, over_processes};
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

/// What a measurement says about the time of a variant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VariantTime {
    /// Seconds per run. That of the first variant over that of the second is the ratio.
    pub seconds: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// The quartiles of the samples.
    pub samples: Quartiles,
}

/// What a measurement says in one state of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StateEstimate {
    /// The state.
    pub state: u32,
    /// Processes in it.
    pub processes: usize,
    /// The first variant's time over the second's.
    pub ratio: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
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
    /// The standard error of the ratio's logarithm.
    pub standard_error: f64,
    /// What the intervals are made over.
    pub unit: Unit,
    /// The correlation of successive processes that the intervals allow for.
    pub correlation: f64,
    /// The states of the machine that the processes met.
    pub states: Vec<u32>,
    /// What they say apart, where the ratio depends on the state.
    pub by_state: Vec<StateEstimate>,
    /// The time of each variant.
    pub times: [VariantTime; 2],
    /// The same in each process with usable pairs, in seconds.
    pub by_process: Vec<[f64; 2]>,
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
    /// Ticks of the clock in the shortest sample of a process: at least half of the processes have as
    /// many.
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

    /// What an A/A run of two copies says about the kernel that is the same in both: it is as fast as
    /// itself, and its time is the middle of what both copies took.
    #[must_use]
    pub fn of_one_kernel(&self) -> Self {
        let [first, second] = self.times;
        let middle = |of: fn(&VariantTime) -> f64| (of(&first) * of(&second)).sqrt();
        let time = VariantTime {
            seconds: middle(|time| time.seconds),
            // Each of them is as wide as those of the copies, which is more than that of the middle.
            low: middle(|time| time.low),
            high: middle(|time| time.high),
            samples: Quartiles {
                q1: middle(|time| time.samples.q1),
                median: middle(|time| time.samples.median),
                q3: middle(|time| time.samples.q3),
            },
        };
        Self {
            ratio: 1.0,
            low: 1.0,
            high: 1.0,
            times: [time; 2],
            by_process: self.by_process.iter().map(|[a, b]| [(a * b).sqrt(); 2]).collect(),
            by_state: Vec::new(),
            order_sensitivity: None,
            is_order_sensitive: false,
            ..self.clone()
        }
    }
}

/// Estimates the ratio: the logarithm of each undisturbed pair's ratio, a median for each round,
/// the mean of its rounds for each process, and over the processes an [interval](super::Method), and
/// back. The times are what lies half the ratio above and below the middle of the two.
///
/// Processes are what is independent, or nearly: they differ in the placement of code, stack and
/// pages, and lie apart in time. `None` for no processes.
#[must_use]
pub fn estimate(processes: &[&Samples], method: &Method<'_>) -> Option<Estimate> {
    if processes.is_empty() {
        return None;
    }
    let pairs =
        || processes.iter().flat_map(|process| &process.rounds).flat_map(|round| &round.pairs);
    let (taken, undisturbed) = (pairs().count(), pairs().filter(|pair| is_kept(pair)).count());
    // A measurement discarded for its disturbances still shows its numbers.
    let kept = by_process(processes, false);
    let is_too_few = kept.iter().map(|(_, rounds)| rounds.len()).sum::<usize>() < 2;
    let mostly_disturbed = 2 * undisturbed < taken || is_too_few;
    let rounds = if mostly_disturbed { by_process(processes, true) } else { kept };
    let used = |pair: &&Pair| mostly_disturbed || is_kept(pair);

    let state_of = |index: usize| method.states.get(index).copied().unwrap_or_default();
    let mut states: Vec<u32> = rounds.iter().map(|(index, _)| state_of(*index)).collect();
    let (unit, values) = if rounds.len() >= LEAST_PROCESSES {
        (Unit::Processes, rounds.iter().map(|(_, rounds)| mean_of(rounds)).collect())
    } else {
        let values: Vec<[f64; 2]> = rounds.iter().flat_map(|(_, rounds)| rounds).copied().collect();
        (Unit::Rounds, values)
    };
    let series = |of: fn(&[f64; 2]) -> f64| values.iter().map(of).collect::<Vec<f64>>();
    let all: [Vec<f64>; 3] = [
        series(|[ratio, _]| *ratio),
        series(|[ratio, middle]| middle + 0.5 * ratio),
        series(|[ratio, middle]| middle - 0.5 * ratio),
    ];
    // Rounds of one process follow each other within milliseconds, in one state of the machine.
    let (of_values, correlation) = match unit {
        Unit::Processes => (states.clone(), method.correlation),
        Unit::Rounds => (vec![0; values.len()], 0.0),
    };
    let method = Method { correlation, ..*method };
    let [ratio, first, second] =
        over_processes(all.each_ref().map(Vec::as_slice), &of_values, &method);

    let times = [(0, first), (1, second)].map(|(variant, found)| {
        let samples = pairs().filter(used).map(|pair| pair.seconds[variant]);
        VariantTime {
            seconds: found.centre.exp(),
            low: found.low.exp(),
            high: found.high.exp(),
            samples: quartiles(&samples.collect::<Vec<_>>()),
        }
    });
    let by_state = ratio.by_state.iter().map(|&(state, processes, [centre, low, high])| {
        let [ratio, low, high] = [centre, low, high].map(f64::exp);
        StateEstimate { state, processes, ratio, low, high }
    });
    let sensitivities: Vec<f64> =
        processes.iter().filter_map(|process| order_sensitivity(process, used)).collect();
    let (sensitivity, error_of_it) = mean_and_error(&sensitivities);
    let half_of_it = t_factor(sensitivities.len().saturating_sub(1), 0.95) * error_of_it;
    let by_process = rounds.iter().map(|(_, rounds)| {
        let [ratio, middle] = mean_of(rounds);
        [(middle + 0.5 * ratio).exp(), (middle - 0.5 * ratio).exp()]
    });
    let by_process: Vec<[f64; 2]> = by_process.collect();
    states.sort_unstable();
    states.dedup();
    Some(Estimate {
        ratio: ratio.centre.exp(),
        low: ratio.low.exp(),
        high: ratio.high.exp(),
        standard_error: ratio.error,
        unit,
        correlation,
        states,
        by_state: by_state.collect(),
        times,
        by_process,
        processes: rounds.len(),
        rounds: processes.iter().map(|process| process.rounds.len()).sum(),
        pairs: taken,
        pairs_kept: undisturbed,
        mostly_disturbed,
        ticks: ticks_of_most(processes),
        order_sensitivity: (!sensitivities.is_empty()).then_some(sensitivity),
        is_order_sensitive: sensitivity.abs() > half_of_it,
        disturbed: count_causes(processes),
    })
}

/// The logarithm of the ratio in each process that has undisturbed pairs, in order: what the
/// correlation of successive processes is found from.
#[must_use]
pub fn log_ratios(processes: &[&Samples]) -> Vec<f64> {
    by_process(processes, false).iter().map(|(_, rounds)| mean_of(rounds)[0]).collect()
}

fn is_kept(pair: &Pair) -> bool {
    pair.causes.is_empty()
}

/// For each process with usable pairs its number and, for each of its rounds, the logarithm of the
/// ratio and the middle of the logarithms of both times.
fn by_process(processes: &[&Samples], all: bool) -> Vec<(usize, Vec<[f64; 2]>)> {
    let used = |pair: &&Pair| all || is_kept(pair);
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
fn mean_of(rounds: &[[f64; 2]]) -> [f64; 2] {
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

/// The back-to-back pass of a process against its last round, which has the same layout.
fn order_sensitivity(process: &Samples, used: impl Fn(&&Pair) -> bool) -> Option<f64> {
    let last_round = of_rounds(process, used).last().copied().flatten()?;
    Some(process.back_to_back - last_round)
}

/// How many pairs each cause disturbed. A cause that some process could not observe has no number.
fn count_causes(processes: &[&Samples]) -> Disturbed {
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

/// The ticks of the shortest sample that at least half of the processes reach. A single process that
/// found out how many runs make a sample while something held it up is too short by chance, and a
/// twentieth of the samples.
fn ticks_of_most(processes: &[&Samples]) -> u64 {
    let mut ticks: Vec<u64> = processes.iter().map(|process| process.ticks).collect();
    ticks.sort_unstable();
    ticks.get(ticks.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::disturbance::Cause;
    use super::*;

    /// Nothing in addition to Student's t.
    fn estimate(processes: &[Samples]) -> Option<Estimate> {
        let processes: Vec<&Samples> = processes.iter().collect();
        super::estimate(&processes, &Method { level: 0.95, correlation: 0.0, states: &[] })
    }

    /// The half-width that Student's t gives, with what no interval resolves.
    fn with_resolution(half_width: f64) -> f64 {
        half_width.hypot(1.01_f64.ln())
    }

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
    fn one_process_with_short_samples_is_not_all_of_them() {
        let round: &[(f64, f64)] = &[(2.0, 1.0), (2.0, 1.0)];
        let ticks = |of: [u64; 3]| {
            let of = of.map(|ticks| Samples { ticks, ..process(&[round, round]) });
            estimate(&of).unwrap().ticks
        };
        assert_eq!(ticks([498, 5000, 4000]), 4000);
        assert_eq!(ticks([498, 499, 5000]), 499);
        assert_eq!(super::ticks_of_most(&[]), 0);
    }

    #[test]
    fn a_spike_in_a_round_does_not_move_the_ratio() {
        let round: &[(f64, f64)] =
            &[(2.0, 1.0), (2.0, 1.0), (2.0, 1.0), (90.0, 1.0), (2.0, 1.0), (2.0, 1.0)];
        let estimate = estimate(&[process(&[round, round, round])]).unwrap();
        assert!((estimate.ratio - 2.0).abs() < 1e-12);
        assert!((estimate.half_width() - with_resolution(0.0)).abs() < 1e-9);
        assert_eq!((estimate.pairs, estimate.pairs_kept), (18, 18));
        assert_eq!(estimate.times[0].samples.median, 2.0);
        assert_eq!(estimate.unit, Unit::Rounds);
    }

    #[test]
    fn the_interval_comes_from_the_processes_and_is_symmetric_in_the_logarithm() {
        let processes = [2.0, 4.0, 8.0].map(|ratio| process(&[&[(ratio, 1.0)], &[(ratio, 1.0)]]));
        let estimate = estimate(&processes).unwrap();
        assert_eq!((estimate.unit, estimate.processes, estimate.rounds), (Unit::Processes, 3, 6));
        assert!((estimate.ratio - 4.0).abs() < 1e-12);
        for ([first, second], ratio) in estimate.by_process.iter().zip([2.0, 4.0, 8.0]) {
            assert!((first - ratio).abs() < 1e-12 && (second - 1.0).abs() < 1e-12);
        }
        // Standard error ln(2) / sqrt(3); t with two degrees: 4.302653 and 9.924843.
        let error = 2.0_f64.ln() / 3.0_f64.sqrt();
        let half_width = with_resolution(4.302_652_729_7 * error);
        assert!((estimate.half_width() - half_width).abs() < 1e-9);
        assert!(((estimate.ratio / estimate.low).ln() - half_width).abs() < 1e-9);
        assert!((estimate.standard_error - error).abs() < 1e-12);
    }

    #[test]
    fn a_kernel_against_its_copy_is_as_fast_as_itself() {
        let processes = [1.0, 2.0, 4.0].map(|both| process(&[&[(both, both * 1.21)][..]; 2]));
        let of_copies = estimate(&processes).unwrap();
        let estimate = of_copies.of_one_kernel();
        assert_eq!((estimate.ratio, estimate.low, estimate.high), (1.0, 1.0, 1.0));
        let [first, second] = estimate.times;
        assert_eq!(first, second);
        assert!((first.seconds - 2.2).abs() < 1e-12, "{first:?}");
        assert!(first.low < first.seconds && first.seconds < first.high);
        assert!((estimate.by_process[2][1] - 4.4).abs() < 1e-12);
        assert_eq!(estimate.processes, of_copies.processes);
    }

    #[test]
    fn fewer_processes_are_measured_by_their_rounds() {
        let two = [2.0, 4.0].map(|ratio| process(&[&[(ratio, 1.0)], &[(ratio, 1.0)]]));
        let estimate = estimate(&two).unwrap();
        assert_eq!((estimate.unit, estimate.processes), (Unit::Rounds, 2));
        let error = (4.0 * (2.0_f64.ln() / 2.0).powi(2) / 3.0 / 4.0).sqrt();
        let half_width = with_resolution(3.182_446_305_3 * error);
        assert!((estimate.half_width() - half_width).abs() < 1e-9);
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
        assert!((estimate.half_width() - with_resolution(0.0)).abs() < 1e-9);
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
        let found = estimate(&[process.clone()]).unwrap();
        assert_eq!((found.pairs, found.pairs_kept), (4, 3));
        assert!((found.ratio - 2.0).abs() < 1e-12 && !found.mostly_disturbed);
        assert_eq!(found.times[0].samples.q3, 2.0);
        assert_eq!(found.disturbed.migration, Some(1));
        assert_eq!(found.disturbed.page_fault, None, "not observable here");
        // What one of the processes cannot observe is not counted for any.
        let blind = Samples { observable: Vec::new(), ..process.clone() };
        assert_eq!(estimate(&[process, blind]).unwrap().disturbed.migration, None);
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
    fn the_times_agree_with_the_ratio() {
        // Skewed samples, whose medians have another ratio than the pairs.
        let round: &[(f64, f64)] = &[(2.0, 1.0), (6.0, 1.5), (2.2, 1.9), (9.0, 1.1), (2.0, 0.7)];
        let processes = [process(&[round]), process(&[&round[1..]]), process(&[&round[2..]])];
        let Estimate { ratio, times, .. } = estimate(&processes).unwrap();
        assert!((times[0].seconds / times[1].seconds / ratio - 1.0).abs() < 1e-12);
        let medians = times[0].samples.median / times[1].samples.median;
        assert!((medians / ratio - 1.0).abs() > 0.01, "the case is hard: {medians} {ratio}");
        assert!(times.iter().all(|time| time.low < time.seconds && time.seconds < time.high));
    }

    #[test]
    fn states_of_disturbed_processes_do_not_count() {
        let whole = |ratio: f64| process(&[&[(ratio, 1.0)], &[(ratio, 1.0)]]);
        let mut lost = whole(2.0);
        lost.rounds.iter_mut().flat_map(|round| &mut round.pairs).for_each(|pair| {
            pair.causes = vec![Cause::Steal];
        });
        let all = [whole(2.0), lost, whole(3.0), whole(2.0), whole(3.0)];
        let method = Method { level: 0.95, correlation: 0.0, states: &[1, 3, 2, 1, 2] };
        let estimate = super::estimate(&all.each_ref(), &method).unwrap();
        assert_eq!(estimate.states, [1, 2]);
        let of_states: Vec<_> =
            estimate.by_state.iter().map(|one| (one.state, one.processes, one.ratio)).collect();
        assert!((of_states[0].2 - 2.0).abs() < 1e-9 && (of_states[1].2 - 3.0).abs() < 1e-9);
        assert_eq!((of_states[0].0, of_states[0].1, of_states[1].1), (1, 2, 2));
    }

    #[test]
    fn nothing_gives_nothing() {
        assert_eq!(estimate(&[]), None);
    }
}
