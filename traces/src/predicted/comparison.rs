//! Predicted against measured times, type by type.

use std::collections::BTreeMap;

use serde::Serialize;

use super::attribution::{Attribution, PredictedKernel};
use super::measured::{Measured, MeasuredKernels, Skipped};
use super::{InputWarning, ModelTrace, OpMap, Passes, Process, Rules};

/// Where the predicted time of a type comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// All of it is known from measurements.
    Hit,
    /// All of it is only estimated.
    Miss,
    /// Some is known and some estimated.
    Partial,
    /// There is none: the type was only measured.
    Unmodelled,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Hit, Self::Miss, Self::Partial, Self::Unmodelled];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hit => "HIT",
            Self::Miss => "MISS",
            Self::Partial => "PARTIAL",
            Self::Unmodelled => "UNMODELLED",
        }
    }

    fn of(predicted: Option<&PredictedKernel>) -> Self {
        match predicted {
            None => Self::Unmodelled,
            Some(kernel) if kernel.hits > 0 && kernel.misses > 0 => Self::Partial,
            Some(kernel) if kernel.hits > 0 => Self::Hit,
            Some(_) => Self::Miss,
        }
    }
}

/// A type of kernel. Measured figures are for one pass.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The type.
    pub kernel_type: String,
    /// The operators that run it by the model, in the order in which they first occur.
    pub operators: Vec<String>,
    /// The time by the model.
    pub predicted_us: f64,
    /// The part of it that the model knows from measurements.
    pub hit_us: f64,
    /// The part of it that the model only estimates.
    pub miss_us: f64,
    /// How many kernels there are by the model.
    pub predicted_count: u64,
    /// The time that was measured.
    pub measured_us: f64,
    /// How many kernels were measured; a fraction if the passes differ.
    pub measured_count: f64,
    /// Predicted less measured time.
    pub error_us: f64,
    /// The same in per cent of the measured time; none without such a time.
    pub error_pct: Option<f64>,
    /// Predicted less measured count, in per cent of the latter; none if nothing was measured.
    pub count_error_pct: Option<f64>,
    /// The size of the error in per cent of the sizes of all errors together.
    pub error_share_pct: f64,
    /// Where the predicted time comes from.
    pub status: Status,
}

/// Sums over all rows.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Totals {
    /// The time by the model.
    pub predicted_us: f64,
    /// The time that was measured.
    pub measured_us: f64,
    /// Predicted less measured time. Errors of opposite sign cancel in it.
    pub error_us: f64,
    /// The same in per cent of the measured time; none without such a time.
    pub error_pct: Option<f64>,
    /// The sizes of the errors of all rows. Nothing cancels in it.
    pub absolute_error_us: f64,
    /// The same in per cent of the measured time, which is the mean of the rows' errors weighted by
    /// their measured times: the three parts below together. None if there is no such time.
    pub wmape_pct: Option<f64>,
    /// The part of it in rows that were predicted and measured.
    pub wmape_matched_pct: Option<f64>,
    /// The part of it in rows that were only measured: their share of the measured time.
    pub wmape_unmodelled_pct: Option<f64>,
    /// The part of it in rows that were only predicted: their time over the measured time.
    pub wmape_model_only_pct: Option<f64>,
}

/// How many rows there are of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RowCounts {
    /// All.
    pub rows: usize,
    /// Those whose predicted time is known from measurements.
    pub hit: usize,
    /// Those whose predicted time is only estimated.
    pub miss: usize,
    /// Those with time of both kinds.
    pub partial: usize,
    /// Those that were only measured.
    pub unmodelled: usize,
    /// Those that were only predicted: hits, misses or both.
    pub model_only: usize,
}

