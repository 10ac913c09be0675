//! Traces of any size in bounded memory: part by part, in the order of the file.
//!
//! [`Trace::stream`] hands over the rows of a trace as they are read and forgets them. [`Totals`]
//! sums them up.

mod totals;

use std::ops::ControlFlow;
use std::path::Path;

use crate::load::{Builder, load, not, with_file};
use crate::{Metadata, Options, Trace, TraceError, Warning};

pub use totals::{Totals, TotalsSummary};

/// What is known of a trace when it has been streamed.
#[derive(Debug, Clone, PartialEq)]
pub struct Streamed {
    /// What the file says about the run and its devices.
    pub metadata: Metadata,
    /// How many events were read, with those that are not kept.
    pub events: u64,
    /// How many bytes of JSON were read.
    pub bytes: u64,
    /// What the reader of results must know; of the part that was read if it is not complete.
    pub warnings: Vec<Warning>,
    /// Whether the file was read to its end, which is not so if the caller ended it.
    pub is_complete: bool,
}

impl Trace {
    /// Reads a trace of any size in the memory that a small one takes.
    ///
    /// `each` is called with one part of the trace after the other, in the order of the file: the
    /// rows of that part, and the names, threads and streams of all so far, under the same ids in
    /// every part. Metadata and warnings come in the end. When `each` breaks, the rest is not read,
    /// which is not an error.
    ///
    /// `progress` is called as in [`Trace::load`].
    ///
    /// # Errors
    ///
    /// As [`Trace::load`], also after some parts: that a file has no complete event is known only
    /// at its end.
    pub fn stream(
        path: impl AsRef<Path>,
        options: &Options,
        each: &mut dyn FnMut(&Self) -> ControlFlow<()>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Streamed, TraceError> {
        let path = path.as_ref();
        with_file(path, |feed, size| {
            let mut hand_over = |builder: &mut Builder, done: u64| {
                progress(done.min(size), size);
                let flow = each(builder.rows());
                builder.clear_rows();
                flow
            };
            let loaded = load(feed, options, &mut hand_over).map_err(|reason| not(path, reason))?;
            if loaded.is_complete {
                progress(size, size);
            }
            let Self { metadata, events, bytes, warnings, .. } = loaded.trace;
            Ok(Streamed { metadata, events, bytes, warnings, is_complete: loaded.is_complete })
        })
    }
}

#[cfg(test)]
mod tests;
