//! Machines that are scripts: whole runs on them must find the truth that the script knows.

use std::time::Duration;

use fused_kernels::{BackendError, Prepared, ThreadCounters, Variant};
use fusion_cost_model::calibration::{RunEnd, Verification};
use fusion_cost_model::{Backend, CacheState, Clock, Problem};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal, Pareto};
use serde::Serialize;

use super::{Answer, LEAST_COVERAGE, share};
use crate::measure::{Instruments, Procedure, Reading, Watch, measure};
use crate::plan::Subject;
use crate::run::{Outcome, RunSettings, Session, State};
use crate::stop::Stop;
use crate::worker::{
    CeilingsReport, CeilingsTask, MeasureAnswer, MeasureTask, NoAnswer, ProcessReport, Workers,
};

/// What is wrong with a scripted machine, in addition to the noise that all of them have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// Its speed swings by 30 % within seconds.
    Drift,
    /// One run in twenty takes far longer, and nothing shows why.
    Spikes,
    /// The second sample of a pair takes 5 % longer.
    PositionBias,
    /// The placement of the tensors moves each variant by 10 %.
    LayoutEffect,
    /// The clock rate drops by 30 % and comes back, every few seconds.
    ClockStep,
    /// Each process is faster or slower by 2 %, differently for each variant.
    ProcessEffect,
    /// The system takes the processor away during one run in ten, which its counters show; the
    /// second sample of a pair takes 5 % longer.
    Preemption,
}

impl Disturbance {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Drift,
        Self::Spikes,
        Self::PositionBias,
        Self::LayoutEffect,
        Self::ClockStep,
        Self::ProcessEffect,
        Self::Preemption,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drift => "drift",
            Self::Spikes => "spikes",
            Self::PositionBias => "position bias",
            Self::LayoutEffect => "layout effect",
            Self::ClockStep => "clock step",
            Self::ProcessEffect => "process effect",
            Self::Preemption => "preemption",
        }
    }
}

/// What the runs on machines with one disturbance gave.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulated {
    /// What was wrong with the machines.
    pub disturbance: Disturbance,
    /// Simulated calibrations of one problem.
    pub calibrations: usize,
    /// Those whose 95 % interval contained the truth.
    pub contained: usize,
    /// Half the width of the intervals, in the logarithm, in the mean.
    pub half_width: f64,
    /// Processes per problem, in the mean.
    pub processes: f64,
    /// Share of the pairs that were dropped, in the mean.
    pub dropped: f64,
    /// Whether the user stopped it before all were made.
    pub interrupted: bool,
}

impl Simulated {
    /// Whether the intervals keep their promise.
    #[must_use]
    pub fn answer(&self) -> Answer {
        if self.interrupted {
            return Answer::Undecided;
        }
        Answer::of_share(self.contained, self.calibrations, LEAST_COVERAGE)
    }
}

/// The true speedups, in turn.
const TRUTHS: [f64; 4] = [1.0, 1.25, 0.8, 2.5];

/// Problems in one run: as many share its A/A runs.
const PROBLEMS_PER_RUN: usize = 100;

/// Calibrates scripted machines until `calibrations` problems are measured.
///
/// # Errors
///
/// Never; the scripted machine does not fail.
pub fn simulate(
    disturbance: Disturbance,
    calibrations: u32,
    procedure: Procedure,
    seed: u64,
    stop: &Stop,
) -> anyhow::Result<Simulated> {
    let mut result = Simulated {
        disturbance,
        calibrations: 0,
        contained: 0,
        half_width: 0.0,
        processes: 0.0,
        dropped: 0.0,
        interrupted: false,
    };
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for first in (0..calibrations).step_by(PROBLEMS_PER_RUN) {
        let numbers = first..calibrations.min(first + PROBLEMS_PER_RUN as u32);
        let subjects: Vec<Subject> = numbers.map(subject).collect::<anyhow::Result<_>>()?;
        let settings = RunSettings {
            procedure,
            backend: Backend::Cpu,
            threads: 1,
            cache: CacheState::Warm,
            l2_bytes: None,
            seed: random.next_u64(),
            spread: Duration::ZERO,
            forced: true,
            time_budget: None,
        };
        let mut machine = Machine { disturbance, now: 0.0 };
        let outcome = Session::new(&mut machine, settings, &subjects, stop)?.run()?;
        count(&outcome, &mut result);
    }
    let count = share(result.calibrations.max(1), 1);
    for sum in [&mut result.half_width, &mut result.processes, &mut result.dropped] {
        *sum /= count;
    }
    Ok(result)
}

