//! The calibration file: what was measured, on what, with which settings.

mod ceilings;
mod check;
mod failed_core;
mod file;
mod machine_state;
mod noise;
mod reason;
mod record;
mod resolution;
mod runtime;
mod thresholds;
mod two;
mod verdict;

use serde::{Deserialize, Serialize};

pub use ceilings::{CeilingsSpread, MeasuredCeilings};
pub use failed_core::{FailedCore, KernelFailure};
pub use machine_state::{EarlierState, MachineState, StateSpeedup};
pub use noise::NoiseFloor;
pub use reason::{Reason, ReasonCode};
pub use record::{
    Disturbed, FusionRecord, GpuDetails, GpuKernel, Placement, StepTime, Timing, Verification,
};
pub use runtime::RuntimeUsed;
pub use verdict::Verdict;

use crate::file_kind::FileKind;
use crate::hardware::{HardwareSpec, PeakUnit};
use crate::vocabulary::{DType, Problem};

/// The version of the file format that this crate reads and writes.
pub const SCHEMA_VERSION: u32 = 5;

/// The contents of a calibration file.
///
/// What a file holds is fixed by its [`SCHEMA_VERSION`], and the program that writes it must say all
/// of it. So these types have no constructors that would leave something out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HardwareCalibration {
    /// What the file is: a [`FileKind::Calibration`].
    pub kind: FileKind,
    /// Version of the file format.
    pub schema_version: u32,
    /// How many records the file has, so that one that lost its end is not taken for a whole one.
    pub num_records: u64,
    /// What wrote the file.
    pub tool: Tool,
    /// How it was measured.
    pub settings: Settings,
    /// The machine: its data sheet, or what was observed where there is none.
    pub hardware: HardwareSpec,
    /// The machine as it was observed when it was measured.
    pub fingerprint: Fingerprint,
    /// Later runs that added records, in the order in which they did; empty where there were none.
    #[serde(default, rename = "addition", skip_serializing_if = "Vec::is_empty")]
    pub additions: Vec<Addition>,
    /// What was checked before the run.
    #[serde(default, rename = "check", skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// The runtimes whose kernels were measured; empty where there were none.
    #[serde(default, rename = "runtime", skip_serializing_if = "Vec::is_empty")]
    pub runtimes: Vec<RuntimeUsed>,
    /// The states that the machine was in; empty where none were looked for.
    #[serde(default, rename = "state", skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<MachineState>,
    /// States of earlier runs that none of these is like; empty where none are known.
    #[serde(default, rename = "earlier_state", skip_serializing_if = "Vec::is_empty")]
    pub earlier_states: Vec<EarlierState>,
    /// The measured ceilings, one entry per backend, dtype, thread count, clock and state.
    #[serde(default, rename = "ceilings", skip_serializing_if = "Vec::is_empty")]
    pub ceilings: Vec<MeasuredCeilings>,
    /// The unfused variant measured against itself, each single op among them.
    #[serde(default, rename = "noise", skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<NoiseFloor>,
    /// Problems that were asked for and have no record, with the reason.
    #[serde(default, rename = "skipped", skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// One record per problem and backend.
    #[serde(default, rename = "fusion", skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<FusionRecord>,
}

/// What wrote a calibration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The program.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The compiler's optimisation and target of the build.
    pub build: String,
    /// The compiler and its version.
    pub compiler: String,
    /// Flags that were given to the compiler in addition to those of the build profile.
    pub compiler_flags: String,
    /// The crates that kernels are made of, each with its version.
    pub crates: Vec<String>,
    /// When the run began, in UTC (RFC 3339).
    pub started_at: String,
}

/// How a calibration was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What was asked for with `--hardware`.
    pub requested_hardware: String,
    /// Whether the observed machine is the requested one; `auto` is always met.
    pub hardware_matches: bool,
    /// The set of sizes.
    pub shapes: String,
    /// Whether the shortened procedure was used.
    pub quick: bool,
    /// The seed of inputs, layouts and schedules.
    pub seed: u64,
    /// Fresh processes per problem at least; 1 means that each was measured in one process.
    pub processes: u32,
    /// Fresh processes for a problem that is still undecided.
    pub most_processes: u32,
    /// Rounds per process, each with a fresh memory layout.
    pub rounds: u32,
    /// Over how many seconds at least the processes of a problem were to be spread.
    pub spread_s: f64,
    /// How long the whole run was allowed to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_budget_s: Option<f64>,
    /// Whether the run went on in spite of a failed check.
    pub forced: bool,
    /// How the run ended.
    pub end: RunEnd,
}

/// A later run that added records to a file, on the same machine and by the same program: an
/// `[[addition]]` table. The settings of the file are those of the first run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Addition {
    /// When it began, in UTC (RFC 3339).
    pub started_at: String,
    /// Where its problems came from.
    pub shapes: String,
    /// Its seed.
    pub seed: u64,
    /// Whether the shortened procedure was used.
    pub quick: bool,
    /// Whether it went on in spite of a failed check.
    pub forced: bool,
    /// How many records it added or replaced.
    pub records: u64,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnd {
    /// Everything that was asked for was measured, or there is a reason why it cannot be.
    Complete,
    /// The user stopped it.
    Interrupted,
    /// Its time was up.
    TimeBudget,
    /// In the first pass nothing was left undisturbed, and so the others were not made.
    Disturbed,
}

/// How serious the result of a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// As it should be, or not reported by this system.
    Pass,
    /// Measurements may suffer.
    Warn,
    /// Measurements would be worth little.
    Fail,
}

