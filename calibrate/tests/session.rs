//! Runs on a scripted workers: passes, looks, budgets, failures, and going on after an end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use calibrate::measure::{Cause, Order, Pair, Procedure, Round, Samples, Surroundings};
use calibrate::plan::{Comparison, Subject};
use calibrate::record::{Context, record};
use calibrate::report::Progress;
use calibrate::run::{
    Entry, Journal, Measured, Outcome, RunKey, RunSettings, Seed, Session, State,
};
use calibrate::stop::Stop;
use calibrate::worker::{
    CeilingsReport, CeilingsTask, Device, MeasureAnswer, MeasureTask, NoAnswer, ProcessReport,
    Workers,
};
use fused_kernels::MachineReading;
use fusion_cost_model::calibration::{
    FusionRecord, HardwareCalibration, RunEnd, Verdict, Verification,
};
use fusion_cost_model::cost::{BandwidthPoint, Ceilings};
use fusion_cost_model::{Backend, CacheState, Clock, Implementation, Problem};

type Answer = Result<MeasureAnswer, NoAnswer>;

/// What a worker was asked.
#[derive(Debug, Clone, PartialEq)]
enum Asked {
    Measure(Box<MeasureTask>),
    Ceilings,
}

/// Processes whose samples follow from the task alone.
struct Scripted {
    tasks: Vec<Asked>,
    /// How far the ratios of one problem lie apart, in the logarithm.
    spread: fn(&Problem) -> f64,
    answer: Option<fn(&MeasureTask) -> Option<Answer>>,
    /// The user stops the run before the task with this number.
    stop_before: Option<usize>,
    pause: Duration,
    /// From this process of a problem on, a variant computes something wrong.
    wrong_from: Option<usize>,
    /// What the machine is like during the task with a number.
    around: fn(usize) -> Surroundings,
    waited: Vec<Duration>,
}

fn steady(_: &Problem) -> f64 {
    0.001
}

impl Scripted {
    fn new() -> Self {
        Self {
            tasks: Vec::new(),
            spread: steady,
            answer: None,
            stop_before: None,
            pause: Duration::ZERO,
            wrong_from: None,
            around: |_| Surroundings::default(),
            waited: Vec::new(),
        }
    }

    fn begin(&mut self, asked: Asked) -> Result<(), NoAnswer> {
        if self.stop_before == Some(self.tasks.len()) {
            return Err(NoAnswer::Stopped);
        }
        self.tasks.push(asked);
        std::thread::sleep(self.pause);
        Ok(())
    }

    fn measured(&self) -> Vec<(Problem, Comparison)> {
        let measured = self.tasks.iter().filter_map(|task| match task {
            Asked::Measure(task) => Some((task.subject.problem, task.subject.comparison)),
            _ => None,
        });
        measured.collect()
    }
}

impl Workers for Scripted {
    fn ceilings(
        &mut self,
        _: CeilingsTask,
        _: Option<Duration>,
    ) -> Result<Option<CeilingsReport>, NoAnswer> {
        self.begin(Asked::Ceilings)?;
        let calls = self.tasks.len() as f64;
        let point = BandwidthPoint {
            working_set_bytes: 1 << 20,
            gb_per_s: 10.0 / calls,
            nontemporal_gb_per_s: Some(calls),
            read_gb_per_s: None,
        };
        let (peak_gflops, bandwidth) = (100.0 - calls, vec![point]);
        let ceilings = Ceilings { peak_gflops, launch_us: calls, bandwidth };
        let surroundings = (self.around)(self.tasks.len());
        Ok(Some(CeilingsReport { ceilings, surroundings }))
    }

    fn wait(&mut self, time: Duration, _: &Stop) {
        self.waited.push(time);
    }

