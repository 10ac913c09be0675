//! Where devices wait, and for what.

use std::fmt::Write;

use cli_support::tables::{right, styled};
use comfy_table::{Cell, Table};
use kernel_traces::idle::{IdleDevice, IdlePlace};
use kernel_traces::results::RanksIdle;

use super::{percent, ranks, share, shortened, time};

/// The causes of each device, and the places where it waits longest.
#[must_use]
pub fn trace_idle(run: &RanksIdle, top: usize) -> String {
    let mut text = String::new();
    for rank in &run.ranks {
        for device in &rank.idle.devices {
            let of_rank = match run.ranks.len() {
                1 => String::new(),
                _ => format!("rank {}, ", ranks::number(rank.rank)),
            };
            let _ = writeln!(
                text,
                "{of_rank}device {}: idle for {}, {} of {}, in {} gaps\n{}",
                device.device,
                time(device.idle_ns),
                share(device.idle_ns, device.span_ns),
                time(device.span_ns),
                device.gaps,
                causes(device)
            );
            let shown = device.places.get(..top.min(device.places.len())).unwrap_or_default();
            let _ = writeln!(text, "\n{}\n", places(shown));
        }
    }
    if text.is_empty() {
        text.push_str("nothing ran on a device\n");
    }
    text
}

fn causes(device: &IdleDevice) -> Table {
    let mut table = styled();
    table.set_header(["cause", "gaps", "total", "of idle", "longest"]);
    for cause in &device.by_cause {
        table.add_row([
            Cell::new(cause.cause.describe()),
            right(cause.count.to_string()),
            right(time(cause.total_ns)),
            right(percent(cause.share)),
            right(time(cause.longest_ns)),
        ]);
    }
    table
}

fn places(places: &[IdlePlace]) -> Table {
    let mut table = styled();
    table.set_header([
        "cause",
        "what the host did",
        "before the kernel",
        "gaps",
        "steps",
        "at",
        "total",
        "of idle",
        "longest",
    ]);
    for place in places {
        let doing = place.doing.as_deref().map_or_else(|| "-".to_owned(), shortened);
        table.add_row([
            Cell::new(place.cause.name()),
            Cell::new(doing),
            Cell::new(shortened(&place.before)),
            right(place.count.to_string()),
            right(place.steps.map_or_else(|| "-".to_owned(), |steps| steps.to_string())),
            right(place.at.map_or_else(|| "-".to_owned(), percent)),
            right(time(place.total_ns)),
            right(percent(place.share)),
            right(time(place.longest_ns)),
        ]);
    }
    table
}
