//! A model measured as a whole: ways to run it against each other, by the same procedure as variants
//! of a problem.
//!
//! A [`Session`] makes the passes. Its subjects stand for pairs of ways: what a subject is measured on
//! is the workers' affair.

use std::collections::HashMap;
use std::time::Duration;

use fusion_cost_model::Problem;
use fusion_cost_model::calibration::{Disturbed, MachineState, RunEnd, Verdict};

use super::observer::Observer;
use super::outcome::Outcome;
use super::session::Session;
use super::settings::RunSettings;
use crate::judge::{control, noise_floor, others_busy};
use crate::measure::{Estimate, median};
use crate::plan::workload::{Again, Layer, Way};
use crate::plan::{Comparison, Subject};
use crate::prove::{Proof, nothing_to_prove};
use crate::stop::Stop;
use crate::worker::{
    CeilingsReport, CeilingsTask, MeasureAnswer, MeasureTask, NoAnswer, Processes, SequenceAnswer,
    SequenceTask, Workers,
};

/// A pair of ways that are measured against each other: both the same in an A/A run, whose second side
/// has memory of its own.
pub type Pair = [Way; 2];

/// What was measured of a pair.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredPair {
    /// The ways.
    pub ways: Pair,
    /// The first one's time over the second's, and the times of both.
    pub estimate: Estimate,
    /// What the ratio says.
    pub verdict: Verdict,
    /// How many processors other programs kept busy meanwhile, in the mean; `None` where the system
    /// does not report it.
    pub others_busy: Option<f64>,
}

/// While other programs keep no more processors busy than this, in the mean, they are small services of
/// the system.
const MOST_SERVICES_BUSY: f64 = 0.05;

/// What was measured of a model.
#[derive(Debug)]
pub struct MeasuredWorkload {
    /// The pairs that were asked for, in their order.
    pub pairs: Vec<MeasuredPair>,
    /// How far from 1 a ratio must be to count, as a ratio minus 1: from the A/A run of the whole model
    /// and those of single problems.
    pub noise_floor: f64,
    /// Problems that were measured again, each alone: none that other programs disturbed too much.
    pub again: Vec<(Again, Estimate)>,
    /// Seconds of each layer of each way in its place, the medians over processes.
    pub layer_seconds: HashMap<Way, Vec<f64>>,
    /// How far the results of two ways were apart at most, over their size.
    pub apart: f64,
    /// Different problems whose kernels were proved right.
    pub proved: usize,
    /// The states that the machine was in.
    pub states: Vec<MachineState>,
    /// How it ended.
    pub end: RunEnd,
}

/// Workers that run sequences of layers for the subjects that stand for pairs of ways.
struct SequenceWorkers<'w, 'p> {
    processes: &'w mut Processes<'p>,
    ways: &'w HashMap<Way, Vec<Layer>>,
    pairs: &'w [Pair],
    /// What is proved of each problem.
    proofs: HashMap<Problem, Proof>,
    /// Of each way, what each process measured of its layers.
    layer_seconds: HashMap<Way, Vec<Vec<f64>>>,
    apart: f64,
}

impl SequenceWorkers<'_, '_> {
    fn task(&self, ways: Pair, of: &MeasureTask) -> SequenceTask {
        let side = |way: Way| self.ways.get(&way).cloned().unwrap_or_default();
        let mut task = SequenceTask {
            sides: ways.map(side),
            procedure: of.procedure,
            input_seed: of.input_seed,
            process_seed: of.process_seed,
            reference_budget: of.reference_budget,
            proved: Vec::new(),
        };
        let known = |problem: Problem| Some((problem, *self.proofs.get(&problem)?));
        task.proved = task.problems().into_iter().filter_map(known).collect();
        task
    }
}

impl Workers for SequenceWorkers<'_, '_> {
    fn measure(
        &mut self,
        task: MeasureTask,
        time_left: Option<Duration>,
    ) -> Result<MeasureAnswer, NoAnswer> {
        // The controls of the session have the number 0.
        let Some(number) = task.subject.repetition.checked_sub(1) else {
            return self.processes.measure(task, time_left);
        };
        let Some(&ways) = self.pairs.get(number as usize) else {
            return Ok(MeasureAnswer::NoKernels);
        };
        match self.processes.sequences(self.task(ways, &task), time_left)? {
            SequenceAnswer::Measured(report) => {
                for (way, seconds) in ways.into_iter().zip(report.layer_seconds) {
                    self.layer_seconds.entry(way).or_default().push(seconds);
                }
                self.proofs.extend(report.proofs);
                self.apart = self.apart.max(report.apart);
                Ok(MeasureAnswer::Measured(Box::new(report.report)))
            }
            SequenceAnswer::Wrong(reason) => {
                Err(NoAnswer::Failed(format!("wrong result: {reason}")))
            }
            SequenceAnswer::NothingToProve(problem) => {
                let why = nothing_to_prove(problem.dtype());
                Err(NoAnswer::Failed(format!("{problem}: {why}")))
            }
            SequenceAnswer::NoKernels(problem) => {
                Err(NoAnswer::Failed(format!("there are no kernels for {problem}")))
            }
        }
    }

