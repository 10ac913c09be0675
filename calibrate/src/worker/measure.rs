//! Measuring one problem in a worker.

use std::time::Duration;

use fused_kernels::cpu::counters_of_this_thread;
use fused_kernels::{
    Backend, BackendError, Expected, Inputs, KernelFacts, Prepared, ThreadCounters, Variant,
};
use fusion_cost_model::calibration::{GpuKernel, Verification};
use fusion_cost_model::{Backend as BackendName, Clock};

use super::planted::Planted;
use super::{MeasureAnswer, MeasureTask, ProcessReport};
use crate::measure::{Instruments, Surroundings, SystemWatch, measure, warm_up};
use crate::plan::Subject;
use crate::prove::{WrongResult, prove};

/// Measures a problem on a backend, in this process.
pub(super) fn measure_on(
    backend: &mut dyn Backend,
    task: &MeasureTask,
) -> Result<MeasureAnswer, BackendError> {
    let MeasureTask { subject, procedure, .. } = task;
    let Subject { problem, comparison, clock, .. } = subject;
    let backend_name = backend.name();
    let inputs = Inputs::random(problem, task.input_seed);
    let expected = Expected::compute(problem, &inputs, task.reference_budget);
    let pinned = backend.pinned().map(<[u32]>::to_vec);
    let Some(mut prepared) = backend.prepare(problem, &inputs, subject.setup(task.cache))? else {
        return Ok(MeasureAnswer::NoKernels);
    };
    let prepared = &mut *prepared;
    let before = match prove(prepared, &expected)? {
        Ok(verification) => verification,
        Err(wrong) => return Ok(MeasureAnswer::Wrong(wrong)),
    };
    let mut instruments = Instruments {
        watch: &mut SystemWatch::open(pinned.as_deref()),
        clock: *clock,
        tick: tick(backend_name, *clock),
        counters: counters(*clock),
    };
    let variants = comparison.variants();
    if !clock.is_host() {
        warm_up(prepared, variants)?;
    }
    let seed = task.process_seed;
    let samples = match task.planted {
        None => measure(prepared, variants, procedure, seed, &mut instruments)?,
        Some(runs) => {
            let mut planted = Planted::new(prepared, variants, runs);
            measure(&mut planted, Variant::ALL, procedure, seed, &mut instruments)?
        }
    };
    let huge_page_share = prepared.huge_page_share();
    let seen = || prepared.counters().iter().filter_map(|thread| thread.processor).collect();
    let processors = pinned.clone().unwrap_or_else(seen);
    let (verification, wrong_after) = match prove_again(prepared, &expected, before)? {
        Ok(verification) => (verification, None),
        Err(wrong) => (before, Some(wrong)),
    };
    Ok(MeasureAnswer::Measured(Box::new(ProcessReport {
        samples,
        kernels: Variant::ALL.map(|variant| prepared.kernels(variant)),
        verification,
        wrong_after,
        pinned: pinned.is_some(),
        processors,
        huge_page_share,
        gpu_kernels: Variant::ALL
            .map(|variant| prepared.kernel_facts(variant).into_iter().map(gpu_kernel).collect()),
        surroundings: Surroundings::default(),
    })))
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

/// Proves both variants once more after the timing, and keeps the larger errors.
fn prove_again(
    prepared: &mut dyn Prepared,
    expected: &Expected,
    before: Verification,
) -> Result<Result<Verification, WrongResult>, BackendError> {
    let after = prove(prepared, expected)?;
    Ok(after.map(|after| Verification {
        unfused_error: before.unfused_error.max(after.unfused_error),
        fused_error: before.fused_error.max(after.fused_error),
        ..after
    }))
}
