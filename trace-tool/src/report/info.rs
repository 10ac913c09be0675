//! The devices of traces and what was recorded.

use std::fmt::Write;

use cli_support::units::gibibytes;
use kernel_traces::collectives::RankSurvey;
use kernel_traces::results::RunInfo;
use kernel_traces::{Device, RankFile, Vendor};

use super::{collectives, ranks};

/// A file, in one line, before it is read.
#[must_use]
pub fn trace_file(file: &RankFile) -> String {
    let mut line = format!("{}: {}", file.named.display(), bytes(file.bytes));
    if let Some(rank) = file.rank {
        let _ = write!(line, ", rank {rank}");
    }
    let vendor = file.metadata.vendor();
    if vendor != Vendor::Unknown {
        let _ = write!(line, ", {}", vendor.name());
    }
    let devices = &file.metadata.devices;
    if let Some(first) = devices.first() {
        let _ = write!(line, ", {} x {}", devices.len(), device(first));
    }
    line
}

/// The devices of the traces and what was recorded, and a row for each if they are several.
#[must_use]
pub fn trace_info(run: &RunInfo) -> String {
    let ranks = &run.ranks;
    let mut vendors: Vec<&str> = ranks.iter().map(|rank| rank.vendor.name()).collect();
    vendors.dedup();
    let mut text = format!("vendor      {}\n", vendors.join(", "));
    let mut described: Vec<&Device> = Vec::new();
    for one in ranks.iter().flat_map(|rank| &rank.devices) {
        if !described.contains(&one) {
            let _ = writeln!(text, "device {:<4} {}", one.id, device(one));
            described.push(one);
        }
    }
    let all = run.counts();
    let kernels: usize = ranks.iter().map(|rank| rank.time.kernels).sum();
    let counts = [
        ("events", all.events),
        ("kernels", kernels as u64),
        ("copies", all.copies as u64),
        ("launches", all.launches as u64),
        ("operators", all.operators as u64),
        ("marks", all.annotations as u64),
        ("frames", all.python_frames as u64),
        ("streams", all.streams as u64),
    ];
    for (what, count) in counts {
        let _ = writeln!(text, "{what:<11} {count}");
    }
    if ranks.len() > 1 {
        let _ = writeln!(text, "\n{}", ranks::table(ranks.iter().map(|rank| &rank.time)));
    }
    if let Some(survey) = &run.survey {
        text.push_str(&skew(survey));
    }
    text
}

/// Which rank waits for which, and how fast data moves between them.
fn skew(survey: &RankSurvey) -> String {
    let mut text = format!("\n{}\n", collectives::rank_table(survey));
    for warning in &survey.skew.warnings {
        let _ = writeln!(text, "Warning: {warning}; {}", warning.advice());
    }
    for sentence in collectives::rank_sentences(survey) {
        let _ = writeln!(text, "{sentence}");
    }
    if let Some(table) = collectives::collective_table(&survey.skew) {
        let _ = writeln!(text, "\n{table}");
    }
    text
}

fn device(device: &Device) -> String {
    let name = if device.name.is_empty() { "(without a name)" } else { &device.name };
    let units = device.multiprocessors.map(|count| format!(", {count} multiprocessors"));
    let memory = device.memory_bytes.map(|bytes| format!(", {}", gibibytes(bytes)));
    format!("{name}{}{}", units.unwrap_or_default(), memory.unwrap_or_default())
}

/// Bytes of a file.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}
