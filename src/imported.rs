//! What another calibrator measured, brought into the project's words.
//!
//! Such a profile has times and no intervals: nobody knows how far they lie from those of the next
//! run. So it is a file of its own kind, which no cost model is made from, and which
//! [`compare`](crate::compare) shows beside a calibration without a verdict.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::cost::Traffic;
use crate::error::Error;
use crate::file_kind::FileKind;
use crate::place::{Place, Section, describe_at_top};
use crate::text_file;
use crate::vocabulary::{Backend, Problem};

/// The version of the format that this crate reads and writes.
pub const IMPORTED_SCHEMA_VERSION: u32 = 1;

/// A profile of another calibrator: a file of the kind [`FileKind::Imported`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportedProfile {
    /// What the file is: a [`FileKind::Imported`].
    pub kind: FileKind,
    /// Version of the file format.
    pub schema_version: u32,
    /// How many records the file has.
    pub num_records: u64,
    /// What of the original is impossible, missing or assumed, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Where it comes from.
    pub source: ImportSource,
    /// The machine, as far as the original says.
    pub machine: ImportedMachine,
    /// What the whole machine reached.
    pub rates: ImportedRates,
    /// Entries of the original that are not a chain here.
    #[serde(default, rename = "left_out", skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// One record per chain.
    #[serde(default, rename = "fusion", skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<ImportedRecord>,
}

/// Where an imported profile comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportSource {
    /// The project whose calibrator wrote it.
    pub project: String,
    /// Its licence, with the notice.
    pub licence: String,
    /// The name of the file.
    pub file: String,
    /// The calibrator's version.
    pub tool_version: String,
    /// When it was measured, as the original says.
    pub measured_at: String,
    /// What ran the kernels.
    pub framework: String,
}

/// The machine of an imported profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportedMachine {
    /// The id of its data sheet, or its name in lower case where there is none.
    pub id: String,
    /// Its name in the original.
    pub name: String,
    /// What ran the kernels.
    pub backend: Backend,
    /// Processors of the host; absent where the original does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<u32>,
    /// Memory of the host, in GiB.
    pub memory_gib: f64,
}

/// What the machine of an imported profile reached over what it was said to reach. The two shares
/// are computed here, whatever the original says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportedRates {
    /// The peak that the original assumes, in 10^9 flops per second.
    pub stated_peak_gflops: f64,
    /// The best rate of an operation.
    pub best_gflops: f64,
    /// The best rate over the stated peak.
    pub efficiency: f64,
    /// The bandwidth that the original assumes, in 10^9 bytes per second.
    pub stated_gb_per_s: f64,
    /// The bandwidth that it measured.
    pub measured_gb_per_s: f64,
    /// The measured bandwidth over the stated one.
    pub bandwidth_efficiency: f64,
}

/// An entry of the original that has no record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Its name in the original.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// The times of one chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportedRecord {
    /// The problem in its text form.
    pub problem: Problem,
    /// Its name in the original.
    pub name: String,
    /// Time of the unfused variant.
    pub unfused_latency_ms: f64,
    /// Time of the fused variant.
    pub fused_latency_ms: f64,
    /// Unfused time over fused time.
    pub speedup_factor: f64,
    /// Modelled bytes of the unfused variant.
    pub unfused_memory_bytes: u64,
    /// Modelled bytes of the fused variant.
    pub fused_memory_bytes: u64,
    /// Modelled share of bytes that fusion saves.
    pub memory_reduction: f64,
    /// Flops of the chain over the fused time, in 10^9 per second.
    pub fused_gflops: f64,
}

impl ImportedRecord {
    /// The record of two times; all else follows from them and the problem.
    #[must_use]
    pub fn of(problem: Problem, name: String, unfused_ms: f64, fused_ms: f64) -> Self {
        let traffic = Traffic::of(&problem);
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let fused_gflops = traffic.flops as f64 / fused_ms / 1e6;
        Self {
            problem,
            name,
            unfused_latency_ms: unfused_ms,
            fused_latency_ms: fused_ms,
            speedup_factor: unfused_ms / fused_ms,
            unfused_memory_bytes: traffic.unfused_bytes,
            fused_memory_bytes: traffic.fused_bytes,
            memory_reduction: traffic.memory_reduction(),
            fused_gflops,
        }
    }
}

/// No time in ms, rate in 10^9 per second or memory in GiB is more.
const MOST: f64 = 1e9;