    fn measure(&mut self, measure: MeasureTask, _: Option<Duration>) -> Answer {
        self.begin(Asked::Measure(Box::new(measure.clone())))?;
        if let Some(answer) = self.answer.and_then(|answer| answer(&measure)) {
            return answer;
        }
        let is_same = |(problem, what): &&(Problem, Comparison)| {
            *problem == measure.subject.problem && *what == Comparison::UnfusedFused
        };
        let earlier = self.measured().iter().filter(is_same).count();
        if self.wrong_from.is_some_and(|from| earlier > from) {
            // A result that is off can only be made by a worker's report.
            let wrong = serde_json::from_str(r#""the fused variant is off by 3""#).unwrap();
            return Ok(MeasureAnswer::Wrong(wrong));
        }
        let share = (measure.process_seed % 1000) as f64 / 1000.0 - 0.5;
        let ratio = ((self.spread)(&measure.subject.problem) * share).exp();
        let pair = |order| Pair { seconds: [ratio * 1e-3, 1e-3], order, causes: Vec::new() };
        let round = || Round { pairs: vec![pair(Order::FirstSecond), pair(Order::SecondFirst)] };
        Ok(MeasureAnswer::Measured(Box::new(ProcessReport {
            samples: Samples {
                rounds: (0..measure.procedure.rounds).map(|_| round()).collect(),
                iterations: [1, 1],
                ticks: 10_000,
                back_to_back: 0.0,
                observable: Vec::new(),
                sensors: None,
            },
            kernels: [vec!["add".to_owned(), "relu".to_owned()], vec!["add+relu".to_owned()]],
            verification: Verification {
                reference_rows: 1,
                rows: 1,
                unfused_error: 0.0,
                fused_error: 0.0,
                tolerance: 1.0,
            },
            outputs: None,
            wrong_after: None,
            pinned: true,
            processors: vec![0],
            huge_page_share: None,
            steps: match measure.subject.comparison {
                Comparison::UnfusedFused => vec![0.6e-3, 0.3e-3],
                _ => Vec::new(),
            },
            scratch_bytes: [64, 128],
            gpu_kernels: Default::default(),
            surroundings: (self.around)(self.tasks.len()),
        })))
    }
}

/// What was measured of a control stays when its next process fails, however disturbed it was.
#[test]
fn a_control_that_fails_keeps_its_processes() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let answer = |task: &MeasureTask| {
        if task.subject.problem.to_string() != "add_relu/f32/m64.n1024" {
            return None;
        }
        match ASKED.fetch_add(1, Ordering::Relaxed) {
            // The first process and both times that it is made again.
            0..3 => disturbed(task),
            _ => Some(Err(NoAnswer::Failed("its process was ended by signal 9".to_owned()))),
        }
    };
    let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(1));
    assert_eq!(outcome.controls[0].processes.len(), 1);
    assert_eq!(ASKED.load(Ordering::Relaxed), 4, "a failure is not tried again");
}

fn subjects(count: u64) -> Vec<Subject> {
    let problem = |m| format!("add_relu/f32/m{m}.n8").parse().unwrap();
    (1..=count).map(|m| Subject::fusion(problem(m))).collect()
}

const SETTINGS: RunSettings = RunSettings {
    procedure: Procedure::STANDARD,
    backend: Backend::Cpu,
    threads: 1,
    cache: CacheState::Warm,
    l2_bytes: None,
    seed: 1,
    spread: Duration::ZERO,
    forced: false,
    time_budget: None,
};

fn run(workers: &mut Scripted, settings: RunSettings, subjects: &[Subject]) -> Outcome {
    let stop = Stop::default();
    Session::new(workers, settings, subjects, &stop).unwrap().run().unwrap()
}

fn processes(measured: &[Measured]) -> Vec<usize> {
    measured.iter().map(|measured| measured.processes.len()).collect()
}

#[test]
fn each_pass_makes_one_process_of_everything() {
    let mut workers = Scripted::new();
    let subjects = subjects(3);
    let outcome = run(&mut workers, SETTINGS, &subjects);
    assert_eq!(outcome.end, RunEnd::Complete);
    assert_eq!(processes(&outcome.measured), [10, 10, 10]);
    assert!(outcome.measured.iter().all(|measured| measured.state == State::Finished));
    // Two controls and three problems in each pass.
    let measured = workers.measured();
    assert_eq!(measured.len(), 10 * 5);
    for pass in measured.chunks(5) {
        let mut problems: Vec<String> = pass.iter().map(|(one, _)| one.to_string()).collect();
        problems.sort();
        problems.dedup();
        assert_eq!(problems.len(), 5);
        let controls = pass.iter().filter(|(_, what)| *what == Comparison::UnfusedCopy);
        assert_eq!(controls.count(), 2);
    }
    assert_eq!(outcome.noise.len(), 2);
    assert!(outcome.noise.iter().all(|noise| noise.processes == 10 && noise.own_tensors));
}

