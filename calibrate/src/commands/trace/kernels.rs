//! `calibrate trace kernels`: where the time on the devices goes.

use std::io::Write;
use std::ops::ControlFlow;

use kernel_traces::{Classes, Group, NameClasses, Options, Summary, Totals};
use serde::Serialize;

use super::destination::Destination;
use super::open::{self, Opened};
use crate::cli::{OutputFormat, TraceKernelsArgs};
use crate::exit::UsageError;
use crate::report::{self, ClassEvidence, RankTime, RanksSummary};

/// Sums up the kernels of all files.
pub(super) fn kernels(args: &TraceKernelsArgs) -> anyhow::Result<()> {
    let format = args.format();
    if format == OutputFormat::Parquet {
        let message = "Parquet is for rows: add --rows, or write --format csv or json";
        return Err(UsageError(message.to_owned()).into());
    }
    let mut inputs = open::find(&args.input)?;
    let files = inputs.files.clone();
    let taxonomy = args.taxonomy.into();
    let mut all = Totals::new(taxonomy);
    let mut ranks = Vec::new();
    let mut evidence = ClassEvidence::NamesAndOperators;
    for file in &files {
        let mut totals = Totals::new(taxonomy);
        let mut busy_ns = None;
        match inputs.open(file)? {
            Opened::Whole(trace) => {
                let summary = Summary::of(&trace, taxonomy);
                if files.len() == 1 {
                    drop(inputs);
                    return write_one(args, &summary);
                }
                busy_ns = Some(summary.busy_ns);
                totals.add(&trace, &Classes::of(&trace));
            }
            Opened::InParts => {
                evidence = ClassEvidence::Names;
                let mut classes = NameClasses::default();
                let options = Options { frames: false, ..Options::default() };
                inputs.stream(file, &options, &mut |part| {
                    totals.add(part, &classes.of(part));
                    ControlFlow::Continue(())
                })?;
            }
        }
        ranks.push(RankTime::new(file, &totals.summary(), busy_ns, totals.span_ns()));
        all.absorb(totals);
    }
    drop(inputs);
    let result = RanksSummary { summary: all.summary(), class_evidence: evidence, ranks };
    let mut out = Destination::new(args.output.as_deref())?;
    match format {
        OutputFormat::Csv => {
            write_groups(&mut out, &result.summary.by_class, &result.summary.by_kernel)?;
        }
        OutputFormat::Json => write_json(&mut out, &result)?,
        _ => out.write_all(report::trace_ranks_kernels(&result, args.top).as_bytes())?,
    }
    out.finish()
}

fn write_one(args: &TraceKernelsArgs, summary: &Summary) -> anyhow::Result<()> {
    let mut out = Destination::new(args.output.as_deref())?;
    match args.format() {
        OutputFormat::Csv => write_groups(&mut out, &summary.by_class, &summary.by_kernel)?,
        OutputFormat::Json => write_json(&mut out, summary)?,
        _ => out.write_all(report::trace_kernels(summary, args.top).as_bytes())?,
    }
    out.finish()
}

fn write_json(out: &mut Destination, value: &impl Serialize) -> anyhow::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(std::io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

/// A group as a record of CSV.
#[derive(Serialize)]
struct GroupRecord<'g> {
    by: &'static str,
    name: &'g str,
    class: &'g str,
    count: usize,
    total_ns: u64,
    mean_ns: f64,
    median_ns: u64,
    p95_ns: u64,
    share: f64,
}

fn write_groups(
    out: &mut Destination,
    by_class: &[Group],
    by_kernel: &[Group],
) -> anyhow::Result<()> {
    // In memory, where nothing can fail that would have to be told from a closed pipe.
    let mut builder = csv::WriterBuilder::new();
    builder.has_headers(false).terminator(csv::Terminator::CRLF);
    let mut writer = builder.from_writer(Vec::new());
    // Also where there are no groups.
    let header =
        ["by", "name", "class", "count", "total_ns", "mean_ns", "median_ns", "p95_ns", "share"];
    writer.write_record(header)?;
    let all = by_class.iter().map(|group| ("class", group));
    for (by, group) in all.chain(by_kernel.iter().map(|group| ("kernel", group))) {
        let record = GroupRecord {
            by,
            name: &group.name,
            class: &group.class,
            count: group.count,
            total_ns: group.total_ns,
            mean_ns: group.mean_ns,
            median_ns: group.median_ns,
            p95_ns: group.p95_ns,
            share: group.share,
        };
        writer.serialize(record)?;
    }
    writer.flush()?;
    Ok(out.write_all(writer.get_ref())?)
}