    /// Nothing that is said of a model rests on ceilings.
    fn ceilings(
        &mut self,
        _: CeilingsTask,
        _: Option<Duration>,
    ) -> Result<Option<CeilingsReport>, NoAnswer> {
        Ok(None)
    }
}

/// The subjects that stand for pairs: of a problem of the model, from which the seeds and the controls
/// follow.
#[must_use]
pub fn stand_ins(problem: Problem, pairs: &[Pair]) -> Vec<Subject> {
    let subject = |(number, [first, second]): (u32, &Pair)| {
        let comparison =
            if first == second { Comparison::UnfusedCopy } else { Comparison::UnfusedFused };
        Subject { comparison, repetition: number, ..Subject::fusion(problem) }
    };
    (1..).zip(pairs).map(subject).collect()
}

/// What is run of a model.
#[derive(Debug, Clone, Copy)]
pub struct Sequences<'a> {
    /// A problem of the model; see [`stand_ins`].
    pub problem: Problem,
    /// The layers of each way.
    pub ways: &'a HashMap<Way, Vec<Layer>>,
    /// The ways that are measured against each other.
    pub pairs: &'a [Pair],
    /// Problems that are measured again beside them.
    pub again: &'a [Again],
}

/// Measures ways to run a model against each other.
///
/// # Errors
///
/// When no worker can be started, or a layer computes something wrong.
pub fn measure_workload<'a>(
    processes: &mut Processes<'_>,
    settings: RunSettings,
    sequences: Sequences<'_>,
    stop: &'a Stop,
    observer: Box<dyn Observer + 'a>,
) -> anyhow::Result<MeasuredWorkload> {
    let Sequences { problem, ways, pairs, again } = sequences;
    let subjects = stand_ins(problem, pairs);
    let of_again: Vec<Subject> = again.iter().map(Again::subject).collect();
    let mut workers = SequenceWorkers {
        processes,
        ways,
        pairs,
        proofs: HashMap::new(),
        layer_seconds: HashMap::new(),
        apart: 0.0,
    };
    let outcome = Session::new(&mut workers, settings, &subjects, stop)?
        .beside(&of_again)
        .observed_by(observer)
        .run()?;
    for measured in outcome.all() {
        if let Some((_, reason)) = measured.state.failure() {
            anyhow::bail!("the model could not be measured: {reason}");
        }
    }
    let of_again = outcome.measured.iter().skip(pairs.len()).zip(again);
    let again = of_again.filter_map(|(measured, &one)| {
        Some((one, measured.estimate.clone().filter(|estimate| !estimate.mostly_disturbed)?))
    });
    let again = again.collect();
    let (pairs, noise_floor) = judged(&outcome, pairs, &settings);
    let SequenceWorkers { proofs, layer_seconds, apart, .. } = workers;
    let layer_seconds = layer_seconds.into_iter().map(|(way, all)| (way, medians(&all)));
    Ok(MeasuredWorkload {
        pairs,
        noise_floor,
        again,
        layer_seconds: layer_seconds.collect(),
        apart,
        proved: proofs.len(),
        states: outcome.machine.describe().to_vec(),
        end: outcome.end,
    })
}

/// The pairs with what they say, and the noise floor as a ratio minus 1. The A/A run of the model is
/// one of the controls.
fn judged(outcome: &Outcome, pairs: &[Pair], settings: &RunSettings) -> (Vec<MeasuredPair>, f64) {
    let RunSettings { backend, threads, .. } = *settings;
    let measured = || outcome.measured.iter().zip(pairs);
    let own = measured().filter(|(_, ways)| ways[0] == ways[1]).filter_map(|(one, _)| {
        let estimate = one.estimate.as_ref()?;
        control(&one.subject, estimate, backend, threads)
    });
    let controls: Vec<_> = outcome.noise.iter().cloned().chain(own).collect();
    let floor = noise_floor(&controls).exp_m1();
    let pair = |(one, &ways): (&super::Measured, &Pair)| {
        let estimate = one.estimate.clone()?;
        let others_busy = others_busy(&one.surroundings());
        let verdict = verdict(&estimate, others_busy, floor);
        Some(MeasuredPair { ways, estimate, verdict, others_busy })
    };
    (measured().filter_map(pair).collect(), floor)
}

