//! A trace as tables.

use std::fmt::Write;

use comfy_table::{Cell, Table};
use kernel_traces::{Group, Summary, Trace};

use super::table::{right, styled};
use super::units::{gibibytes, milliseconds};

/// The devices of a trace and what was recorded.
#[must_use]
pub fn trace_info(trace: &Trace) -> String {
    let mut text = format!("vendor      {}\n", trace.vendor().name());
    for device in &trace.metadata.devices {
        let name = if device.name.is_empty() { "(without a name)" } else { &device.name };
        let units = device.multiprocessors.map(|count| format!(", {count} multiprocessors"));
        let memory = device.memory_bytes.map(|bytes| format!(", {}", gibibytes(bytes)));
        let _ = writeln!(
            text,
            "device {:<4} {name}{}{}",
            device.id,
            units.unwrap_or_default(),
            memory.unwrap_or_default()
        );
    }
    let counts = [
        ("events", trace.events),
        ("kernels", trace.kernels.len() as u64),
        ("launches", trace.launches.len() as u64),
        ("operators", trace.ops.len() as u64),
        ("marks", trace.annotations.len() as u64),
        ("frames", trace.frames.len() as u64),
        ("streams", trace.lanes.len() as u64),
    ];
    for (what, count) in counts {
        let _ = writeln!(text, "{what:<11} {count}");
    }
    text
}

/// Where the time on the devices goes, with so many kernels.
#[must_use]
pub fn trace_kernels(summary: &Summary, top: usize) -> String {
    let mut text = format!(
        "{} kernels, copies and fills, {} together; busy for {} of {}\n",
        summary.kernels,
        time(summary.total_ns),
        time(summary.busy_ns),
        time(summary.span_ns)
    );
    let _ = writeln!(text, "\n{}", table("class", &summary.by_class));
    let shown = &summary.by_kernel[..top.min(summary.by_kernel.len())];
    let _ = writeln!(text, "\n{}", table("kernel", shown));
    if let Some(more @ 1..) = summary.by_kernel.len().checked_sub(shown.len()) {
        let _ = writeln!(text, "and {more} kernels more; --top N lists more, --json all");
    }
    if summary.unclassified_share > MOST_UNCLASSIFIED {
        let _ = writeln!(
            text,
            "- {:.1} % of the time is in kernels that no rule knows",
            100.0 * summary.unclassified_share
        );
    }
    text
}

/// The share of the time in unknown kernels from which a reader must be told.
const MOST_UNCLASSIFIED: f64 = 0.05;

/// A kernel's name is cut after so many characters: templates go on for lines.
const LONGEST_NAME: usize = 60;

fn table(what: &str, groups: &[Group]) -> Table {
    let is_class = groups.iter().all(|group| group.name == group.class);
    let mut table = styled();
    let mut header = vec![what, "count", "total", "share", "mean", "median", "p95"];
    if !is_class {
        header.push("class");
    }
    table.set_header(header);
    for group in groups {
        let mut row = vec![
            Cell::new(shortened(&group.name)),
            right(group.count.to_string()),
            right(time(group.total_ns)),
            right(format!("{:.1} %", 100.0 * group.share)),
            right(milliseconds(group.mean_ns / 1e6)),
            right(time(group.median_ns)),
            right(time(group.p95_ns)),
        ];
        if !is_class {
            row.push(Cell::new(&group.class));
        }
        table.add_row(row);
    }
    table
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= LONGEST_NAME {
        return name.to_owned();
    }
    let start: String = name.chars().take(LONGEST_NAME - 1).collect();
    format!("{start}…")
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn time(ns: u64) -> String {
    milliseconds(ns as f64 / 1e6)
}
