//! What measured records say of fusions that were found in traces.
//!
//! For each pattern that is like the fusion, the range of the measured speedups over all sizes is said,
//! with their intervals; `patterns` says which are. Where the trace says the sizes of what is fused, the
//! cost model is asked about these (`at_size`).

mod at_size;
mod patterns;

use std::collections::BTreeMap;

use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Verdict};
use fusion_cost_model::{Backend, Clock, DType, FusionCostModel, Implementation};
use serde::Serialize;

use super::Fusion;
pub use at_size::EstimatedSpeedup;

/// What a calibration file says of a fusion.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FusionRecords {
    /// The fusion, as an index into the list of a comparison.
    pub fusion: usize,
    /// The calibration file.
    pub file: String,
    /// The machine that was measured.
    pub hardware: String,
    /// The patterns that are like the fusion; empty if nothing like it can be measured.
    pub patterns: Vec<&'static str>,
    /// What was measured of them; empty if the file has no record.
    pub measured: Vec<MeasuredPattern>,
    /// What they gain at the sizes in the trace; empty if those are not known, or further from what was
    /// measured than the model interpolates.
    pub at_size: Vec<EstimatedSpeedup>,
}

/// The records of one pattern on one backend with one dtype.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MeasuredPattern {
    /// The pattern.
    pub pattern: &'static str,
    /// Where it ran.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub backend: Backend,
    /// The dtype.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
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
    // Making a model takes time, and most traces do not say sizes.
    let has_sizes = fusions.iter().any(|fusion| fusion.problem.is_some());
    let model = has_sizes.then(|| FusionCostModel::new(calibration.clone()));
    let of = |(index, fusion): (usize, &Fusion)| {
        let patterns = patterns::patterns(&fusion.operation, &fusion.separate);
        FusionRecords {
            fusion: index,
            file: file.to_owned(),
            hardware: calibration.hardware.name.clone(),
            patterns: patterns.to_vec(),
            measured: patterns.iter().flat_map(|name| measured(name, calibration)).collect(),
            at_size: model
                .iter()
                .flat_map(|model| at_size::estimates(patterns, fusion.problem.as_deref(), model))
                .collect(),
        }
    };
    fusions.iter().enumerate().map(of).collect()
}

fn measured(pattern: &'static str, calibration: &HardwareCalibration) -> Vec<MeasuredPattern> {
    let mut groups: BTreeMap<(&str, &str), Vec<&FusionRecord>> = BTreeMap::new();
    // The times of kernels in a trace contain no launches, and records by another clock or of other
    // kernels would be other answers to the same question.
    let is_like_it = |record: &&FusionRecord| {
        record.fusion_pattern == pattern
            && record.clock != Clock::LaunchInclusive
            && record.implementation == Implementation::Native
    };
    for record in calibration.records.iter().filter(is_like_it) {
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
        let all = measured.iter().map(MeasuredPattern::sentence);
        let at_size = self.at_size.iter().map(EstimatedSpeedup::sentence);
        all.chain(at_size).map(|sentence| format!("{file} ({hardware}): {sentence}")).collect()
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
        let speedup = |one: &MeasuredSpeedup| {
            let MeasuredSpeedup { speedup, low, high, .. } = one;
            format!("{speedup:.3} [{low:.3}, {high:.3}]")
        };
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
            let are = if *invalid == 1 { "is" } else { "are" };
            text.push_str(&format!("; {invalid} more {are} invalid and not counted"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{FusionEvidence, Part, Role, Which};

    fn fusion(operation: &str) -> Fusion {
        Fusion {
            fused_by: Which::First,
            operation: operation.to_owned(),
            fused_kernel: String::new(),
            separate: Vec::new(),
            separate_kernels: Vec::new(),
            role: Role::Outside,
            per_step: 1.0,
            count: 1,
            part: Part::default(),
            confidence: 1.0,
            by: FusionEvidence::Name,
            excess: None,
            problem: None,
            evidence: String::new(),
        }
    }

    /// A file with records of `add_layernorm` with these speedups; those without one are invalid.
    fn calibration(speedups: &[Option<f64>]) -> HardwareCalibration {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../calibrate/profiles/calibrations/intel-xeon-2-threads.toml"
        );
        let mut calibration = HardwareCalibration::load(path).unwrap();
        let like = calibration.records.iter().find(|one| one.fusion_pattern == "add_layernorm");
        let like = like.unwrap().clone();
        let record = |speedup: &Option<f64>| {
            let mut record = like.clone();
            let value = speedup.unwrap_or(100.0);
            record.verdict = if speedup.is_some() { Verdict::Faster } else { Verdict::Invalid };
            record.speedup_factor = value;
            (record.speedup_low, record.speedup_high) = (value - 0.1, value + 0.1);
            record
        };
        calibration.records = speedups.iter().map(record).collect();
        calibration.hardware.name = "X".to_owned();
        calibration
    }

    fn sentences(operation: &str, speedups: &[Option<f64>]) -> Vec<String> {
        let records = fusion_records(&[fusion(operation)], "f.toml", &calibration(speedups));
        assert_eq!(records.len(), 1);
        records[0].sentences()
    }

    #[test]
    fn the_range_of_valid_records_with_their_intervals() {
        let found = sentences("ADD+NORM", &[Some(1.5), None, Some(1.2), Some(1.3)]);
        let expected = "f.toml (X): add_layernorm (cpu, f32), 3 records over their sizes: speedup \
                        from 1.200 [1.100, 1.300] to 1.500 [1.400, 1.600]; 1 more is invalid and \
                        not counted";
        assert_eq!(found, [expected]);
        let found = sentences("ADD+NORM", &[Some(1.5)]);
        let expected =
            "f.toml (X): add_layernorm (cpu, f32), 1 record: speedup 1.500 [1.400, 1.600]";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn there_is_no_number_where_nothing_was_measured() {
        assert_eq!(sentences("ADD+NORM", &[]), ["f.toml (X) has no record of add_layernorm"]);
        assert_eq!(
            sentences("GEMM+ACT", &[Some(2.0)]),
            ["f.toml (X) has no record of linear_bias_relu or linear_bias_gelu"]
        );
        assert_eq!(
            sentences("ADD+NORM", &[None, None]),
            ["f.toml (X): 2 records of add_layernorm (cpu, f32), none of them valid"]
        );
        let none = "no pattern that calibrate measures is like this fusion";
        assert_eq!(sentences("ROPE+KVCACHE", &[Some(2.0)]), [none]);
    }
}
