//! Measuring two sequences of layers in a worker.

use std::hash::Hasher;
use std::time::SystemTime;

use fnv::FnvHasher;
use fused_kernels::cpu::{
    Cpu, Feed, Layer as PreparedLayer, Sequences, processor_time_of_this_process,
};
use fused_kernels::{Backend, BackendError, Inputs, Prepared, Variant, clock_tick};
use fusion_cost_model::calibration::Verification;
use fusion_cost_model::{CacheState, Clock, Problem};

use super::{Ladder, ProcessReport, SequenceAnswer, SequenceReport, SequenceTask};
use crate::measure::{Instruments, Others, Samples, Surroundings, SystemWatch, measure, median};
use crate::plan::workload::Layer;
use crate::plan::{Comparison, Subject};
use crate::prove::{Proof, Prover};

/// How far apart the two sides' results may lie, as the root mean square of their differences over
/// that of the results. Roundings of a hundred layers in f32 are some 1e-5, and a layer that reads
/// something else is of the order of 1.
const MOST_APART: f64 = 1e-3;

/// Samples of the layers of each side, which come after all pairs, as those of steps do.
const LAYER_SAMPLES: usize = 3;

/// Proves every problem of two sequences, and measures the sequences against each other.
pub(super) fn measure_sequences(
    cpu: &mut Cpu,
    task: &SequenceTask,
) -> Result<SequenceAnswer, BackendError> {
    let others = Others::start(processor_time_of_this_process());
    let before = cpu.look_at_machine()?;
    let mut proofs = Vec::new();
    for problem in task.problems() {
        let known = task.proved.iter().find(|(known, _)| *known == problem);
        match prove(cpu, problem, known.map(|(_, proof)| *proof), task)? {
            Ok(proof) => proofs.push((problem, proof)),
            Err(answer) => return Ok(answer),
        }
    }
    let inputs: Vec<(Problem, Inputs)> = task
        .problems()
        .into_iter()
        .map(|problem| (problem, layer_inputs(&problem, task.input_seed)))
        .collect();
    let [first, second] = task.sides.each_ref().map(|side| prepared_layers(side, &inputs));
    let pinned = cpu.pinned().map(<[u32]>::to_vec);
    let mut sequences = match cpu.prepare_sequences([&first, &second])? {
        Ok(sequences) => sequences,
        Err(problem) => return Ok(SequenceAnswer::NoKernels(problem)),
    };
    let apart = match compare(&mut sequences)? {
        Ok(apart) => apart,
        Err(reason) => return Ok(SequenceAnswer::Wrong(reason)),
    };
    let mut instruments = Instruments {
        watch: &mut SystemWatch::open(pinned.as_deref()),
        clock: Clock::Host,
        tick: clock_tick(),
        is_told: false,
        counters: |prepared| prepared.counters(),
        // To run both sequences once more costs as much as their samples.
        proof: &mut |_, _| Ok(()),
    };
    let began_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let began_s = began_s.map_or(0.0, |time| time.as_secs_f64());
    let (procedure, seed) = (&task.procedure, task.process_seed);
    let samples = measure(&mut sequences, Variant::ALL, procedure, seed, &mut instruments)?;
    let layer_seconds = Variant::ALL.map(|side| layer_seconds(&mut sequences, side, &samples));
    // Whether the layers still compute what they did before they were timed.
    if let Err(reason) = compare(&mut sequences)? {
        return Ok(SequenceAnswer::Wrong(format!("after the timing, {reason}")));
    }
    let seen = || sequences.counters().iter().filter_map(|thread| thread.processor).collect();
    let processors = pinned.clone().unwrap_or_else(seen);
    let report = ProcessReport {
        samples,
        kernels: Variant::ALL.map(|side| sequences.kernels(side)),
        verification: worst(&proofs),
        outputs: None,
        wrong_after: None,
        pinned: pinned.is_some(),
        processors,
        huge_page_share: sequences.huge_page_share(),
        steps: Vec::new(),
        scratch_bytes: Variant::ALL.map(|side| sequences.scratch_bytes(side)),
        gpu_kernels: [Vec::new(), Vec::new()],
        ladder: Ladder::default(),
        surroundings: Surroundings::default(),
    };
    drop(sequences);
    let readings = [before, cpu.look_at_machine()?];
    let surroundings = Surroundings {
        began_s,
        readings,
        others_busy: others.busy(processor_time_of_this_process()),
    };
    let report = ProcessReport { surroundings, ..report };
    Ok(SequenceAnswer::Measured(Box::new(SequenceReport { report, layer_seconds, proofs, apart })))
}