/// A problem of its own for every number; the script knows no kernels.
fn subject(number: u32) -> anyhow::Result<Subject> {
    Ok(Subject::fusion(format!("add_relu/f32/m{}.n1", number + 1).parse()?))
}

/// The true speedup of a problem.
fn truth(problem: &Problem) -> f64 {
    let rows = problem.sizes().iter().next().map_or(0, |(_, rows)| rows);
    TRUTHS[rows as usize % TRUTHS.len()]
}

fn count(outcome: &Outcome, result: &mut Simulated) {
    result.interrupted |= outcome.end != RunEnd::Complete;
    let finished = outcome.measured.iter().filter(|one| one.state == State::Finished);
    for measured in finished {
        let Some(estimate) = &measured.estimate else { continue };
        let truth = truth(&measured.subject.problem);
        result.calibrations += 1;
        result.contained += usize::from(estimate.low <= truth && truth <= estimate.high);
        result.half_width += estimate.half_width();
        result.processes += share(estimate.processes, 1);
        result.dropped += 1.0 - share(estimate.pairs_kept, estimate.pairs);
    }
}

/// A machine whose speed is a script.
struct Machine {
    disturbance: Disturbance,
    /// Seconds since it was started.
    now: f64,
}

/// Seconds between two processes: the process starts, and proves its kernels.
const BETWEEN_PROCESSES: f64 = 0.1;

impl Workers for Machine {
    fn ceilings(
        &mut self,
        _: CeilingsTask,
        _: Option<Duration>,
    ) -> Result<Option<CeilingsReport>, NoAnswer> {
        Ok(None)
    }

    fn measure(
        &mut self,
        task: MeasureTask,
        _: Option<Duration>,
    ) -> Result<MeasureAnswer, NoAnswer> {
        self.now += BETWEEN_PROCESSES;
        let mut process = Process::start(self, &task);
        let mut instruments = Instruments {
            watch: &mut Idle,
            clock: Clock::Host,
            tick: Duration::from_nanos(20),
            counters: |prepared| prepared.counters(),
        };
        let variants = task.subject.comparison.variants();
        let seed = task.process_seed;
        let samples = measure(&mut process, variants, &task.procedure, seed, &mut instruments)
            .map_err(|error| NoAnswer::Failed(error.to_string()))?;
        self.now = process.now;
        Ok(MeasureAnswer::Measured(Box::new(ProcessReport {
            samples,
            kernels: Variant::ALL.map(|variant| vec![variant.name().to_owned()]),
            verification: Verification {
                reference_rows: 1,
                rows: 1,
                unfused_error: 0.0,
                fused_error: 0.0,
                tolerance: 1.0,
            },
            wrong_after: None,
            pinned: false,
            processors: Vec::new(),
            huge_page_share: None,
            gpu_kernels: Default::default(),
            surroundings: Default::default(),
        })))
    }
}

/// Nothing on the machine shows what disturbs it.
struct Idle;

impl Watch for Idle {
    fn read(&mut self) -> Reading {
        Reading::default()
    }

    fn processors(&self) -> usize {
        1
    }
}

/// Standard deviations of the logarithm of the time that every machine has.
const RUN_NOISE: f64 = 0.01;
const LAYOUT_NOISE: f64 = 0.01;
const PROCESS_NOISE: f64 = 0.005;

/// A process on a scripted machine.
struct Process {
    disturbance: Disturbance,
    now: f64,
    random: ChaCha8Rng,
    /// Seconds per run of each variant in this process.
    seconds: [f64; 2],
    /// The same factors for each variant in this layout.
    layout: [f64; 2],
    /// Calls of `run` in this layout: an untimed and a timed one for each sample.
    calls: usize,
    /// Times the system took the processor away.
    switches: u64,
}