impl ImportedProfile {
    /// Reads an imported profile.
    ///
    /// # Errors
    ///
    /// An error with the file, and the key and line of what is wrong.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = text_file::read(path)?;
        Self::from_toml(&text).map_err(|error| error.in_file(path))
    }

    /// Reads the text of an imported profile.
    ///
    /// # Errors
    ///
    /// An error with the key and line of what is wrong.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        FileKind::Imported.expect(text, IMPORTED_SCHEMA_VERSION)?;
        let profile: Self = toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
        profile.check(text)?;
        Ok(profile)
    }

    /// The text of the file.
    ///
    /// # Errors
    ///
    /// When a value is one that no reader would accept.
    pub fn to_toml(&self) -> Result<String, Error> {
        let text = toml::to_string_pretty(self).map_err(|error| invalid(error.to_string()))?;
        self.check(&text)?;
        Ok(text)
    }

    /// Checks that the profile with this text does not contradict itself.
    fn check(&self, text: &str) -> Result<(), Error> {
        if self.num_records != self.records.len() as u64 {
            let (said, found) = (self.num_records, self.records.len());
            let place = describe_at_top("num_records", text);
            return Err(invalid(format!("{place} is {said}, but it has {found} records")));
        }
        if self.machine.processors == Some(0) {
            let at = Section::only("machine").describe(Place::of("processors"), text);
            let why = "no machine has 0; leave it out where the original does not say";
            return Err(invalid(format!("{at}: {why}")));
        }
        self.check_rates(text)?;
        for (index, record) in self.records.iter().enumerate() {
            let contradiction = contradiction(record).or_else(|| {
                let problem = record.problem;
                let is_twice = self.records[..index].iter().any(|one| one.problem == problem);
                is_twice.then(|| ("problem", format!("{problem} is there twice; keep one")))
            });
            if let Some((key, why)) = contradiction {
                let at = Section::nth("fusion", index).describe(Place::of(key), text);
                return Err(invalid(format!("{at}: {}: {why}", record.name)));
            }
        }
        Ok(())
    }

    fn check_rates(&self, text: &str) -> Result<(), Error> {
        let ImportedRates {
            stated_peak_gflops,
            best_gflops,
            efficiency,
            stated_gb_per_s,
            measured_gb_per_s,
            bandwidth_efficiency,
        } = self.rates;
        let rates = Section::only("rates");
        for (section, key, number) in [
            (Section::only("machine"), "memory_gib", self.machine.memory_gib),
            (rates, "stated_peak_gflops", stated_peak_gflops),
            (rates, "best_gflops", best_gflops),
            (rates, "efficiency", efficiency),
            (rates, "stated_gb_per_s", stated_gb_per_s),
            (rates, "measured_gb_per_s", measured_gb_per_s),
            (rates, "bandwidth_efficiency", bandwidth_efficiency),
        ] {
            if !(0.0..=MOST).contains(&number) {
                let at = section.describe(Place::of(key), text);
                return Err(invalid(format!("{at}: {key} is {number}, which nothing can have")));
            }
        }
        for (key, given, reached, stated) in [
            ("efficiency", efficiency, best_gflops, stated_peak_gflops),
            ("bandwidth_efficiency", bandwidth_efficiency, measured_gb_per_s, stated_gb_per_s),
        ] {
            let expected = if stated > 0.0 { reached / stated } else { 0.0 };
            if !is_near(given, expected, 0.0) {
                let at = rates.describe(Place::of(key), text);
                let why = format!("{reached} of {stated} is {expected:.6}");
                return Err(invalid(format!("{at}: it is {given}, but {why}")));
            }
        }
        Ok(())
    }
}

/// The first key of a record that does not follow from its problem and its times, and why.
fn contradiction(record: &ImportedRecord) -> Option<(&'static str, String)> {
    let ImportedRecord { problem, unfused_latency_ms, fused_latency_ms, .. } = *record;
    for (key, ms) in
        [("unfused_latency_ms", unfused_latency_ms), ("fused_latency_ms", fused_latency_ms)]
    {
        if !(ms > 0.0 && ms <= MOST) {
            return Some((key, format!("a time must be a positive number up to {MOST:e} ms")));
        }
    }
    let expected = ImportedRecord::of(problem, String::new(), unfused_latency_ms, fused_latency_ms);
    for (key, given, expected) in [
        ("unfused_memory_bytes", record.unfused_memory_bytes, expected.unfused_memory_bytes),
        ("fused_memory_bytes", record.fused_memory_bytes, expected.fused_memory_bytes),
    ] {
        if given != expected {
            let why = format!("it is {given}, which is not that of {problem}, {expected}");
            return Some((key, why));
        }
    }
    for (key, given, expected, scale) in [
        ("speedup_factor", record.speedup_factor, expected.speedup_factor, 0.0),
        ("fused_gflops", record.fused_gflops, expected.fused_gflops, 0.0),
        ("memory_reduction", record.memory_reduction, expected.memory_reduction, 1.0),
    ] {
        if !is_near(given, expected, scale) {
            let why = format!(
                "it is {given}, which is not that of {problem} and its times, {expected:.6}"
            );
            return Some((key, why));
        }
    }
    None
}

