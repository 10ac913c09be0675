//! What several passes say of the machine: its states, its ceilings, its clocks.

use calibrate::measure::Surroundings;
use calibrate::plan::{Comparison, Subject};
use calibrate::record::{Context, record};
use calibrate::run::{Measured, Outcome, RunSettings};
use calibrate::worker::{MeasureAnswer, MeasureTask, Workers};
use fused_kernels::MachineReading;
use fusion_cost_model::calibration::{Reason, ReasonCode, Verdict};
use fusion_cost_model::{Backend, CacheState, Clock, Implementation};

use super::scripted::{Asked, SETTINGS, Scripted, records_of, run, subjects};

#[test]
fn the_ceilings_of_a_state_are_the_best_of_its_passes() {
    let mut workers = Scripted::new();
    let outcome = run(&mut workers, SETTINGS, &subjects(1));
    // Asked before the passes 0, 4 and 8 of three processes, as the 1st, 14th and 27th task.
    let [measured] = &outcome.ceilings[..] else { panic!("{:?}", outcome.ceilings) };
    let limits = &measured.ceilings;
    assert_eq!((limits.peak_gflops, limits.launch_us), (99.0, 1.0));
    assert_eq!(limits.bandwidth[0].gb_per_s, 10.0);
    assert_eq!(limits.bandwidth[0].nontemporal_gb_per_s, Some(27.0));
    assert_eq!(limits.bandwidth[0].read_gb_per_s, None);
    let spread = measured.spread.unwrap();
    assert_eq!((spread.measurements, spread.lowest_peak_gflops), (3, 73.0));
    assert_eq!((spread.highest_launch_us, measured.state), (27.0, None));

    // The machine changes its state before the last of them.
    let around = |task| around(if task < 20 { (0.11, 57.0) } else { (0.57, 112.0) });
    let mut workers = Scripted { around, ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(1));
    let by_state: Vec<_> = outcome
        .ceilings
        .iter()
        .map(|one| (one.state, one.ceilings.peak_gflops, one.spread.map(|all| all.measurements)))
        .collect();
    assert_eq!(by_state.len(), 2, "{by_state:?}");
    assert!(by_state.contains(&(Some(1), 99.0, Some(2))), "{by_state:?}");
    assert!(by_state.contains(&(Some(2), 73.0, None)), "{by_state:?}");
}

/// Before which passes of three the ceilings were measured, and whether the record says that it is
/// faster than they are.
fn passes_with_ceilings(workers: &mut Scripted) -> (Vec<usize>, bool) {
    let outcome = run(workers, SETTINGS, &subjects(1));
    let mut passes = Vec::new();
    let mut measured = 0;
    for asked in &workers.tasks {
        match asked {
            Asked::Ceilings(_) => passes.push(measured),
            Asked::Measure(task) if task.subject == subjects(1)[0] => measured += 1,
            Asked::Measure(_) => {}
        }
    }
    let [record] = &records_of(&outcome)[..] else { panic!("one problem") };
    let is_faster = |reason: &Reason| reason.code == ReasonCode::FasterThanTheMachine;
    (passes, record.reasons.iter().any(is_faster))
}

/// What holds up a machine, such as a neighbour on the other half of a core, can last for all of a
/// measurement of the ceilings.
#[test]
fn ceilings_that_a_record_disproves_are_measured_again() {
    assert_eq!(passes_with_ceilings(&mut Scripted::new()), (vec![0, 4, 8], false));
    // In the first measurement only.
    let mut workers = Scripted { ceilings_held_up: |task| task == 1, ..Scripted::new() };
    assert_eq!(passes_with_ceilings(&mut workers), (vec![0, 1, 4, 8], false));
    // A record that stays faster is one of a kernel that does not do its work.
    let mut workers = Scripted { ceilings_held_up: |_| true, ..Scripted::new() };
    let (passes, is_faster) = passes_with_ceilings(&mut workers);
    assert_eq!(passes, (0..=10).collect::<Vec<_>>());
    assert!(is_faster);
}

/// Looks that say how long a hand-off takes, and what memory gives.
fn around((handoff_us, triad_gb_per_s): (f64, f64)) -> Surroundings {
    let reading = Some(MachineReading { handoff_us: Some(handoff_us), triad_gb_per_s });
    Surroundings { readings: [reading; 2], ..Surroundings::default() }
}

