//! Measuring one problem in a worker.

use std::time::{Duration, SystemTime};

use fused_kernels::cpu::{counters_of_this_thread, processor_time_of_this_process};
use fused_kernels::{
    Backend, BackendError, Inputs, KernelFacts, Prepared, ThreadCounters, Variant,
};
use fusion_cost_model::calibration::GpuKernel;
use fusion_cost_model::{Backend as BackendName, Clock, Implementation};

use super::planted::Planted;
use super::progress::Progress;
use super::watched::{Watched, kernels};
use super::{MeasureAnswer, MeasureTask, ProcessReport};
use crate::measure::{
    Instruments, Others, Surroundings, SystemWatch, measure, step_seconds, warm_up,
};
use crate::plan::{Comparison, Subject};
use crate::prove::{Proof, Prover, WrongResult};

/// What a process does first.
const READY: &str = "made its kernels ready";

/// And then, before the samples and after them.
const PROVED: &str = "proved the results";

/// Measures a problem on a backend, in this process.
pub(super) fn measure_on(
    backend: &mut dyn Backend,
    task: &MeasureTask,
    progress: &Progress,
) -> Result<MeasureAnswer, BackendError> {
    let others = Others::start(own_time(backend));
    let before = backend.look_at_machine()?;
    let (answer, began_s) = sample(backend, task, progress)?;
    let MeasureAnswer::Measured(report) = answer else { return Ok(answer) };
    let readings = [before, backend.look_at_machine()?];
    others.wait();
    let others_busy = others.busy(own_time(backend));
    let surroundings = Surroundings { began_s, readings, others_busy };
    Ok(MeasureAnswer::Measured(Box::new(ProcessReport { surroundings, ..*report })))
}

/// The time on processors of all that measures.
fn own_time(backend: &dyn Backend) -> Option<Duration> {
    Some(processor_time_of_this_process()? + backend.time_of_its_program()?)
}

/// Proves a problem, takes its samples, and proves it again; and when the samples began, in seconds
/// since 1970.
fn sample(
    backend: &mut dyn Backend,
    task: &MeasureTask,
    progress: &Progress,
) -> Result<(MeasureAnswer, f64), BackendError> {
    let MeasureTask { subject, procedure, .. } = task;
    let Subject { problem, comparison, clock, implementation, .. } = subject;
    let backend_name = backend.name();
    let inputs = Inputs::random(problem, task.input_seed);
    let prover = Prover::new(subject, &inputs, task.reference_budget);
    if task.proved.is_none() && !prover.can_prove() {
        return Ok((MeasureAnswer::NothingToProve, 0.0));
    }
    let pinned = backend.pinned().map(<[u32]>::to_vec);
    let setup = subject.setup(task.cache);
    let is_gpu = !clock.is_host();
    // A runtime has limits of its own: its compiler may take minutes.
    if is_gpu && !matches!(implementation, Implementation::Runtime(_)) {
        progress.prepares(READY);
    } else {
        progress.doing(READY);
    }
    let (prepared, variants) = if comparison.has_copy() {
        let variant = comparison.variants()[0];
        (backend.prepare_copies(problem, &inputs, setup, variant)?, Variant::ALL)
    } else {
        (backend.prepare(problem, &inputs, setup)?, comparison.variants())
    };
    let Some(mut prepared) = prepared else {
        return Ok((MeasureAnswer::NoKernels, 0.0));
    };
    let prepared = &mut *prepared;
    prepared.run_each(&mut progress.first_runs(READY))?;
    let watch = is_gpu.then_some(progress);
    progress.doing(PROVED);
    let mut proof = match prove(&prover, prepared, (task.proved, [1; 2]), watch)? {
        Ok(proof) => proof,
        Err(wrong) => return Ok((MeasureAnswer::Wrong(wrong), 0.0)),
    };
    progress.doing("timed its kernels");
    let mut wrong_after = None;
    let mut prove_again = |prepared: &mut dyn Prepared, runs: [u32; 2]| {
        match prove(&prover, prepared, (Some(proof), runs), watch)? {
            Ok(again) => proof = proof.with(again),
            Err(wrong) => wrong_after = Some(wrong),
        }
        if let Some(progress) = watch {
            // The samples that follow have a limit again.
            progress.limited(format!("timed {}", kernels(prepared, &Variant::ALL)));
        }
        Ok(())
    };
    let mut watched;
    let timed: &mut dyn Prepared = if is_gpu {
        watched = Watched::timed(prepared, progress);
        &mut watched
    } else {
        prepared
    };
    let mut instruments = Instruments {
        watch: &mut SystemWatch::open(pinned.as_deref()),
        clock: *clock,
        tick: tick(backend_name, *clock),
        is_told: matches!(implementation, Implementation::Runtime(_)),
        counters: counters(*clock),
        proof: &mut prove_again,
    };
    if !clock.is_host() {
        warm_up(timed, variants)?;
    }
    let began_s = seconds_since_1970();
    let seed = task.process_seed;
    let samples = match task.planted {
        None => measure(timed, variants, procedure, seed, &mut instruments)?,
        Some(runs) => {
            let mut planted = Planted::new(timed, variants, runs);
            measure(&mut planted, Variant::ALL, procedure, seed, &mut instruments)?
        }
    };
    let steps = match comparison {
        Comparison::UnfusedFused => step_seconds(timed, &samples)?,
        _ => Vec::new(),
    };
    let huge_page_share = prepared.huge_page_share();
    let seen = || prepared.counters().iter().filter_map(|thread| thread.processor).collect();
    let processors = pinned.clone().unwrap_or_else(seen);
    progress.doing(PROVED);
    prove_again(prepared, samples.iterations)?;
    let report = ProcessReport {
        samples,
        kernels: Variant::ALL.map(|variant| prepared.kernels(variant)),
        verification: proof.verification,
        outputs: Some(proof.outputs),
        wrong_after,
        pinned: pinned.is_some(),
        processors,
        huge_page_share,
        steps,
        scratch_bytes: Variant::ALL.map(|variant| prepared.scratch_bytes(variant)),
        gpu_kernels: Variant::ALL
            .map(|variant| prepared.kernel_facts(variant).into_iter().map(gpu_kernel).collect()),
        ladder: task.ladder.clone(),
        surroundings: Surroundings::default(),
    };
    if is_gpu {
        // What is given back is waited for, and so is the device itself.
        progress.limited(format!("gave back what {} used", kernels(prepared, &Variant::ALL)));
    }
    Ok((MeasureAnswer::Measured(Box::new(report)), began_s))
}