/// Whether a number is what follows from others, but for the last of six digits. `scale` is the size
/// of those that it is a difference of. Nothing is near what is not a number.
fn is_near(given: f64, expected: f64, scale: f64) -> bool {
    (given - expected).abs() <= 3e-5 * expected.abs().max(scale)
}

fn invalid(reason: impl std::fmt::Display) -> Error {
    Error::invalid_file(FileKind::Imported.name(), reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> ImportedProfile {
        let problem = "linear_bias/f32/m8.k16.n8".parse().unwrap();
        let record = ImportedRecord::of(problem, "Linear_Bias".to_owned(), 3.0, 2.0);
        ImportedProfile {
            kind: FileKind::Imported,
            schema_version: IMPORTED_SCHEMA_VERSION,
            num_records: 1,
            notes: vec!["made up".to_owned()],
            source: ImportSource {
                project: "made up".to_owned(),
                licence: "none".to_owned(),
                file: "a.json".to_owned(),
                tool_version: "1".to_owned(),
                measured_at: "never".to_owned(),
                framework: "none".to_owned(),
            },
            machine: ImportedMachine {
                id: "one".to_owned(),
                name: "One".to_owned(),
                backend: Backend::Cpu,
                processors: Some(4),
                memory_gib: 8.0,
            },
            rates: ImportedRates {
                stated_peak_gflops: 100.0,
                best_gflops: 50.0,
                efficiency: 0.5,
                stated_gb_per_s: 10.0,
                measured_gb_per_s: 8.0,
                bandwidth_efficiency: 0.8,
            },
            left_out: vec![LeftOut { name: "x".to_owned(), reason: "no chain".to_owned() }],
            records: vec![record],
        }
    }

    #[test]
    fn it_comes_back_as_it_was_written() {
        let text = profile().to_toml().unwrap();
        assert_eq!(ImportedProfile::from_toml(&text).unwrap(), profile());
        assert_eq!(FileKind::of(&text), Some(FileKind::Imported));
        let refused = crate::calibration::HardwareCalibration::from_toml(&text).unwrap_err();
        assert!(refused.is_wrong_file() && refused.to_string().contains("an imported profile"));
    }

    #[test]
    fn contradictions_are_refused() {
        let message = |change: fn(&mut ImportedProfile)| {
            let mut changed = profile();
            change(&mut changed);
            changed.to_toml().unwrap_err().to_string()
        };
        assert!(message(|one| one.num_records = 2).contains("num_records at line 3 is 2"));
        let slower = |one: &mut ImportedProfile| one.records[0].speedup_factor = 1.4;
        assert!(message(slower).contains("not that of linear_bias"));
        for no_number in [f64::NAN, f64::INFINITY] {
            let mut changed = profile();
            changed.records[0].speedup_factor = no_number;
            assert!(changed.to_toml().unwrap_err().to_string().contains("not that of linear_bias"));
            let mut changed = profile();
            changed.rates.efficiency = no_number;
            assert!(changed.to_toml().unwrap_err().to_string().contains("efficiency is"));
        }
        let never = |one: &mut ImportedProfile| one.records[0].fused_latency_ms = 0.0;
        assert!(message(never).contains("positive"));
        let twice = |one: &mut ImportedProfile| {
            one.records.push(one.records[0].clone());
            one.num_records = 2;
        };
        assert!(message(twice).contains("is there twice"));
    }

    #[test]
    fn a_contradiction_is_named_with_its_key_and_line() {
        let text = profile().to_toml().unwrap();
        for (key, value, at) in [
            ("speedup_factor", "1.4", "[[fusion]] at line "),
            ("fused_memory_bytes", "1", "[[fusion]] at line "),
            ("processors", "0", "machine.processors at line "),
            ("best_gflops", "-1.0", "rates.best_gflops at line "),
            ("efficiency", "0.6", "rates.efficiency at line "),
            ("bandwidth_efficiency", "1e30", "rates.bandwidth_efficiency at line "),
            ("memory_gib", "nan", "machine.memory_gib at line "),
        ] {
            let is_key = |line: &&str| line.starts_with(&format!("{key} = "));
            let number = text.lines().position(|line| is_key(&line)).unwrap() + 1;
            let line = text.lines().nth(number - 1).unwrap();
            let changed = text.replacen(line, &format!("{key} = {value}"), 1);
            let message = ImportedProfile::from_toml(&changed).unwrap_err().to_string();
            assert!(message.contains(at), "{message}");
            assert!(message.contains(&format!("{key} at line {number}: ")), "{message}");
        }
    }
}