#[test]
fn every_process_has_a_seed_of_its_own_and_every_problem_the_same_inputs() {
    let mut workers = Scripted::new();
    let _ = run(&mut workers, SETTINGS, &subjects(3));
    let mut process_seeds = Vec::new();
    let mut inputs = Vec::new();
    for task in &workers.tasks {
        let Asked::Measure(task) = task else { continue };
        process_seeds.push(task.process_seed);
        inputs.push((task.subject.problem.to_string(), task.input_seed));
    }
    let count = process_seeds.len();
    process_seeds.sort_unstable();
    process_seeds.dedup();
    assert_eq!(process_seeds.len(), count);
    inputs.sort();
    inputs.dedup();
    assert_eq!(inputs.len(), 5, "one per problem and control");
    let mut again = Scripted::new();
    let _ = run(&mut again, SETTINGS, &subjects(3));
    assert_eq!(again.tasks, workers.tasks);
    let mut other = Scripted::new();
    let _ = run(&mut other, RunSettings { seed: 2, ..SETTINGS }, &subjects(3));
    assert_ne!(other.tasks, workers.tasks);
}

#[test]
fn what_is_undecided_gets_more_processes_and_nothing_else_does() {
    let wide = |problem: &Problem| if problem.to_string().contains("m2.") { 0.5 } else { 0.001 };
    let mut workers = Scripted { spread: wide, ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(3));
    assert_eq!(processes(&outcome.measured), [10, 20, 10]);
    assert_eq!(outcome.end, RunEnd::Complete);
    // The controls go on as the yardstick of what goes on.
    assert!(outcome.noise.iter().all(|noise| noise.processes == 20));
}

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
    let context = Context::of(&SETTINGS, &outcome, &[]);
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

fn records_of(outcome: &Outcome) -> Vec<FusionRecord> {
    let of = |measured: &Measured| {
        let Measured { subject, processes, estimate, .. } = measured;
        let context = Context::of(&SETTINGS, outcome, &[]);
        record(subject, processes, estimate.as_ref().unwrap(), &context)
    };
    outcome.measured.iter().map(of).collect()
}

fn single(text: &str) -> Subject {
    Subject::fusion(text.parse().unwrap())
}

/// Between its copies nothing is decided, so that it gets no more processes however wide the ratio.
#[test]
fn a_single_op_is_measured_against_its_copy_in_the_planned_processes() {
    let wide = |problem: &Problem| if problem.chain().is_single() { 0.3 } else { 0.001 };
    let mut workers = Scripted { spread: wide, ..Scripted::new() };
    let all = [subjects(1), vec![single("relu/f32/m3.n8"), single("softmax/f32/m3.n8")]].concat();
    let outcome = run(&mut workers, SETTINGS, &all);
    assert_eq!(processes(&outcome.measured), [10, 10, 10]);
    let asked = workers.measured();
    let of_single = asked.iter().filter(|(problem, _)| problem.chain().is_single());
    assert!(of_single.clone().all(|(_, what)| *what == Comparison::UnfusedCopy));
    assert_eq!(of_single.count(), 20);
    // They are A/A runs like the two that every run begins with.
    let noise: Vec<String> = outcome.noise.iter().map(|one| one.problem.to_string()).collect();
    assert_eq!(noise[2..], ["relu/f32/m3.n8", "softmax/f32/m3.n8"]);
    let records = records_of(&outcome);
    assert_eq!(records[0].verdict, Verdict::Same);
    for record in &records[1..] {
        assert_eq!(record.verdict, Verdict::Single, "{:?}", record.reasons);
        let FusionRecord { speedup_factor, speedup_low, speedup_high, .. } = *record;
        assert_eq!([speedup_factor, speedup_low, speedup_high], [1.0; 3]);
        assert_eq!(record.unfused_latency_ms, record.fused_latency_ms);
        let [unfused, fused] = [&record.unfused_timing, &record.fused_timing];
        assert_eq!(unfused, fused);
        assert_eq!(unfused.process_ms.len(), 10);
        assert!(unfused.low_ms.unwrap() < record.unfused_latency_ms);
        assert_eq!((record.ceiling_speedup, record.memory_reduction), (Some(1.0), 0.0));
        assert!(record.steps.is_empty() && record.by_state.is_empty());
    }
}

