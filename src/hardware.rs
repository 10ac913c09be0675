//! Hardware specifications: the facts of a data sheet, or what was observed of a machine.

mod ranges;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::file_kind::FileKind;
use crate::place::Place;
use crate::vocabulary::DType;

/// The version of the hardware file format that this crate reads and writes.
pub const HARDWARE_SCHEMA_VERSION: u32 = 2;

/// The `source` of figures that were observed on the machine, and stand in no data sheet.
pub const OBSERVED: &str = "observed by calibrate";

/// What sort of processor a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Processor {
    /// A host processor.
    Cpu,
    /// A graphics processor or accelerator.
    Gpu,
}

impl std::fmt::Display for Processor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        })
    }
}

/// The unit that a peak rate belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeakUnit {
    /// Ordinary vector lanes.
    Vector,
    /// Tensor cores, matrix cores, AMX.
    Matrix,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Data and instructions.
    Unified,
}

/// The cores, and how fast they run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cores {
    /// Physical cores of a CPU, multiprocessors or compute units of a GPU.
    pub count: u32,
    /// Hardware threads of a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Guaranteed clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_clock_mhz: Option<u32>,
    /// Highest clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boost_clock_mhz: Option<u32>,
    /// What a reader should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where these figures stand.
    pub source: String,
}

/// The main memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Peak bandwidth in 10^9 bytes per second; 0 in a calibration of a machine without a data sheet
    /// whose ceilings could not be measured.
    pub bandwidth_gb_per_s: f64,
    /// Capacity, where the machine fixes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_gib: Option<f64>,
    /// The technology, and how many channels.
    pub kind: String,
    /// Where these figures stand.
    pub source: String,
}

impl Memory {
    /// Whether nobody knows its bandwidth.
    pub(crate) fn is_unmeasured(&self) -> bool {
        self.source == OBSERVED && self.bandwidth_gb_per_s == 0.0
    }
}

/// A level of cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// Bytes of one instance.
    pub bytes: u64,
    /// How many instances there are.
    pub instances: u32,
    /// What a reader should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where these figures stand.
    pub source: String,
}

/// The peak rate of one dtype on one unit, dense.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peak {
    /// The dtype of the inputs.
    pub dtype: DType,
    /// 10^9 operations per second; a multiply-add counts as two. Never a figure with sparsity.
    pub gflops: f64,
    /// The unit.
    pub unit: PeakUnit,
    /// How the figure was derived, or what the source says about it.
    pub how: String,
    /// Where it stands.
    pub source: String,
}

/// A machine: the contents of a file under `calibrate/profiles/hardware/`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HardwareSpec {
    /// What the file is: a [`FileKind::Hardware`].
    pub kind: FileKind,
    /// Version of the file format.
    pub schema_version: u32,
    /// Lower-case letters, digits and dashes; the stem of the file's name.
    pub id: String,
    /// The name to show.
    pub name: String,
    /// Who makes it.
    pub vendor: String,
    /// What sort of processor it is.
    pub processor: Processor,
    /// Microarchitecture and instruction set.
    pub architecture: String,
    /// Other spellings of the name, in lower case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Substrings of the name that the system reports; each identifies the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detect: Vec<String>,
    /// Longer names of sibling models, which contain one of `detect` and are not this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detect_except: Vec<String>,
    /// Substrings of names that the system reports on other machines too. They do not identify this
    /// one, but agree with a user who does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detect_if_named: Vec<String>,
    /// The cores.
    pub cores: Cores,
    /// The memory.
    pub memory: Memory,
    /// The caches.
    #[serde(default, rename = "cache", skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<Cache>,
    /// The peak rates.
    #[serde(default, rename = "peak", skip_serializing_if = "Vec::is_empty")]
    pub peaks: Vec<Peak>,
}