/// Predicted against measured times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The process of the model's trace.
    pub process: Process,
    /// How many passes were measured.
    pub passes: u64,
    /// Sums over all rows.
    pub totals: Totals,
    /// How many rows there are.
    pub counts: RowCounts,
    /// How many events of the model were left out because their operator costs nothing.
    pub zero_cost_events: u64,
    /// What was left out of the measured rows.
    pub skipped: Skipped,
    /// What is to be known of the inputs.
    pub warnings: Vec<InputWarning>,
    /// The types, by the larger of their two times.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// Compares what a model predicts with what was measured.
    #[must_use]
    pub fn of(
        model: &ModelTrace,
        map: &OpMap,
        measured: &Measured,
        passes: Passes,
        rules: Rules,
    ) -> Self {
        let predicted = Attribution::of(model, map, rules);
        let mut types: BTreeMap<&str, (Option<&PredictedKernel>, Option<&MeasuredKernels>)> =
            BTreeMap::new();
        for kernel in &predicted.kernels {
            types.entry(&kernel.kernel_type).or_default().0 = Some(kernel);
        }
        for kernels in &measured.kernels {
            types.entry(&kernels.kernel_type).or_default().1 = Some(kernels);
        }
        let row = |(name, (predicted, measured))| Row::of(name, predicted, measured, passes);
        let mut rows: Vec<Row> = types.into_iter().map(row).collect();
        let totals = Totals::of(&rows);
        for row in &mut rows {
            row.error_share_pct =
                percent(row.error_us.abs(), totals.absolute_error_us).unwrap_or_default();
        }
        // Rows of the same size stay in the order of their names.
        let size = |row: &Row| row.predicted_us.max(row.measured_us);
        rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
        let warnings = [&map.warnings, &model.warnings, &predicted.warnings, &measured.warnings];
        Self {
            process: model.process.clone(),
            passes: passes.get(),
            totals,
            counts: RowCounts::of(&rows),
            zero_cost_events: predicted.zero_cost,
            skipped: measured.skipped,
            warnings: warnings.into_iter().flatten().cloned().collect(),
            rows,
        }
    }

    /// The rows with an error, the largest first.
    #[must_use]
    pub fn worst(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().filter(|row| row.error_us != 0.0).collect();
        rows.sort_by(|a, b| b.error_us.abs().total_cmp(&a.error_us.abs()));
        rows
    }
}

impl Row {
    fn of(
        name: &str,
        predicted: Option<&PredictedKernel>,
        measured: Option<&MeasuredKernels>,
        passes: Passes,
    ) -> Self {
        let (predicted_us, hit_us, miss_us) =
            predicted.map_or((0.0, 0.0, 0.0), |one| (one.total_us, one.hit_us, one.miss_us));
        let predicted_count = predicted.map_or(0, |one| one.hits + one.misses);
        let measured_us = measured.map_or(0.0, |all| passes.share_of(all.total_us));
        let measured_count = measured.map_or(0.0, |all| passes.share_of(all.count as f64));
        let error_us = predicted_us - measured_us;
        Self {
            kernel_type: name.to_owned(),
            operators: predicted.map(|one| one.operators.clone()).unwrap_or_default(),
            predicted_us,
            hit_us,
            miss_us,
            predicted_count,
            measured_us,
            measured_count,
            error_us,
            error_pct: percent(error_us, measured_us),
            count_error_pct: percent(predicted_count as f64 - measured_count, measured_count),
            error_share_pct: 0.0,
            status: Status::of(predicted),
        }
    }

    /// Whether the model has it and nothing was measured.
    #[must_use]
    pub fn is_model_only(&self) -> bool {
        self.status != Status::Unmodelled && self.measured_count == 0.0
    }
}

impl Totals {
    fn of(rows: &[Row]) -> Self {
        // The sum of nothing would be a negative zero.
        let sum = |of_row: &dyn Fn(&Row) -> f64| 0.0 + rows.iter().map(of_row).sum::<f64>();
        let predicted_us = sum(&|row| row.predicted_us);
        let measured_us = sum(&|row| row.measured_us);
        let error_of = |is_part: &dyn Fn(&Row) -> bool| {
            let part = rows.iter().filter(|row| is_part(row));
            0.0 + part.map(|row| row.error_us.abs()).sum::<f64>()
        };
        let unmodelled_us = error_of(&|row| row.status == Status::Unmodelled);
        let model_only_us = error_of(&Row::is_model_only);
        let matched_us = error_of(&|row| row.status != Status::Unmodelled && !row.is_model_only());
        let absolute_error_us = matched_us + unmodelled_us + model_only_us;
        let error_us = predicted_us - measured_us;
        Self {
            predicted_us,
            measured_us,
            error_us,
            error_pct: percent(error_us, measured_us),
            absolute_error_us,
            wmape_pct: percent(absolute_error_us, measured_us),
            wmape_matched_pct: percent(matched_us, measured_us),
            wmape_unmodelled_pct: percent(unmodelled_us, measured_us),
            wmape_model_only_pct: percent(model_only_us, measured_us),
        }
    }
}

impl RowCounts {
    fn of(rows: &[Row]) -> Self {
        let count = |status| rows.iter().filter(|row| row.status == status).count();
        Self {
            rows: rows.len(),
            hit: count(Status::Hit),
            miss: count(Status::Miss),
            partial: count(Status::Partial),
            unmodelled: count(Status::Unmodelled),
            model_only: rows.iter().filter(|row| row.is_model_only()).count(),
        }
    }
}

/// A part in per cent of a whole; none if there is no whole. Multiplied last, as the original
/// does.
fn percent(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole * 100.0)
}
