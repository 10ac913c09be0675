//! Predicted against measured kernels: [`text`] for people, [`csv`] for tables, and [`original`] as
//! the script writes them that the files were made for.

mod csv;
mod original;
mod text;

pub use csv::{trace_validation_csv, trace_validation_original_csv};
pub use original::trace_validation_original;
pub use text::{excess, trace_validation};