impl HardwareSpec {
    /// Reads a hardware file.
    ///
    /// # Errors
    ///
    /// An error with the key and the line.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        FileKind::Hardware.expect(text, HARDWARE_SCHEMA_VERSION)?;
        let spec: Self = toml::from_str(text).map_err(invalid)?;
        spec.check()
            .and_then(|()| ranges::check_sheet(&spec))
            .map_err(|(place, why)| invalid(format!("{}: {why}", place.describe_in_file(text))))?;
        Ok(spec)
    }

    /// Checks what the format alone does not guarantee. An error says where.
    pub(crate) fn check(&self) -> Result<(), (Place, String)> {
        if self.kind != FileKind::Hardware {
            return Err((Place::of("kind"), format!("it is {}, not hardware", self.kind)));
        }
        if self.schema_version != HARDWARE_SCHEMA_VERSION {
            let why = format!("it is {}, not {HARDWARE_SCHEMA_VERSION}", self.schema_version);
            return Err((Place::of("schema_version"), why));
        }
        let is_slug = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.id.is_empty() || !self.id.chars().all(is_slug) {
            let why = "must be lower-case letters, digits and dashes";
            return Err((Place::of("id"), why.to_owned()));
        }
        ranges::check(self)
    }

    /// Whether `name` is the id, the name or an alias, in upper or lower case.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let wanted = name.trim().to_lowercase();
        self.id == wanted || self.name.to_lowercase() == wanted || self.aliases.contains(&wanted)
    }

    /// Whether the name that the system reports for its processor is this machine.
    ///
    /// A part must end where a word ends, so that an i9-13900KS is not an i9-13900K. A slice of a
    /// GPU, which NVIDIA's driver calls by the name of the whole one with `MIG 1g.10gb` behind it, is
    /// not the GPU.
    #[must_use]
    pub fn is_detected_as(&self, reported: &str) -> bool {
        self.is_among(&self.detect, reported)
    }

    /// Whether the machine with that reported name can be the one that a user calls by this name.
    #[must_use]
    pub fn can_be(&self, reported: &str) -> bool {
        self.is_detected_as(reported) || self.is_among(&self.detect_if_named, reported)
    }

    fn is_among(&self, names: &[String], reported: &str) -> bool {
        let reported = reported.to_lowercase();
        let contains = |parts: &[String]| {
            parts.iter().any(|part| {
                reported.match_indices(&part.to_lowercase()).any(|(start, part)| {
                    let rest = &reported[start + part.len()..];
                    let is_slice = rest.split_whitespace().any(|word| word == "mig");
                    !is_slice && !rest.chars().next().is_some_and(char::is_alphanumeric)
                })
            })
        };
        contains(names) && !contains(&self.detect_except)
    }

    /// The highest peak rate of a dtype over all units.
    #[must_use]
    pub fn peak_gflops(&self, dtype: DType) -> Option<f64> {
        let rates = self.peaks.iter().filter(|peak| peak.dtype == dtype).map(|peak| peak.gflops);
        rates.reduce(f64::max)
    }
}

