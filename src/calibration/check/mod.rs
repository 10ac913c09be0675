//! What the format alone does not guarantee: that a file does not contradict itself.
//!
//! `record` holds every record against its problem and against itself; `place` finds the line of a
//! key.

mod place;
mod record;

use std::collections::HashMap;

use super::{CeilingsSpread, MeasuredCeilings};
use super::{
    FusionRecord, HardwareCalibration, MachineState, NoiseFloor, SCHEMA_VERSION, Settings,
};
use crate::cost::{BandwidthPoint, Ceilings};
use crate::error::Error;
use crate::file_kind::FileKind;
use crate::vocabulary::{Backend, CacheState, Clock, Implementation, Problem, Rewrite};

/// What makes a record unique in a file: two records with the same key would be two answers to
/// one question.
type RecordKey = (Problem, Backend, u32, CacheState, Clock, Implementation, Option<Rewrite>);

fn key(record: &FusionRecord) -> RecordKey {
    let FusionRecord { problem, backend, threads, cache_state, clock, implementation, .. } =
        *record;
    (problem, backend, threads, cache_state, clock, implementation, record.rewrite)
}

pub(super) fn invalid(reason: impl std::fmt::Display) -> Error {
    Error::invalid_file(FileKind::Calibration.name(), reason)
}

/// Whether a number is a rate or a time that can be.
fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
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
        self.hardware.check().map_err(|reason| invalid(format!("hardware: {reason}")))?;
        check_settings(&self.settings).map_err(|reason| invalid(format!("settings: {reason}")))?;
        for ceilings in &self.ceilings {
            check_ceilings(ceilings).map_err(|reason| invalid(format!("ceilings: {reason}")))?;
        }
        self.check_states()?;
        for noise in &self.noise {
            check_noise(noise).map_err(|reason| invalid(format!("noise: {reason}")))?;
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
            record::check(record, &self.ceilings).map_err(|wrong| {
                invalid(format!("{}: {}", wrong.place.describe(text, index), wrong.why))
            })?;
            if let Some(first) = seen.insert(key(record), index) {
                return Err(invalid(format!(
                    "[[fusion]] at line {} and the one at line {} are both for {} on {} with {} \
                     threads, the {} clock and {} kernels{}; keep one",
                    place::line_of_record(text, index),
                    place::line_of_record(text, first),
                    record.problem,
                    record.backend,
                    record.threads,
                    record.clock,
                    record.implementation,
                    record.rewrite.map(|rewrite| format!(", {rewrite}")).unwrap_or_default(),
                )));
            }
        }
        Ok(())
    }

    /// Checks that states are numbered from 1 in order, and that nothing names another one.
    fn check_states(&self) -> Result<(), Error> {
        for (state, expected) in self.states.iter().zip(1..) {
            let MachineState { id, handoff_us, triad_gb_per_s, triad_range, .. } = state;
            if *id != expected {
                return Err(invalid(format!("state: id is {id}; states are numbered from 1")));
            }
            let rates = [*triad_gb_per_s, triad_range[0], triad_range[1]];
            if !(rates.into_iter().chain(*handoff_us).all(is_positive) && triad_range.is_sorted()) {
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

fn check_settings(settings: &Settings) -> Result<(), String> {
    let Settings { processes, most_processes, rounds, spread_s, time_budget_s, .. } = *settings;
    if processes == 0 || rounds == 0 {
        return Err("processes and rounds must be at least 1".to_owned());
    }
    if most_processes < processes {
        return Err(format!("most_processes is {most_processes}, and processes {processes}"));
    }
    let is_time = |seconds: f64| seconds.is_finite() && seconds >= 0.0;
    if !(is_time(spread_s) && time_budget_s.is_none_or(is_time)) {
        return Err("spread_s and time_budget_s must be numbers of at least 0".to_owned());
    }
    Ok(())
}

fn check_ceilings(measured: &MeasuredCeilings) -> Result<(), String> {
    let Ceilings { peak_gflops, launch_us, ref bandwidth } = measured.ceilings;
    let good_point = |point: &BandwidthPoint| {
        let rates = [point.nontemporal_gb_per_s, point.read_gb_per_s];
        is_positive(point.gb_per_s) && rates.into_iter().flatten().all(is_positive)
    };
    let good_launch = launch_us.is_finite() && launch_us >= 0.0;
    if !(is_positive(peak_gflops) && good_launch && bandwidth.iter().all(good_point)) {
        return Err("rates must be positive numbers".to_owned());
    }
    if !bandwidth.is_sorted_by(|a, b| a.working_set_bytes < b.working_set_bytes) {
        return Err("the working sets of the bandwidth must increase".to_owned());
    }
    let Some(CeilingsSpread { measurements, lowest_peak_gflops, highest_launch_us, .. }) =
        measured.spread
    else {
        return Ok(());
    };
    let lowest = measured.spread.and_then(|spread| spread.lowest_memory_gb_per_s);
    let in_memory = bandwidth.last().map(|point| point.gb_per_s);
    let good_memory = lowest.is_none_or(|lowest| {
        is_positive(lowest) && in_memory.is_some_and(|highest| lowest <= highest)
    });
    let good_peak = is_positive(lowest_peak_gflops) && lowest_peak_gflops <= peak_gflops;
    let good_launch = highest_launch_us.is_finite() && highest_launch_us >= launch_us;
    if !(measurements >= 2 && good_peak && good_launch && good_memory) {
        return Err("the spread must be that of several measurements, and hold the best".to_owned());
    }
    Ok(())
}

fn check_noise(noise: &NoiseFloor) -> Result<(), String> {
    let ends = [noise.ratio_low, noise.ratio, noise.ratio_high];
    if !(ends.iter().all(|end| is_positive(*end)) && ends.is_sorted()) {
        return Err("a ratio must be positive and lie within its interval".to_owned());
    }
    if !(noise.standard_error.is_finite() && noise.standard_error >= 0.0) {
        return Err("standard_error must be a number of at least 0".to_owned());
    }
    Ok(())
}
