//! Lists of comparisons, as `trace validate --scenarios` reads them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::cli::MeasuredByName;

/// A file of scenarios: TOML, or YAML, where the list may also stand by itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioList {
    /// At least one; no two have the same name.
    pub scenarios: Vec<ScenarioEntry>,
}

/// A scenario as a file has it. Paths are relative to the file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioEntry {
    /// What reports call it.
    pub name: String,
    /// The trace of a model.
    pub predicted: PathBuf,
    /// Measured kernels.
    pub measured: PathBuf,
    /// Which operator is which kernel.
    pub op_map: Option<PathBuf>,
    /// How many forward passes were measured.
    pub passes: Option<u64>,
    /// A file that says how many, instead.
    pub passes_from: Option<PathBuf>,
    /// The process of the trace that predicts.
    pub process: Option<String>,
    /// What the measured kernels are called by.
    pub measured_by: Option<MeasuredByName>,
    /// The largest error that is accepted: finite and not negative, in per cent.
    pub max_wmape: Option<f64>,
}

impl ScenarioList {
    /// Reads the text of a file whose name says which format it has.
    ///
    /// # Errors
    ///
    /// What is wrong, with the scenario or the line.
    pub fn parse(path: &Path, text: &str) -> Result<Self, String> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let list = match extension.as_str() {
            "toml" => toml::from_str(text).map_err(|error| error.to_string())?,
            "yaml" | "yml" => of_yaml(text)?,
            _ => return Err("a list of scenarios is called .toml, .yaml or .yml".to_owned()),
        };
        list.check()?;
        Ok(list)
    }

    fn check(&self) -> Result<(), String> {
        if self.scenarios.is_empty() {
            return Err("it has no scenarios".to_owned());
        }
        let mut names = BTreeSet::new();
        for ScenarioEntry { name, passes, passes_from, max_wmape, .. } in &self.scenarios {
            if !names.insert(name) {
                return Err(format!("two scenarios are called `{name}`"));
            }
            if passes.is_some() && passes_from.is_some() {
                return Err(format!("scenario `{name}`: it has both passes and passes_from"));
            }
            let is_limit = |limit: f64| limit.is_finite() && limit >= 0.0;
            if let Some(limit) = max_wmape.filter(|limit| !is_limit(*limit)) {
                let what = format!("max_wmape is {limit}; it must be a number of per cent");
                return Err(format!("scenario `{name}`: {what}"));
            }
        }
        Ok(())
    }
}

fn of_yaml(text: &str) -> Result<ScenarioList, String> {
    let is_value = |line: &&str| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#') && line.trim_end() != "---"
    };
    let first = text.lines().find(is_value).unwrap_or_default();
    let list = if first.trim_start_matches('\u{feff}').starts_with('-') {
        serde_saphyr::from_str(text).map(|scenarios| ScenarioList { scenarios })
    } else {
        serde_saphyr::from_str(text)
    };
    list.map_err(|error| error.to_string())
}
