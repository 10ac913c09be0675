//! Rates as records.

use kernel_traces::rates::Bound;
use kernel_traces::results::RanksRates;
use serde::Serialize;

/// A record of a class or of a kernel.
#[derive(Serialize)]
struct Record<'r> {
    file: &'r str,
    rank: Option<u64>,
    by: &'static str,
    name: &'r str,
    class: &'r str,
    dtype: Option<&'static str>,
    count: u64,
    total_ns: u64,
    known_ns: u64,
    flops: f64,
    bytes: f64,
    tflop_per_s: Option<f64>,
    gb_per_s: Option<f64>,
    intensity: Option<f64>,
    of_peak: Option<f64>,
    of_bandwidth: Option<f64>,
    bound: Option<Bound>,
    of_roofline: Option<f64>,
}

/// A record for each class and each kernel, after a header.
///
/// # Errors
///
/// None that memory could give.
pub fn trace_rates_csv(run: &RanksRates) -> anyhow::Result<Vec<u8>> {
    let mut builder = csv::WriterBuilder::new();
    builder.terminator(csv::Terminator::CRLF);
    let mut writer = builder.from_writer(Vec::new());
    for rank in &run.ranks {
        let classes = rank.rates.by_class.iter().map(|rate| ("class", rate));
        let kernels = rank.rates.by_kernel.iter().map(|rate| ("kernel", rate));
        for (by, rate) in classes.chain(kernels) {
            writer.serialize(Record {
                file: &rank.file,
                rank: rank.rank,
                by,
                name: &rate.name,
                class: &rate.class,
                dtype: rate.dtype,
                count: rate.count,
                total_ns: rate.total_ns,
                known_ns: rate.known_ns,
                flops: rate.flops,
                bytes: rate.bytes,
                tflop_per_s: rate.tflop_per_s,
                gb_per_s: rate.gb_per_s,
                intensity: rate.intensity,
                of_peak: rate.of_peak,
                of_bandwidth: rate.of_bandwidth,
                bound: rate.bound,
                of_roofline: rate.of_roofline,
            })?;
        }
    }
    Ok(writer.into_inner()?)
}
