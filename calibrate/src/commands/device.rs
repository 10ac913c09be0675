//! The device of a run: which one the command line asks for, and what it can do.

use std::path::absolute;

use cli_support::memory;
use fused_kernels::cpu::Cpu;
use fusion_cost_model::{Backend, CacheState};

use super::run::threads;
use crate::cli::{ClockChoice, ImplementationChoice, RunArgs};
use crate::exit::{NoDeviceError, UsageError};
use crate::machine::fingerprint;
use crate::plan::{Available, Subject, Ways, device_bytes};
use crate::worker::{Device, FoundGpu, Gpu, PROBE_LIMIT, Report, Task, probe};

/// The device that the command line asks for.
///
/// # Errors
///
/// When there is no such backend, or an option has no meaning for it.
pub(super) fn device(args: &RunArgs) -> anyhow::Result<Device> {
    let backend: Backend = args.backend.parse()?;
    if backend == Backend::Cpu {
        for (is_given, option) in [
            (args.device.is_some(), "--device"),
            (!args.gpu_lib_dir.is_empty(), "--gpu-lib-dir"),
            (args.clock.is_some(), "--clock"),
            (args.implementation.is_some(), "--implementation"),
            (args.code_cache.is_some(), "--code-cache"),
        ] {
            if is_given {
                let text = format!("{option} is for GPUs; name one with --backend cuda or hip");
                return Err(UsageError(text).into());
            }
        }
        return Ok(Device::cpu(threads(args.threads)?, !args.unbound));
    }
    for (is_given, option) in [(args.threads.is_some(), "--threads"), (args.unbound, "--unbound")] {
        if is_given {
            return Err(UsageError(format!(
                "{option} is about the processors that kernels run on, and those of the {backend} \
                 backend run on a GPU"
            ))
            .into());
        }
    }
    let library_folders = args.gpu_lib_dir.iter().map(absolute).collect::<Result<_, _>>()?;
    let code_cache = args.code_cache.as_ref().map(absolute).transpose()?;
    let index = args.device.unwrap_or(0);
    Ok(Device::gpu(backend, Gpu { index, library_folders, code_cache }))
}

/// In which ways the command line asks for each problem.
pub(super) fn ways(args: &RunArgs, backend: Backend) -> Ways {
    if backend == Backend::Cpu {
        return Ways::of_cpu();
    }
    let implementations = args.implementation.unwrap_or(ImplementationChoice::All);
    Ways {
        clocks: args.clock.unwrap_or(ClockChoice::Both).clocks(),
        implementations: implementations.implementations(),
        tells_vendor: args.implementation.is_some(),
    }
}

/// What is at a device's place; `None` for a CPU, which needs no looking for.
///
/// # Errors
///
/// [`NoDeviceError`] when it is not there.
pub(super) fn find(device: &Device) -> anyhow::Result<Option<FoundGpu>> {
    if device.gpu.is_none() {
        return Ok(None);
    }
    match probe(device, &Task::Identify, PROBE_LIMIT) {
        Report::Identified(found) => Ok(Some(*found)),
        other => Err(unexpected(device, other)),
    }
}

fn unexpected(device: &Device, report: Report) -> anyhow::Error {
    let backend = device.backend;
    let reason = match report {
        Report::NoDevice(reason) | Report::Failed(reason) => reason,
        _ => "its worker gave another answer than it was asked for".to_owned(),
    };
    let text = format!("the {backend} backend cannot be used: {reason}");
    NoDeviceError(format!("{text} (`calibrate list devices` shows what there is)")).into()
}

/// For each subject the bytes that it needs where its kernels work, or why it cannot be run there.
///
/// # Errors
///
/// When the device does not answer.
pub(super) fn ask(
    device: &Device,
    subjects: Vec<Subject>,
    cache: CacheState,
) -> anyhow::Result<Vec<Result<u64, String>>> {
    if device.gpu.is_none() {
        // Only to plan with, so it needs no more threads than there are processors: kernels run in
        // processes of their own.
        let planner = Cpu::new(device.threads.min(fingerprint::available_threads()))?;
        let bytes = |subject: &Subject| device_bytes(&planner, subject, cache);
        return Ok(subjects.iter().map(bytes).collect());
    }
    match probe(device, &Task::Plan(subjects, cache), PROBE_LIMIT) {
        Report::Plan(answers) => Ok(answers),
        other => Err(unexpected(device, other)),
    }
}

/// The memory that can be had.
pub(super) fn available(found: Option<&FoundGpu>) -> Available {
    let device = found.map(|found| found.free_memory);
    Available { host: memory::available_bytes(), device }
}
