//! `calibrate trace kernels`: where the time on the devices goes.

use std::io::Write;
use std::ops::ControlFlow;

use cli_support::exit::UsageError;
use cli_support::output::Destination;
use kernel_traces::results::{ClassEvidence, RankKernels, RanksSummary};
use kernel_traces::segment::Steps;
use kernel_traces::{
    Classes, Group, NameClasses, Options, RankFile, Segments, Summary, Taxonomy, Totals,
    TotalsSummary, Trace,
};
use serde::Serialize;

use super::open::{self, Inputs, Opened};
use super::phase::{self, Wanted};
use super::write_json;
use crate::cli::{OutputFormat, TraceKernelsArgs};
use crate::report;

/// Sums up the kernels of all files.
pub(super) fn kernels(args: &TraceKernelsArgs) -> anyhow::Result<()> {
    let format = args.format();
    if format == OutputFormat::Parquet {
        let message = "Parquet is for rows: add --rows, or write --format csv or json";
        return Err(UsageError(message.to_owned()).into());
    }
    let target = args.out.target()?;
    let mut inputs = open::find_input(&args.input)?;
    let result = sum_up(args, &mut inputs)?;
    drop(inputs);
    let mut out = match format {
        OutputFormat::Csv => args.out.for_csv(target)?,
        _ => Destination::new(target)?,
    };
    match format {
        OutputFormat::Csv => {
            write_groups(&mut out, &result.summary.by_class, &result.summary.by_kernel)?;
        }
        OutputFormat::Json => write_json(&mut out, &result)?,
        _ => out.write_text(&report::trace_kernels(&result, args.top))?,
    }
    out.finish()
}

fn sum_up(args: &TraceKernelsArgs, inputs: &mut Inputs) -> anyhow::Result<RanksSummary> {
    let files = inputs.files.clone();
    let taxonomy = args.taxonomy.into();
    let mut wanted = Wanted::of(&args.phase);
    let mut all = Totals::new(taxonomy);
    let mut only = None;
    let mut class_evidence = ClassEvidence::NamesAndOperators;
    let mut ranks = Vec::new();
    for file in &files {
        match inputs.open(file)? {
            Opened::Whole(trace) => {
                let whole = Whole::of(*trace, &mut wanted);
                let (rank, summary) = whole.sum_up(file, taxonomy);
                inputs.warn(file, summary.warning().as_slice());
                if files.len() == 1 {
                    only = Some(totals_of(summary));
                } else {
                    all.add(&whole.trace, &whole.classes);
                }
                ranks.push(rank);
            }
            Opened::InParts if wanted.phase().is_some() => {
                return Err(phase::needs_all().into());
            }
            Opened::InParts => {
                class_evidence = ClassEvidence::Names;
                let totals = in_parts(inputs, file, taxonomy)?;
                ranks.push(RankKernels::of_parts(file, &totals));
                all.absorb(totals);
            }
        }
    }
    wanted.check()?;
    let summary = only.unwrap_or_else(|| all.summary());
    Ok(RanksSummary::new(summary, class_evidence, ranks))
}

/// A trace that is loaded, or its kernels of one phase.
struct Whole {
    trace: Trace,
    classes: Classes,
    /// None if it is a part of a trace.
    steps: Option<Steps>,
}

impl Whole {
    fn of(trace: Trace, wanted: &mut Wanted) -> Self {
        let classes = Classes::of(&trace);
        let steps = Segments::steps_of(&trace, &classes);
        if wanted.phase().is_none() {
            return Self { trace, classes, steps: Some(steps) };
        }
        wanted.see(&trace, &steps);
        let (trace, classes) = trace.only(&classes, |kernel| wanted.takes(&steps, kernel));
        Self { trace, classes, steps: None }
    }

    fn sum_up(&self, file: &RankFile, taxonomy: Taxonomy) -> (RankKernels, Summary) {
        RankKernels::of(file, &self.trace, &self.classes, self.steps.as_ref(), taxonomy)
    }
}

fn in_parts(inputs: &mut Inputs, file: &RankFile, taxonomy: Taxonomy) -> anyhow::Result<Totals> {
    let mut totals = Totals::new(taxonomy);
    let mut classes = NameClasses::default();
    let options = Options { frames: false, ..Options::default() };
    inputs.stream(file, &options, &mut |part| {
        totals.add(part, &classes.of(part));
        ControlFlow::Continue(())
    })?;
    Ok(totals)
}

fn totals_of(summary: Summary) -> TotalsSummary {
    let Summary { kernels, total_ns, unclassified_share, by_class, by_kernel, .. } = summary;
    TotalsSummary { kernels, total_ns, unclassified_share, by_class, by_kernel }
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
    // In memory, where no failure can be mistaken for a closed pipe.
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