/// One whose copies differ says nothing, and spoils no other record.
#[test]
fn a_single_op_with_unequal_copies_is_invalid_by_itself() {
    let answer = |task: &MeasureTask| {
        let answer = Scripted::new().measure(task.clone(), None);
        let Ok(MeasureAnswer::Measured(mut report)) = answer else { return None };
        if task.subject.problem.chain().is_single() {
            let pairs = report.samples.rounds.iter_mut().flat_map(|round| &mut round.pairs);
            pairs.for_each(|pair| pair.seconds[0] *= 1.2);
        }
        Some(Ok(MeasureAnswer::Measured(report)))
    };
    let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
    let all = [subjects(1), vec![single("relu/f32/m3.n8")]].concat();
    let records = records_of(&run(&mut workers, SETTINGS, &all));
    assert_ne!(records[0].verdict, Verdict::Invalid, "{:?}", records[0].reasons);
    assert_eq!(records[1].verdict, Verdict::Invalid);
    assert_eq!(records[1].reasons[0].code.name(), "control-off");
}

#[test]
fn the_steps_of_the_unfused_variant_are_medians_over_processes() {
    let answer = |task: &MeasureTask| {
        let answer = Scripted::new().measure(task.clone(), None);
        let Ok(MeasureAnswer::Measured(mut report)) = answer else { return None };
        let late = (task.process_seed % 7) as f64 * 1e-6;
        report.steps.iter_mut().for_each(|seconds| *seconds += late);
        Some(Ok(MeasureAnswer::Measured(report)))
    };
    let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(1));
    let record = &records_of(&outcome)[0];
    let [add, relu] = &record.steps[..] else { panic!("{:?}", record.steps) };
    assert_eq!([&add.op[..], &relu.op], ["add", "relu"]);
    for (step, least) in [(add, 0.6), (relu, 0.3)] {
        let (low, high) = (step.low_ms.unwrap(), step.high_ms.unwrap());
        assert!(least <= low && low <= step.ms && step.ms <= high && high <= least + 0.006);
    }
    let outside = 1.0 - (add.ms + relu.ms) / record.unfused_latency_ms;
    assert!((record.share_outside_steps.unwrap() - outside).abs() < 1e-5);
    assert_eq!((record.unfused_scratch_bytes, record.fused_scratch_bytes), (Some(64), Some(128)));
    let quick = RunSettings { procedure: Procedure::QUICK, ..SETTINGS };
    let outcome = run(&mut Scripted::new(), quick, &subjects(1));
    let record = &records_of(&outcome)[0];
    assert_eq!((record.steps[0].ms, record.steps[0].low_ms), (0.6, None), "too few processes");
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

#[test]
fn passes_of_a_short_run_are_spread_over_time() {
    let mut workers = Scripted::new();
    let spread = Duration::from_secs(90);
    let _ = run(&mut workers, RunSettings { spread, ..SETTINGS }, &subjects(1));
    // Nothing takes any time here, so each pass waits until its own time since the start.
    assert_eq!(workers.waited.len(), 9);
    for (waited, pass) in workers.waited.iter().zip(1..) {
        let until = Duration::from_secs(10 * pass);
        assert!(*waited <= until && *waited + Duration::from_secs(5) > until, "{waited:?}");
    }
    let mut hurried = Scripted::new();
    let _ = run(&mut hurried, SETTINGS, &subjects(1));
    assert!(hurried.waited.is_empty());
    // Nor is there a wait beyond the time that the whole run has.
    let settings = RunSettings { spread, time_budget: Some(Duration::from_secs(25)), ..SETTINGS };
    let mut short = Scripted::new();
    assert_eq!(run(&mut short, settings, &subjects(1)).end, RunEnd::TimeBudget);
    assert_eq!(short.waited.len(), 2);
}

/// All pairs of a process disturbed.
fn disturbed(task: &MeasureTask) -> Option<Answer> {
    let answer = Scripted::new().measure(task.clone(), None);
    let Ok(MeasureAnswer::Measured(mut report)) = answer else { return None };
    let pairs = report.samples.rounds.iter_mut().flat_map(|round| &mut round.pairs);
    pairs.for_each(|pair| pair.causes = vec![Cause::Steal]);
    Some(Ok(MeasureAnswer::Measured(report)))
}

