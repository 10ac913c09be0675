//! The types of kernels of all scenarios as CSV.

use kernel_traces::predicted::{Validation, original};
use serde::Serialize;

/// A type of kernel.
#[derive(Serialize)]
struct Record<'r> {
    scenario: &'r str,
    kernel_type: &'r str,
    operators: String,
    predicted_us: f64,
    hit_us: f64,
    miss_us: f64,
    predicted_count: u64,
    measured_us: f64,
    measured_count: f64,
    error_us: f64,
    error_pct: Option<f64>,
    count_error_pct: Option<f64>,
    error_share_pct: f64,
    status: &'static str,
}

/// In the order of the fields of [`Record`], also where there are no records.
const HEADER: [&str; 14] = [
    "scenario",
    "kernel_type",
    "operators",
    "predicted_us",
    "hit_us",
    "miss_us",
    "predicted_count",
    "measured_us",
    "measured_count",
    "error_us",
    "error_pct",
    "count_error_pct",
    "error_share_pct",
    "status",
];

/// A record for each type of each scenario.
///
/// # Errors
///
/// When a value cannot be written as CSV, which none of these is.
pub fn trace_validation_csv(validation: &Validation) -> csv::Result<Vec<u8>> {
    let mut writer = writer();
    writer.write_record(HEADER)?;
    for result in validation.results() {
        for row in &result.comparison.rows {
            writer.serialize(Record {
                scenario: &result.name,
                kernel_type: &row.kernel_type,
                operators: row.operators.join(", "),
                predicted_us: row.predicted_us,
                hit_us: row.hit_us,
                miss_us: row.miss_us,
                predicted_count: row.predicted_count,
                measured_us: row.measured_us,
                measured_count: row.measured_count,
                error_us: row.error_us,
                error_pct: row.error_pct,
                count_error_pct: row.count_error_pct,
                error_share_pct: row.error_share_pct,
                status: row.status.name(),
            })?;
        }
    }
    writer.flush()?;
    Ok(writer.get_ref().clone())
}

/// The keys of the original script, after the name of the scenario.
const ORIGINAL_HEADER: [&str; 10] = [
    "scenario",
    "kernel_type",
    "tc_funcs",
    "tc_total_us",
    "tc_count",
    "prof_per_fwd_us",
    "prof_count",
    "error_pct",
    "count_error_pct",
    "status",
];

/// The rows of the original script.
///
/// # Errors
///
/// When a value cannot be written as CSV, which none of these is.
pub fn trace_validation_original_csv(validation: &Validation) -> csv::Result<Vec<u8>> {
    let mut writer = writer();
    writer.write_record(ORIGINAL_HEADER)?;
    for result in validation.results() {
        for row in original::rows(&result.comparison) {
            writer.write_record([
                &result.name,
                &row.kernel_type,
                &row.tc_funcs,
                &row.tc_total_us.to_string(),
                &row.tc_count.to_string(),
                &row.prof_per_fwd_us.to_string(),
                &row.prof_count.to_string(),
                &row.error_pct.to_string(),
                &row.count_error_pct.to_string(),
                row.status,
            ])?;
        }
    }
    writer.flush()?;
    Ok(writer.get_ref().clone())
}

/// In memory, where no failure can be mistaken for a closed pipe.
fn writer() -> csv::Writer<Vec<u8>> {
    let mut builder = csv::WriterBuilder::new();
    builder.has_headers(false).terminator(csv::Terminator::CRLF);
    builder.from_writer(Vec::new())
}
