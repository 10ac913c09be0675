//! What devices and their streams did.

use cli_support::tables::{right, styled};
use comfy_table::Table;
use kernel_traces::results::RankKernels;
use kernel_traces::{DeviceTime, StreamTime};

use super::{percent, ranks, share, time};

/// A row for each device; none for traces that were read in parts.
pub(super) fn devices(ranks: &[RankKernels]) -> Option<Table> {
    let mut table = styled();
    table.set_header([
        "rank",
        "device",
        "kernels",
        "span",
        "busy",
        "idle",
        "idle of span",
        "exposed comm.",
        "overlapped comm.",
        "exposed copies",
    ]);
    let all = of_all(ranks);
    for (rank, device) in &all {
        let DeviceTime { kernels, span_ns, busy_ns, communication, copies, idle, .. } = device;
        table.add_row([
            right(ranks::number(*rank)),
            right(id(device.device)),
            right(kernels.to_string()),
            right(time(*span_ns)),
            right(time(*busy_ns)),
            right(time_or_none(idle.total_ns)),
            right(share(idle.total_ns, *span_ns)),
            right(time_or_none(communication.exposed_ns)),
            right(time_or_none(communication.overlapped_ns)),
            right(time_or_none(copies.exposed_ns)),
        ]);
    }
    (!all.is_empty()).then_some(table)
}

/// At most this many streams of a device are listed: beyond the first few they hold a copy each.
const MOST_STREAMS: usize = 8;

/// A row for each stream, if some device has several; and how many more there are.
pub(super) fn streams(ranks: &[RankKernels]) -> Option<(Table, usize)> {
    let all = of_all(ranks);
    if all.iter().all(|(_, device)| device.streams.len() < 2) {
        return None;
    }
    let mut table = styled();
    table.set_header(["rank", "device", "stream", "kernels", "total", "busy", "of device's busy"]);
    let mut more = 0;
    for (rank, device) in all {
        for stream in device.streams.iter().take(MOST_STREAMS) {
            let StreamTime { kernels, total_ns, busy_ns, .. } = stream;
            table.add_row([
                right(ranks::number(rank)),
                right(id(device.device)),
                right(id(stream.stream)),
                right(kernels.to_string()),
                right(time(*total_ns)),
                right(time(*busy_ns)),
                right(percent(stream.share)),
            ]);
        }
        more += device.streams.len().saturating_sub(MOST_STREAMS);
    }
    Some((table, more))
}

fn of_all(ranks: &[RankKernels]) -> Vec<(Option<u64>, &DeviceTime)> {
    let of_rank = |rank: &'_ RankKernels| rank.time.rank;
    ranks
        .iter()
        .flat_map(|rank| rank.devices.iter().flatten().map(move |device| (of_rank(rank), device)))
        .collect()
}

/// -1 means none.
fn id(number: i64) -> String {
    if number == -1 { "?".to_owned() } else { number.to_string() }
}

fn time_or_none(ns: u64) -> String {
    if ns == 0 { "-".to_owned() } else { time(ns) }
}