impl Process {
    fn start(machine: &Machine, task: &MeasureTask) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(task.process_seed);
        random.set_stream(1);
        let deviation = match machine.disturbance {
            Disturbance::ProcessEffect => 0.02,
            _ => PROCESS_NOISE,
        };
        let fused = 100e-6;
        let unfused = fused * truth(&task.subject.problem);
        let seconds = [unfused, fused].map(|time| time * normal(deviation, &mut random).exp());
        let Machine { disturbance, now } = *machine;
        Self { disturbance, now, random, seconds, layout: [1.0; 2], calls: 0, switches: 0 }
    }

    /// How much longer a run takes that begins now.
    fn slowdown(&mut self) -> f64 {
        let is_second_of_pair = self.calls / 2 % 2 == 1;
        match self.disturbance {
            Disturbance::Drift => (0.3 * (self.now * std::f64::consts::TAU / 1.7).sin()).exp(),
            Disturbance::ClockStep if self.now % 3.1 > 2.0 => 1.0 / 0.7,
            Disturbance::Preemption => {
                let bias = if is_second_of_pair { 1.05 } else { 1.0 };
                if self.random.random_bool(0.1) {
                    self.switches += 1;
                    return bias * self.random.random_range(1.0..3.0);
                }
                bias
            }
            Disturbance::PositionBias if is_second_of_pair => 1.05,
            Disturbance::Spikes if self.random.random_bool(0.05) => {
                // A tail so heavy that it has no variance.
                Pareto::new(1.3, 1.5).map_or(2.0, |pareto| pareto.sample(&mut self.random))
            }
            _ => 1.0,
        }
    }
}

/// A draw from the normal distribution around 0.
fn normal(deviation: f64, random: &mut ChaCha8Rng) -> f64 {
    Normal::new(0.0, deviation).map_or(0.0, |normal| normal.sample(random))
}

impl Prepared for Process {
    fn kernels(&self, variant: Variant) -> Vec<String> {
        vec![variant.name().to_owned()]
    }

    fn new_layout(&mut self, seed: u64) -> Result<(), BackendError> {
        let deviation = match self.disturbance {
            Disturbance::LayoutEffect => 0.1,
            _ => LAYOUT_NOISE,
        };
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        self.layout = [0, 1].map(|_| normal(deviation, &mut random).exp());
        self.calls = 0;
        Ok(())
    }

    fn poison(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    fn run(&mut self, variant: Variant, iterations: u32) -> Result<Duration, BackendError> {
        let index = usize::from(variant == Variant::Fused);
        let noise = normal(RUN_NOISE, &mut self.random).exp();
        let once = self.seconds[index] * self.layout[index] * noise * self.slowdown();
        let time = once * f64::from(iterations);
        self.now += time;
        self.calls += 1;
        Ok(Duration::from_secs_f64(time))
    }

    fn output(&mut self) -> Result<Vec<f32>, BackendError> {
        Ok(Vec::new())
    }

    fn counters(&mut self) -> Vec<ThreadCounters> {
        vec![ThreadCounters { involuntary_switches: Some(self.switches), ..Default::default() }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The promise of the procedure, on a thousand calibrations for each disturbance.
    #[test]
    fn the_intervals_contain_the_truth() {
        let mut missed = Vec::new();
        for disturbance in Disturbance::ALL {
            let procedure = Procedure::STANDARD;
            let result = simulate(disturbance, 1000, procedure, 1, &Stop::default()).unwrap();
            assert_eq!(result.calibrations, 1000);
            // Intervals that contain everything would be easy.
            let width = match disturbance {
                Disturbance::LayoutEffect => 0.06,
                Disturbance::ProcessEffect => 0.04,
                _ => 0.02,
            };
            assert!(result.half_width < width, "{result:?}");
            let drops = disturbance == Disturbance::Preemption;
            assert_eq!(result.dropped > 0.2, drops, "{result:?}");
            if result.answer() != Answer::Passed {
                missed.push(result);
            }
        }
        assert_eq!(missed, []);
    }

    /// The simulation can fail: without its safeguards the procedure misses the truth.
    #[test]
    fn a_worse_procedure_is_caught() {
        // One process shows nothing of the spread between processes.
        let within = Procedure { processes: 1, most_processes: 1, ..Procedure::STANDARD };
        let disturbance = Disturbance::ProcessEffect;
        let result = simulate(disturbance, 200, within, 1, &Stop::default()).unwrap();
        assert_eq!(result.answer(), Answer::Failed);
        assert!(result.contained < 140, "{result:?}");
    }

    /// The fewest processes that an interval over processes can have, and slow problems, whose rounds
    /// have a single pair in each order and lose one of them now and then.
    #[test]
    fn fewer_processes_and_pairs_keep_the_promise() {
        let small = Procedure { processes: 3, most_processes: 6, pairs: 2, ..Procedure::STANDARD };
        for disturbance in [Disturbance::Preemption, Disturbance::ProcessEffect] {
            let result = simulate(disturbance, 1000, small, 2, &Stop::default()).unwrap();
            assert_eq!(result.answer(), Answer::Passed, "{result:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_answer() {
        let run = |seed| {
            let procedure = Procedure::QUICK;
            simulate(Disturbance::Spikes, 20, procedure, seed, &Stop::default()).unwrap()
        };
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
    }
}
