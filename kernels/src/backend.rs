//! What a backend does: prepare problems, run their variants, measure its ceilings.

use std::time::Duration;

use fusion_cost_model::calibration::KernelFailure;
use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{
    Backend as BackendName, CacheState, Clock, DType, Implementation, Problem, Rewrite,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::digest::OutputDigest;
use crate::inputs::{Inputs, WrongInputs};

/// One of the two ways to run a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// One kernel per op; every intermediate result goes through memory.
    Unfused,
    /// One kernel for the whole chain.
    Fused,
}

impl Variant {
    /// Both, in the order in which they are reported.
    pub const ALL: [Self; 2] = [Self::Unfused, Self::Fused];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unfused => "unfused",
            Self::Fused => "fused",
        }
    }
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// How a problem is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Setup {
    /// What the caches hold when a run begins.
    pub cache: CacheState,
    /// What the time of a run begins and ends with.
    pub clock: Clock,
    /// Whose kernels run.
    pub implementation: Implementation,
    /// What the ops become before they are fused; `None` for the ops as they are written. The unfused
    /// variant is the same, and both compute the same result.
    pub rewrite: Option<Rewrite>,
}

impl From<CacheState> for Setup {
    /// The project's own kernels on the host's clock, for the ops as they are written.
    fn from(cache: CacheState) -> Self {
        let implementation = Implementation::Native;
        Self { cache, clock: Clock::Host, implementation, rewrite: None }
    }
}

/// Hears the name of each kernel that is about to run for the first time, and `None` when it has
/// ended, so that somebody knows which one hangs.
pub type FirstRuns<'f> = dyn FnMut(Option<&str>) + 'f;

/// What a backend cannot do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The tensors of a problem do not fit.
    #[error("cannot allocate {bytes} bytes for {problem}: {source}")]
    Memory {
        /// The problem.
        problem: Box<Problem>,
        /// How much it needs.
        bytes: u64,
        /// Why there is less.
        source: std::io::Error,
    },
    /// Inputs are not those of the problem.
    #[error("the inputs are not those of {problem}: {source}")]
    Inputs {
        /// The problem.
        problem: Box<Problem>,
        /// What is wrong with them.
        source: WrongInputs,
    },
    /// Something that can be installed is not there.
    #[error(transparent)]
    NotInstalled(Box<dyn std::error::Error + Send + Sync>),
    /// A runtime does not run a problem, as it finds out when it is to prepare it.
    #[error(transparent)]
    Unsupported(Unsupported),
    /// The device, or its driver or compiler, does not do what it should.
    #[error(transparent)]
    Device(Box<dyn std::error::Error + Send + Sync>),
    /// Kernels fail on a device that is there.
    #[error("{source}")]
    Kernels {
        /// How.
        failure: KernelFailure,
        /// What the device or the compiler says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The system gives no threads.
    #[error("cannot start {threads} threads: {source}")]
    Threads {
        /// How many were wanted.
        threads: usize,
        /// Why there are fewer.
        source: std::io::Error,
    },
}

impl BackendError {
    /// Of a problem and inputs that are to be prepared for it, if these are not its own.
    pub(crate) fn check(problem: &Problem, inputs: &Inputs) -> Result<(), Self> {
        let wrong = |source| Self::Inputs { problem: Box::new(*problem), source };
        inputs.check(problem).map_err(wrong)
    }

    /// How kernels failed, if it is they and not the device or its memory.
    #[must_use]
    pub fn of_kernels(&self) -> Option<KernelFailure> {
        match self {
            Self::Kernels { failure, .. } => Some(*failure),
            Self::NotInstalled(_)
            | Self::Unsupported(_)
            | Self::Device(_)
            | Self::Memory { .. }
            | Self::Inputs { .. }
            | Self::Threads { .. } => None,
        }
    }
}