/// Proves the kernels of a problem, as a calibration does before it times them: both its variants,
/// against the reference. The inner error is the answer to the task.
fn prove(
    cpu: &mut Cpu,
    problem: Problem,
    known: Option<Proof>,
    task: &SequenceTask,
) -> Result<Result<Proof, SequenceAnswer>, BackendError> {
    // Of a single op, too, since a layer may be either.
    let comparison = Comparison::UnfusedFused;
    let subject = Subject { comparison, ..Subject::fusion(problem) };
    let inputs = Inputs::random(&problem, task.input_seed ^ hash(&problem.to_string()));
    let prover = Prover::new(&subject, &inputs, task.reference_budget);
    if known.is_none() && !prover.can_prove() {
        return Ok(Err(SequenceAnswer::NothingToProve(problem)));
    }
    let Some(mut prepared) = cpu.prepare(&problem, &inputs, subject.setup(CacheState::Warm))?
    else {
        return Ok(Err(SequenceAnswer::NoKernels(problem)));
    };
    let proof = prover.prove(&mut *prepared, known, [1; 2])?;
    Ok(proof.map_err(|wrong| SequenceAnswer::Wrong(format!("{problem}: {wrong}"))))
}

/// The inputs of a layer: an op has the same numbers in every kernel, so that both sides compute the
/// same.
fn layer_inputs(problem: &Problem, seed: u64) -> Inputs {
    let of_step = |step: usize| {
        let op = problem.slice(step..step + 1);
        // A part of a chain that is not a problem by itself is in no other kernel.
        seed ^ hash(&op.map_or_else(|| format!("{problem} {step}"), |op| op.to_string()))
    };
    Inputs::of_layer(problem, of_step)
}

fn hash(text: &str) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

fn prepared_layers<'b>(side: &[Layer], inputs: &'b [(Problem, Inputs)]) -> Vec<PreparedLayer<'b>> {
    let layer = |layer: &Layer| {
        let (_, inputs) = inputs.iter().find(|(problem, _)| *problem == layer.problem)?;
        let feeds = layer.feeds.iter().map(|fed| Feed { input: fed.input, from: fed.from });
        let variant = if layer.fused { Variant::Fused } else { Variant::Unfused };
        Some(PreparedLayer { problem: layer.problem, variant, inputs, feeds: feeds.collect() })
    };
    side.iter().filter_map(layer).collect()
}

/// Runs both sides on poisoned memory: every number of every layer must be finite, and both results
/// the same but for rounding. How far they are apart, or what is wrong.
fn compare(sequences: &mut Sequences<'_>) -> Result<Result<f64, String>, BackendError> {
    let mut outputs = [Vec::new(), Vec::new()];
    for (side, output) in Variant::ALL.into_iter().zip(&mut outputs) {
        if let Some(layer) = sequences.first_unwritten(side)? {
            let side = if side == Variant::Unfused { "first" } else { "second" };
            let number = layer + 1;
            return Ok(Err(format!("layer {number} of the {side} sequence left no finite result")));
        }
        *output = sequences.output()?;
    }
    let apart = relative_distance(&outputs[0], &outputs[1]);
    if apart > MOST_APART {
        return Ok(Err(format!("the results of the two sequences differ by {apart:.1e}")));
    }
    Ok(Ok(apart))
}

/// The root mean square of the differences over that of the first; infinite for other lengths.
fn relative_distance(first: &[f32], second: &[f32]) -> f64 {
    if first.len() != second.len() {
        return f64::INFINITY;
    }
    let both = || first.iter().zip(second).map(|(a, b)| (f64::from(*a), f64::from(*b)));
    let squares = |of: fn((f64, f64)) -> f64| both().map(of).sum::<f64>();
    let (distance, size) = (squares(|(a, b)| (a - b).powi(2)), squares(|(a, _)| a * a));
    if distance == 0.0 { 0.0 } else { (distance / size).sqrt() }
}

