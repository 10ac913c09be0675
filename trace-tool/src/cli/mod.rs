//! The command line.

mod compare;
mod idle;
mod input;
mod output;
mod program;
mod rates;
mod trace;
mod validate;

pub use compare::{CompareFormat, ComparePhase, TraceCompareArgs};
pub use idle::TraceIdleArgs;
pub use input::{IndexArgs, IndexPlace, TraceFiles, TraceInput};
pub use output::OutputArgs;
pub use program::program;
pub use rates::{RatesFormat, TraceProblemsArgs, TraceRatesArgs};
pub use trace::{
    LayersFormat, OutputFormat, PhaseName, TableName, TaxonomyName, TraceCommand, TraceIndexArgs,
    TraceInfoArgs, TraceKernelsArgs, TraceLayersArgs,
};
pub use validate::{MeasuredByName, TraceValidateArgs, ValidateFormat};