/// Why a backend does not run a problem.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// It has no kernels for the chain in this dtype.
    #[error("there are no kernels for it")]
    NoKernels,
    /// It has no such clock: a GPU has no time of the host alone, and a CPU no other.
    #[error("its times are not taken with the {0} clock")]
    NoClock(Clock),
    /// It has no kernels for what the rewrite makes of the chain, or the rewrite does not apply.
    #[error("there are no kernels for it rewritten as {0}")]
    NoRewrite(Rewrite),
    /// The vendor's library has no fused entry point for the chain, or is not there.
    #[error("no vendor library with a fused form of it was found")]
    NoVendor,
    /// The runtime does not run it, as it says itself.
    #[error("{name} does not run it: {reason}")]
    Runtime {
        /// Which runtime.
        name: String,
        /// Why it does not.
        reason: String,
    },
    /// The runtime failed when it was asked whether it runs it.
    #[error("{name} failed when it was asked whether it runs it: {reason}")]
    NoAnswer {
        /// Which runtime.
        name: String,
        /// How it failed.
        reason: String,
    },
    /// Every run on another set of tensors would take too many sets to go through the caches.
    #[error(
        "it is too small for cold caches: a run touches {bytes} bytes, and caches of this size \
         need at least {least_bytes}"
    )]
    TooSmallForCold {
        /// The bytes that a run of the fused variant touches at least.
        bytes: u64,
        /// The bytes that it would have to touch.
        least_bytes: u64,
    },
}

/// What running a problem takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requirements {
    /// Bytes that preparing it allocates on the device.
    pub memory_bytes: u64,
}

impl Requirements {
    /// Those of a problem whose tensors take this many bytes on the device.
    #[must_use]
    pub const fn new(memory_bytes: u64) -> Self {
        Self { memory_bytes }
    }
}

/// Runs problems on one device.
pub trait Backend {
    /// Which backend this is.
    fn name(&self) -> BackendName;

    /// On how many threads kernels run; 1 on a GPU.
    fn threads(&self) -> u32;

    /// What running a problem takes, without preparing it.
    ///
    /// # Errors
    ///
    /// Why the backend does not run it.
    fn requirements(&self, problem: &Problem, setup: Setup) -> Result<Requirements, Unsupported>;

    /// Makes both variants of a problem ready to run on its inputs; `None` when the backend does
    /// not run it (see [`Self::requirements`]), which is not an error.
    ///
    /// With [`CacheState::Cold`], every run uses another set of tensors, enough of them that the
    /// last-level cache has forgotten a set when it is used again. A problem that would need too
    /// many is not run in the cold state.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when the inputs are not those of the problem, the device has not enough memory, or
    /// it does not take the kernels.
    fn prepare<'b>(
        &'b mut self,
        problem: &Problem,
        inputs: &'b Inputs,
        setup: Setup,
    ) -> Result<Option<Box<dyn Prepared + 'b>>, BackendError>;

    /// Makes a problem ready twice, with tensors and kernels of their own, as the two sides of an A/A
    /// run: in what is returned, [`Variant::Unfused`] runs `variant` of the first copy and
    /// [`Variant::Fused`] runs the same one of the second. Takes twice the memory.
    ///
    /// # Errors
    ///
    /// As for [`Self::prepare`].
    fn prepare_copies<'b>(
        &'b mut self,
        problem: &Problem,
        inputs: &'b Inputs,
        setup: Setup,
        variant: Variant,
    ) -> Result<Option<Box<dyn Prepared + 'b>>, BackendError>;

    /// Measures the ceilings of the device for a dtype, as a clock sees them; `None` when it
    /// does not compute in that dtype or has no such clock. Each round takes about a second, and the
    /// best one counts; a device that bursts of other work do not reach needs only one.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when the device has not enough memory.
    fn ceilings(
        &mut self,
        dtype: DType,
        clock: Clock,
        rounds: u32,
        hears: &mut FirstRuns<'_>,
    ) -> Result<Option<Ceilings>, BackendError>;

    /// A short look at the state that the machine is in: some 6 ms, and what it takes to touch the
    /// memory for it the first time; `None` where there is nothing to look at, as on a GPU, which
    /// reports its clock by itself.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when the device fails.
    fn look_at_machine(&mut self) -> Result<Option<MachineReading>, BackendError> {
        Ok(None)
    }

    /// The processors that the threads are bound to; `None` when they are free to move.
    fn pinned(&self) -> Option<&[u32]>;

    /// The time on processors, until now, of a program that the backend runs beside this process; zero
    /// where there is none, and `None` where the system does not count it.
    fn time_of_its_program(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }
}

/// What a machine can do at the moment. A virtual one moves between states that it does not report:
/// the same two processors share a cache in one of them and not in the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MachineReading {
    /// Microseconds until all threads have begun and ended an empty kernel; `None` with one thread,
    /// which hands nothing over.
    pub handoff_us: Option<f64>,
    /// 10^9 bytes per second of `a = b + c` on tensors that no cache holds.
    pub triad_gb_per_s: f64,
}

