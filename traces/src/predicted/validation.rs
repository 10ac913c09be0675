//! What came of several comparisons of predicted with measured kernels.

use std::path::PathBuf;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use super::{Comparison, Row, original};

/// The outcome of every scenario, in the order of the list.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Validation {
    /// What came of each.
    pub outcomes: Vec<Result<ScenarioResult, FailedScenario>>,
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ScenarioFiles {
    /// The trace of the model.
    pub predicted: PathBuf,
    /// What ran.
    pub measured: PathBuf,
    /// The map from operators to kernels.
    pub op_map: Option<PathBuf>,
}

/// A comparison that could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailedScenario {
    /// What it is called.
    pub name: String,
    /// Why.
    pub errors: Vec<String>,
}

/// Whether a wMAPE keeps to its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LimitVerdict {
    /// It does.
    Passed,
    /// It does not.
    Exceeded,
    /// There is no wMAPE, as nothing was measured.
    Unjudged,
}

impl LimitVerdict {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Exceeded => "exceeded",
            Self::Unjudged => "not judged",
        }
    }
}

/// A row with a large error.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Worst {
    /// The type.
    pub kernel_type: String,
    /// Predicted less measured time.
    pub error_us: f64,
    /// The size of the error in per cent of the sizes of all errors together.
    pub error_share_pct: f64,
}

/// At most this many of the worst rows are named.
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
}

impl Worst {
    fn of(row: &Row) -> Self {
        Self {
            kernel_type: row.kernel_type.clone(),
            error_us: row.error_us,
            error_share_pct: row.error_share_pct,
        }
    }
}

impl ScenarioFiles {
    /// A model, what was measured of it, and the map from its operators to kernels.
    #[must_use]
    pub const fn new(predicted: PathBuf, measured: PathBuf, op_map: Option<PathBuf>) -> Self {
        Self { predicted, measured, op_map }
    }
}

impl FailedScenario {
    /// A comparison that could not be made, and why.
    #[must_use]
    pub const fn new(name: String, errors: Vec<String>) -> Self {
        Self { name, errors }
    }
}

impl Validation {
    /// What came of each scenario, in their order.
    #[must_use]
    pub const fn new(outcomes: Vec<Result<ScenarioResult, FailedScenario>>) -> Self {
        Self { outcomes }
    }

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
        ByName(self)
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

/// An object with the rows of each scenario by its name.
struct ByName<'v>(&'v Validation);

impl Serialize for ByName<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = |result: &ScenarioResult| original::rows(&result.comparison);
        serializer.collect_map(self.0.results().map(|result| (&result.name, rows(result))))
    }
}
