//! The steps, the layers and the kind of model of traces: [`text`] for people, [`csv`] for tables.

mod csv;
mod text;

pub use csv::trace_layers_csv;
pub use text::{ShownPatterns, trace_layers};