fn invalid(reason: impl std::fmt::Display) -> Error {
    Error::invalid_file(FileKind::Hardware.name(), reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = r#"
kind = "hardware"
schema_version = 2
id = "example-1"
name = "Example One"
vendor = "Example"
processor = "cpu"
architecture = "none"
aliases = ["one"]
detect = ["Example(R) One"]
detect_except = ["One Laptop"]
cores = { count = 4, source = "made up" }
memory = { bandwidth_gb_per_s = 10.0, kind = "DDR", source = "made up" }

[[cache]]
level = 1
kind = "data"
bytes = 32768
instances = 4
source = "made up"

[[peak]]
dtype = "f32"
gflops = 100.0
unit = "vector"
how = "made up"
source = "made up"
"#;

    #[test]
    fn a_spec_answers_by_name_and_by_detection() {
        let spec = HardwareSpec::from_toml(SPEC).unwrap();
        assert!(spec.is_called("ONE") && spec.is_called("example-1"));
        assert!(!spec.is_called("two"));
        assert!(spec.is_detected_as("Genuine Example(R) One @ 3 GHz"));
        assert!(spec.is_detected_as("Example(R) One"));
        assert!(!spec.is_detected_as("Example(R) One Laptop"));
        assert!(!spec.is_detected_as("Genuine Example(R) OneX @ 3 GHz"));
        assert!(!spec.is_detected_as("Example(R) One MIG 1g.10gb"));
        // Unless it is of that slice.
        let detect = SPEC.replace("[\"Example(R) One\"]", "[\"Example(R) One MIG 1g.10gb\"]");
        let slice = HardwareSpec::from_toml(&detect).unwrap();
        assert!(slice.is_detected_as("Example(R) One MIG 1g.10gb"));
        assert!(!slice.is_detected_as("Example(R) One"));
        assert_eq!(spec.peak_gflops(DType::F32), Some(100.0));
        assert_eq!(spec.peak_gflops(DType::F16), None);
    }

    #[test]
    fn bad_files_name_the_key_and_the_line() {
        let unknown = SPEC.replace("bytes = 32768", "bites = 32768");
        let message = HardwareSpec::from_toml(&unknown).unwrap_err().to_string();
        assert!(message.contains("line 18") && message.contains("bites"), "{message}");
        let newer = SPEC.replace("schema_version = 2", "schema_version = 9\nnew_key = 1");
        let message = HardwareSpec::from_toml(&newer).unwrap_err().to_string();
        assert!(message.contains("schema_version is 9"), "{message}");
        let negative = SPEC.replace("gflops = 100.0", "gflops = -1.0");
        let message = HardwareSpec::from_toml(&negative).unwrap_err().to_string();
        assert!(message.contains("peak.gflops"), "{message}");
    }

    #[test]
    fn figures_that_cannot_be_are_refused_with_their_range() {
        for (from, to, expected) in [
            (
                "count = 4",
                "count = 0",
                "cores.count at line 12: it is 0; it must be between 1 and 1000000",
            ),
            ("count = 4", "count = 4, threads = 2", "fewer than cores"),
            (
                "count = 4",
                "count = 4, boost_clock_mhz = 5",
                "cores.boost_clock_mhz at line 12: it is 5",
            ),
            (
                "count = 4",
                "count = 4, base_clock_mhz = 3000, boost_clock_mhz = 2000",
                "above boost_clock_mhz",
            ),
            ("bandwidth_gb_per_s = 10.0", "bandwidth_gb_per_s = 1e18", "1000000 GB/s"),
            ("bandwidth_gb_per_s = 10.0", "bandwidth_gb_per_s = nan", "bandwidth_gb_per_s"),
            (
                "bandwidth_gb_per_s = 10.0, kind = \"DDR\", source = \"made up\"",
                "bandwidth_gb_per_s = 0.0, kind = \"DDR\", source = \"observed by calibrate\"",
                "it is 0; it must be between 0.01 and 1000000 GB/s",
            ),
            ("kind = \"DDR\"", "kind = \"DDR\", capacity_gib = -1.0", "capacity_gib"),
            ("level = 1", "level = 0", "cache.level at line 16: "),
            ("bytes = 32768", "bytes = 0", "cache.bytes at line 18: "),
            ("instances = 4", "instances = 0", "cache.instances at line 19: "),
            (
                "instances = 4",
                "instances = 5",
                "cache.instances at line 19: it is 5, and there are 4 threads",
            ),
            ("gflops = 100.0", "gflops = 1e15", "between 0.01 and 1000000000 GFLOP/s"),
            ("[\"Example(R) One\"]", "[\"\"]", "detect at line 10: it is empty"),
            ("[\"one\"]", "[\" \"]", "aliases at line 9: it is empty"),
            ("\"Example One\"", "\"\\u001b[2J\"", "name at line 5: it has a control character"),
        ] {
            let text = SPEC.replacen(from, to, 1);
            assert_ne!(text, SPEC, "{from}");
            let message = HardwareSpec::from_toml(&text).unwrap_err().to_string();
            assert!(message.contains(expected), "{to}: {message}");
            // The line that was changed.
            let changed = text.lines().zip(SPEC.lines()).position(|(one, other)| one != other);
            let line = format!(" at line {}: ", changed.unwrap() + 1);
            assert!(message.contains(&line), "{to}: {message}");
        }
    }
}
