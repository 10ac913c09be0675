//! What a worker can be asked about a device: one type for each task, with the type of its answer.

use std::time::Duration;

use fused_kernels::OutputDigest;
use fused_kernels::worker::Question;
use fusion_cost_model::calibration::{GpuKernel, KernelFailure, RuntimeUsed, Verification};
use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{CacheState, Clock, Core, DType, Implementation, Problem};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::device::{Device, FoundGpu, Surveyed};
use super::ladder::Ladder;
use crate::measure::{Procedure, Samples, Surroundings};
use crate::plan::workload::Layer;
use crate::plan::{Refusal, Subject};
use crate::prove::{Proof, WrongResult};

/// A piece of work for a worker that has a device.
pub trait Task: Serialize + DeserializeOwned {
    /// Its name, which no other task has.
    const NAME: &'static str;
    /// What comes of it.
    type Answer: Serialize + DeserializeOwned;

    /// Whose kernels it runs.
    fn implementation(&self) -> Implementation {
        Implementation::Native
    }

    /// The core of a GPU that its kernels are written with; `None` for that of the device.
    fn core(&self) -> Option<Core> {
        None
    }
}

/// A task with what it is done on: what a worker really is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OnDevice<T> {
    pub(super) device: Device,
    /// The worker leaves when this time is over.
    pub(super) time_left: Option<Duration>,
    /// How long a kernel of a GPU may take when it runs for the first time.
    pub(super) kernel_limit: Duration,
    pub(super) task: T,
}

impl<T: Task> Question for OnDevice<T> {
    const NAME: &'static str = T::NAME;
    type Answer = Result<T::Answer, Failure>;
}

/// Why a worker could not do a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Failure {
    /// The device is not there, and why.
    NoDevice(String),
    /// Kernels failed, and how.
    Kernels(KernelFailure, String),
    /// A runtime does not run the problem, and why.
    Unsupported(String),
    /// Something else, and why.
    Failed(String),
}

/// Measure one problem in one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasureTask {
    /// What to measure.
    pub subject: Subject,
    /// What the caches hold.
    pub cache: CacheState,
    /// How much.
    pub procedure: Procedure,
    /// The seed of the inputs, the same in every process.
    pub input_seed: u64,
    /// The seed of the layouts and the schedule, of this process alone.
    pub process_seed: u64,
    /// Multiply-adds that the reference may cost.
    pub reference_budget: u64,
    /// What another process of the run proved on the same inputs.
    #[serde(default)]
    pub proved: Option<Proof>,
    /// On which core its kernels run.
    #[serde(default)]
    pub ladder: Ladder,
    /// For a self-test: the first side makes one run more whenever the second has made this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planted: Option<u32>,
}

/// What came of measuring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum MeasureAnswer {
    /// The samples.
    Measured(Box<ProcessReport>),
    /// A variant computed something wrong, and nothing was timed.
    Wrong(WrongResult),
    /// A wrong variant could not be told from a right one, and nothing was timed.
    NothingToProve,
    /// The backend has no kernels for it.
    NoKernels,
    /// On this core they are the very kernels that failed on another one.
    SameKernels,
}

/// What one process measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessReport {
    /// The samples.
    pub samples: Samples,
    /// The kernels of each variant.
    pub kernels: [Vec<String>; 2],
    /// The proof.
    pub verification: Verification,
    /// The proved outputs of both sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<[OutputDigest; 2]>,
    /// What was wrong with a result after the timing.
    pub wrong_after: Option<WrongResult>,
    /// Whether the threads were bound.
    pub pinned: bool,
    /// The processors that they were bound to, or seen on.
    pub processors: Vec<u32>,
    /// Share of the tensors in huge pages.
    pub huge_page_share: Option<f64>,
    /// Seconds of each kernel of the unfused variant where it stands in the sequence; nothing where
    /// they were not timed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<f64>,
    /// Bytes that the kernels of each variant keep for themselves.
    #[serde(default)]
    pub scratch_bytes: [u64; 2],
    /// The kernels of each variant as they were compiled; nothing on a CPU.
    #[serde(default)]
    pub gpu_kernels: [Vec<GpuKernel>; 2],
    /// On which core of a GPU they ran.
    #[serde(default)]
    pub ladder: Ladder,
    /// What the machine was like meanwhile.
    #[serde(default)]
    pub surroundings: Surroundings,
}

