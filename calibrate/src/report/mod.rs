//! The last stage: what people read.

mod progress;
mod selftest;
mod table;
mod trace;

use crate::units;
pub use progress::Progress;
pub use selftest::selftest;
pub use table::tables;
pub use trace::{
    COMPARISON_SCHEMA_VERSION, ClassEvidence, CompareReport, CompareTable, Counts, FailedScenario,
    FamilyName, LayersFound, LimitVerdict, PassTime, RankInfo, RankKernels, RankLayers, RankSurvey,
    RankTime, RanksLayers, RanksSummary, ScenarioFiles, ScenarioResult, ShownPatterns, Validation,
    bytes, trace_compare, trace_compare_csv, trace_compare_html, trace_compare_json, trace_file,
    trace_info, trace_kernels, trace_layers, trace_layers_csv, trace_validation,
    trace_validation_csv, trace_validation_original, trace_validation_original_csv,
};

pub use crate::units::{gibibytes, ratio};