/// What the ratio of two ways says.
///
/// A sample of a model is one run of it, and cannot be made shorter. In a tenth of a second, small
/// services of the system disturb most samples on a machine that is as quiet as it gets. Where
/// most pairs of an estimate are disturbed, all of them count, so that its interval holds what the
/// services did. It is only of no use if other programs did more than that, or if what disturbed
/// most pairs is not in the time of other programs. A way whose threads take over what one of them
/// loses is disturbed less than one whose threads do not, by the share that the services took of a
/// processor at most: a ratio must be further from 1 than that.
fn verdict(estimate: &Estimate, others_busy: Option<f64>, floor: f64) -> Verdict {
    let Estimate { ratio, low, high, mostly_disturbed, disturbed, pairs, .. } = *estimate;
    let Disturbed { steal, cpu_pressure, migration, page_fault, .. } = disturbed;
    let by_else: u32 = [steal, cpu_pressure, migration, page_fault].into_iter().flatten().sum();
    if !mostly_disturbed {
        return Verdict::by_interval(ratio, [low, high], floor);
    }
    match others_busy.filter(|busy| *busy <= MOST_SERVICES_BUSY) {
        Some(busy) if 2 * by_else as usize <= pairs => {
            Verdict::by_interval(ratio, [low, high], floor.max(busy))
        }
        _ => Verdict::Invalid,
    }
}

/// The median of each layer over processes.
fn medians(processes: &[Vec<f64>]) -> Vec<f64> {
    let layers = processes.iter().map(Vec::len).min().unwrap_or(0);
    let of_layer =
        |at: usize| processes.iter().filter_map(|one| one.get(at).copied()).collect::<Vec<f64>>();
    (0..layers).map(|at| median(&of_layer(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Cause, Method, Order, Round, Samples, estimate};

    #[test]
    fn every_pair_has_a_stand_in_of_its_own() {
        let problem: Problem = "add_relu/f32/m4.n4".parse().unwrap();
        let pairs = [
            [Way::Unfused, Way::BestPartition],
            [Way::Unfused, Way::AlwaysFused],
            [Way::Unfused, Way::Unfused],
        ];
        let subjects = stand_ins(problem, &pairs);
        let numbers: Vec<u32> = subjects.iter().map(|subject| subject.repetition).collect();
        assert_eq!(numbers, [1, 2, 3]);
        let copies: Vec<bool> = subjects.iter().map(|one| one.comparison.has_copy()).collect();
        assert_eq!(copies, [false, false, true]);
    }

    #[test]
    fn services_of_the_system_leave_a_verdict_and_other_programs_none() {
        let pair = |ratio: f64, causes: &[Cause]| crate::measure::Pair {
            seconds: [ratio, 1.0],
            order: Order::FirstSecond,
            causes: causes.to_vec(),
            clock_changed: [false; 2],
        };
        let verdict_at = |ratio: f64, causes: &[Cause], others_busy| {
            let pairs = [vec![pair(ratio, causes); 7], vec![pair(ratio, &[]); 5]].concat();
            let samples = Samples {
                rounds: vec![Round { pairs }; 2],
                iterations: [1, 1],
                ticks: 100_000,
                back_to_back: 0.0,
                observable: Cause::ALL.to_vec(),
                sensors: None,
            };
            let method = Method { level: 0.95, correlation: None, states: &[] };
            let found = estimate(&[&samples; 10], &method).unwrap();
            assert_eq!(found.mostly_disturbed, !causes.is_empty());
            verdict(&found, others_busy, 0.01)
        };
        let verdict_of = |causes: &[Cause], others_busy| verdict_at(1.2, causes, others_busy);
        assert_eq!(verdict_of(&[], Some(1.0)), Verdict::Faster);
        assert_eq!(verdict_of(&[Cause::RunDelay], Some(0.02)), Verdict::Faster);
        assert_eq!(verdict_of(&[Cause::RunDelay], Some(0.1)), Verdict::Invalid);
        // What services took could explain it.
        let slight = |busy| verdict_at(1.03, &[Cause::RunDelay], Some(busy));
        assert_eq!([slight(0.02), slight(0.04)], [Verdict::Faster, Verdict::Ambiguous]);
        assert_eq!(verdict_of(&[Cause::RunDelay], None), Verdict::Invalid);
        // What the hypervisor takes is not in the time of other programs.
        assert_eq!(verdict_of(&[Cause::Steal], Some(0.02)), Verdict::Invalid);
    }

    #[test]
    fn layers_are_medians_over_processes() {
        let processes = [vec![1.0, 5.0], vec![3.0, 4.0], vec![2.0, 9.0]];
        assert_eq!(medians(&processes), [2.0, 5.0]);
        assert_eq!(medians(&[]), [0.0; 0]);
    }
}
