//! A comparison as the original script writes it, for those who read its files.
//!
//! It rounds as Python does: to one decimal, of the binary value, exact halves to the even digit.
//! Its error is zero where nothing was measured, and some of its zeros are whole numbers.

use serde::Serialize;
use serde_json::Number;

use super::{Comparison, Row, Status};

/// What the original calls a type that was only measured.
pub const UNMODELLED: &str = "TC未建模";

/// A row as the original has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OriginalRow {
    /// The type of the kernel.
    pub kernel_type: String,
    /// The first three operators that run it by the model.
    pub tc_funcs: String,
    /// The predicted time in microseconds.
    pub tc_total_us: Number,
    /// The predicted count.
    pub tc_count: u64,
    /// The measured time of a pass in microseconds.
    pub prof_per_fwd_us: Number,
    /// The measured count of a pass, rounded.
    pub prof_count: u64,
    /// The error of the time in per cent; zero where nothing was measured.
    pub error_pct: Number,
    /// The error of the count in per cent; zero where nothing was measured.
    pub count_error_pct: Number,
    /// `HIT`, `MISS`, `PARTIAL` or [`UNMODELLED`].
    pub status: &'static str,
}

/// The rows of a comparison as the original has them. Make it with
/// [`Rules::Original`](super::Rules::Original).
#[must_use]
pub fn rows(comparison: &Comparison) -> Vec<OriginalRow> {
    let mut by_name: Vec<&Row> = comparison.rows.iter().collect();
    by_name.sort_by(|a, b| a.kernel_type.cmp(&b.kernel_type));
    let has_passes = comparison.passes > 0;
    let mut rows: Vec<OriginalRow> =
        by_name.into_iter().map(|row| OriginalRow::of(row, has_passes)).collect();
    let size = |row: &OriginalRow| value(&row.tc_total_us).max(value(&row.prof_per_fwd_us));
    rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    rows
}

impl OriginalRow {
    fn of(row: &Row, has_passes: bool) -> Self {
        let is_modelled = row.status != Status::Unmodelled;
        let first: Vec<&str> = row.operators.iter().take(3).map(String::as_str).collect();
        Self {
            kernel_type: row.kernel_type.clone(),
            tc_funcs: first.join(", "),
            tc_total_us: decimal(is_modelled.then_some(row.predicted_us)),
            tc_count: row.predicted_count,
            prof_per_fwd_us: decimal(has_passes.then_some(row.measured_us)),
            // Never negative, and far below 2^53.
            prof_count: row.measured_count.round_ties_even() as u64,
            error_pct: decimal(row.error_pct),
            count_error_pct: decimal(row.count_error_pct),
            status: if is_modelled { row.status.name() } else { UNMODELLED },
        }
    }
}

/// The value with one decimal; a whole zero for none.
fn decimal(value: Option<f64>) -> Number {
    value.and_then(|value| Number::from_f64(rounded(value))).unwrap_or_else(|| Number::from(0))
}

/// As Python rounds to one decimal.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    // Formatting looks at the exact binary value, and takes the even digit at exact halves.
    format!("{value:.1}").parse().unwrap_or(value)
}

/// A figure as a number again.
#[must_use]
pub fn value(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}
