//! Reading and writing calibration files.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{
    FusionRecord, HardwareCalibration, MachineState, NoiseFloor, SCHEMA_VERSION, StateSpeedup,
};
use crate::cost::BandwidthPoint;
use crate::error::{Error, ErrorKind};
use crate::file_kind::FileKind;
use crate::vocabulary::{Backend, CacheState, Clock, Implementation, Problem};

/// What makes a record unique in a file: two records with the same key would be two answers to
/// one question.
pub(crate) type RecordKey = (Problem, Backend, u32, CacheState, Clock, Implementation);

impl FusionRecord {
    pub(crate) fn key(&self) -> RecordKey {
        let Self { problem, backend, threads, cache_state, clock, implementation, .. } = *self;
        (problem, backend, threads, cache_state, clock, implementation)
    }
}

impl HardwareCalibration {
    /// Reads a calibration file.
    ///
    /// # Errors
    ///
    /// An error with the file, and the key and line of what is wrong.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = fs::read_to_string(path)
            .map_err(|source| ErrorKind::Read { path: path.to_owned(), source })?;
        Self::from_toml(&text).map_err(|error| error.in_file(path))
    }

    /// Reads the text of a calibration file.
    ///
    /// # Errors
    ///
    /// An error with the key and line of what is wrong.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        FileKind::Calibration.expect(text, SCHEMA_VERSION)?;
        if !text.ends_with('\n') {
            return Err(invalid("it is incomplete: its last line has no end; calibrate again"));
        }
        let calibration: Self = toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
        calibration.check(text)?;
        Ok(calibration)
    }

    /// The text of the calibration file.
    ///
    /// # Errors
    ///
    /// When a value has no TOML form.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string_pretty(self).map_err(|error| invalid(error.to_string()))
    }

    /// Writes the file so that a reader sees the old contents or the new, never a part: into a
    /// temporary file next to it, flushed to the disk, then renamed over it.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, or a value is one that no reader would accept.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let text = self.to_toml()?;
        // What could not be read back must not take the place of what can.
        self.check(&text).map_err(|error| error.in_file(path))?;
        let temporary = temporary_beside(path);
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, path)
        };
        write().map_err(|source| {
            // Best effort: the error that matters is the one above.
            let _ = fs::remove_file(&temporary);
            ErrorKind::Write { path: path.to_owned(), source }.into()
        })
    }

    /// Checks what the format alone does not guarantee.
    fn check(&self, text: &str) -> Result<(), Error> {
        if (self.kind, self.schema_version) != (FileKind::Calibration, SCHEMA_VERSION) {
            return Err(invalid(format!(
                "kind is {} and schema_version {}, not calibration and {SCHEMA_VERSION}",
                self.kind, self.schema_version
            )));
        }
        self.hardware.check().map_err(|reason| invalid(format!("hardware: {reason}")))?;
        for ceilings in &self.ceilings {
            let ceilings = &ceilings.ceilings;
            let good = |rate: f64| rate.is_finite() && rate > 0.0;
            let good_point = |point: &BandwidthPoint| {
                let rates = [point.nontemporal_gb_per_s, point.read_gb_per_s];
                good(point.gb_per_s) && rates.into_iter().flatten().all(good)
            };
            let good_launch = ceilings.launch_us.is_finite() && ceilings.launch_us >= 0.0;
            if !(good(ceilings.peak_gflops)
                && good_launch
                && ceilings.bandwidth.iter().all(good_point))
            {
                return Err(invalid("ceilings: rates must be positive numbers"));
            }
            if !ceilings.bandwidth.is_sorted_by(|a, b| a.working_set_bytes < b.working_set_bytes) {
                return Err(invalid("ceilings: the working sets of the bandwidth must increase"));
            }
        }
        self.check_states()?;
        for noise in &self.noise {
            let ends = [noise.ratio_low, noise.ratio, noise.ratio_high];
            if !(ends.iter().all(|end| end.is_finite() && *end > 0.0) && ends.is_sorted()) {
                return Err(invalid("noise: a ratio must be positive and lie within its interval"));
            }
        }
        let bad_error =
            |noise: &NoiseFloor| !noise.standard_error.is_finite() || noise.standard_error < 0.0;
        if self.noise.iter().any(bad_error) {
            return Err(invalid("noise: standard_error must be a number of at least 0"));
        }
        if self.num_records != self.records.len() as u64 {
            return Err(invalid(format!(
                "num_records is {}, but it has {} [[fusion]] records: it is incomplete; calibrate \
                 again, or correct num_records if you changed the records yourself",
                self.num_records,
                self.records.len()
            )));
        }
        let mut seen = HashMap::new();
        for (index, record) in self.records.iter().enumerate() {
            let place = || format!("[[fusion]] at line {}", line_of_record(text, index));
            record.check().map_err(|reason| invalid(format!("{}: {reason}", place())))?;
            if let Some(first) = seen.insert(record.key(), index) {
                return Err(invalid(format!(
                    "{} and the one at line {} are both for {} on {} with {} threads, the {} \
                     clock and {} kernels; keep one",
                    place(),
                    line_of_record(text, first),
                    record.problem,
                    record.backend,
                    record.threads,
                    record.clock,
                    record.implementation,
                )));
            }
        }
        Ok(())
    }
}