#[test]
fn a_run_in_which_everything_is_disturbed_ends_after_its_first_pass() {
    let mut workers = Scripted { answer: Some(disturbed), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(3));
    assert_eq!((outcome.end, processes(&outcome.measured)), (RunEnd::Disturbed, vec![1, 1, 1]));
    // Unless the user wants it so, or something was undisturbed.
    let mut forced = Scripted { answer: Some(disturbed), ..Scripted::new() };
    let outcome = run(&mut forced, RunSettings { forced: true, ..SETTINGS }, &subjects(1));
    assert_eq!(outcome.end, RunEnd::Complete);
    let but_one = |task: &MeasureTask| {
        let is_spared = task.subject.problem.to_string().contains("m2.");
        if is_spared { None } else { disturbed(task) }
    };
    let mut workers = Scripted { answer: Some(but_one), ..Scripted::new() };
    assert_eq!(run(&mut workers, SETTINGS, &subjects(3)).end, RunEnd::Complete);
}

#[test]
fn a_disturbed_process_of_a_control_is_made_again() {
    // The third pass finds the machine busy, and the next process of the same control does not.
    let busy = |task: &MeasureTask| {
        let is_hit = task.process_seed % 8 == 1 && task.subject.comparison.has_copy();
        if is_hit { disturbed(task) } else { None }
    };
    let mut workers = Scripted { answer: Some(busy), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(1));
    let made = workers.measured().iter().filter(|(_, what)| what.has_copy()).count();
    assert!(made > 20, "{made} processes of two controls in ten passes");
    for control in &outcome.controls {
        let disturbed = control.processes.iter().filter(|one| one.samples.is_mostly_disturbed());
        assert_eq!((control.processes.len(), disturbed.count()), (10, 0));
    }
}

#[test]
fn one_problem_that_fails_costs_only_itself() {
    let answer = |task: &MeasureTask| match task.subject.problem.to_string() {
        name if name.contains("m2.") => {
            Some(Err(NoAnswer::Failed("its process was ended by signal 11".to_owned())))
        }
        name if name.contains("m3.") => Some(Ok(MeasureAnswer::NoKernels)),
        _ => None,
    };
    let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(4));
    assert_eq!(processes(&outcome.measured), [10, 0, 0, 10]);
    let states: Vec<&State> = outcome.measured.iter().map(|measured| &measured.state).collect();
    assert!(matches!(states[1], State::Failed(reason) if reason.contains("signal 11")));
    assert_eq!(*states[2], State::NoKernels);
    assert_eq!(outcome.end, RunEnd::Complete);
}

/// As when the system ends a process for its memory, or somebody sends it a signal.
#[test]
fn a_process_that_crashes_is_tried_once_more() {
    static CRASHES: AtomicUsize = AtomicUsize::new(0);
    let answer = |task: &MeasureTask| {
        let crash = || Some(Err(NoAnswer::Crashed("it was ended by signal 9".to_owned())));
        match task.subject.problem.to_string() {
            name if name.contains("m2.") => crash(),
            name if name.contains("m3.") && CRASHES.fetch_add(1, Ordering::Relaxed) == 4 => crash(),
            _ => None,
        }
    };
    let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(4));
    assert_eq!(processes(&outcome.measured), [10, 0, 10, 10]);
    assert_eq!(CRASHES.load(Ordering::Relaxed), 11);
    let of_second = |task: &&Asked| match task {
        Asked::Measure(task) => task.subject.problem.to_string().contains("m2."),
        _ => false,
    };
    assert_eq!(workers.tasks.iter().filter(of_second).count(), 2);
    let state = &outcome.measured[1].state;
    assert!(matches!(state, State::Failed(reason) if reason.contains("signal 9")), "{state:?}");
}

#[test]
fn the_time_budget_ends_the_run_between_processes() {
    let pause = Duration::from_millis(5);
    let mut workers = Scripted { pause, ..Scripted::new() };
    let time_budget = Some(pause * 8);
    let outcome = run(&mut workers, RunSettings { time_budget, ..SETTINGS }, &subjects(20));
    assert_eq!(outcome.end, RunEnd::TimeBudget);
    assert!((1..=8).contains(&workers.tasks.len()), "{}", workers.tasks.len());
    assert!(outcome.measured.iter().any(|measured| measured.processes.is_empty()));
    assert!(outcome.measured.iter().all(|measured| measured.state == State::Unfinished));
}