impl CheckStatus {
    /// The word in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl std::fmt::Display for CheckStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Something that was checked before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// What came of it.
    pub status: CheckStatus,
    /// What was found.
    pub found: String,
    /// What to do about it; absent where all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl HardwareCalibration {
    /// The machine in words, with what tells it from others of the same name: clouds give one name to
    /// several processors.
    #[must_use]
    pub fn machine(&self) -> String {
        let Self { hardware, fingerprint, .. } = self;
        let Fingerprint { cpu_family_model_stepping, logical_cores, memory_bytes, .. } =
            fingerprint;
        let stepping = cpu_family_model_stepping.as_deref();
        let stepping = stepping.map_or_else(String::new, |stepping| format!("{stepping}, "));
        #[expect(clippy::cast_precision_loss, reason = "a size of memory")]
        let memory = *memory_bytes as f64 / f64::from(1 << 30);
        let name = &hardware.name;
        format!("{name} ({stepping}{logical_cores} logical cores, {memory:.1} GiB)")
    }
}

/// What was observed of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// The name that the processor reports.
    pub cpu_model: String,
    /// The vendor that it reports.
    pub cpu_vendor: String,
    /// Family, model and stepping, as `6/167/8`, where the system reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_family_model_stepping: Option<String>,
    /// Version of the processor's microcode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microcode: Option<String>,
    /// Physical cores, where the system reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_cores: Option<u32>,
    /// Hardware threads that this process may use.
    pub logical_cores: u32,
    /// Instruction sets that matter to the kernels.
    pub features: Vec<String>,
    /// Data and unified caches, from the system.
    #[serde(default, rename = "cache", skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<ObservedCache>,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// Operating system and its version.
    pub os: String,
    /// Kernel of the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Whether a hypervisor was seen; absent where the system does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtualized: Option<bool>,
    /// What chooses the clock (`performance`, `powersave`, ...); several where they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Whether the clock may rise above its guaranteed rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turbo: Option<bool>,
    /// When the system backs memory with huge pages: `always`, `madvise` or `never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<String>,
    /// The GPU that kernels ran on; absent where they ran on the processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<ObservedGpu>,
}

impl Fingerprint {
    /// How much of the memory of two machines of one kind may differ: what firmware and kernels keep for
    /// themselves.
    const MOST_MEMORY_APART: f64 = 0.05;

    /// Among [`Self::features`] where the matrix unit of the processor multiplies bf16 and 8-bit
    /// integers.
    pub const AMX: &str = "amx";

    /// Where it multiplies f16.
    pub const AMX_FP16: &str = "amx_fp16";

    /// The unit that computes GEMMs of a dtype, whose peak rate is measured.
    #[must_use]
    pub fn peak_unit(&self, dtype: DType) -> PeakUnit {
        let feature = match dtype {
            DType::Bf16 | DType::I8 => Some(Self::AMX),
            DType::F16 => Some(Self::AMX_FP16),
            _ => None,
        };
        let on_amx = feature.is_some_and(|feature| self.features.iter().any(|one| one == feature));
        if self.gpu.is_some() || on_amx { PeakUnit::Matrix } else { PeakUnit::Vector }
    }

    /// Whether times of one are those of the other as far as this shows: the processor and its
    /// instructions, the cores, the memory and the GPU are the same.
    #[must_use]
    pub fn is_same_machine(&self, other: &Self) -> bool {
        let gpu =
            |of: &Self| of.gpu.as_ref().map(|gpu| (gpu.name.clone(), gpu.architecture.clone()));
        let stepping = self
            .cpu_family_model_stepping
            .as_ref()
            .zip(other.cpu_family_model_stepping.as_ref())
            .is_none_or(|(one, other)| one == other);
        #[expect(clippy::cast_precision_loss, reason = "within a few per cent")]
        let memory = (self.memory_bytes as f64 / other.memory_bytes as f64).ln().abs();
        stepping
            && (&self.cpu_model, &self.features) == (&other.cpu_model, &other.features)
            && (self.physical_cores, self.logical_cores)
                == (other.physical_cores, other.logical_cores)
            && memory <= Self::MOST_MEMORY_APART.ln_1p()
            && gpu(self) == gpu(other)
    }
}

/// A GPU as its driver reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedGpu {
    /// The name that it reports.
    pub name: String,
    /// Its instruction set: `sm_90a`, `gfx942`.
    pub architecture: String,
    /// Multiprocessors or compute units.
    pub processors: u32,
    /// All of its memory.
    pub memory_bytes: u64,
    /// Its second-level cache.
    pub l2_bytes: u64,
    /// The highest clock of its processors.
    pub clock_mhz: u32,
    /// Where it is on the bus.
    pub bus_id: String,
    /// The version of the driver.
    pub driver: String,
    /// The version of the runtime library.
    pub runtime: String,
    /// The compiler of the kernels and its version.
    pub compiler: String,
    /// The vendor's libraries that were found, with their versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub libraries: Vec<String>,
}

/// A level of cache as the system reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedCache {
    /// 1 is nearest to the core.
    pub level: u8,
    /// Bytes of one instance.
    pub bytes: u64,
    /// Hardware threads that share an instance.
    pub shared_by: u32,
}

/// A problem that was asked for and has no record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// What was asked for.
    pub problem: Problem,
    /// Why the record is missing.
    pub reason: String,
    /// How its kernels failed; absent where none of them did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<KernelFailure>,
}
