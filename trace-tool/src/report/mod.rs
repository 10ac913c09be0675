//! Traces as tables.

mod collectives;
mod compare;
mod devices;
mod formats;
mod idle;
mod info;
mod kernels;
mod layers;
mod phases;
mod problems;
mod ranks;
mod rates;
mod validate;

pub use compare::{
    CompareReport, CompareTable, trace_compare, trace_compare_csv, trace_compare_html,
    trace_compare_json,
};
pub use idle::trace_idle;
pub use info::{bytes, trace_file, trace_info};
pub use kernels::trace_kernels;
pub use layers::{ShownPatterns, trace_layers, trace_layers_csv};
pub use problems::trace_problems;
pub use rates::{trace_rates, trace_rates_csv, trace_rates_html};
pub use validate::{
    excess, trace_validation, trace_validation_csv, trace_validation_original,
    trace_validation_original_csv,
};

use formats::{capital, percent, share, shortened, time};
use kernel_traces::counted;
