//! The tasks of a run, each in a process of its own.

use std::time::{Duration, Instant};

use fused_kernels::worker::{Program, Worker, WorkerError};
use thiserror::Error;

use super::task::{Failure, OnDevice};
use super::{CeilingsReport, CeilingsTask, Device, MeasureAnswer, MeasureTask, Task, Workers};
use crate::stop::Stop;

/// Why a task has no answer.
#[derive(Debug, Error)]
pub enum NoAnswer {
    /// There is no process to do it, and most likely none for any other task.
    #[error(transparent)]
    NotStarted(WorkerError),
    /// The device is not there, and why.
    #[error("{0}")]
    NoDevice(String),
    /// It could not be done, and why.
    #[error("{0}")]
    Failed(String),
    /// Its process ended without an answer, and how.
    #[error("{0}")]
    Crashed(String),
    /// The user stopped it.
    #[error("it was interrupted")]
    Stopped,
    /// The time that was left did not suffice.
    #[error("its time was over")]
    TimeUp,
}

impl From<Failure> for NoAnswer {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoDevice(why) => Self::NoDevice(why),
            Failure::Failed(why) => Self::Failed(why),
        }
    }
}

/// Starts this program again for every task.
pub struct Processes<'a> {
    program: Program,
    device: Device,
    stop: &'a Stop,
}

impl<'a> Processes<'a> {
    /// Workers for a device.
    ///
    /// # Errors
    ///
    /// When the system does not report where this program is.
    pub fn new(device: Device, stop: &'a Stop) -> anyhow::Result<Self> {
        Ok(Self { program: Program::this().map_err(WorkerError::Start)?, device, stop })
    }

    fn ask<T: Task>(&self, task: T, time_left: Option<Duration>) -> Result<T::Answer, NoAnswer> {
        let question = OnDevice { device: self.device.clone(), time_left, task };
        let began = Instant::now();
        let mut worker = Worker::start(&self.program).map_err(NoAnswer::NotStarted)?;
        // Ctrl-C closes the input, upon which the worker leaves.
        let held = self.stop.hold(worker.input());
        // The worker itself watches its time: this process sleeps meanwhile, since whatever it did
        // would disturb the measurement.
        let answer = worker.ask(&question, None);
        drop(held);
        worker.finish();
        match answer {
            Ok(answer) => Ok(answer?),
            Err(_) if self.stop.requested() => Err(NoAnswer::Stopped),
            Err(_) if time_left.is_some_and(|time_left| began.elapsed() >= time_left) => {
                Err(NoAnswer::TimeUp)
            }
            Err(error) => Err(NoAnswer::Crashed(error.to_string())),
        }
    }
}

impl Workers for Processes<'_> {
    fn measure(
        &mut self,
        task: MeasureTask,
        time_left: Option<Duration>,
    ) -> Result<MeasureAnswer, NoAnswer> {
        self.ask(task, time_left)
    }

    fn ceilings(
        &mut self,
        task: CeilingsTask,
        time_left: Option<Duration>,
    ) -> Result<Option<CeilingsReport>, NoAnswer> {
        self.ask(task, time_left)
    }
}
