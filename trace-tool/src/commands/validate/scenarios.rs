//! What is to be compared: one scenario of the command line, or the list of a file.

use std::path::{Path, PathBuf};

use anyhow::Context;
use cli_support::exit::UsageError;
use cli_support::input;
use kernel_traces::predicted::{MeasuredBy, Passes, Rules, ScenarioFiles};

use crate::cli::TraceValidateArgs;
use crate::scenario_list::{ScenarioEntry, ScenarioList};

/// The most bytes of a list of scenarios: some ten thousand of them. Tables of one key take a hundred
/// times the bytes of their text in memory.
const MOST_BYTES: u64 = 2 << 20;

/// A comparison to make.
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) files: ScenarioFiles,
    pub(super) passes: PassesFrom,
    pub(super) process: Option<String>,
    pub(super) by: Option<MeasuredBy>,
    pub(super) max_wmape: Option<f64>,
}

/// How many passes were measured.
pub(super) enum PassesFrom {
    Number(Passes),
    /// The file says it.
    File(PathBuf),
}

/// Those that are asked for.
pub(super) fn of(args: &TraceValidateArgs) -> anyhow::Result<Vec<Scenario>> {
    if let Some(list) = &args.scenarios {
        return read(list, args);
    }
    // The command line is not accepted without both.
    let (Some(predicted), Some(measured)) = (&args.predicted, &args.measured) else {
        return Err(UsageError("name a predicted trace and measured kernels".to_owned()).into());
    };
    let passes = Passes::new(args.passes.unwrap_or(1));
    check_passes(passes, args.rules()).map_err(|why| UsageError(format!("--passes {why}")))?;
    let name = predicted.file_stem().unwrap_or(predicted.as_os_str());
    Ok(vec![Scenario {
        name: name.to_string_lossy().into_owned(),
        files: ScenarioFiles::new(predicted.clone(), measured.clone(), args.op_map.clone()),
        passes: PassesFrom::Number(passes),
        process: args.process.clone(),
        by: args.measured_by.map(MeasuredBy::from),
        max_wmape: args.max_wmape,
    }])
}

fn check_passes(passes: Passes, rules: Rules) -> Result<(), String> {
    if passes.is_usable(rules) {
        return Ok(());
    }
    Err("is 0; it must be 1 or more (only --compat knows what to make of 0)".to_owned())
}

fn read(path: &Path, args: &TraceValidateArgs) -> anyhow::Result<Vec<Scenario>> {
    let text =
        input::text(path, MOST_BYTES).with_context(|| format!("cannot read {}", path.display()))?;
    let of_file = |why: String| UsageError(format!("{}: {why}", path.display()));
    let list = ScenarioList::parse(path, &text).map_err(of_file)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut scenarios = Vec::new();
    for entry in list.scenarios {
        let name = entry.name.clone();
        let scenario = scenario(entry, folder, args);
        scenarios.push(scenario.map_err(|why| of_file(format!("scenario `{name}`: {why}")))?);
    }
    Ok(scenarios)
}

fn scenario(
    entry: ScenarioEntry,
    folder: &Path,
    args: &TraceValidateArgs,
) -> Result<Scenario, String> {
    let at = |path: PathBuf| folder.join(path);
    let passes = match entry.passes_from {
        Some(file) => PassesFrom::File(at(file)),
        None => {
            let passes = Passes::new(entry.passes.unwrap_or(1));
            check_passes(passes, args.rules()).map_err(|why| format!("passes {why}"))?;
            PassesFrom::Number(passes)
        }
    };
    let files = ScenarioFiles::new(at(entry.predicted), at(entry.measured), entry.op_map.map(at));
    Ok(Scenario {
        name: entry.name,
        files,
        passes,
        process: entry.process,
        by: entry.measured_by.map(MeasuredBy::from),
        max_wmape: entry.max_wmape.or(args.max_wmape),
    })
}
