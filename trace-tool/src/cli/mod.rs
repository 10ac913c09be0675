//! The command line.

mod compare;
mod program;
mod trace;
mod validate;

pub use compare::{CompareFormat, ComparePhase, TraceCompareArgs};
pub use program::program;
pub use trace::{
    IndexArgs, IndexPlace, LayersFormat, OutputFormat, PhaseName, TableName, TaxonomyName,
    TraceCommand, TraceFiles, TraceIndexArgs, TraceInfoArgs, TraceInput, TraceKernelsArgs,
    TraceLayersArgs,
};
pub use validate::{MeasuredByName, TraceValidateArgs, ValidateFormat};
