//! `calibrate trace compare`: where the gap between two traces comes from.

use std::io::Write;
use std::path::Path;

use fusion_cost_model::calibration::HardwareCalibration;
use kernel_traces::compare::{CompareError, CompareOptions, Comparison, Side};
use kernel_traces::{Classes, RankFile, Segments, Trace};

use super::destination::Destination;
use super::open::{self, Inputs};
use crate::cli::{CompareFormat, TraceCompareArgs};
use crate::exit::UsageError;
use crate::fusion_records::{FusionRecords, fusion_records};
use crate::report::{self, CompareReport, CompareTable};

/// Compares two traces.
pub(super) fn compare(args: &TraceCompareArgs) -> anyhow::Result<()> {
    let format = args.format();
    if args.table.is_some() && format != CompareFormat::Csv {
        let message = "--table is for --format csv; the other formats have all tables";
        return Err(UsageError(message.to_owned()).into());
    }
    // What is wrong with small files shows before large ones are read.
    let calibrations = calibrations(args)?;
    let first = chosen(&args.first, args.rank_a, "--rank-a")?;
    let second = chosen(&args.second, args.rank_b, "--rank-b")?;
    if let Some(path) = &args.output {
        crate::output::check_writable(path)?;
    }
    if first.path.canonicalize().ok() == second.path.canonicalize().ok() {
        eprintln!(
            "warning: same-file: {} is compared with itself; name another trace, or another rank \
             with --rank-b",
            first.path.display()
        );
    }
    let comparison = comparison(args, first, second)?;
    let records: Vec<FusionRecords> = calibrations
        .iter()
        .flat_map(|(file, calibration)| fusion_records(&comparison.fusions, file, calibration))
        .collect();
    let top = usize::try_from(args.top)?;
    let report = CompareReport { comparison: &comparison, records: &records, top };
    let mut out = Destination::new(args.output.as_deref())?;
    match format {
        CompareFormat::Text => out.write_all(report::trace_compare(report).as_bytes())?,
        CompareFormat::Csv => {
            let table = args.table.unwrap_or(CompareTable::Operations);
            out.write_all(&report::trace_compare_csv(report, table)?)?;
        }
        CompareFormat::Json => out.write_all(report::trace_compare_json(report)?.as_bytes())?,
        CompareFormat::Html => out.write_all(report::trace_compare_html(report).as_bytes())?,
    }
    out.finish()
}

/// The calibration files with their names.
fn calibrations(args: &TraceCompareArgs) -> anyhow::Result<Vec<(String, HardwareCalibration)>> {
    let load = |path: &std::path::PathBuf| {
        Ok((path.display().to_string(), HardwareCalibration::load(path)?))
    };
    args.profile.iter().map(load).collect()
}

/// The trace of a side: of the rank that was asked for, else of rank 0, else the first.
fn chosen(path: &Path, rank: Option<u64>, option: &str) -> anyhow::Result<RankFile> {
    let files = open::ranks([path], rank)?;
    let at = files.iter().position(|file| file.rank == Some(0)).unwrap_or(0);
    if files.len() > 1 {
        let which = files.get(at).map_or_else(String::new, |file| file.path.display().to_string());
        eprintln!(
            "note: {} has {} traces and {which} is compared; {option} N names another",
            path.display(),
            files.len()
        );
    }
    let none = || UsageError(format!("{} has no trace", path.display()));
    Ok(files.into_iter().nth(at).ok_or_else(none)?)
}

fn comparison(
    args: &TraceCompareArgs,
    first: RankFile,
    second: RankFile,
) -> anyhow::Result<Comparison> {
    let files = vec![first.clone(), second.clone()];
    let mut inputs = Inputs::new(files, args.index.policy(), false, args.verbose);
    for file in [&first, &second] {
        inputs.note_memory(file);
    }
    let traces = inputs.load_both([&first, &second])?;
    drop(inputs);
    let parts = |trace: &Trace| {
        let classes = Classes::of(trace);
        let segments = Segments::of(trace, &classes);
        (classes, segments)
    };
    let (of_first, of_second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| parts(&traces[1]));
        (parts(&traces[0]), second.join().unwrap_or_else(|_| parts(&traces[1])))
    });
    let names = [&first, &second].map(|file| file.path.display().to_string());
    let options = CompareOptions { phase: args.phase.only(), layer: args.layer };
    let first = side(&traces[0], &of_first, &names[0]);
    let second = side(&traces[1], &of_second, &names[1]);
    Comparison::of(first, second, &options).map_err(|error| match error {
        CompareError::NoKernels { .. } => error.into(),
        // What was asked for is not there.
        _ => UsageError(error.to_string()).into(),
    })
}

fn side<'t>(
    trace: &'t Trace,
    (classes, segments): &'t (Classes, Segments),
    name: &'t str,
) -> Side<'t> {
    Side { trace, classes, segments, name }
}
