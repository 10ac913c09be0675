//! What the format alone does not guarantee: that a file does not contradict itself.
//!
//! `run` holds the settings against the rest, `fingerprint` the hardware against what was observed of
//! it, `preflight` the checks before the run against both, `outcomes` their status against what they
//! found, `states` and `ceilings` what was measured of the machine, `runtime` the runtimes, `noise`
//! the A/A runs, `controls` and `floors` these against the records, `targets` where all was measured,
//! and `record` every record against its problem and against itself: its `times` and `steps`, the `width`
//! of its intervals, its `counts`, `kernels` and `gpu`, what follows from the `model`, its `verdict` and its
//! `reasons`. `limits` are what figures can be at all, and `timestamp` is what a point in time looks
//! like.

mod ceilings;
mod contradiction;
mod controls;
mod counts;
mod fingerprint;
mod floors;
mod gpu;
mod kernels;
mod limits;
mod model;
mod noise;
mod outcomes;
mod preflight;
mod reasons;
mod record;
mod run;
mod runtime;
mod states;
mod steps;
mod targets;
mod times;
mod timestamp;
mod verdict;
mod width;

use std::collections::HashMap;

use super::{Fingerprint, FusionRecord, HardwareCalibration, MeasuredCeilings, SCHEMA_VERSION};
use crate::cost::LeastTime;
use crate::error::Error;
use crate::file_kind::FileKind;
use crate::place::{Section, describe_at_top};
use crate::vocabulary::{Backend, CacheState, Clock, Implementation, Problem, Rewrite};

pub(super) use contradiction::invalid;

/// What makes a record unique in a file: two records with the same key would be two answers to
/// one question.
type RecordKey = (Problem, Backend, u32, CacheState, Clock, Implementation, Option<Rewrite>);

fn key(record: &FusionRecord) -> RecordKey {
    let FusionRecord { problem, backend, threads, cache_state, clock, implementation, .. } =
        *record;
    (problem, backend, threads, cache_state, clock, implementation, record.rewrite)
}

impl HardwareCalibration {
    /// Checks the values of a file with this text.
    pub(super) fn check(&self, text: &str) -> Result<(), Error> {
        if (self.kind, self.schema_version) != (FileKind::Calibration, SCHEMA_VERSION) {
            return Err(invalid(format!(
                "kind is {} and schema_version {}, not calibration and {SCHEMA_VERSION}",
                self.kind, self.schema_version
            )));
        }
        // Where the file was cut, all else that is wrong follows from that.
        self.check_number_of_records(text)?;
        run::check(self, text)?;
        fingerprint::check(self, text)?;
        preflight::check(self, text)?;
        ceilings::check(self, text)?;
        states::check(self, text)?;
        fingerprint::check_measured(self, text)?;
        runtime::check(self, text)?;
        noise::check(self, text)?;
        let mut seen = HashMap::new();
        for (index, record) in self.records.iter().enumerate() {
            let section = Section::nth("fusion", index);
            record::check(record, self).map_err(|wrong| wrong.within(section, text))?;
            if let Some(first) = seen.insert(key(record), index) {
                return Err(twice(record, Section::nth("fusion", first), section, text));
            }
        }
        noise::check_of_records(self, text)?;
        controls::check(self, text)?;
        floors::check(self, text)?;
        targets::check(self, text)?;
        states::check_of_one_run(self, text)
    }

    /// What a record contradicts, of itself or of the rest; `None` where it is sound.
    #[must_use]
    pub fn contradiction_of(&self, record: &FusionRecord) -> Option<String> {
        record::check(record, self).err().map(|wrong| wrong.to_string())
    }

    fn check_number_of_records(&self, text: &str) -> Result<(), Error> {
        if self.num_records == self.records.len() as u64 {
            return Ok(());
        }
        Err(invalid(format!(
            "{} is {}, but it has {} [[fusion]] records: it is incomplete; calibrate again, or \
             correct num_records if you changed the records yourself",
            describe_at_top("num_records", text),
            self.num_records,
            self.records.len()
        )))
    }

    /// The least time that the ceilings allow in any of the states in which a record was measured; `None`
    /// where there are none of its kind.
    fn least_time(&self, record: &FusionRecord) -> Option<LeastTime> {
        let FusionRecord { problem, dtype, clock, states, .. } = record;
        let met = MeasuredCeilings::that_bound(&self.ceilings, *dtype, *clock, states);
        met.filter_map(|ceilings| ceilings.least_time(problem)).reduce(LeastTime::or_less)
    }

    /// The memory that kernels have: that of the GPU, where there is one.
    fn memory_bytes(&self) -> u64 {
        let Fingerprint { gpu, memory_bytes, .. } = &self.fingerprint;
        gpu.as_ref().map_or(*memory_bytes, |gpu| gpu.memory_bytes)
    }

    /// Whether all of its records are of one run.
    fn is_of_one_run(&self) -> bool {
        self.additions.is_empty()
    }
}

fn twice(record: &FusionRecord, first: Section, second: Section, text: &str) -> Error {
    let line = |section: Section| section.line(text).unwrap_or_default();
    invalid(format!(
        "[[fusion]] at line {} and the one at line {} are both for {} on {} with {} threads, the {} \
         clock and {} kernels{}; keep one",
        line(second),
        line(first),
        record.problem,
        record.backend,
        record.threads,
        record.clock,
        record.implementation,
        record.rewrite.map(|rewrite| format!(", {rewrite}")).unwrap_or_default(),
    ))
}
