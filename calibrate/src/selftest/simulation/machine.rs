//! A machine whose speed is a script.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use fused_kernels::{MachineReading, Variant};
use fusion_cost_model::Clock;
use fusion_cost_model::calibration::Verification;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

use super::Disturbance;
use super::process::{Process, normal};
use super::script::{Script, States};
use crate::measure::{Instruments, Reading, Surroundings, Watch, measure};
use crate::plan::Subject;
use crate::stop::Stop;
use crate::worker::{
    CeilingsReport, CeilingsTask, MeasureAnswer, MeasureTask, NoAnswer, ProcessReport, Workers,
};

/// A machine whose speed is a script.
pub(super) struct Machine {
    pub(super) disturbance: Disturbance,
    pub(super) script: Script,
    /// Seconds since it was started.
    pub(super) now: f64,
    random: ChaCha8Rng,
    /// The state that it is in, and until when.
    state: usize,
    state_ends: f64,
    /// Processes of each subject that began in each state.
    met: HashMap<Subject, [usize; 2]>,
    /// The effect of the last process of each subject, where successive ones are correlated.
    last: HashMap<Subject, f64>,
}

/// What a process takes in a run of many problems, from its start to its end: it starts, proves its
/// kernels, and measures them.
const PROCESS_SECONDS: f64 = 0.5;

/// How long that is before the samples begin.
const BEFORE_SAMPLES: f64 = 0.3;

/// Deviations of what looks at the machine show, in the logarithm. On a virtual machine hand-off
/// times varied by 3 to 10 %.
const HANDOFF_NOISE: f64 = 0.1;
const TRIAD_NOISE: f64 = 0.05;

impl Machine {
    pub(super) fn new(disturbance: Disturbance, seed: u64) -> Self {
        let script = disturbance.script();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(2);
        let share = script.states.map_or(0.0, States::share);
        let state = usize::from(random.random_bool(share));
        let (met, last) = (HashMap::new(), HashMap::new());
        let mut machine =
            Self { disturbance, script, now: 0.0, random, state, state_ends: 0.0, met, last };
        machine.state_ends = machine.draw_dwell();
        machine
    }

    /// How many processes of a subject began in each state.
    pub(super) fn met(&self, subject: &Subject) -> [usize; 2] {
        self.met.get(subject).copied().unwrap_or_default()
    }

    fn draw_dwell(&mut self) -> f64 {
        let dwell: f64 = Exp1.sample(&mut self.random);
        self.script.states.map_or(f64::INFINITY, |states| dwell * states.dwell[self.state])
    }

    pub(super) fn state(&mut self) -> usize {
        while self.now >= self.state_ends {
            self.state = 1 - self.state;
            self.state_ends += self.draw_dwell();
        }
        self.state
    }

    /// What the next process of a subject has in common with the one before.
    pub(super) fn correlated_effect(&mut self, subject: &Subject) -> f64 {
        let Some(correlation) = self.script.correlation else { return 0.0 };
        let fresh = normal(Script::CORRELATED_DEVIATION, &mut self.random);
        let effect = match self.last.get(subject) {
            Some(last) => correlation * last + (1.0 - correlation * correlation).sqrt() * fresh,
            None => fresh,
        };
        self.last.insert(*subject, effect);
        effect
    }

    fn look(&mut self) -> MachineReading {
        let state = self.state();
        let states = self.script.states.unwrap_or(States::of(1.0, false));
        let (handoff_us, triad_gb_per_s) = states.looks[state];
        let mut noise = |deviation| normal(deviation, &mut self.random).exp();
        MachineReading {
            handoff_us: Some(handoff_us * noise(HANDOFF_NOISE)),
            triad_gb_per_s: triad_gb_per_s * noise(TRIAD_NOISE),
        }
    }
}

impl Workers for Machine {
    fn elapsed(&self, _: Instant) -> Duration {
        Duration::from_secs_f64(self.now)
    }

    fn wait(&mut self, time: Duration, _: &Stop) {
        self.now += time.as_secs_f64();
    }

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
        let ends = self.now + PROCESS_SECONDS;
        self.now += BEFORE_SAMPLES;
        let state = self.state();
        self.met.entry(task.subject).or_default()[state] += 1;
        let others_busy = self.script.states.map_or(0.0, |states| states.others_busy[state]);
        let (began_s, before) = (1.0 + self.now, self.look());
        let mut instruments = Instruments {
            watch: &mut Idle,
            clock: Clock::Host,
            tick: Duration::from_nanos(20),
            counters: |prepared| prepared.counters(),
        };
        let comparison = task.subject.comparison;
        // The two sides of a copy are two variants to those who run them.
        let variants = if comparison.has_copy() { Variant::ALL } else { comparison.variants() };
        let mut process = Process::start(self, &task);
        let seed = task.process_seed;
        let samples = measure(&mut process, variants, &task.procedure, seed, &mut instruments)
            .map_err(|error| NoAnswer::Failed(error.to_string()))?;
        let readings = [Some(before), Some(self.look())];
        self.now = self.now.max(ends);
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
            outputs: None,
            wrong_after: None,
            pinned: false,
            processors: Vec::new(),
            huge_page_share: None,
            gpu_kernels: Default::default(),
            surroundings: Surroundings { began_s, readings, others_busy: Some(others_busy) },
        })))
    }
}

/// Nothing that the whole machine counts shows what disturbs it.
struct Idle;

impl Watch for Idle {
    fn read(&mut self) -> Reading {
        Reading::default()
    }

    fn processors(&self) -> usize {
        1
    }
}
