//! GPU profiler traces: load, classify, segment, align, explain.
//!
//! A trace is what the profiler of PyTorch writes: a JSON file of events in Chrome's format, from
//! NVIDIA's or AMD's tools, of up to several gigabytes. [`Trace::load`] turns it into columns:
//! one table for what ran on the device, one for the calls that launched it, and so on. Nothing
//! of the JSON is kept, and times are whole nanoseconds.
//!
//! ```no_run
//! use kernel_traces::{Options, Trace};
//!
//! let trace = Trace::load("rank0.json.gz", &Options::default(), &mut |_done, _total| {})?;
//! for (name, duration_ns) in trace.kernels.name.iter().zip(&trace.kernels.duration_ns) {
//!     println!("{} {duration_ns}", trace.names.text(*name));
//! }
//! for warning in &trace.warnings {
//!     eprintln!("{}: {warning}; {}", warning.code(), warning.advice());
//! }
//! # Ok::<(), kernel_traces::TraceError>(())
//! ```

mod classes;
pub mod classify;
mod error;
mod load;
mod metadata;
mod model;
mod names;
mod number;
mod ranks;
mod rows;
mod stream;
mod summary;
#[cfg(feature = "synthetic")]
pub mod synthetic;
mod warning;

pub use classes::{Classes, NameClasses};
pub use error::TraceError;
pub use load::{Options, trace_files};
pub use metadata::{Device, Distributed, Metadata, Vendor};
pub use model::{Annotations, DeviceWork, Frames, Kernels, Lane, Launches, Ops, Thread, Trace};
pub use names::{NameId, Names};
pub use ranks::{RankFile, RankWarning, Ranks};
pub use rows::{Extent, RowFormat, RowWriter, Rows, Table};
pub use stream::{Streamed, Totals, TotalsSummary};
pub use summary::{Group, Summary, Taxonomy};
pub use warning::Warning;
