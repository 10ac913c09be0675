//! The command line.

mod compare;
mod idle;
mod input;
mod output;
mod phase;
mod program;
mod rates;
mod trace;
mod validate;

pub use compare::{CompareFormat, TraceCompareArgs};
pub use idle::TraceIdleArgs;
pub use input::{IndexArgs, IndexPlace, TraceFiles, TraceInput};
pub use output::OutputArgs;
pub use phase::{PhaseArgs, PhaseChoice};
pub use program::program;
pub use rates::{RatesFormat, TraceProblemsArgs, TraceRatesArgs};
pub use trace::{
    LayersFormat, OutputFormat, TableName, TaxonomyName, TraceCommand, TraceIndexArgs,
    TraceInfoArgs, TraceKernelsArgs, TraceLayersArgs,
};
pub use validate::{MeasuredByName, TraceValidateArgs, ValidateFormat};