impl HardwareCalibration {
    /// Checks that states are numbered from 1 in order, and that nothing names another one.
    fn check_states(&self) -> Result<(), Error> {
        let good = |rate: f64| rate.is_finite() && rate > 0.0;
        for (state, expected) in self.states.iter().zip(1..) {
            let MachineState { id, handoff_us, triad_gb_per_s, triad_range, .. } = state;
            if *id != expected {
                return Err(invalid(format!("state: id is {id}; states are numbered from 1")));
            }
            let rates = [*triad_gb_per_s, triad_range[0], triad_range[1]];
            if !(rates.into_iter().chain(*handoff_us).all(good) && triad_range.is_sorted()) {
                return Err(invalid(format!("state {id}: its figures must be positive numbers")));
            }
        }
        let of_records = self.records.iter().flat_map(|record| {
            let by_state = record.by_state.iter().map(|one| one.state);
            record.states.iter().copied().chain(by_state)
        });
        let named = self.ceilings.iter().filter_map(|one| one.state).chain(of_records);
        let count = self.states.len();
        match named.into_iter().find(|id| *id == 0 || *id as usize > count) {
            Some(id) => Err(invalid(format!("state {id} is named, and there are {count} states"))),
            None => Ok(()),
        }
    }
}

impl FusionRecord {
    fn check(&self) -> Result<(), String> {
        let positive = [
            ("unfused_latency_ms", self.unfused_latency_ms),
            ("fused_latency_ms", self.fused_latency_ms),
            ("speedup_factor", self.speedup_factor),
            ("speedup_low", self.speedup_low),
            ("speedup_high", self.speedup_high),
        ];
        for (key, value) in positive {
            if !(value.is_finite() && value > 0.0) {
                return Err(format!("{key} is {value}; it must be a positive number"));
            }
        }
        if !(self.speedup_low <= self.speedup_factor && self.speedup_factor <= self.speedup_high) {
            return Err(format!(
                "speedup_factor {} is outside its interval {} to {}",
                self.speedup_factor, self.speedup_low, self.speedup_high
            ));
        }
        for StateSpeedup { state, speedup_factor, speedup_low, speedup_high, .. } in &self.by_state
        {
            let ends = [*speedup_low, *speedup_factor, *speedup_high];
            if !(ends.iter().all(|end| end.is_finite() && *end > 0.0) && ends.is_sorted()) {
                return Err(format!(
                    "by_state: the speedup in state {state} is not in its interval"
                ));
            }
        }
        if self.order_sensitivity.is_some_and(|off| !off.is_finite()) {
            return Err("order_sensitivity must be a number".to_owned());
        }
        let ops: Vec<&str> = self.problem.chain().iter().map(|op| op.name()).collect();
        if self.operators != ops || self.num_operators as usize != ops.len() {
            return Err(format!(
                "operators are not those of {}, which are {}",
                self.problem,
                ops.join(", ")
            ));
        }
        if (self.backend == Backend::Cpu) != self.clock.is_host() {
            return Err(format!("there is no {} clock on {}", self.clock, self.backend));
        }
        if self.dtype != self.problem.dtype() {
            return Err(format!("dtype {} is not that of {}", self.dtype, self.problem));
        }
        Ok(())
    }
}

fn invalid(reason: impl std::fmt::Display) -> Error {
    Error::invalid_file(FileKind::Calibration.name(), reason)
}

/// The line of the `index`-th `[[fusion]]` header, from 1.
fn line_of_record(text: &str, index: usize) -> usize {
    let headers = text.lines().enumerate().filter(|(_, line)| line.trim() == "[[fusion]]");
    headers.map(|(line, _)| line + 1).nth(index).unwrap_or(0)
}

/// A name in the same folder, so that the rename stays on one file system.
fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}
