//! `calibrate trace compare`: where the gap between two traces comes from.

use std::io::Write;

use anyhow::anyhow;
use cli_support::exit::UsageError;
use cli_support::input::expect;
use cli_support::output::Destination;
use cli_support::say;
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::hardware::HardwareSpec;
use kernel_traces::collectives::{RankSurvey, SkewWarning};
use kernel_traces::compare::{
    CompareError, CompareOptions, CompareWarning, Comparison, FusionRecords, Severity, Side,
    fusion_records,
};
use kernel_traces::rates::Machine;
use kernel_traces::{Classes, RankFile, Segments, Trace, at_once};

use super::Machines;
use super::open::{self, Inputs};
use super::rates::hardware;
use super::survey::survey;
use crate::cli::{CompareFormat, TraceCompareArgs};
use crate::report::{self, CompareReport, CompareTable};

/// Compares two traces.
pub(super) fn compare(args: &TraceCompareArgs, machines: Machines) -> anyhow::Result<()> {
    let format = args.format();
    if args.table.is_some() && format != CompareFormat::Csv {
        let message = "--table is for --format csv; the other formats have all tables";
        return Err(UsageError(message.to_owned()).into());
    }
    // What is wrong with the output and with small files shows before large ones are read.
    let target = args.out.target()?;
    let calibrations = calibrations(args)?;
    let machines = SideMachines::of(args, machines)?;
    let (first, _copy_of_first) = open::ranks([&args.first], args.rank_a)?;
    let (second, _copy_of_second) = open::ranks([&args.second], args.rank_b)?;
    let first = chosen(args, first, "--rank-a")?;
    let second = chosen(args, second, "--rank-b")?;
    let is_same_file = first.file.path.canonicalize().ok() == second.file.path.canonicalize().ok();
    if is_same_file {
        say!(
            "warning: same-file: {} is compared with itself; name another trace, or another rank \
             with --rank-b",
            first.file.named.display()
        );
    }
    let mut comparison = comparison(args, first.file, second.file, &machines)?;
    let ranks = [first.ranks.as_ref(), second.ranks.as_ref()];
    comparison.warnings.extend(ranks.into_iter().flatten().flat_map(rank_warnings));
    let records: Vec<FusionRecords> = calibrations
        .iter()
        .flat_map(|(file, calibration)| fusion_records(&comparison.fusions, file, calibration))
        .collect();
    if let (CompareFormat::Csv, Some(code)) = (format, comparison.same_work.headline.warning()) {
        say!("warning: {code}: {}; see --table work", comparison.differences());
    }
    let same = comparison.warnings.iter().find(|warning| warning.code == "same-recording");
    if let (CompareFormat::Csv, false, Some(same)) = (format, is_same_file, same) {
        say!("warning: {}: {}; {}", same.code, same.message, same.advice);
    }
    let top = usize::try_from(args.top)?;
    let report = CompareReport { comparison: &comparison, records: &records, ranks, top };
    let mut out = match format {
        CompareFormat::Csv => args.out.for_csv(target)?,
        _ => Destination::new(target)?,
    };
    match format {
        CompareFormat::Text => out.write_text(&report::trace_compare(report))?,
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
        Ok((path.display().to_string(), HardwareCalibration::load(expect(path))?))
    };
    args.profile.iter().map(load).collect()
}

/// A side of the command line.
struct Chosen {
    /// The trace that is compared.
    file: RankFile,
    /// All ranks, where one was chosen of several.
    ranks: Option<RankSurvey>,
}

/// The trace of a side: of the rank that was asked for, or the only one, or of the rank that
/// stands for all.
fn chosen(args: &TraceCompareArgs, files: Vec<RankFile>, option: &str) -> anyhow::Result<Chosen> {
    if files.len() < 2 {
        let none = || UsageError("no trace is there to compare".to_owned());
        return Ok(Chosen { file: files.into_iter().next().ok_or_else(none)?, ranks: None });
    }
    let mut inputs = Inputs::new(files.clone(), args.index.policy(), false, args.verbose);
    let ranks = survey(&files, &mut inputs)?;
    let at = ranks.representative.as_ref().map_or(0, |chosen| chosen.place);
    let file = files.get(at).cloned().ok_or_else(|| anyhow!("no rank was chosen"))?;
    inputs.note(&format!(
        "note: of {} ranks, {} is compared; {option} N names another",
        files.len(),
        file.named.display()
    ));
    Ok(Chosen { file, ranks: Some(ranks) })
}

/// What is to be said of the ranks of a side, among the warnings of the comparison.
fn rank_warnings(ranks: &RankSurvey) -> impl Iterator<Item = CompareWarning> + use<'_> {
    // Which ranks are missing was said when the files were found.
    let told =
        ranks.skew.warnings.iter().filter(|one| !matches!(one, SkewWarning::UnseenRanks { .. }));
    told.map(|warning| CompareWarning {
        code: warning.code(),
        severity: Severity::Warning,
        file: None,
        message: warning.to_string(),
        advice: warning.advice().to_owned(),
    })
}

fn comparison(
    args: &TraceCompareArgs,
    first: RankFile,
    second: RankFile,
    machines: &SideMachines,
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
    let (of_first, of_second) = at_once(|| parts(&traces[0]), || parts(&traces[1]));
    let names = [&first, &second].map(|file| file.named.display().to_string());
    let options = CompareOptions { phase: args.phase.only(), layer: args.layer };
    let first = side(&traces[0], &of_first, &names[0]);
    let second = side(&traces[1], &of_second, &names[1]);
    let comparison = Comparison::of(first, second, &options).map_err(|error| match error {
        CompareError::NoKernels { .. } => anyhow::Error::from(error),
        // What was asked for is not there.
        _ => UsageError(error.to_string()).into(),
    })?;
    let [first, second] = [0, 1].map(|side| machines.machine(side, &traces[side]));
    Ok(comparison.with_machines([first.as_ref(), second.as_ref()]))
}

/// The data sheets that are known, and those that were named for the sides.
struct SideMachines {
    known: Vec<HardwareSpec>,
    named: [Option<HardwareSpec>; 2],
}

impl SideMachines {
    fn of(args: &TraceCompareArgs, machines: Machines) -> anyhow::Result<Self> {
        let known = machines()?;
        let named =
            |name: &Option<String>| name.as_deref().map(|name| hardware(name, &known)).transpose();
        let named = [named(&args.hardware_a)?, named(&args.hardware_b)?];
        Ok(Self { known, named })
    }

    fn machine(&self, side: usize, trace: &Trace) -> Option<Machine> {
        let named = self.named.get(side).and_then(Option::as_ref);
        named.or_else(|| Machine::detected(trace, &self.known)).map(Machine::of)
    }
}

fn side<'t>(
    trace: &'t Trace,
    (classes, segments): &'t (Classes, Segments),
    name: &'t str,
) -> Side<'t> {
    Side { trace, classes, segments, name }
}