fn key() -> RunKey {
    let example = include_str!("../../tests/data/example.toml");
    RunKey {
        tool_version: "1".to_owned(),
        program: "0".to_owned(),
        fingerprint: HardwareCalibration::from_toml(example).unwrap().fingerprint,
        device: Device::cpu(1, true),
        cache: CacheState::Warm,
        procedure: Procedure::STANDARD,
    }
}

/// Wherever a run ends, going on from its journal leads to the same result as never ending, and
/// no process is made twice.
#[test]
fn a_run_that_goes_on_makes_every_process_once() {
    let subjects = subjects(3);
    let mut whole = Scripted::new();
    let expected = run(&mut whole, SETTINGS, &subjects);
    for end in 0..whole.tasks.len() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        let part = |workers: &mut Scripted| {
            let (journal, recovered) = Journal::open(&path, &key(), Seed::Given(1)).unwrap();
            let stop = Stop::default();
            let session = Session::new(workers, SETTINGS, &subjects, &stop).unwrap();
            session.with_journal(journal, recovered.entries).run().unwrap()
        };
        let mut first = Scripted { stop_before: Some(end), ..Scripted::new() };
        assert_eq!(part(&mut first).end, RunEnd::Interrupted);
        let mut second = Scripted::new();
        let outcome = part(&mut second);
        assert_eq!(outcome.end, RunEnd::Complete);
        assert!(outcome.left_over.is_empty());
        assert_eq!(first.tasks.len() + second.tasks.len(), whole.tasks.len(), "ended at {end}");
        assert_eq!([first.tasks, second.tasks].concat(), whole.tasks);
        let results = |outcome: &Outcome| -> Vec<_> {
            let all = outcome.measured.iter();
            all.map(|measured| (measured.processes.clone(), measured.estimate.clone())).collect()
        };
        assert_eq!(results(&outcome), results(&expected));
        assert_eq!(outcome.noise, expected.noise);
    }
}

#[test]
fn launches_of_other_problems_stay_in_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    for (count, left_over) in [(3, 0), (1, 20)] {
        let (journal, recovered) = Journal::open(&path, &key(), Seed::Given(1)).unwrap();
        let stop = Stop::default();
        let (mut workers, subjects) = (Scripted::new(), subjects(count));
        let session = Session::new(&mut workers, SETTINGS, &subjects, &stop).unwrap();
        let outcome = session.with_journal(journal, recovered.entries).run().unwrap();
        assert_eq!((outcome.end, outcome.left_over.len()), (RunEnd::Complete, left_over));
    }
    let (_, recovered) = Journal::open(&path, &key(), Seed::Given(1)).unwrap();
    let is_process = |entry: &&Entry| matches!(entry, Entry::Process { .. });
    assert_eq!(recovered.entries.iter().filter(is_process).count(), 5 * 10);
}

/// From disturbed samples to an INVALID record that says why.
#[test]
fn a_record_of_disturbed_samples_is_invalid_and_says_why() {
    let disturbed = |task: &MeasureTask| {
        let answer = Scripted::new().measure(task.clone(), None);
        let Ok(MeasureAnswer::Measured(mut report)) = answer else { return None };
        report.samples.observable = vec![Cause::Migration, Cause::Steal];
        if task.subject.comparison == Comparison::UnfusedFused {
            // In five of eight rounds.
            for round in report.samples.rounds.iter_mut().take(5) {
                round.pairs.iter_mut().for_each(|pair| pair.causes = vec![Cause::Migration]);
            }
        }
        Some(Ok(MeasureAnswer::Measured(report)))
    };
    let mut workers = Scripted { answer: Some(disturbed), ..Scripted::new() };
    let procedure = Procedure::STANDARD.with(Some(5), Some(8));
    let settings = RunSettings { procedure, ..SETTINGS };
    let outcome = run(&mut workers, settings, &subjects(1));
    let context = Context::of(&settings, &outcome, &[]);
    let Measured { subject, processes, estimate, .. } = &outcome.measured[0];
    let record = record(subject, processes, estimate.as_ref().unwrap(), &context);
    assert_eq!(record.verdict, Verdict::Invalid);
    assert_eq!((record.pairs, record.pairs_kept), (80, 30));
    assert_eq!((record.disturbed.migration, record.disturbed.steal), (Some(50), Some(0)));
    assert_eq!(record.disturbed.page_fault, None);
    let codes: Vec<&str> = record.reasons.iter().map(|reason| reason.code.name()).collect();
    assert_eq!(codes, ["mostly-disturbed", "unobserved"]);
    assert!(record.reasons[0].text.contains("only 30 of 80 pairs were undisturbed (migration 50)"));
}

