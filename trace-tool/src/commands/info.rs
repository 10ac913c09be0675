//! `calibrate trace info`: the devices and what was recorded.

use std::io::Write;
use std::ops::ControlFlow;

use cli_support::output::Destination;
use kernel_traces::{
    Metadata, NameClasses, Options, RankFile, Taxonomy, Totals, Vendor, busy_and_span,
};
use serde_json::{Value, json};

use super::open::{self, Inputs, Opened};
use crate::cli::TraceInfoArgs;
use crate::report::{self, Counts, RankInfo, RankTime};

/// Describes all files.
pub(super) fn info(args: &TraceInfoArgs) -> anyhow::Result<()> {
    let mut inputs = open::find_input(&args.input)?;
    let files = inputs.files.clone();
    let ranks: Result<Vec<_>, _> = files.iter().map(|file| rank(&mut inputs, file)).collect();
    let ranks = ranks?;
    drop(inputs);
    let mut out = Destination::new(None)?;
    if args.json {
        let value = json!({ "ranks": ranks.iter().map(object).collect::<Vec<_>>() });
        writeln!(out, "{}", serde_json::to_string_pretty(&value)?)?;
    } else {
        out.write_all(report::trace_info(&ranks).as_bytes())?;
    }
    out.finish()
}

fn rank(inputs: &mut Inputs, file: &RankFile) -> anyhow::Result<RankInfo> {
    match inputs.open(file)? {
        Opened::Whole(trace) => {
            let (busy_ns, span_ns) = busy_and_span(&trace);
            let mut counts = Counts::default();
            counts.add(&trace);
            counts.streams = trace.lanes.len();
            Ok(RankInfo {
                vendor: trace.vendor(),
                metadata: trace.metadata,
                counts: Counts { events: trace.events, ..counts },
                time: RankTime {
                    file: file.path.display().to_string(),
                    rank: file.rank,
                    kernels: trace.kernels.len(),
                    total_ns: u64::try_from(trace.kernels.total_ns()).unwrap_or(u64::MAX),
                    busy_ns: Some(busy_ns),
                    span_ns,
                },
            })
        }
        Opened::InParts => {
            let mut counts = Counts::default();
            let mut totals = Totals::new(Taxonomy::Classes);
            let mut classes = NameClasses::default();
            let mut by_calls = Vendor::Unknown;
            let streamed = inputs.stream(file, &Options::default(), &mut |part| {
                counts.add(part);
                counts.streams = part.lanes.len();
                totals.add(part, &classes.of(part));
                if by_calls == Vendor::Unknown {
                    by_calls = part.vendor();
                }
                ControlFlow::Continue(())
            })?;
            let vendor = match streamed.metadata.vendor() {
                Vendor::Unknown => by_calls,
                known => known,
            };
            Ok(RankInfo {
                vendor,
                metadata: streamed.metadata,
                counts: Counts { events: streamed.events, ..counts },
                time: RankTime::new(file, &totals.summary(), None, totals.span_ns()),
            })
        }
    }
}

fn object(rank: &RankInfo) -> Value {
    let Counts { events, kernels, launches, ops, annotations, frames, streams } = rank.counts;
    json!({
        "file": rank.time.file,
        "rank": rank.time.rank,
        "vendor": rank.vendor.name(),
        "devices": devices(&rank.metadata),
        "events": events,
        "kernels": kernels,
        "launches": launches,
        "operators": ops,
        "annotations": annotations,
        "python_frames": frames,
        "streams": streams,
        "total_ns": rank.time.total_ns,
        "busy_ns": rank.time.busy_ns,
        "span_ns": rank.time.span_ns,
    })
}

fn devices(metadata: &Metadata) -> Vec<Value> {
    let devices = metadata.devices.iter();
    devices
        .map(|device| {
            json!({
                "id": device.id,
                "name": device.name,
                "memory_bytes": device.memory_bytes,
                "multiprocessors": device.multiprocessors,
                "warp_size": device.warp_size,
            })
        })
        .collect()
}