/// From looks at the machine to a record that says what differs between its states.
#[test]
fn a_speedup_that_follows_the_state_of_the_machine_is_said_by_state() {
    // Twice as fast in one state, which 4 of the 10 passes of three processes meet.
    let answer = |task: &MeasureTask| {
        let answer = Scripted::new().measure(task.clone(), None);
        let Ok(MeasureAnswer::Measured(mut report)) = answer else { return None };
        let is_slow = task.process_seed % 5 < 2;
        let state = if is_slow { (0.57, 112.0) } else { (0.11, 57.0) };
        report.surroundings = around(state);
        if is_slow && task.subject.comparison == Comparison::UnfusedFused {
            let pairs = report.samples.rounds.iter_mut().flat_map(|round| &mut round.pairs);
            pairs.for_each(|pair| pair.seconds[0] *= 2.0);
        }
        Some(Ok(MeasureAnswer::Measured(report)))
    };
    let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(1));
    let Measured { subject, processes, estimate, .. } = &outcome.measured[0];
    let context = Context::of(&SETTINGS, &outcome);
    let record = record(subject, processes, estimate.as_ref().unwrap(), &context);
    let [one, other] = &record.by_state[..] else { panic!("{:?}", record.by_state) };
    assert_eq!(one.processes + other.processes, record.processes);
    assert!((one.speedup_factor.max(other.speedup_factor) - 2.0).abs() < 0.01);
    assert!(record.speedup_low < 1.0 && record.speedup_high > 2.0, "{record:?}");
    assert_eq!((record.verdict, &record.states[..]), (Verdict::Ambiguous, &[1, 2][..]));
    assert!(record.reasons.iter().any(|reason| reason.code.name() == "state-changed"));
    let ratio = record.unfused_latency_ms / record.fused_latency_ms;
    assert!((ratio / record.speedup_factor - 1.0).abs() < 1e-4, "{record:?}");
}

/// Under a cold-cache run the ceilings are those of memory, and the bound that of the whole machine.
#[test]
fn cold_caches_have_ceilings_of_their_own() {
    let settings = RunSettings { cache: CacheState::Cold, ..SETTINGS };
    let outcome = run(&mut Scripted::new(), settings, &subjects(1));
    let found: Vec<CacheState> = outcome.ceilings.iter().map(|one| one.cache_state).collect();
    assert_eq!(found, [CacheState::Warm, CacheState::Cold]);
    let [warm, cold] = &outcome.ceilings[..] else { unreachable!() };
    assert_eq!(cold.ceilings, warm.ceilings.in_memory());
}

/// What the A/A runs by one clock say is nothing for a record by the other.
#[test]
fn a_record_is_judged_by_the_controls_of_its_clock() {
    // By one clock, kernels come out 2 % slower than themselves.
    let biased = |task: &MeasureTask| {
        let Subject { clock, comparison, .. } = task.subject;
        let answer = Scripted::new().measure(task.clone(), None);
        let Ok(MeasureAnswer::Measured(mut report)) = answer else { return None };
        if clock == Clock::LaunchInclusive && comparison == Comparison::UnfusedUnfused {
            let pairs = report.samples.rounds.iter_mut().flat_map(|round| &mut round.pairs);
            pairs.for_each(|pair| pair.seconds[0] *= 1.02);
        }
        Some(Ok(MeasureAnswer::Measured(report)))
    };
    let problem = "add_relu/f32/m1.n8".parse().unwrap();
    let clocks = [Clock::Device, Clock::LaunchInclusive];
    let subjects = clocks.map(|clock| Subject::of(problem, clock, Implementation::Native));
    let settings = RunSettings { backend: Backend::Cuda, l2_bytes: Some(1 << 20), ..SETTINGS };
    let mut workers = Scripted { answer: Some(biased), ..Scripted::new() };
    let outcome = run(&mut workers, settings, &subjects);
    let Outcome { measured, noise, ceilings, .. } = &outcome;
    assert_eq!(noise.len(), 4);
    let clocks_of_ceilings: Vec<Clock> = ceilings.iter().map(|ceilings| ceilings.clock).collect();
    assert_eq!(clocks_of_ceilings, clocks);
    let context = Context::of(&settings, &outcome);
    let records: Vec<_> = measured
        .iter()
        .map(|Measured { subject, processes, estimate, .. }| {
            record(subject, processes, estimate.as_ref().unwrap(), &context)
        })
        .collect();
    assert_eq!(records.iter().map(|record| record.clock).collect::<Vec<_>>(), clocks);
    assert!(records[0].noise_floor < 0.02, "{}", records[0].noise_floor);
    assert!(records[1].noise_floor > 0.03, "{}", records[1].noise_floor);
    // A script reports no clock.
    for record in &records {
        let gpu = record.gpu.as_ref().unwrap();
        assert_eq!((gpu.lowest_clock_mhz, gpu.throttle_reasons.as_ref()), (None, None));
        let unobserved = record.reasons.iter().find(|reason| reason.code.name() == "unobserved");
        assert!(unobserved.unwrap().text.contains("clock_change"), "{unobserved:?}");
    }
    // Each process has a seed of its own, though the problem is the same.
    let seeds: std::collections::HashSet<u64> = workers
        .tasks
        .iter()
        .filter_map(|task| match task {
            Asked::Measure(task) => Some(task.process_seed),
            _ => None,
        })
        .collect();
    assert_eq!(seeds.len(), workers.measured().len());
}
