//! Launches: a piece of work in a process of its own.
//!
//! The calibrator itself never runs a kernel. For every launch it starts the same program again as
//! a worker (`processes`), hands it a [`Task`], and gets a [`Report`]; what the worker does with
//! it is in `run`. A fresh process draws a new placement of code, stack and pages, which is what
//! makes launches independent of each other. It also means that a kernel that crashes, or that the
//! system kills for its memory, costs one problem and not the run.

mod device;
mod probe;
mod processes;
mod run;
mod serve;

use std::time::Duration;

use fusion_cost_model::calibration::{GpuKernel, Verification};
use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{CacheState, Clock, DType};
use serde::{Deserialize, Serialize};

use crate::measure::{Launch, Procedure};
use crate::plan::Subject;
use crate::prove::WrongResult;

pub use device::{Device, FoundGpu, Gpu};
pub use probe::{PROBE_LIMIT, SURVEY_LIMIT, probe};
pub use processes::Processes;
pub use run::launch_on;
pub use serve::{serve, serve_compiler};

/// The hidden subcommand that makes this program a worker.
pub const WORKER: &str = "worker";

/// A piece of work for a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Task {
    /// One launch of one problem.
    Measure(Box<MeasureTask>),
    /// The limits of the device for a number format, as a clock sees them.
    Ceilings(DType, Clock),
    /// What the device is. Only for a GPU, which the caller itself never opens: that would take
    /// memory of it, and a driver in a bad state ends the process that calls it.
    Identify,
    /// Whether the device can run these, and in how much of its memory.
    Plan(Vec<Subject>, CacheState),
    /// What devices of the backend there are, in words.
    Survey,
}

/// One launch of one problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasureTask {
    /// What to measure.
    pub subject: Subject,
    /// What the caches hold.
    pub cache: CacheState,
    /// How much.
    pub procedure: Procedure,
    /// The seed of the inputs, the same in every launch.
    pub input_seed: u64,
    /// The seed of the layouts and the schedule, of this launch alone.
    pub launch_seed: u64,
    /// Multiply-adds that the reference may cost.
    pub reference_budget: u64,
}

/// What came of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// A launch was measured.
    Measured(Box<LaunchReport>),
    /// A variant computed something wrong, and nothing was timed.
    Wrong(WrongResult),
    /// The backend has no kernels for it.
    NoKernels,
    /// The ceilings, if the device computes in that format.
    Ceilings(Option<Ceilings>),
    /// The device.
    Identified(Box<FoundGpu>),
    /// For each subject the bytes of the device's memory that it needs, or why it cannot be run.
    Plan(Vec<Result<u64, String>>),
    /// What devices there are, or what is missing: a line or several.
    Survey(Vec<String>),
    /// The device is not there, and why.
    NoDevice(String),
    /// It could not be done, and why.
    Failed(String),
    /// The user stopped it.
    Stopped,
    /// The time that was left did not suffice.
    TimeUp,
}

/// A measured launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchReport {
    /// The samples.
    pub launch: Launch,
    /// The kernels of each variant.
    pub kernels: [Vec<String>; 2],
    /// The proof.
    pub verification: Verification,
    /// What was wrong with a result after the timing.
    pub wrong_after: Option<WrongResult>,
    /// Whether the threads were bound.
    pub pinned: bool,
    /// The processors that they were bound to, or seen on.
    pub processors: Vec<u32>,
    /// Share of the tensors in huge pages.
    pub huge_page_share: Option<f64>,
    /// The kernels of each variant as they were compiled; nothing on a CPU.
    #[serde(default)]
    pub gpu_kernels: [Vec<GpuKernel>; 2],
}

/// Does tasks, each in a fresh process; in tests, whatever a test needs.
pub trait Launcher {
    /// Does a task, or gives it up when it takes longer than what is left of the time.
    ///
    /// # Errors
    ///
    /// When no task at all could be done, such as when no process can be started.
    fn launch(&mut self, task: &Task, time_left: Option<Duration>) -> anyhow::Result<Report>;
}
