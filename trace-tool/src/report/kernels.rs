//! Where the time on the devices goes.

use std::fmt::Write;

use cli_support::tables::{right, styled};
use cli_support::units::milliseconds;
use comfy_table::{Cell, Table};
use kernel_traces::results::{ClassEvidence, RankKernels, RanksSummary};
use kernel_traces::{Group, TotalsSummary};

use super::{devices, percent, phases, ranks, shortened, time};

/// Where the time on the devices goes, with at most `top` kernels.
#[must_use]
pub fn trace_kernels(result: &RanksSummary, top: usize) -> String {
    let TotalsSummary { kernels, total_ns, unclassified_share, by_class, by_kernel } =
        &result.summary;
    let mut text = format!("{kernels} kernels, copies and fills, {} together", time(*total_ns));
    if let [RankKernels { time: one, .. }] = &result.ranks[..]
        && let Some(busy_ns) = one.busy_ns
    {
        let _ = write!(text, "; busy for {} of {}", time(busy_ns), time(one.span_ns));
    } else {
        let times = result.ranks.iter().map(|rank| &rank.time);
        let _ = write!(text, "\n\n{}", ranks::table(times));
    }
    text.push('\n');
    if let Some(devices) = devices::devices(&result.ranks) {
        let _ = writeln!(text, "\n{devices}");
    }
    for rank in &result.ranks {
        let phases = rank.phases.as_deref().unwrap_or_default();
        if !phases.is_empty() {
            if result.ranks.len() > 1 {
                let _ = write!(text, "\nrank {}", ranks::number(rank.time.rank));
            }
            let _ = writeln!(text, "\n{}", phases::table(phases));
        }
    }
    let _ = writeln!(text, "\n{}", table("class", by_class));
    let unclassified = 100.0 * unclassified_share;
    let _ = writeln!(text, "{unclassified:.1} % of the time is in kernels that no rule knows");
    let shown = &by_kernel[..top.min(by_kernel.len())];
    let _ = writeln!(text, "\n{}", table("kernel", shown));
    if let Some(more @ 1..) = by_kernel.len().checked_sub(shown.len()) {
        let _ = writeln!(text, "and {more} kernels more; --top N lists more, --json all");
    }
    if let Some((streams, more)) = devices::streams(&result.ranks) {
        let _ = writeln!(text, "\n{streams}");
        if more > 0 {
            let _ = writeln!(text, "and {more} streams more; --json lists all");
        }
    }
    if result.class_evidence == ClassEvidence::Names {
        text.push_str(
            "- classes are by the kernels' names alone, as the operators are not known when a \
             trace is read in parts\n",
        );
    }
    text
}

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
            right(percent(group.share)),
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
