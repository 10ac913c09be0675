//! Rows as CSV and as lines of JSON.

use std::io::{self, Write};

use csv::{Terminator, Writer, WriterBuilder};
use serde::{Serialize, Serializer};

use super::columns::Column;
use super::{Encoder, Rows};

/// RFC 4180: commas, quotes where they are needed, lines that end with CR and LF. What a trace
/// does not contain is empty.
pub(super) struct Csv<W: Write>(Writer<W>);

impl<W: Write> Csv<W> {
    pub(super) fn new(columns: &[&Column], out: W) -> io::Result<Self> {
        let mut writer =
            WriterBuilder::new().has_headers(false).terminator(Terminator::CRLF).from_writer(out);
        writer.write_record(columns.iter().map(|column| column.name)).map_err(failure)?;
        Ok(Self(writer))
    }
}

impl<W: Write> Encoder for Csv<W> {
    fn row(&mut self, columns: &[&'static Column], rows: &Rows<'_>, row: usize) -> io::Result<()> {
        self.0.serialize(List { columns, rows, row }).map_err(failure)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

/// The system's own error where there is one: who writes into a pipe must see it broken.
fn failure(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(system) => system,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// One object in each line, without the members that the trace does not contain.
pub(super) struct JsonLines<W>(W);

impl<W: Write> JsonLines<W> {
    pub(super) fn new(out: W) -> Self {
        Self(out)
    }
}

impl<W: Write> Encoder for JsonLines<W> {
    fn row(&mut self, columns: &[&'static Column], rows: &Rows<'_>, row: usize) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, &Object { columns, rows, row })?;
        self.0.write_all(b"\n")
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}

struct List<'r, 't> {
    columns: &'r [&'static Column],
    rows: &'r Rows<'t>,
    row: usize,
}

impl Serialize for List<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.columns.iter().map(|column| column.cell(self.rows, self.row)))
    }
}

struct Object<'r, 't> {
    columns: &'r [&'static Column],
    rows: &'r Rows<'t>,
    row: usize,
}

impl Serialize for Object<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.columns.iter().filter_map(|column| {
                column.cell(self.rows, self.row).map(|cell| (column.name, cell))
            }),
        )
    }
}
