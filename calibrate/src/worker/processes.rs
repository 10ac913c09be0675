//! The tasks of a run, each in a process of its own.

use std::time::{Duration, Instant};

use fused_kernels::worker::{Program, Worker, WorkerError};
use fusion_cost_model::calibration::KernelFailure;
use thiserror::Error;

use super::task::{Failure, OnDevice};
use super::{
    CeilingsReport, CeilingsTask, Device, ExamineTask, Examined, MeasureAnswer, MeasureTask,
    SequenceAnswer, SequenceTask, Task, Workers,
};
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
    /// A runtime does not run the problem, and why.
    #[error("{0}")]
    Unsupported(String),
    /// It could not be done, and why.
    #[error("{0}")]
    Failed(String),
    /// Kernels do not compile or cannot be launched, and why.
    #[error("{reason}")]
    Kernels {
        /// Which of both.
        failure: KernelFailure,
        /// What was said.
        reason: String,
    },
    /// Its process did not end in time and was killed, and what it was doing.
    #[error("{reason}")]
    Hung {
        /// What it was doing.
        reason: String,
        /// Whether a kernel did not end when it ran for the first time.
        in_kernel: bool,
    },
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

impl NoAnswer {
    /// How it shows that kernels failed, which may do better on another core of a GPU; `None` where
    /// they are not to blame.
    #[must_use]
    pub const fn of_kernels(&self) -> Option<KernelFailure> {
        match self {
            Self::Kernels { failure, .. } => Some(*failure),
            Self::Hung { .. } => Some(KernelFailure::Hung),
            Self::Crashed(_) => Some(KernelFailure::Crash),
            Self::NotStarted(_)
            | Self::NoDevice(_)
            | Self::Unsupported(_)
            | Self::Failed(_)
            | Self::Stopped
            | Self::TimeUp => None,
        }
    }
}

impl From<Failure> for NoAnswer {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoDevice(why) => Self::NoDevice(why),
            Failure::Unsupported(why) => Self::Unsupported(why),
            Failure::Failed(why) => Self::Failed(why),
            Failure::Kernels(failure, reason) => Self::Kernels { failure, reason },
        }
    }
}

/// How long a task may take unless the user says otherwise: many times what the largest problem of
/// the standard sizes takes on the slowest machine. A process that was stopped would never end.
pub const TASK_LIMIT: Duration = Duration::from_secs(15 * 60);

/// How long a kernel of a GPU may take when it runs for the first time, unless the user says
/// otherwise: the largest take some milliseconds.
pub const KERNEL_LIMIT: Duration = Duration::from_secs(60);

/// How long a worker that watches its time may take to leave when it is over.
const TIME_TO_LEAVE: Duration = Duration::from_secs(10);

/// Starts this program again for every task.
pub struct Processes<'a> {
    program: Program,
    device: Device,
    stop: &'a Stop,
    limit: Duration,
    kernel_limit: Duration,
}

impl<'a> Processes<'a> {
    /// Workers for a device.
    ///
    /// # Errors
    ///
    /// When the system does not report where this program is.
    pub fn new(device: Device, stop: &'a Stop) -> anyhow::Result<Self> {
        let program = Program::this().map_err(WorkerError::Start)?;
        Ok(Self { program, device, stop, limit: TASK_LIMIT, kernel_limit: KERNEL_LIMIT })
    }

    /// The same with another time that a task may take.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// The same with another time that a kernel may take when it runs for the first time.
    #[must_use]
    pub fn with_kernel_limit(self, kernel_limit: Duration) -> Self {
        Self { kernel_limit, ..self }
    }

    /// Measures two sequences of layers.
    ///
    /// # Errors
    ///
    /// [`NoAnswer`].
    pub fn sequences(
        &mut self,
        task: SequenceTask,
        time_left: Option<Duration>,
    ) -> Result<SequenceAnswer, NoAnswer> {
        self.ask(task, time_left)
    }

    /// Proves kernels and launches them often.
    ///
    /// # Errors
    ///
    /// [`NoAnswer`].
    pub fn examine(&mut self, task: ExamineTask) -> Result<Examined, NoAnswer> {
        self.ask(task, None)
    }

    fn ask<T: Task>(&self, task: T, time_left: Option<Duration>) -> Result<T::Answer, NoAnswer> {
        // Removed below, whatever becomes of the worker.
        let device = self.device.on_core(task.core());
        let (device, _folder) = device.with_folder().map_err(NoAnswer::NotStarted)?;
        let kernel_limit = self.kernel_limit;
        let question = OnDevice { device, time_left, kernel_limit, task };
        let began = Instant::now();
        let mut worker = Worker::start(&self.program).map_err(NoAnswer::NotStarted)?;
        // Ctrl-C closes the input, upon which the worker leaves.
        let held = self.stop.hold(worker.input());
        // The worker itself watches the time of the run, unless it is stopped: this process sleeps
        // meanwhile, since whatever it did would disturb the measurement.
        let left = time_left.map(|left| left.saturating_add(TIME_TO_LEAVE));
        let limit = left.map_or(self.limit, |left| left.min(self.limit));
        let answer = worker.ask(&question, Some(limit));
        drop(held);
        worker.finish();
        match answer {
            Ok(answer) => Ok(answer?),
            Err(_) if self.stop.requested() => Err(NoAnswer::Stopped),
            Err(_) if time_left.is_some_and(|time_left| began.elapsed() >= time_left) => {
                Err(NoAnswer::TimeUp)
            }
            Err(error) => Err(match error {
                WorkerError::TimeLimit { is_of_note, .. } => {
                    NoAnswer::Hung { reason: error.to_string(), in_kernel: is_of_note }
                }
                _ => NoAnswer::Crashed(error.to_string()),
            }),
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

#[cfg(all(test, unix))]
mod tests {
    use fusion_cost_model::{Clock, DType};

    use super::*;

    const TASK: CeilingsTask =
        CeilingsTask { dtype: DType::F32, clock: Clock::Host, rounds: 1, core: None };

    #[test]
    fn a_worker_without_an_answer_costs_its_time_and_no_more() {
        // It never greets, and ends with its input.
        let program = Program::new("/bin/cat".into(), vec!["-".into()]);
        let stop = Stop::default();
        let limit = Duration::from_millis(200);
        let (device, kernel_limit) = (Device::cpu(1, false), KERNEL_LIMIT);
        let mut silent = Processes { program, device, stop: &stop, limit, kernel_limit };
        let answer = silent.ceilings(TASK, None).unwrap_err().to_string();
        assert_eq!(answer, "its process gave no answer in 0.2 s and was killed");
        // The time of the run was over as well.
        let answer = silent.ceilings(TASK, Some(limit));
        assert!(matches!(answer, Err(NoAnswer::TimeUp)), "{answer:?}");
    }
}