impl ProcessReport {
    /// What was proved, for another process on the same inputs; `None` where something was wrong.
    #[must_use]
    pub fn proof(&self) -> Option<Proof> {
        let outputs = self.outputs.filter(|_| self.wrong_after.is_none())?;
        Some(Proof { outputs, verification: self.verification })
    }
}

/// Measure two sequences of layers against each other in one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SequenceTask {
    /// The layers of both, in their order.
    pub sides: [Vec<Layer>; 2],
    /// How much.
    pub procedure: Procedure,
    /// The seed of the inputs, the same in every process.
    pub input_seed: u64,
    /// The seed of the layouts and the schedule, of this process alone.
    pub process_seed: u64,
    /// Multiply-adds that the reference of a problem may cost.
    pub reference_budget: u64,
    /// What other processes of the run proved on the same inputs.
    pub proved: Vec<(Problem, Proof)>,
}

impl SequenceTask {
    /// The problems of all layers, each once.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for layer in self.sides.iter().flatten() {
            if !problems.contains(&layer.problem) {
                problems.push(layer.problem);
            }
        }
        problems
    }
}

/// What came of measuring sequences.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SequenceAnswer {
    /// The samples.
    Measured(Box<SequenceReport>),
    /// A layer computed something wrong, or the sequences do not compute the same, and why.
    Wrong(String),
    /// Of this problem, a wrong kernel could not be told from a right one.
    NothingToProve(Problem),
    /// The backend has no kernels for this problem.
    NoKernels(Problem),
}

/// What one process measured of two sequences.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SequenceReport {
    /// As of a problem; its verification is that of the layers' problem that is nearest to its bound.
    pub report: ProcessReport,
    /// Seconds of each layer of both sides where it stands in its sequence.
    pub layer_seconds: [Vec<f64>; 2],
    /// The proofs of all problems.
    pub proofs: Vec<(Problem, Proof)>,
    /// How far the results of the two sequences are apart, over their size.
    pub apart: f64,
}

/// Measure the ceilings of the device for a dtype, as a clock sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CeilingsTask {
    /// In which dtype it computes.
    pub dtype: DType,
    /// What the times begin and end with.
    pub clock: Clock,
    /// How often everything is measured; the best counts.
    pub rounds: u32,
    /// The core of a GPU; `None` for that of the device.
    pub core: Option<Core>,
}

/// What one process found of the ceilings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CeilingsReport {
    /// The ceilings.
    pub ceilings: Ceilings,
    /// What the machine was like meanwhile.
    pub surroundings: Surroundings,
    /// On which core of a GPU the probes ran.
    #[serde(default)]
    pub ladder: Ladder,
}

/// Say what the device is. Only for a GPU, which the caller itself never opens: that would take
/// memory of it, and a driver in a bad state ends the process that calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentifyTask;

/// Say whether the device can run some subjects, and in how much of its memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanTask {
    /// The subjects.
    pub subjects: Vec<Subject>,
    /// What the caches are to hold.
    pub cache: CacheState,
}

/// Say what a runtime is, which is started for that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntroduceTask {
    /// Its name.
    pub runtime: String,
}

/// Say what devices of the backend there are, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurveyTask;

impl Task for MeasureTask {
    const NAME: &'static str = "measure";
    type Answer = MeasureAnswer;

    fn implementation(&self) -> Implementation {
        self.subject.implementation
    }

    fn core(&self) -> Option<Core> {
        self.ladder.core
    }
}

impl Task for IntroduceTask {
    const NAME: &'static str = "introduce";
    type Answer = RuntimeUsed;
}

impl Task for SequenceTask {
    const NAME: &'static str = "sequences";
    type Answer = SequenceAnswer;
}

impl Task for CeilingsTask {
    const NAME: &'static str = "ceilings";
    /// `None` if the device does not compute in that dtype.
    type Answer = Option<CeilingsReport>;

    fn core(&self) -> Option<Core> {
        self.core
    }
}

impl Task for IdentifyTask {
    const NAME: &'static str = "identify";
    type Answer = FoundGpu;
}

impl Task for PlanTask {
    const NAME: &'static str = "plan";
    /// For each subject the bytes of the device's memory that it needs, or why it cannot be run.
    type Answer = Vec<Result<u64, Refusal>>;

    /// That of all its subjects, where it is a runtime's.
    fn implementation(&self) -> Implementation {
        let first = self.subjects.first().map(|subject| subject.implementation);
        first.filter(|one| one.runtime().is_some()).unwrap_or_default()
    }
}

impl Task for SurveyTask {
    const NAME: &'static str = "survey";
    type Answer = Surveyed;
}
