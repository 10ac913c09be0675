//! Events of made-up programs, as the profiler writes them.

use std::ops::Range;

/// One event with a duration, in nanoseconds, on a thread of a process.
pub(crate) fn event(
    category: &str,
    name: &str,
    (process, thread): (u64, u64),
    time: Range<u64>,
    args: &str,
) -> String {
    let us = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
    format!(
        "{{\"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": {process}, \
         \"tid\": {thread}, \"ts\": {}, \"dur\": {}, \"args\": {{{args}}}}},\n",
        us(time.start),
        us(time.end - time.start)
    )
}

/// A trace of events on one device, whose name tells its vendor.
pub(crate) fn trace(device: &str, events: &str) -> String {
    let warp = if device.starts_with("AMD") { 64 } else { 32 };
    format!(
        "{{\"deviceProperties\": [{{\"id\": 0, \"name\": \"{device}\", \"warpSize\": {warp}}}], \
         \"traceEvents\": [\n{}\n]}}",
        events.trim_end_matches(",\n")
    )
}