/// Seconds of each layer of a side in its place, the medians of a few samples as long as those of the
/// pairs.
fn layer_seconds(sequences: &mut Sequences<'_>, side: Variant, samples: &Samples) -> Vec<f64> {
    let runs = samples.iterations[usize::from(side == Variant::Fused)];
    // As before every sample: from the caches that the side itself leaves.
    let _ = sequences.layer_seconds(side, 1);
    let taken: Vec<Vec<f64>> =
        (0..LAYER_SAMPLES).map(|_| sequences.layer_seconds(side, runs)).collect();
    let layers = taken.first().map_or(0, Vec::len);
    let of_layer =
        |at: usize| taken.iter().filter_map(|one| one.get(at).copied()).collect::<Vec<f64>>();
    (0..layers).map(|at| median(&of_layer(at))).collect()
}

/// The proof that is nearest to its bound.
fn worst(proofs: &[(Problem, Proof)]) -> Verification {
    let share = |one: &Verification| one.unfused_error.max(one.fused_error) / one.tolerance;
    let all = proofs.iter().map(|(_, proof)| proof.verification);
    let worst = all.max_by(|a, b| share(a).total_cmp(&share(b)));
    worst.unwrap_or(Verification {
        reference_rows: 0,
        rows: 0,
        unfused_error: 0.0,
        fused_error: 0.0,
        tolerance: 0.0,
    })
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::{GraphNode, NodeOps};

    use super::*;
    use crate::measure::Procedure;
    use crate::plan::workload::layers;

    /// A residual block, unfused against fused in two kernels.
    fn task() -> SequenceTask {
        let node = |text: &str| GraphNode::new(text.parse().unwrap());
        let nodes = [
            node("layer_norm/f32/m8.n24"),
            node("linear/f32/m8.k24.n24").reading(0),
            node("bias/f32/m8.n24").reading(1),
            node("relu/f32/m8.n24").reading(2),
            node("add/f32/m8.n24").reading(3).with_operands([0]),
        ];
        let cut = |kernels: &[&[usize]]| -> Vec<Vec<NodeOps>> {
            let parts = |kernel: &&[usize]| {
                kernel.iter().map(|&node| NodeOps { node, ops: 0..1 }).collect()
            };
            kernels.iter().map(parts).collect()
        };
        let always = cut(&[&[0], &[1, 2, 3, 4]]);
        let best = cut(&[&[0], &[1, 2, 3], &[4]]);
        SequenceTask {
            sides: [layers(&nodes, &always, false).unwrap(), layers(&nodes, &best, true).unwrap()],
            procedure: Procedure { processes: 1, ..Procedure::QUICK },
            input_seed: 7,
            process_seed: 8,
            reference_budget: 1_000_000,
            proved: Vec::new(),
        }
    }

    #[test]
    fn sequences_are_proved_compared_and_timed_layer_by_layer() {
        let mut cpu = Cpu::new(1).unwrap();
        let task = task();
        let answer = measure_sequences(&mut cpu, &task).unwrap();
        let SequenceAnswer::Measured(report) = answer else { panic!("{answer:?}") };
        assert_eq!(report.layer_seconds.each_ref().map(Vec::len), [2, 3]);
        assert_eq!(report.proofs.len(), 4, "{:?}", report.proofs);
        assert!(report.apart < 1e-5, "{}", report.apart);
        assert_eq!(report.report.kernels.each_ref().map(Vec::len), [5, 3]);
        assert_eq!(report.report.samples.rounds.len(), 2);
        // Another process needs no reference.
        let again = SequenceTask { proved: report.proofs.clone(), reference_budget: 0, ..task };
        let answer = measure_sequences(&mut cpu, &again).unwrap();
        assert!(matches!(answer, SequenceAnswer::Measured(_)), "{answer:?}");
    }

    #[test]
    fn a_sequence_that_reads_something_else_is_wrong() {
        let mut task = task();
        let last = task.sides[1].last_mut().unwrap();
        last.feeds.retain(|fed| fed.input != 1);
        let answer = measure_sequences(&mut Cpu::new(1).unwrap(), &task).unwrap();
        let SequenceAnswer::Wrong(reason) = answer else { panic!("{answer:?}") };
        assert!(reason.starts_with("the results of the two sequences differ by"), "{reason}");
    }

    #[test]
    fn distances_are_relative() {
        assert_eq!(relative_distance(&[3.0, 4.0], &[3.0, 4.0]), 0.0);
        assert!((relative_distance(&[3.0, 4.0], &[3.0, 4.5]) - 0.1).abs() < 1e-9);
        assert_eq!(relative_distance(&[3.0], &[3.0, 4.0]), f64::INFINITY);
        assert_eq!(relative_distance(&[0.0], &[1.0]), f64::INFINITY);
    }
}
