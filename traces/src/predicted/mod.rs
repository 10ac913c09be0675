//! What a performance model predicts, against what was measured, by type of kernel.
//!
//! `model_trace` reads the model's trace and picks its process; `op_map` reads which operators
//! cost nothing and which kernels the others are; `attribution` says which time each type of kernel
//! is predicted to take, for which `literal` reads how an operator's time is split. `measured`
//! reads what really ran. [`Comparison`] puts both together, and [`original`] writes it as the
//! script did that these files were made for. `operators` reads both sides from the one file that
//! `calibrate workload` writes.
//!
//! ```no_run
//! use std::num::NonZero;
//! use kernel_traces::predicted::{Comparison, Measured, ModelTrace, OpMap, Passes, Rules};
//!
//! let model = ModelTrace::load("model.json", None)?;
//! let map = OpMap::load("op_mapping.yaml", Rules::Own)?;
//! let measured = Measured::load("kernel_details.csv", None, Rules::Own)?;
//! let passes = Passes::new(2);
//! let comparison = Comparison::of(&model, &map, &measured, passes, Rules::Own);
//! if let Some(wmape) = comparison.totals.wmape_pct {
//!     println!("{wmape:.1} %");
//! }
//! # Ok::<(), kernel_traces::predicted::PredictedError>(())
//! ```

mod attribution;
mod comparison;
mod error;
mod file;
mod literal;
mod measured;
mod model_trace;
mod op_map;
mod operators;
pub mod original;
mod passes;
#[cfg(test)]
mod tests;
mod validation;
mod warning;

pub use attribution::Attribution;
pub use comparison::{Comparison, Row, RowCounts, Status, Totals};
pub use error::PredictedError;
pub use literal::{LiteralError, sub_kernel_durations};
pub use measured::{Measured, MeasuredBy, MeasuredKernels, Skipped};
pub use model_trace::{ModelTrace, Process};
pub use op_map::OpMap;
pub use operators::Operators;
pub use passes::Passes;
pub use validation::{
    FailedScenario, LimitVerdict, ScenarioFiles, ScenarioResult, Validation, Worst,
};
pub use warning::InputWarning;

/// Which rules decide where they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rules {
    /// The project's own.
    #[default]
    Own,
    /// Those of the original script, oddities included.
    Original,
}