/// A kernel of a GPU as it was compiled and launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelFacts {
    /// Its entry point.
    pub name: String,
    /// Blocks of a launch.
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of a thread's registers that had to go to memory.
    pub spilled_bytes: u32,
    /// Bytes of on-chip memory that the threads of a block share.
    pub shared_bytes: u32,
    /// Blocks that a multiprocessor or compute unit holds at a time.
    pub resident_blocks: u32,
}

/// What a GPU says of its own state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sensors {
    /// The clock of its multiprocessors or compute units, as a library or a file has it.
    pub clock_mhz: Option<u32>,
    /// That during the last runs of a problem, as the device itself counted it.
    pub device_clock_mhz: Option<u32>,
    /// Why that is lower than it could be, as the bits of the vendor's library; 0 for no reason.
    pub throttle_reasons: Option<u64>,
}

/// What the system has counted for one thread since it began. What it does not count is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadCounters {
    /// Times the system took the processor from it.
    pub involuntary_switches: Option<u64>,
    /// Pages that it touched first, or that the system had moved.
    pub page_faults: Option<u64>,
    /// The processor that it is on.
    pub processor: Option<u32>,
    /// Time on a processor.
    pub processor_time: Option<Duration>,
    /// Time that it was ready and waited for a processor.
    pub run_delay: Option<Duration>,
}

/// A problem whose variants can be run.
pub trait Prepared {
    /// The kernels that a variant runs, in order, each with how it works.
    fn kernels(&self, variant: Variant) -> Vec<String>;

    /// Draws a new placement of all tensors in memory and writes the inputs there, the same ones
    /// to every set. Both variants use the same placement.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when the device fails.
    fn new_layout(&mut self, seed: u64) -> Result<(), BackendError>;

    /// Fills everything but the inputs with NaN: the output, intermediate results and scratch, so
    /// that an element that is read or left without having been written is seen.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when the device fails.
    fn poison(&mut self) -> Result<(), BackendError>;

    /// Runs each kernel of both variants once by itself, and waits for it. Nothing on a CPU, where a
    /// kernel is a call that returns.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when the device fails.
    fn run_each(&mut self, _hears: &mut FirstRuns<'_>) -> Result<(), BackendError> {
        Ok(())
    }

    /// Runs a variant `iterations` times and returns how long that took. In the cold state each
    /// run is timed by itself, and what lies between two runs is not counted.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when the device fails.
    fn run(&mut self, variant: Variant, iterations: u32) -> Result<Duration, BackendError>;

    /// Runs a variant `untimed` times and then `iterations` times, with no pause between the two where
    /// there would otherwise be one, and returns how long each of them took.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when the device fails.
    fn run_behind(
        &mut self,
        variant: Variant,
        untimed: u32,
        iterations: u32,
    ) -> Result<[Duration; 2], BackendError> {
        Ok([self.run(variant, untimed)?, self.run(variant, iterations)?])
    }

    /// Runs the unfused variant, at most `iterations` times, with a reading of the clock between its
    /// kernels: the mean seconds of each kernel where it stands in the sequence. `None` where the
    /// clock cannot be read there.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when the device fails.
    fn run_steps(&mut self, _iterations: u32) -> Result<Option<Vec<f64>>, BackendError> {
        Ok(None)
    }

    /// The output that the last run left.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when the device fails.
    fn output(&mut self) -> Result<Vec<f32>, BackendError>;

    /// The digest of that output.
    ///
    /// # Errors
    ///
    /// [`BackendError`] when the device fails.
    fn output_digest(&mut self) -> Result<OutputDigest, BackendError> {
        Ok(OutputDigest::of(&self.output()?))
    }

    /// Bytes that the kernels of a variant keep for themselves, in addition to the tensors of the
    /// problem: panels, tiles and coefficients. Not what a library allocates by itself.
    fn scratch_bytes(&self, _variant: Variant) -> u64 {
        0
    }

    /// The kernels of a variant as they were compiled and launched; nothing on a CPU.
    fn kernel_facts(&self, _variant: Variant) -> Vec<KernelFacts> {
        Vec::new()
    }

    /// The state of the device now; nothing where it does not report it.
    fn sensors(&mut self) -> Sensors {
        Sensors::default()
    }

    /// Reads what the system has counted for each thread, the calling one first. Nothing for a
    /// backend whose threads are not counted.
    fn counters(&mut self) -> Vec<ThreadCounters> {
        Vec::new()
    }

    /// The share of the tensors' memory that lies in huge pages, where the system reports it.
    fn huge_page_share(&self) -> Option<f64> {
        None
    }
}