/// What is wrong once stays wrong, whatever was measured before and however noisy the machine
/// becomes.
#[test]
fn a_variant_that_turns_wrong_is_never_finished() {
    let wide = |problem: &Problem| if problem.to_string().contains("m1.") { 0.5 } else { 0.001 };
    let mut workers = Scripted { spread: wide, wrong_from: Some(10), ..Scripted::new() };
    let outcome = run(&mut workers, SETTINGS, &subjects(1));
    assert_eq!(processes(&outcome.measured), [10]);
    assert!(matches!(&outcome.measured[0].state, State::Wrong(reason) if reason.contains("off")));

    // Nor is it forgotten when the run goes on.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.journal");
    for wrong_from in [Some(10), None] {
        let mut workers = Scripted { spread: wide, wrong_from, ..Scripted::new() };
        let (journal, recovered) = Journal::open(&path, &key(), Seed::Given(1)).unwrap();
        let (stop, subjects) = (Stop::default(), subjects(1));
        let session = Session::new(&mut workers, SETTINGS, &subjects, &stop).unwrap();
        let outcome = session.with_journal(journal, recovered.entries).run().unwrap();
        assert!(matches!(outcome.measured[0].state, State::Wrong(_)));
    }
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
    let context = Context::of(&settings, &outcome, &[]);
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

/// Without an A/A run there is no noise floor, and without it no verdict; one of them suffices.
#[test]
fn failed_controls_make_every_record_invalid() {
    let one: fn(&MeasureTask) -> Option<Answer> = |task| {
        let fails = task.subject.problem.to_string() == "add_relu/f32/m4096.n1024";
        fails.then(|| Err(NoAnswer::Failed("its process was ended by signal 9".to_owned())))
    };
    let both: fn(&MeasureTask) -> Option<Answer> = |task| {
        let fails = task.subject.comparison.has_copy();
        fails.then(|| Err(NoAnswer::Failed("its process was ended by signal 9".to_owned())))
    };
    for (answer, usable) in [(one, 1), (both, 0)] {
        let mut workers = Scripted { answer: Some(answer), ..Scripted::new() };
        let outcome = run(&mut workers, SETTINGS, &subjects(1));
        assert_eq!((outcome.end, outcome.noise.len()), (RunEnd::Complete, usable));
        assert!(matches!(outcome.controls[1].state, State::Failed(_)));
        let context = Context::of(&SETTINGS, &outcome, &[]);
        let Measured { subject, processes, estimate, .. } = &outcome.measured[0];
        let record = record(subject, processes, estimate.as_ref().unwrap(), &context);
        assert_eq!(record.verdict == Verdict::Invalid, usable == 0, "{:?}", record.reasons);
        let named = record.reasons.iter().any(|reason| reason.code.name() == "no-control");
        assert_eq!(named, usable == 0);
    }
}

/// What a log says of a run: never more problems than there are, and no time left before it is
/// known.
#[test]
fn a_log_says_how_far_a_run_is() {
    let wide = |problem: &Problem| if problem.to_string().contains("m2.") { 0.5 } else { 0.001 };
    let answer = |task: &MeasureTask| match task.subject.problem.to_string() {
        name if name.contains("m3.") || name.contains("m4096.") => {
            Some(Err(NoAnswer::Failed("its process was ended by signal 11".to_owned())))
        }
        _ => None,
    };
    let mut workers = Scripted { spread: wide, answer: Some(answer), ..Scripted::new() };
    let (mut log, stop, subjects) = (Vec::new(), Stop::default(), subjects(4));
    let session = Session::new(&mut workers, SETTINGS, &subjects, &stop).unwrap();
    session.observed_by(Progress::log(&mut log)).run().unwrap();
    insta::assert_snapshot!("progress_log", String::from_utf8(log).unwrap());
}
