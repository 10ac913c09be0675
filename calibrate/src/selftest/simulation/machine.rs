//! The state of a machine that is a script, and what a look at it shows.

use std::collections::HashMap;

use fused_kernels::MachineReading;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

use super::Disturbance;
use super::script::{Script, States, normal};
use crate::plan::Subject;

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

    /// The state that it is in now.
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

    /// Notes that a process of a subject begins, and in which state.
    pub(super) fn begin(&mut self, subject: &Subject) -> usize {
        let state = self.state();
        self.met.entry(*subject).or_default()[state] += 1;
        state
    }

    /// What a look at the machine shows now.
    pub(super) fn look(&mut self) -> MachineReading {
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
