//! A scripted worker: its samples follow from the task alone.

use std::time::Duration;

use calibrate::measure::{Cause, Order, Pair, Procedure, Round, Samples, Surroundings};
use calibrate::plan::{Comparison, Subject};
use calibrate::record::{Context, record};
use calibrate::run::{Measured, Outcome, RunKey, RunSettings, Session};
use calibrate::stop::Stop;
use calibrate::worker::{
    CeilingsReport, CeilingsTask, CoreChoice, Device, MeasureAnswer, MeasureTask, NoAnswer,
    ProcessReport, Workers,
};
use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Verification};
use fusion_cost_model::cost::{BandwidthPoint, Ceilings};
use fusion_cost_model::{Backend, CacheState, Core, Problem};

pub(super) type Answer = Result<MeasureAnswer, NoAnswer>;

/// What a worker was asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Asked {
    Measure(Box<MeasureTask>),
    Ceilings(Option<Core>),
}

/// Processes whose samples follow from the task alone.
pub(super) struct Scripted {
    pub(super) tasks: Vec<Asked>,
    /// How far the ratios of one problem lie apart, in the logarithm.
    pub(super) spread: fn(&Problem) -> f64,
    pub(super) answer: Option<fn(&MeasureTask) -> Option<Answer>>,
    /// Whether the kernels of the ceilings hang on a core in the task with a number.
    pub(super) ceilings_hang: fn(Option<Core>, usize) -> bool,
    /// Whether something holds up the machine while the ceilings are measured in the task with a
    /// number: a launch seems to take longer than any kernel.
    pub(super) ceilings_held_up: fn(usize) -> bool,
    /// The user stops the run before the task with this number.
    pub(super) stop_before: Option<usize>,
    pub(super) pause: Duration,
    /// From this process of a problem on, a variant computes something wrong.
    pub(super) wrong_from: Option<usize>,
    /// What the machine is like during the task with a number.
    pub(super) around: fn(usize) -> Surroundings,
    pub(super) waited: Vec<Duration>,
}

fn steady(_: &Problem) -> f64 {
    0.001
}

impl Scripted {
    pub(super) fn new() -> Self {
        Self {
            tasks: Vec::new(),
            spread: steady,
            answer: None,
            ceilings_hang: |_, _| false,
            ceilings_held_up: |_| false,
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

    pub(super) fn measured(&self) -> Vec<(Problem, Comparison)> {
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
        task: CeilingsTask,
        _: Option<Duration>,
    ) -> Result<Option<CeilingsReport>, NoAnswer> {
        self.begin(Asked::Ceilings(task.core))?;
        if (self.ceilings_hang)(task.core, self.tasks.len()) {
            return Err(NoAnswer::Hung { reason: "hung".to_owned(), in_kernel: true });
        }
        let calls = self.tasks.len() as f64;
        let point = BandwidthPoint {
            working_set_bytes: 1 << 20,
            gb_per_s: 10.0 / calls,
            nontemporal_gb_per_s: Some(calls),
            read_gb_per_s: None,
        };
        let (peak_gflops, bandwidth) = (100.0 - calls, vec![point]);
        let launch_us = if (self.ceilings_held_up)(self.tasks.len()) { 1e6 } else { calls };
        let ceilings = Ceilings { peak_gflops, launch_us, bandwidth };
        let surroundings = (self.around)(self.tasks.len());
        Ok(Some(CeilingsReport { ceilings, surroundings, ladder: Default::default() }))
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
        let pair = |order| Pair {
            seconds: [ratio * 1e-3, 1e-3],
            order,
            causes: Vec::new(),
            clock_changed: [false; 2],
        };
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
                tolerance: Verification::single_precision(&measure.subject.problem),
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
            ladder: Default::default(),
            surroundings: (self.around)(self.tasks.len()),
        })))
    }
}

pub(super) fn subjects(count: u64) -> Vec<Subject> {
    let problem = |m| format!("add_relu/f32/m{m}.n8").parse().unwrap();
    (1..=count).map(|m| Subject::fusion(problem(m))).collect()
}

pub(super) const SETTINGS: RunSettings = RunSettings {
    procedure: Procedure::STANDARD,
    backend: Backend::Cpu,
    threads: 1,
    cache: CacheState::Warm,
    l2_bytes: None,
    seed: 1,
    spread: Duration::ZERO,
    forced: false,
    time_budget: None,
    cores: CoreChoice::None,
};

pub(super) fn run(workers: &mut Scripted, settings: RunSettings, subjects: &[Subject]) -> Outcome {
    let stop = Stop::default();
    Session::new(workers, settings, subjects, &stop).unwrap().run().unwrap()
}

pub(super) fn processes(measured: &[Measured]) -> Vec<usize> {
    measured.iter().map(|measured| measured.processes.len()).collect()
}

pub(super) fn records_of(outcome: &Outcome) -> Vec<FusionRecord> {
    let of = |measured: &Measured| {
        let Measured { subject, processes, estimate, .. } = measured;
        let context = Context::of(&SETTINGS, outcome);
        record(subject, processes, estimate.as_ref().unwrap(), &context)
    };
    outcome.measured.iter().map(of).collect()
}

pub(super) fn single(text: &str) -> Subject {
    Subject::fusion(text.parse().unwrap())
}

/// All pairs of a process disturbed.
pub(super) fn disturbed(task: &MeasureTask) -> Option<Answer> {
    let answer = Scripted::new().measure(task.clone(), None);
    let Ok(MeasureAnswer::Measured(mut report)) = answer else { return None };
    let pairs = report.samples.rounds.iter_mut().flat_map(|round| &mut round.pairs);
    pairs.for_each(|pair| pair.causes = vec![Cause::Steal]);
    Some(Ok(MeasureAnswer::Measured(report)))
}

pub(super) fn key() -> RunKey {
    let example = include_str!("../../../tests/data/example.toml");
    RunKey {
        tool_version: "1".to_owned(),
        program: "0".to_owned(),
        fingerprint: HardwareCalibration::from_toml(example).unwrap().fingerprint,
        device: Device::cpu(1, true),
        cache: CacheState::Warm,
        procedure: Procedure::STANDARD,
    }
}
