//! Predicted against measured kernels: as JSON, in [`text`] and [`csv`] for people and tables, and
//! in [`original`] as the script does that the files were made for.

mod csv;
mod original;
mod text;

pub use csv::{trace_validation_csv, trace_validation_original_csv};
pub use original::trace_validation_original;
pub use text::trace_validation;

use std::path::PathBuf;

use kernel_traces::predicted::{Comparison, Row};
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// The outcome of every scenario, in the order of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Validation {
    /// What came of each.
    pub outcomes: Vec<Result<ScenarioResult, FailedScenario>>,
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ScenarioResult {
    /// What it is called.
    pub name: String,
    /// Its files.
    #[serde(flatten)]
    pub files: ScenarioFiles,
    /// How many rows or kernels the measured file has.
    pub measured_rows: u64,
    /// The limit of its wMAPE, in per cent.
    pub max_wmape_pct: Option<f64>,
    /// Whether it keeps to the limit; none if there is no limit.
    pub verdict: Option<LimitVerdict>,
    /// The rows with the largest errors.
    pub worst: Vec<Worst>,
    /// The figures.
    #[serde(flatten)]
    pub comparison: Comparison,
}

/// What was compared.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ScenarioFiles {
    /// The trace of the model.
    pub predicted: PathBuf,
    /// What ran.
    pub measured: PathBuf,
    /// The map from operators to kernels.
    pub op_map: Option<PathBuf>,
}

/// A comparison that could not be made.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FailedScenario {
    /// What it is called.
    pub name: String,
    /// Why.
    pub errors: Vec<String>,
}

/// Whether a wMAPE keeps to its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitVerdict {
    /// It does.
    Passed,
    /// It does not.
    Exceeded,
    /// There is no wMAPE, as nothing was measured.
    Unjudged,
}

/// A row with a large error.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Worst {
    /// The type.
    pub kernel_type: String,
    /// Predicted less measured time.
    pub error_us: f64,
    /// The size of the error in per cent of the sizes of all errors together.
    pub error_share_pct: f64,
}

/// So many of the worst rows are named.
const MOST_WORST: usize = 5;

impl ScenarioResult {
    /// A comparison with its limit.
    #[must_use]
    pub fn new(
        name: String,
        files: ScenarioFiles,
        measured_rows: u64,
        comparison: Comparison,
        max_wmape_pct: Option<f64>,
    ) -> Self {
        let verdict = max_wmape_pct.map(|limit| match comparison.totals.wmape_pct {
            None => LimitVerdict::Unjudged,
            Some(wmape) if wmape > limit => LimitVerdict::Exceeded,
            Some(_) => LimitVerdict::Passed,
        });
        let worst = comparison.worst().into_iter().take(MOST_WORST).map(Worst::of).collect();
        Self { name, files, measured_rows, max_wmape_pct, verdict, worst, comparison }
    }

    /// By how much its wMAPE is above its limit, and which type adds most to it.
    #[must_use]
    pub fn excess(&self) -> String {
        let wmape = self.comparison.totals.wmape_pct.unwrap_or_default();
        let limit = self.max_wmape_pct.unwrap_or_default();
        let mut text = format!(
            "the wMAPE is {wmape:.2} %, {:.2} points above the limit of {limit} %",
            wmape - limit
        );
        if let Some(worst) = self.worst.first() {
            text.push_str("; the worst is ");
            text.push_str(&worst.text());
        }
        text
    }
}

impl Worst {
    fn of(row: &Row) -> Self {
        Self {
            kernel_type: row.kernel_type.clone(),
            error_us: row.error_us,
            error_share_pct: row.error_share_pct,
        }
    }

    fn text(&self) -> String {
        format!(
            "{}, {} ({:.1} % of all errors)",
            super::shortened(&self.kernel_type),
            text::signed_time(self.error_us),
            self.error_share_pct
        )
    }
}

impl Validation {
    /// The comparisons that could be made.
    pub fn results(&self) -> impl Iterator<Item = &ScenarioResult> {
        self.outcomes.iter().filter_map(|outcome| outcome.as_ref().ok())
    }

    /// Those that could not.
    pub fn failed(&self) -> impl Iterator<Item = &FailedScenario> {
        self.outcomes.iter().filter_map(|outcome| outcome.as_ref().err())
    }

    /// The comparisons as the original script writes them.
    #[must_use]
    pub fn original(&self) -> impl Serialize + '_ {
        original::ByName(self)
    }
}

impl Serialize for Validation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Validation", 2)?;
        object.serialize_field("scenarios", &self.results().collect::<Vec<_>>())?;
        object.serialize_field("failed", &self.failed().collect::<Vec<_>>())?;
        object.end()
    }
}
