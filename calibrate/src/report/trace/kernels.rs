//! Where the time on the devices goes.

use std::fmt::Write;

use comfy_table::{Cell, Table};
use kernel_traces::{Group, Summary, TotalsSummary};

use super::super::table::{right, styled};
use super::super::units::milliseconds;
use super::{ClassEvidence, RanksSummary, ranks, time};

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
    let Summary { by_class, by_kernel, unclassified_share, .. } = summary;
    groups(&mut text, by_class, by_kernel, *unclassified_share, top);
    text
}

/// Where the time on the devices of several traces goes, or of one that was read in parts.
#[must_use]
pub fn trace_ranks_kernels(result: &RanksSummary, top: usize) -> String {
    let TotalsSummary { kernels, total_ns, unclassified_share, by_class, by_kernel } =
        &result.summary;
    let mut text = format!("{kernels} kernels, copies and fills, {} together\n", time(*total_ns));
    let _ = writeln!(text, "\n{}", ranks::table(result.ranks.iter()));
    groups(&mut text, by_class, by_kernel, *unclassified_share, top);
    if result.class_evidence == ClassEvidence::Names {
        text.push_str(
            "- classes are by the kernels' names alone, as the operators are not known when a \
             trace is read in parts\n",
        );
    }
    text
}

fn groups(
    text: &mut String,
    by_class: &[Group],
    by_kernel: &[Group],
    unclassified: f64,
    top: usize,
) {
    let _ = writeln!(text, "\n{}", table("class", by_class));
    let shown = &by_kernel[..top.min(by_kernel.len())];
    let _ = writeln!(text, "\n{}", table("kernel", shown));
    if let Some(more @ 1..) = by_kernel.len().checked_sub(shown.len()) {
        let _ = writeln!(text, "and {more} kernels more; --top N lists more, --json all");
    }
    if unclassified > MOST_UNCLASSIFIED {
        let _ = writeln!(
            text,
            "- {:.1} % of the time is in kernels that no rule knows",
            100.0 * unclassified
        );
    }
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
