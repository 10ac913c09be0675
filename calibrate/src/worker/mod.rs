//! Workers: a piece of work in a process of its own.
//!
//! The calibrator itself never runs a kernel. For every [`Task`] it starts the same program again
//! as a worker and asks it ([`Processes`] to measure, [`probe`] to look); `serve` is what the worker
//! does with it. What goes between the two is the [worker protocol](fused_kernels::worker). A fresh
//! process draws a new placement of code, stack and pages, which is what makes processes
//! independent of each other. It also means that a kernel that crashes, or that the system kills
//! for its memory, costs one problem and not the run.

mod device;
mod examine;
mod ladder;
mod measure;
mod planted;
mod probe;
mod processes;
mod progress;
mod sequence;
mod serve;
mod task;
mod watched;

use std::time::{Duration, Instant};

use crate::stop::Stop;

pub use device::{Device, FoundGpu, Gpu, Surveyed};
pub use examine::{ExamineTask, Examined};
pub use ladder::{CoreChoice, Ladder};
pub use probe::{PROBE_LIMIT, SURVEY_LIMIT, probe};
pub use processes::{KERNEL_LIMIT, NoAnswer, Processes, TASK_LIMIT};
pub use serve::serve;
pub use task::{
    CeilingsReport, CeilingsTask, IdentifyTask, IntroduceTask, MeasureAnswer, MeasureTask,
    PlanTask, ProcessReport, SequenceAnswer, SequenceReport, SequenceTask, SurveyTask, Task,
};

/// Does the tasks of a run, each in a fresh process; in tests, whatever a test needs.
///
/// A task is given up when it takes longer than what is left of the time.
pub trait Workers {
    /// Measures a problem.
    ///
    /// # Errors
    ///
    /// [`NoAnswer`].
    fn measure(
        &mut self,
        task: MeasureTask,
        time_left: Option<Duration>,
    ) -> Result<MeasureAnswer, NoAnswer>;

    /// Measures the ceilings; `None` if the device does not compute in that dtype.
    ///
    /// # Errors
    ///
    /// [`NoAnswer`].
    fn ceilings(
        &mut self,
        task: CeilingsTask,
        time_left: Option<Duration>,
    ) -> Result<Option<CeilingsReport>, NoAnswer>;

    /// The time since the run began.
    fn elapsed(&self, began: Instant) -> Duration {
        began.elapsed()
    }

    /// Does nothing for some time, or until the user stops the run.
    fn wait(&mut self, time: Duration, stop: &Stop) {
        let until = Instant::now() + time;
        while !stop.requested() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(WAIT_SLICE));
        }
    }
}

/// How soon a wait ends when the user stops the run.
const WAIT_SLICE: Duration = Duration::from_millis(50);
