//! The worker's side: what it does with each task.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Context as _;
use fused_kernels::CompileService;
use fused_kernels::worker::Notes;
use fused_kernels::{Backend, BackendError, worker};
use fusion_cost_model::Implementation;

use super::device::{Device, FoundGpu, Opened};
use super::examine::{ExamineTask, examine_on};
use super::measure::measure_on;
use super::progress::Progress;
use super::sequence::measure_sequences;
use super::task::{Failure, OnDevice};
use super::{
    CeilingsReport, CeilingsTask, IdentifyTask, IntroduceTask, Ladder, MeasureAnswer, MeasureTask,
    PlanTask, SequenceAnswer, SequenceTask, SurveyTask, Task,
};
use crate::exit;
use crate::measure::Surroundings;
use crate::plan::device_bytes;
use crate::stop::CANNOT_LISTEN;

/// Does the tasks that the caller of this process asks for, and compiles for GPU backends.
///
/// # Errors
///
/// When there is no caller.
pub fn serve() -> anyhow::Result<Infallible> {
    // Where Ctrl-C reaches every process of a terminal, what to do about it is the caller's choice.
    ctrlc::set_handler(|| {}).context(CANNOT_LISTEN)?;
    let mut compiler = CompileService::default();
    let Err(error) = worker::serve(|request| match request.name() {
        MeasureTask::NAME => request.answer(|it| measured(it, request.notes())),
        SequenceTask::NAME => request.answer(sequences),
        CeilingsTask::NAME => request.answer(|it: OnDevice<CeilingsTask>| {
            let progress = Progress::new(request.notes(), it.kernel_limit);
            on_backend(it, |backend, task| ceilings(backend, *task, &progress))
        }),
        ExamineTask::NAME => request.answer(|it: OnDevice<ExamineTask>| {
            let progress = Progress::new(request.notes(), it.kernel_limit);
            on_backend(it, |backend, task| examine_on(backend, task, &progress))
        }),
        PlanTask::NAME => request.answer(|it| {
            on_backend(it, |backend, PlanTask { subjects, cache }| {
                Ok(subjects.iter().map(|one| device_bytes(backend, one, *cache)).collect())
            })
        }),
        IdentifyTask::NAME => request.answer(identify),
        IntroduceTask::NAME => {
            request.answer(|OnDevice::<IntroduceTask> { device, task, .. }| {
                device.introduce(&task.runtime).map_err(|error| {
                    let why = exit::message(&error);
                    match error.downcast_ref() {
                        Some(BackendError::NotInstalled(_)) => Failure::NoDevice(why),
                        _ => Failure::Failed(why),
                    }
                })
            })
        }
        SurveyTask::NAME => {
            request.answer(|OnDevice::<SurveyTask> { device, .. }| Ok(device.survey()))
        }
        _ => compiler.answer(request),
    });
    Err(error.into())
}

/// Opens the device of a task and does it there.
fn on_backend<T: Task>(
    question: OnDevice<T>,
    does: impl FnOnce(&mut dyn Backend, &T) -> Result<T::Answer, BackendError>,
) -> Result<T::Answer, Failure> {
    on_device(question, |opened, task| does(opened.backend(), task))
}

/// The same for what must know which kind of device it is.
fn on_device<T: Task>(
    OnDevice { device, time_left, task, .. }: OnDevice<T>,
    does: impl FnOnce(&mut Opened, &T) -> Result<T::Answer, BackendError>,
) -> Result<T::Answer, Failure> {
    if let Some(time_left) = time_left {
        leave_after(time_left);
    }
    let mut opened = open(&device, task.implementation())?;
    does(&mut opened, &task).map_err(|error| match (error.of_kernels(), &error) {
        (Some(failure), _) => Failure::Kernels(failure, error.to_string()),
        (None, BackendError::Unsupported(reason)) => Failure::Unsupported(reason.to_string()),
        (None, _) => Failure::Failed(error.to_string()),
    })
}

/// Measures, unless the kernels are those that failed on another core.
fn measured(question: OnDevice<MeasureTask>, notes: Notes) -> Result<MeasureAnswer, Failure> {
    let progress = Progress::new(notes, question.kernel_limit);
    on_device(question, |opened, task| {
        if let Opened::Gpu(gpu) = opened {
            let problem = &task.subject.problem;
            let mut failed = task.ladder.failed.iter();
            if failed.any(|failed| gpu.has_kernels_of(failed.core, problem)) {
                return Ok(MeasureAnswer::SameKernels);
            }
        }
        measure_on(opened.backend(), task, &progress)
    })
}

/// What a process does that measures the ceilings.
const CEILINGS: &str = "measured the ceilings";

fn ceilings(
    backend: &mut dyn Backend,
    CeilingsTask { dtype, clock, rounds, .. }: CeilingsTask,
    progress: &Progress,
) -> Result<Option<CeilingsReport>, BackendError> {
    let before = backend.look_at_machine()?;
    if clock.is_host() {
        progress.doing(CEILINGS);
    } else {
        progress.prepares(CEILINGS);
    }
    let ceilings = backend.ceilings(dtype, clock, rounds, &mut progress.runs(CEILINGS))?;
    let readings = [before, backend.look_at_machine()?];
    let surroundings = Surroundings { readings, ..Surroundings::default() };
    let ladder = Ladder::default();
    Ok(ceilings.map(|ceilings| CeilingsReport { ceilings, surroundings, ladder }))
}

fn sequences(
    OnDevice { device, time_left, task, .. }: OnDevice<SequenceTask>,
) -> Result<SequenceAnswer, Failure> {
    if let Some(time_left) = time_left {
        leave_after(time_left);
    }
    match open(&device, Implementation::Native)? {
        Opened::Cpu(mut cpu) => {
            measure_sequences(&mut cpu, &task).map_err(|error| Failure::Failed(error.to_string()))
        }
        Opened::Gpu(_) | Opened::Runtime(_) => {
            Err(Failure::Failed("only the cpu backend runs sequences of layers".to_owned()))
        }
    }
}

fn identify(question: OnDevice<IdentifyTask>) -> Result<FoundGpu, Failure> {
    match open(&question.device, Implementation::Native)? {
        Opened::Gpu(gpu) => match gpu.free_memory() {
            Ok(free_memory) => {
                Ok(FoundGpu { observed: gpu.observed(), free_memory, core: gpu.core() })
            }
            Err(error) => Err(Failure::NoDevice(error.to_string())),
        },
        Opened::Cpu(_) | Opened::Runtime(_) => {
            Err(Failure::Failed("only a GPU is identified by a worker".to_owned()))
        }
    }
}

fn open(device: &Device, implementation: Implementation) -> Result<Opened, Failure> {
    device.open(implementation).map_err(|error| {
        let why = exit::message(&error);
        if device.gpu.is_some() { Failure::NoDevice(why) } else { Failure::Failed(why) }
    })
}

/// Ends this process when its time is up, in the middle of whatever it does.
fn leave_after(time_left: Duration) {
    // Without a thread to spare, the caller ends it, which waits a little longer.
    let _ = std::thread::Builder::new().spawn(move || {
        std::thread::sleep(time_left);
        worker::leave();
    });
}
