//! The positions of patterns as CSV.

use kernel_traces::results::RanksLayers;
use serde::Serialize;

/// A position of a pattern.
#[derive(Serialize)]
struct Record<'r> {
    file: &'r str,
    rank: Option<u64>,
    pattern: usize,
    layers: usize,
    ends_pass: bool,
    position: usize,
    class: &'r str,
    kernel: &'r str,
    names: usize,
    count: usize,
    total_ns: u64,
    mean_ns: f64,
    median_ns: u64,
    p95_ns: u64,
    share: f64,
}

/// In the order of the fields of [`Record`], also where there are no records.
const HEADER: [&str; 15] = [
    "file",
    "rank",
    "pattern",
    "layers",
    "ends_pass",
    "position",
    "class",
    "kernel",
    "names",
    "count",
    "total_ns",
    "mean_ns",
    "median_ns",
    "p95_ns",
    "share",
];

/// A record for each position of each pattern, or of one.
///
/// # Errors
///
/// When a value cannot be written as CSV, which none of these is.
pub fn trace_layers_csv(result: &RanksLayers, only: Option<usize>) -> csv::Result<Vec<u8>> {
    let mut builder = csv::WriterBuilder::new();
    builder.has_headers(false).terminator(csv::Terminator::CRLF);
    let mut writer = builder.from_writer(Vec::new());
    writer.write_record(HEADER)?;
    for rank in &result.ranks {
        let is_shown = |number: usize| only.is_none_or(|only| only == number);
        for pattern in rank.patterns.iter().filter(|pattern| is_shown(pattern.pattern)) {
            for at in &pattern.positions {
                writer.serialize(Record {
                    file: &rank.file,
                    rank: rank.rank,
                    pattern: pattern.pattern,
                    layers: pattern.layers,
                    ends_pass: pattern.ends_pass,
                    position: at.position,
                    class: &at.class,
                    kernel: &at.kernel,
                    names: at.names,
                    count: at.times.count,
                    total_ns: at.times.total_ns,
                    mean_ns: at.mean_ns,
                    median_ns: at.times.median_ns,
                    p95_ns: at.times.p95_ns,
                    share: at.share,
                })?;
            }
        }
    }
    writer.flush()?;
    Ok(writer.get_ref().clone())
}
