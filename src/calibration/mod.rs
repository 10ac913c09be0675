//! The calibration file: what was measured, on what, with which settings.

mod error;
mod file;
mod record;

use serde::{Deserialize, Serialize};

pub use error::CalibrationError;
pub use record::{FusionRecord, Timing, Verdict, Verification};

use crate::cost::Ceilings;
use crate::hardware::HardwareSpec;
use crate::vocabulary::{Backend, DType, Problem};

/// The version of the file format that this crate reads and writes.
pub const SCHEMA_VERSION: u32 = 1;

/// The contents of a calibration file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HardwareCalibration {
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
    /// What was really there when it was measured.
    pub fingerprint: Fingerprint,
    /// The measured ceilings, one entry per backend, dtype and thread count.
    #[serde(default, rename = "ceilings", skip_serializing_if = "Vec::is_empty")]
    pub ceilings: Vec<MeasuredCeilings>,
    /// The unfused variant measured against itself.
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
    /// Rounds per launch, each with a fresh memory layout.
    pub rounds: u32,
    /// Fresh processes per problem; 1 means that everything was measured in one process.
    pub launches: u32,
    /// Whether the run ended before everything that was asked for was measured.
    pub interrupted: bool,
}

/// What was observed of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// The name that the processor reports.
    pub cpu_model: String,
    /// The vendor that it reports.
    pub cpu_vendor: String,
    /// Physical cores, where the system tells.
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
    /// Whether a hypervisor was seen; absent where that cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtualized: Option<bool>,
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

/// The measured ceilings of a backend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredCeilings {
    /// Where they were measured.
    pub backend: Backend,
    /// For which number format.
    pub dtype: DType,
    /// On how many threads.
    pub threads: u32,
    /// The ceilings.
    pub limits: Ceilings,
}

/// An A/A run: the unfused variant measured against itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseFloor {
    /// What ran.
    pub problem: Problem,
    /// Where.
    pub backend: Backend,
    /// On how many threads.
    pub threads: u32,
    /// The ratio that was measured; the truth is 1.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    pub ratio_low: f64,
    /// Upper end of its 95 % interval.
    pub ratio_high: f64,
}

impl NoiseFloor {
    /// How far from 1 this machine measures a ratio whose truth is 1: the larger of the
    /// half-width of the interval and the distance of its centre, in the logarithm.
    #[must_use]
    pub fn log_width(&self) -> f64 {
        let half_width = 0.5 * (self.ratio_high / self.ratio_low).ln();
        half_width.max(self.ratio.ln().abs())
    }
}

/// A problem that was asked for and has no record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// What was asked for.
    pub problem: Problem,
    /// Why there is no record.
    pub reason: String,
}
