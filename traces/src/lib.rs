//! GPU profiler traces: load, classify, segment, align, explain.
//!
//! A trace is what the profiler of PyTorch writes: a JSON file of events in Chrome's format, from
//! NVIDIA's or AMD's tools, of up to several gigabytes. [`Trace::load`] turns it into columns:
//! one table for what ran on the device, one for the calls that launched it, and so on. Nothing
//! of the JSON is kept, and times are whole nanoseconds. [`Trace::open`] does the same, and keeps
//! the columns in an [`index`] beside the trace, from which the next load takes milliseconds.
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
pub mod collectives;
mod column;
pub mod compare;
mod error;
pub mod index;
mod launched;
mod load;
mod metadata;
mod model;
mod names;
mod number;
pub mod predicted;
mod quantile;
mod ranks;
mod repair;
pub mod results;
mod rows;
mod section;
pub mod segment;
mod select;
mod stream;
mod summary;
#[cfg(feature = "synthetic")]
pub mod synthetic;
mod warning;

pub use classes::{Classes, NameClasses};
pub use column::Column;
pub use error::TraceError;
pub use index::{IndexPolicy, IndexUse};
pub use load::{Options, trace_files};
pub use metadata::{Device, Distributed, Metadata, Vendor};
pub use model::{Annotations, DeviceWork, Frames, Kernels, Lane, Launches, Ops, Thread, Trace};
pub use names::{NameId, Names};
pub use ranks::{RankFile, RankWarning, Ranks};
pub use rows::{Extent, RowFormat, RowWriter, Rows, Table};
pub use segment::Segments;
pub use stream::{Streamed, Totals, TotalsSummary};
pub use summary::{
    ByDuration, DeviceTime, GapLength, Group, Idle, LayerTime, Overlap, Partition, PatternTime,
    PhaseTime, Position, SegmentSummary, StepTime, StreamTime, Summary, Taxonomy, Times,
    Unclassified, busy_and_span, device_times, phase_times,
};
pub use warning::Warning;
