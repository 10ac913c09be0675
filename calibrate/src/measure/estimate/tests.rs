//! Ratios and intervals by hand, and what must not move them.

use super::super::disturbance::Cause;
use super::super::samples::Round;
use super::super::schedule::Order;
use super::*;

/// Nothing in addition to Student's t.
fn estimate(processes: &[Samples]) -> Option<Estimate> {
    let processes: Vec<&Samples> = processes.iter().collect();
    super::estimate(&processes, &Method { level: 0.95, correlation: Some(0.0), states: &[] })
}

/// Rounds of one process that agree: what is left is what it does not show of others.
fn of_rounds_that_agree() -> f64 {
    with_resolution(0.0).hypot(1.959_964 * FusionRecord::BETWEEN_PROCESSES)
}

/// The half-width that Student's t gives, with what no interval resolves.
fn with_resolution(half_width: f64) -> f64 {
    half_width.hypot(1.01_f64.ln())
}

fn pair(seconds: [f64; 2], order: Order) -> Pair {
    Pair { seconds, order, causes: Vec::new(), clock_changed: [false; 2] }
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
    assert!((estimate.half_width() - of_rounds_that_agree()).abs() < 1e-6);
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
    let unseen = 1.959_964 * FusionRecord::BETWEEN_PROCESSES / 2.0_f64.sqrt();
    let half_width = with_resolution(3.182_446_305_3 * error).hypot(unseen);
    assert!((estimate.half_width() - half_width).abs() < 1e-6);
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
    assert!((estimate.half_width() - of_rounds_that_agree()).abs() < 1e-6);
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

/// The second variant takes more power: in two samples of three the clock goes down by a tenth, and
/// comes back while the first variant runs. Its time is what it takes so, and not without.
#[test]
fn a_variant_that_lowers_the_clock_itself_has_the_time_that_it_takes_so() {
    let round: &[(f64, f64)] =
        &[(2.0, 1.0), (2.0, 1.1), (2.0, 1.1), (2.0, 1.0), (2.0, 1.1), (2.0, 1.1)];
    let mut process = process(&[round; 4]);
    for pair in process.rounds.iter_mut().flat_map(|round| &mut round.pairs) {
        if pair.seconds[1] > 1.05 {
            pair.causes = vec![Cause::ClockChange];
            pair.clock_changed = [false, true];
        }
    }
    process.observable = vec![Cause::ClockChange];
    let found = estimate(&[process]).unwrap();
    assert!((found.ratio - 2.0 / 1.1).abs() < 1e-12, "{}", found.ratio);
    assert_eq!((found.pairs, found.pairs_kept, found.mostly_disturbed), (24, 24, false));
    assert_eq!((found.clock_changes, found.disturbed.clock_change), ([0, 16], Some(16)));
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
fn what_changes_within_processes_is_told_from_how_they_differ() {
    let changing =
        |first: f64, last: f64| process(&[&[(first, 1.0)], &[(9.0, 1.0)], &[(last, 1.0)]]);
    let of = |processes: &[Samples]| estimate(processes).unwrap().change_within;
    let falling = [(2.2, 2.0), (2.21, 2.0), (2.2, 2.01), (2.2, 1.99)].map(|(a, b)| changing(a, b));
    assert!((of(&falling).unwrap() + 1.1_f64.ln()).abs() < 0.01);
    assert_eq!(of(&falling[..1]), None, "one process tells nothing of its spread");
    let both_ways = [(2.2, 2.0), (2.0, 2.2), (2.2, 2.1), (2.1, 2.2)].map(|(a, b)| changing(a, b));
    assert_eq!(of(&both_ways), None);
    assert_eq!(of(&[1, 2, 3].map(|_| process(&[&[(2.0, 1.0)]]))), None, "one round has no end");
}

/// As a state of the machine would that no look shows.
#[test]
fn processes_that_resemble_those_before_them_make_an_interval_of_their_own() {
    let of = |ratios: &[f64]| {
        let all: Vec<Samples> = ratios.iter().map(|&ratio| process(&[&[(ratio, 1.0)]])).collect();
        estimate(&all).unwrap()
    };
    let halves: Vec<f64> = (0..20).map(|at| if at / 5 % 2 == 0 { 1.0 } else { 1.05 }).collect();
    let turns: Vec<f64> = (0..20).map(|at| if at % 2 == 0 { 1.0 } else { 1.05 }).collect();
    let (slow, plain) = (of(&halves), of(&turns));
    assert!(slow.changes_slowly && !plain.changes_slowly);
    assert!(slow.correlation > 0.6 && plain.correlation == 0.0);
    assert!((slow.ratio - plain.ratio).abs() < 1e-12);
    assert!(slow.half_width() > 2.0 * plain.half_width(), "{slow:?} {plain:?}");
    // The rounds of one process are not processes.
    let rounds: Vec<[(f64, f64); 1]> = halves.iter().map(|&ratio| [(ratio, 1.0)]).collect();
    let rounds: Vec<&[(f64, f64)]> = rounds.iter().map(|round| &round[..]).collect();
    let one = estimate(&[process(&rounds)]).unwrap();
    assert!(!one.changes_slowly && one.correlation == 0.0);
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
    let method = Method { level: 0.95, correlation: Some(0.0), states: &[1, 3, 2, 1, 2] };
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
