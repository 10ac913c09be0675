//! The rows of a trace for other programs: CSV, lines of JSON, and Parquet.
//!
//! `columns` says what the columns of each table are, once for all formats; a trace that is
//! streamed has the same rows as one that is loaded, without the columns that need all of it.
//! `text` and `parquet` write them.

mod columns;
#[cfg(feature = "parquet")]
mod parquet;
mod text;

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use crate::{Classes, NameId, Segments, Trace};
use columns::Column;

/// A table of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// What ran on the devices: kernels, copies and fills.
    Kernels,
    /// Calls of the runtime or the driver.
    Launches,
    /// What the program marked.
    Annotations,
    /// Operators on the host.
    Ops,
    /// Calls of Python functions and modules.
    Frames,
}

impl Table {
    /// How many rows a trace has of it.
    #[must_use]
    pub fn len(self, trace: &Trace) -> usize {
        match self {
            Self::Kernels => trace.kernels.len(),
            Self::Launches => trace.launches.len(),
            Self::Annotations => trace.annotations.len(),
            Self::Ops => trace.ops.len(),
            Self::Frames => trace.frames.len(),
        }
    }
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// RFC 4180, with a header.
    Csv,
    /// One object in each line.
    Json,
    /// Apache Parquet, compressed with Snappy.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Whether the columns are there that only a whole trace can fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Rows of a trace that is loaded.
    Whole,
    /// Rows of the parts of one that is streamed.
    Parts,
}

/// The rows of a trace, or of a part of one, with what else is known of it.
#[derive(Debug, Clone)]
pub struct Rows<'t> {
    trace: &'t Trace,
    file: &'t str,
    rank: Option<u64>,
    classes: Classes,
    /// The operators by their ids, if all are there.
    ops: FxHashMap<u64, NameId>,
    /// The steps and layers, if all of the trace is there.
    segments: Segments,
}

impl<'t> Rows<'t> {
    /// Those of a whole trace from a file.
    #[must_use]
    pub fn whole(trace: &'t Trace, file: &'t str, rank: Option<u64>) -> Self {
        let ids = trace.ops.external_id.iter().copied();
        let ops = ids.zip(trace.ops.name.iter().copied()).collect();
        let classes = Classes::of(trace);
        let segments = Segments::of(trace, &classes);
        Self { trace, file, rank, classes, ops, segments }
    }

    /// Those of a part of a trace, with the classes of its kernels.
    #[must_use]
    pub fn part(part: &'t Trace, file: &'t str, rank: Option<u64>, classes: Classes) -> Self {
        let (ops, segments) = Default::default();
        Self { trace: part, file, rank, classes, ops, segments }
    }
}

/// Writes rows. What was not finished may lack its end.
pub struct RowWriter<'w> {
    table: Table,
    columns: Vec<&'static Column>,
    encoder: Box<dyn Encoder + 'w>,
}

/// A format that rows are written in.
trait Encoder {
    /// Writes a row.
    fn row(&mut self, columns: &[&'static Column], rows: &Rows<'_>, row: usize) -> io::Result<()>;

    /// Writes what is left.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

impl<'w> RowWriter<'w> {
    /// Writes what comes before the first row.
    ///
    /// # Errors
    ///
    /// When `out` cannot be written.
    pub fn new(
        table: Table,
        extent: Extent,
        format: RowFormat,
        out: impl Write + Send + 'w,
    ) -> io::Result<Self> {
        let columns = columns::of(table, extent);
        let encoder: Box<dyn Encoder + 'w> = match format {
            RowFormat::Csv => Box::new(text::Csv::new(&columns, out)?),
            RowFormat::Json => Box::new(text::JsonLines::new(out)),
            #[cfg(feature = "parquet")]
            RowFormat::Parquet => Box::new(parquet::Parquet::new(&columns, out)?),
        };
        Ok(Self { table, columns, encoder })
    }

    /// Writes rows.
    ///
    /// # Errors
    ///
    /// When they cannot be written; [`io::ErrorKind::BrokenPipe`] if the reader closed the output.
    pub fn write(&mut self, rows: &Rows<'_>) -> io::Result<()> {
        (0..self.table.len(rows.trace))
            .try_for_each(|row| self.encoder.row(&self.columns, rows, row))
    }

    /// Writes what comes after the last row.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn finish(self) -> io::Result<()> {
        self.encoder.finish()
    }
}

#[cfg(test)]
mod tests;
