//! A process on a scripted machine.

use std::time::Duration;

use fused_kernels::{BackendError, Prepared, ThreadCounters, Variant};
use fusion_cost_model::Problem;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, Pareto};

use super::Disturbance;
use super::machine::Machine;
use super::script::{Rare, States, normal};
use crate::plan::Comparison;
use crate::worker::MeasureTask;

/// The true speedups without any effect, in turn.
const TRUTHS: [f64; 4] = [1.0, 1.25, 0.8, 2.5];

/// Standard deviation of the logarithm of the time of a sample on every machine.
const RUN_NOISE: f64 = 0.01;

/// Times per second of a run that something takes the processor away, and for how long in the mean.
const STOLEN_PER_SECOND: f64 = 20.0;
const STOLEN_SECONDS: f64 = 1e-3;

/// The speedup of a problem without any effect.
pub(super) fn plain_speedup(problem: &Problem) -> f64 {
    TRUTHS[number(problem) % TRUTHS.len()]
}

/// Whether its runs take longer than a sample has to.
fn is_long(problem: &Problem) -> bool {
    number(problem) / TRUTHS.len() % 2 == 1
}

/// The number that a problem of the simulation has.
fn number(problem: &Problem) -> usize {
    problem.sizes().iter().next().map_or(0, |(_, rows)| rows as usize)
}

/// A process on a scripted machine. A variant is a side of the comparison.
pub(super) struct Process<'a> {
    machine: &'a mut Machine,
    random: ChaCha8Rng,
    comparison: Comparison,
    /// Seconds per run of each side in this process.
    seconds: [f64; 2],
    /// The factor of each side in this layout.
    layout: [f64; 2],
    /// Calls of `run` in this layout: an untimed and a timed one for each sample.
    calls: usize,
    /// Times that the system took the processor away.
    switches: u64,
    /// Time that the thread was ready and had to wait, as far as the counters show it.
    waited: Duration,
}

impl<'a> Process<'a> {
    pub(super) fn start(machine: &'a mut Machine, task: &MeasureTask) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(task.process_seed);
        random.set_stream(1);
        let subject = task.subject;
        let correlated = machine.correlated_effect(&subject);
        let comparison = subject.comparison;
        let script = &machine.script;
        let speedup = match comparison {
            Comparison::UnfusedFused => plain_speedup(&subject.problem),
            _ => 1.0,
        };
        let second = script.run_seconds(is_long(&subject.problem));
        let mut seconds = [second * speedup, second];
        for side in [0, 1] {
            let mut effect = normal(script.process_deviation, &mut random);
            if has_effects(comparison, side) {
                let one_sided: f64 = Exp1.sample(&mut random);
                effect += draw(script.processes, &mut random) + script.one_sided * one_sided;
            }
            seconds[side] *= effect.exp();
        }
        seconds[0] *= correlated.exp();
        let (layout, waited) = ([1.0; 2], Duration::ZERO);
        Self { machine, random, comparison, seconds, layout, calls: 0, switches: 0, waited }
    }

    /// How much longer a run takes that begins now.
    fn slowdown(&mut self, side: usize) -> f64 {
        let is_second_of_pair = self.calls / 2 % 2 == 1;
        let now = self.machine.now;
        match self.machine.disturbance {
            Disturbance::Drift => (0.3 * (now * std::f64::consts::TAU / 1.7).sin()).exp(),
            Disturbance::ClockStep if now % 3.1 > 2.0 => 1.0 / 0.7,
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
            // Both sides of an A/A run are the same variant.
            _ if side == 0 && self.comparison == Comparison::UnfusedFused => {
                let state = self.machine.state();
                States::effect(state).exp()
            }
            _ => 1.0,
        }
    }

    /// The time that something takes from a run of this many seconds.
    fn stolen(&mut self, seconds: f64) -> f64 {
        let Some(noticed) = self.machine.script.stolen_noticed else { return 0.0 };
        let exponential = |random: &mut ChaCha8Rng| -> f64 { Exp1.sample(random) };
        let mut stolen = 0.0;
        let mut at = exponential(&mut self.random) / STOLEN_PER_SECOND;
        while at < seconds {
            let time = STOLEN_SECONDS * exponential(&mut self.random);
            stolen += time;
            if self.random.random_bool(noticed) {
                self.waited += Duration::from_secs_f64(time);
            }
            at += exponential(&mut self.random) / STOLEN_PER_SECOND;
        }
        stolen
    }
}

/// Whether a side has the effects that are not the same for both. Both sides of a copy have them, each
/// its own; where a variant is measured against itself in the same memory, it is one side.
fn has_effects(comparison: Comparison, side: usize) -> bool {
    side == 0 || comparison.has_copy()
}

/// What something rare adds to the logarithm this time.
fn draw(rare: Rare, random: &mut ChaCha8Rng) -> f64 {
    if random.random_bool(rare.share) { rare.longer.ln_1p() } else { 0.0 }
}

impl Prepared for Process<'_> {
    fn kernels(&self, variant: Variant) -> Vec<String> {
        vec![variant.name().to_owned()]
    }

    fn new_layout(&mut self, seed: u64) -> Result<(), BackendError> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let script = &self.machine.script;
        for side in [0, 1] {
            let mut effect = normal(script.layout_deviation, &mut random);
            if has_effects(self.comparison, side) {
                effect += draw(script.layouts, &mut random);
            }
            self.layout[side] = effect.exp();
        }
        self.calls = 0;
        Ok(())
    }

    fn poison(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    fn run(&mut self, variant: Variant, iterations: u32) -> Result<Duration, BackendError> {
        let side = usize::from(variant == Variant::Fused);
        let noise = normal(RUN_NOISE, &mut self.random).exp();
        let once = self.seconds[side] * self.layout[side] * noise * self.slowdown(side);
        let undisturbed = once * f64::from(iterations);
        let time = undisturbed + self.stolen(undisturbed);
        self.machine.now += time;
        self.calls += 1;
        Ok(Duration::from_secs_f64(time))
    }

    fn output(&mut self) -> Result<Vec<f32>, BackendError> {
        Ok(Vec::new())
    }

    fn counters(&mut self) -> Vec<ThreadCounters> {
        vec![ThreadCounters {
            involuntary_switches: Some(self.switches),
            run_delay: Some(self.waited),
            ..Default::default()
        }]
    }
}