/// A proof, in which every call of a GPU's kernels has a limit.
fn prove(
    prover: &Prover<'_>,
    prepared: &mut dyn Prepared,
    (known, runs): (Option<Proof>, [u32; 2]),
    watch: Option<&Progress>,
) -> Result<Result<Proof, WrongResult>, BackendError> {
    match watch {
        Some(progress) => {
            prover.prove(&mut Watched::proved(prepared, progress, PROVED), known, runs)
        }
        None => prover.prove(prepared, known, runs),
    }
}

fn seconds_since_1970() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0.0, |time| time.as_secs_f64())
}

/// The smallest step of a clock.
///
/// The times between two events are good to about 0.5 us on NVIDIA (`cuEventElapsedTime`) and to
/// about 1 us on AMD (`hipEventElapsedTime`), as their manuals say.
fn tick(backend: BackendName, clock: Clock) -> Duration {
    match (clock, backend) {
        (Clock::Device, BackendName::Hip) => Duration::from_micros(1),
        (Clock::Device, _) => Duration::from_nanos(500),
        (Clock::Host | Clock::LaunchInclusive, _) => fused_kernels::clock_tick(),
    }
}

/// The counters that reveal disturbances: those of the threads that compute, or of the one thread
/// that hands work to a GPU, if that is part of the time.
fn counters(clock: Clock) -> fn(&mut dyn Prepared) -> Vec<ThreadCounters> {
    match clock {
        Clock::Host => |prepared| prepared.counters(),
        Clock::Device => |_| Vec::new(),
        Clock::LaunchInclusive => |_| vec![counters_of_this_thread()],
    }
}

fn gpu_kernel(facts: KernelFacts) -> GpuKernel {
    let KernelFacts {
        name,
        blocks,
        threads,
        registers,
        spilled_bytes,
        shared_bytes,
        resident_blocks,
    } = facts;
    GpuKernel { name, blocks, threads, registers, spilled_bytes, shared_bytes, resident_blocks }
}
