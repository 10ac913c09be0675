//! Machines that are scripts: whole runs on them must find the truth that the script knows.
//!
//! [`Disturbance`] lists what can be wrong with a machine, `script` has the numbers of each, `machine`,
//! `process` and `workers` play them, and [`Simulated`] is what whole runs on them gave.

mod disturbance;
mod machine;
mod process;
mod result;
mod script;
#[cfg(test)]
mod tests;
mod workers;

use fusion_cost_model::calibration::RunEnd;
use fusion_cost_model::{Backend, CacheState};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use disturbance::Disturbance;
pub use result::Simulated;

use super::share;
use crate::judge::LEAST_SPAN;
use crate::measure::Procedure;
use crate::plan::Subject;
use crate::run::{Measured, Outcome, RunSettings, Session, State};
use crate::stop::Stop;
use crate::worker::CoreChoice;
use machine::Machine;
use process::plain_speedup;
use script::States;

/// Problems of a run, large and small: what is found over all of them is weak in a small run, whose
/// processes also lie closer together.
pub const PROBLEMS: [u32; 2] = [100, 4];

/// Whole runs on scripted machines with one disturbance.
#[derive(Debug, Clone, Copy)]
pub struct Simulation {
    /// What is wrong with the machines.
    pub disturbance: Disturbance,
    /// Problems of each run.
    pub problems: u32,
    /// How much is measured.
    pub procedure: Procedure,
    /// Where all random numbers come from.
    pub seed: u64,
}

impl Simulation {
    /// Calibrates scripted machines until `calibrations` problems are measured.
    ///
    /// # Errors
    ///
    /// Never; the scripted machine does not fail.
    pub fn run(&self, calibrations: u32, stop: &Stop) -> anyhow::Result<Simulated> {
        let Self { disturbance, problems, seed, .. } = *self;
        let mut result = Simulated {
            disturbance,
            problems,
            calibrations: 0,
            contained: 0,
            state_changed: 0,
            half_width: 0.0,
            processes: 0.0,
            dropped: 0.0,
            interrupted: false,
        };
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for first in (0..calibrations).step_by(problems as usize) {
            if stop.requested() {
                result.interrupted = true;
                break;
            }
            let numbers = first..calibrations.min(first + problems);
            let subjects: Vec<Subject> = numbers.map(subject).collect::<anyhow::Result<_>>()?;
            let settings = self.settings(random.next_u64());
            let mut machine = Machine::new(disturbance, settings.seed);
            let outcome = Session::new(&mut machine, settings, &subjects, stop)?.run()?;
            count(&outcome, &machine, &mut result);
        }
        let count = share(result.calibrations.max(1), 1);
        for sum in [&mut result.half_width, &mut result.processes, &mut result.dropped] {
            *sum /= count;
        }
        Ok(result)
    }

    fn settings(&self, seed: u64) -> RunSettings {
        RunSettings {
            procedure: self.procedure,
            backend: Backend::Cpu,
            threads: 2,
            cache: CacheState::Warm,
            l2_bytes: None,
            seed,
            spread: LEAST_SPAN,
            forced: true,
            time_budget: None,
            cores: CoreChoice::None,
        }
    }
}

/// A problem of its own for every number; the script knows no kernels.
fn subject(number: u32) -> anyhow::Result<Subject> {
    Ok(Subject::fusion(format!("add_relu/f32/m{}.n1", number + 1).parse()?))
}

fn count(outcome: &Outcome, machine: &Machine, result: &mut Simulated) {
    result.interrupted |= outcome.end != RunEnd::Complete;
    let finished = outcome.measured.iter().filter(|one| one.state == State::Finished);
    for measured in finished {
        let Some(estimate) = &measured.estimate else { continue };
        let is_in = |truth: f64| estimate.low <= truth && truth <= estimate.high;
        result.calibrations += 1;
        result.contained += usize::from(truths(measured, machine).into_iter().all(is_in));
        result.state_changed += usize::from(state_changed(measured));
        result.half_width += estimate.half_width();
        result.processes += share(estimate.processes, 1);
        result.dropped += 1.0 - share(estimate.pairs_kept, estimate.pairs);
    }
}

/// What an interval must contain: the mean over the processes in the long run. Where the machine shows
/// its state, and the record does not say that it changed, that is the truth of every state that its
/// processes met.
fn truths(measured: &Measured, machine: &Machine) -> Vec<f64> {
    let plain = plain_speedup(&measured.subject.problem);
    let script = &machine.script;
    if script.states.is_none_or(|states| !states.are_seen) || state_changed(measured) {
        return vec![plain * script.long_run().exp()];
    }
    let met = machine.met(&measured.subject);
    let states = [0, 1].into_iter().filter(|&state| met[state] > 0);
    states.map(|state| plain * States::effect(state).exp()).collect()
}

/// Whether the record says that the state of the machine changed.
fn state_changed(measured: &Measured) -> bool {
    measured.estimate.as_ref().is_some_and(|estimate| !estimate.by_state.is_empty())
}
