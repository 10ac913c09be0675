//! What is to be compared: one scenario of the command line, or the list of a file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use cli_support::exit::UsageError;
use cli_support::input;
use kernel_traces::predicted::{MeasuredBy, Passes, Rules, ScenarioFiles};
use serde::Deserialize;

use crate::cli::{MeasuredByName, TraceValidateArgs};

/// The most bytes of a list of scenarios.
const MOST_BYTES: u64 = 20 << 20;

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

/// A file of scenarios.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    scenarios: Vec<Entry>,
}

/// A scenario as a file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    predicted: PathBuf,
    measured: PathBuf,
    op_map: Option<PathBuf>,
    passes: Option<u64>,
    passes_from: Option<PathBuf>,
    process: Option<String>,
    measured_by: Option<MeasuredByName>,
    max_wmape: Option<f64>,
}

fn read(path: &Path, args: &TraceValidateArgs) -> anyhow::Result<Vec<Scenario>> {
    let text =
        input::text(path, MOST_BYTES).with_context(|| format!("cannot read {}", path.display()))?;
    let of_file = |why: String| UsageError(format!("{}: {why}", path.display()));
    let entries = parse(path, &text).map_err(of_file)?;
    if entries.is_empty() {
        return Err(of_file("it has no scenarios".to_owned()).into());
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut names = BTreeSet::new();
    let mut scenarios = Vec::new();
    for entry in entries {
        if !names.insert(entry.name.clone()) {
            return Err(of_file(format!("two scenarios are called `{}`", entry.name)).into());
        }
        let name = entry.name.clone();
        let scenario = entry.scenario(folder, args);
        scenarios.push(scenario.map_err(|why| of_file(format!("scenario `{name}`: {why}")))?);
    }
    Ok(scenarios)
}

fn parse(path: &Path, text: &str) -> Result<Vec<Entry>, String> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    match extension.as_str() {
        "toml" => {
            let list: List = toml::from_str(text).map_err(|error| error.to_string())?;
            Ok(list.scenarios)
        }
        "yaml" | "yml" => {
            let is_value = |line: &&str| {
                let line = line.trim_start();
                !line.is_empty() && !line.starts_with('#') && line.trim_end() != "---"
            };
            let first = text.lines().find(is_value).unwrap_or_default();
            // A list may also stand by itself.
            let entries = if first.trim_start_matches('\u{feff}').starts_with('-') {
                serde_saphyr::from_str(text)
            } else {
                serde_saphyr::from_str(text).map(|list: List| list.scenarios)
            };
            entries.map_err(|error| error.to_string())
        }
        _ => Err("a list of scenarios is called .toml, .yaml or .yml".to_owned()),
    }
}

impl Entry {
    fn scenario(self, folder: &Path, args: &TraceValidateArgs) -> Result<Scenario, String> {
        let at = |path: PathBuf| folder.join(path);
        let passes = match (self.passes, self.passes_from) {
            (Some(_), Some(_)) => return Err("it has both passes and passes_from".to_owned()),
            (_, Some(file)) => PassesFrom::File(at(file)),
            (passes, None) => {
                let passes = Passes::new(passes.unwrap_or(1));
                check_passes(passes, args.rules()).map_err(|why| format!("passes {why}"))?;
                PassesFrom::Number(passes)
            }
        };
        let is_limit = |limit: f64| limit.is_finite() && limit >= 0.0;
        if let Some(limit) = self.max_wmape.filter(|limit| !is_limit(*limit)) {
            return Err(format!("max_wmape is {limit}; it must be a number of per cent"));
        }
        Ok(Scenario {
            name: self.name,
            files: ScenarioFiles::new(at(self.predicted), at(self.measured), self.op_map.map(at)),
            passes,
            process: self.process,
            by: self.measured_by.map(MeasuredBy::from),
            max_wmape: self.max_wmape.or(args.max_wmape),
        })
    }
}
