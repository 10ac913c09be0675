//! Asking about a device before anything is measured, in a process of its own: a driver in a bad
//! state ends or blocks the process that calls it.

use std::time::Duration;

use fused_kernels::worker::{Program, Worker, WorkerError};

use super::processes::NoAnswer;
use super::task::OnDevice;
use super::{Device, Task};

/// How long a device may take to answer: opening the first of many GPUs takes some seconds.
pub const PROBE_LIMIT: Duration = Duration::from_secs(120);

/// The same for a listing, where the user waits.
pub const SURVEY_LIMIT: Duration = Duration::from_secs(30);

/// Asks a worker that has the device.
///
/// # Errors
///
/// [`NoAnswer`], whatever becomes of the worker.
pub fn probe<T: Task>(device: &Device, task: T, limit: Duration) -> Result<T::Answer, NoAnswer> {
    let backend = device.backend;
    let (device, _folder) = device.with_folder().map_err(NoAnswer::NotStarted)?;
    let is_gpu = device.gpu.is_some();
    let question = OnDevice { device, time_left: None, kernel_limit: limit, task };
    let answer = ask(&question, limit).map_err(|error| {
        NoAnswer::NoDevice(match error {
            other if !is_gpu => other.to_string(),
            WorkerError::TimeLimit { .. } => format!(
                "the {backend} driver gave no answer in {} s, and the process that asked it was \
                 ended",
                limit.as_secs()
            ),
            other => format!("looking for a {backend} device: {other}"),
        })
    })?;
    Ok(answer?)
}

fn ask<Q: fused_kernels::worker::Question>(
    question: &Q,
    limit: Duration,
) -> Result<Q::Answer, WorkerError> {
    let mut worker = Worker::start(&Program::this().map_err(WorkerError::Start)?)?;
    let answer = worker.ask(question, Some(limit))?;
    worker.finish();
    Ok(answer)
}
