//! GPU profiler traces: load, classify, segment, align, explain.
//!
//! ```no_run
//! use kernel_traces::{Options, Summary, Taxonomy, Trace};
//!
//! let trace = Trace::load("rank0.json.gz", &Options::default(), &mut |_done, _total| {})?;
//! let summary = Summary::of(&trace, Taxonomy::Classes);
//! for class in &summary.by_class {
//!     println!("{:5.1} %  {}", 100.0 * class.share, class.name);
//! }
//! for warning in &trace.warnings {
//!     eprintln!("{}: {warning}; {}", warning.code(), warning.advice());
//! }
//! # Ok::<(), kernel_traces::TraceError>(())
//! ```
//!
//! A trace is what the profiler of PyTorch writes: a JSON file of events in Chrome's format, from
//! NVIDIA's or AMD's tools, of up to several gigabytes. [`Trace::load`] turns it into columns:
//! one table for what ran on the device, one for the calls that launched it, and so on. Nothing
//! of the JSON is kept, and times are whole nanoseconds. [`Trace::open`] does the same, and keeps
//! the columns in an [`index`] next to the trace, from which the next load takes milliseconds.
//!
//! Two traces of one model are compared with
//! [`Comparison::of`](compare::Comparison::of):
//!
//! ```no_run
//! use kernel_traces::compare::{CompareOptions, Comparison, Side};
//! use kernel_traces::{Classes, Options, Segments, Trace};
//!
//! let load = |path: &str| {
//!     let trace = Trace::load(path, &Options::default(), &mut |_, _| {})?;
//!     let classes = Classes::of(&trace);
//!     let segments = Segments::of(&trace, &classes);
//!     Ok::<_, kernel_traces::TraceError>((trace, classes, segments))
//! };
//! let (a, b) = (load("mi300x.json.gz")?, load("h100.json.gz")?);
//! let first = Side { trace: &a.0, classes: &a.1, segments: &a.2, name: "mi300x" };
//! let second = Side { trace: &b.0, classes: &b.1, segments: &b.2, name: "h100" };
//! let comparison = Comparison::of(first, second, &CompareOptions::default())?;
//! println!("{}", comparison.verdict());
//! for cause in &comparison.gap.causes {
//!     println!("{}", cause.sentence);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What the program `trace-tool` prints with `--json` are types of this crate: those of
//! [`results`] and [`index::IndexStates`] for one run, [`compare::Document`] for two traces, and
//! [`predicted::Validation`] for a performance model.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod at_once;
mod classes;
pub mod classify;
pub mod collectives;
mod column;
pub mod compare;
mod dtypes;
mod enclosing;
mod error;
pub mod idle;
pub mod index;
mod launched;
mod load;
mod messages;
mod metadata;
mod model;
mod names;
mod number;
pub mod predicted;
mod quantile;
mod ranks;
pub mod rates;
mod ratio;
mod repair;
pub mod results;
mod rows;
mod section;
pub mod segment;
mod select;
mod shapes;
mod shrinking;
mod stream;
mod summary;
#[cfg(feature = "synthetic")]
pub mod synthetic;
mod warning;
mod words;

pub use at_once::at_once;
pub use classes::{Classes, NameClasses};
pub use column::Column;
pub use error::TraceError;
pub use index::{IndexPolicy, IndexUse};
pub use load::{Options, trace_files};
pub use messages::Message;
pub use metadata::{Device, Distributed, Metadata, Vendor};
pub use model::{Annotations, DeviceWork, Frames, Kernels, Lane, Launches, Ops, Thread, Trace};
pub use names::{NameId, Names};
pub use ranks::{RankFile, RankWarning, Ranks};
pub use rows::{Extent, RowFormat, RowWriter, Rows, Table};
pub use segment::Segments;
pub use shapes::{ConvPass, Input, Problem, Shape};
pub use shrinking::end_with_message_when_files_shrink;
pub use stream::{Streamed, Totals, TotalsSummary};
pub use summary::{
    ByDuration, DeviceTime, GapLength, Group, Idle, LayerTime, Overlap, Partition, PatternTime,
    PhaseTime, Position, SegmentSummary, StepTime, StreamTime, Summary, Taxonomy, Times,
    Unclassified, busy_and_span, device_times, phase_times,
};
pub use warning::{EventForm, OtherDevice, Warning};
pub use words::counted;
