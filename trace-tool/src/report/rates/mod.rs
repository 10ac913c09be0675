//! How fast kernels were: tables, records, and a page with a roofline.

mod csv;
mod html;
mod roofline;
mod text;

use cli_support::units::three_digits;
use kernel_traces::rates::{Machine, Rate};

pub use csv::trace_rates_csv;
pub use html::trace_rates_html;
pub use text::trace_rates;

use super::{percent, share, shortened, time};

/// The columns of a table of rates: the first two are names, the others numbers.
const COLUMNS: [&str; 11] = [
    "class",
    "dtype",
    "count",
    "total",
    "known",
    "TFLOP/s",
    "of peak",
    "GB/s",
    "of peak",
    "FLOP/B",
    "of roofline",
];

/// The cells of [`COLUMNS`].
fn cells(rate: &Rate) -> [String; 11] {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), three_digits);
    let part = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), percent);
    let bound = rate.bound.map_or_else(String::new, |bound| format!(" ({})", bound.name()));
    [
        rate.class.clone(),
        rate.dtype.unwrap_or("-").to_owned(),
        rate.count.to_string(),
        time(rate.total_ns),
        share(rate.known_ns, rate.total_ns),
        number(rate.tflop_per_s),
        part(rate.of_peak),
        number(rate.gb_per_s),
        part(rate.of_bandwidth),
        number(rate.intensity),
        format!("{}{bound}", part(rate.of_roofline)),
    ]
}

/// What the peaks are.
fn machine_sentence(machine: Option<&Machine>) -> String {
    let Some(machine) = machine else {
        return "No data sheet: rates without peaks.".to_owned();
    };
    let peaks: Vec<String> = machine
        .peaks
        .iter()
        .map(|(dtype, gflops)| format!("{} {}", dtype.name(), three_digits(gflops / 1e3)))
        .collect();
    format!(
        "Peaks of {} by its data sheet: {} GB/s; TFLOP/s: {}.",
        machine.name,
        three_digits(machine.bandwidth_gb_per_s),
        peaks.join(", ")
    )
}
