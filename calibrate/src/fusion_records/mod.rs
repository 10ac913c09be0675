//! What measured records say of fusions that were found in traces.
//!
//! A trace does not tell the sizes of a kernel's tensors, so that no record can be picked for it.
//! What is said is the range of the measured speedups over all sizes, with their intervals, for
//! each pattern that is like the fusion. `patterns` says which are.

mod patterns;

use std::collections::BTreeMap;

use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Verdict};
use fusion_cost_model::{Backend, DType};
use kernel_traces::compare::Fusion;
use serde::Serialize;

/// What a calibration file says of a fusion.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FusionRecords {
    /// The fusion, as an index into the list of a comparison.
    pub fusion: usize,
    /// The calibration file.
    pub file: String,
    /// The machine that was measured.
    pub hardware: String,
    /// The patterns that are like the fusion; none if nothing like it can be measured.
    pub patterns: Vec<&'static str>,
    /// What was measured of them; none if the file has no record.
    pub measured: Vec<MeasuredPattern>,
}

/// The records of one pattern on one backend in one number format.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredPattern {
    /// The pattern.
    pub pattern: &'static str,
    /// Where it ran.
    pub backend: Backend,
    /// The number format.
    pub dtype: DType,
    /// How many records there are, each of its own sizes, threads and caches, that may be used.
    pub records: usize,
    /// How many may not, as their verdict is INVALID.
    pub invalid: usize,
    /// How many records have each verdict.
    pub verdicts: BTreeMap<&'static str, usize>,
    /// The record with the least speedup.
    pub lowest: Option<MeasuredSpeedup>,
    /// The record with the greatest speedup.
    pub highest: Option<MeasuredSpeedup>,
}

/// The speedup of a record: unfused time over fused time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredSpeedup {
    /// What was measured.
    pub problem: String,
    /// The speedup.
    pub speedup: f64,
    /// The lower end of its interval of 95 %.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl MeasuredSpeedup {
    fn of(record: &FusionRecord) -> Self {
        Self {
            problem: record.problem.to_string(),
            speedup: record.speedup_factor,
            low: record.speedup_low,
            high: record.speedup_high,
        }
    }
}

/// What a calibration file says of each fusion.
#[must_use]
pub fn fusion_records(
    fusions: &[Fusion],
    file: &str,
    calibration: &HardwareCalibration,
) -> Vec<FusionRecords> {
    let of = |(index, fusion): (usize, &Fusion)| {
        let patterns = patterns::patterns(&fusion.operation, &fusion.separate);
        FusionRecords {
            fusion: index,
            file: file.to_owned(),
            hardware: calibration.hardware.name.clone(),
            patterns: patterns.to_vec(),
            measured: patterns.iter().flat_map(|name| measured(name, calibration)).collect(),
        }
    };
    fusions.iter().enumerate().map(of).collect()
}

fn measured(pattern: &'static str, calibration: &HardwareCalibration) -> Vec<MeasuredPattern> {
    let mut groups: BTreeMap<(&str, &str), Vec<&FusionRecord>> = BTreeMap::new();
    for record in calibration.records.iter().filter(|record| record.fusion_pattern == pattern) {
        groups.entry((record.backend.name(), record.dtype.name())).or_default().push(record);
    }
    groups.into_values().filter_map(|records| summed_up(pattern, &records)).collect()
}

fn summed_up(pattern: &'static str, records: &[&FusionRecord]) -> Option<MeasuredPattern> {
    let first = records.first()?;
    let mut valid: Vec<&FusionRecord> =
        records.iter().copied().filter(|record| record.verdict != Verdict::Invalid).collect();
    valid.sort_by(|a, b| a.speedup_factor.total_cmp(&b.speedup_factor));
    let mut verdicts = BTreeMap::new();
    for record in records {
        *verdicts.entry(record.verdict.name()).or_default() += 1;
    }
    Some(MeasuredPattern {
        pattern,
        backend: first.backend,
        dtype: first.dtype,
        records: valid.len(),
        invalid: records.len() - valid.len(),
        verdicts,
        lowest: valid.first().map(|record| MeasuredSpeedup::of(record)),
        highest: valid.last().map(|record| MeasuredSpeedup::of(record)),
    })
}

impl FusionRecords {
    /// In words: a sentence for each pattern, or one that says that there is nothing.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let Self { file, hardware, patterns, measured, .. } = self;
        if patterns.is_empty() {
            return vec!["no pattern that calibrate measures is like this fusion".to_owned()];
        }
        if measured.is_empty() {
            let patterns = patterns.join(" or ");
            return vec![format!("{file} ({hardware}) has no record of {patterns}")];
        }
        let sentence = |one: &MeasuredPattern| format!("{file} ({hardware}): {}", one.sentence());
        measured.iter().map(sentence).collect()
    }
}

impl MeasuredPattern {
    fn sentence(&self) -> String {
        let Self { pattern, backend, dtype, records, invalid, lowest, highest, .. } = self;
        let (Some(lowest), Some(highest)) = (lowest, highest) else {
            let noun = if *invalid == 1 { "record" } else { "records" };
            return format!(
                "{invalid} {noun} of {pattern} ({backend}, {dtype}), none of them valid"
            );
        };
        let speedup = |one: &MeasuredSpeedup| crate::report::ratio(one.speedup, one.low, one.high);
        let mut text = if *records == 1 {
            let speedup = speedup(lowest);
            format!("{pattern} ({backend}, {dtype}), 1 record: speedup {speedup}")
        } else {
            format!(
                "{pattern} ({backend}, {dtype}), {records} records over their sizes: speedup from \
                 {} to {}",
                speedup(lowest),
                speedup(highest)
            )
        };
        if *invalid > 0 {
            text.push_str(&format!("; {invalid} more are invalid and not counted"));
        }
        text
    }
}
