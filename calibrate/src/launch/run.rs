//! What a worker does with its task.

use fused_kernels::{Backend, BackendError, Expected, Inputs, Prepared, Variant};
use fusion_cost_model::Clock;
use fusion_cost_model::calibration::Verification;

use super::{LaunchReport, MeasureTask, Report, Task};
use crate::measure::{Instruments, SystemWatch, measure};
use crate::prove::{WrongResult, prove};

/// Does a task on a backend, in this process.
#[must_use]
pub fn launch_on(backend: &mut dyn Backend, task: &Task) -> Report {
    let report = match task {
        Task::Measure(task) => measure_on(backend, task),
        Task::Ceilings(dtype) => backend.ceilings(*dtype, Clock::Host).map(Report::Ceilings),
    };
    report.unwrap_or_else(|error| Report::Failed(error.to_string()))
}

fn measure_on(backend: &mut dyn Backend, task: &MeasureTask) -> Result<Report, BackendError> {
    let MeasureTask { problem, comparison, procedure, .. } = task;
    let inputs = Inputs::random(problem, task.input_seed);
    let expected = Expected::compute(problem, &inputs, task.reference_budget);
    let pinned = backend.pinned().map(<[u32]>::to_vec);
    let Some(mut prepared) = backend.prepare(problem, &inputs, task.cache.into())? else {
        return Ok(Report::NoKernels);
    };
    let prepared = &mut *prepared;
    let before = match prove(prepared, &expected)? {
        Ok(verification) => verification,
        Err(wrong) => return Ok(Report::Wrong(wrong)),
    };
    let mut instruments = Instruments {
        watch: &mut SystemWatch::open(pinned.as_deref()),
        tick: fused_kernels::clock_tick(),
    };
    let variants = comparison.variants();
    let launch = measure(prepared, variants, procedure, task.launch_seed, &mut instruments)?;
    let huge_page_share = prepared.huge_page_share();
    let seen = || prepared.counters().iter().filter_map(|thread| thread.processor).collect();
    let processors = pinned.clone().unwrap_or_else(seen);
    let (verification, wrong_after) = match prove_again(prepared, &expected, before)? {
        Ok(verification) => (verification, None),
        Err(wrong) => (before, Some(wrong)),
    };
    Ok(Report::Measured(Box::new(LaunchReport {
        launch,
        kernels: Variant::ALL.map(|variant| prepared.kernels(variant)),
        verification,
        wrong_after,
        pinned: pinned.is_some(),
        processors,
        huge_page_share,
    })))
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
