//! Rows as Apache Parquet.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use rustc_hash::FxHashMap;

use super::columns::{Cell, Column, Kind};
use super::{Encoder, Rows};

/// Rows that are written together: enough for readers to skip and to read in parallel, and about
/// 30 MB of memory.
const GROUP: usize = 1 << 17;

/// Writes a Parquet file, a group of rows at a time.
pub(super) struct Parquet<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    buffers: Vec<Buffer>,
    rows: usize,
}

/// The values of a column that wait to be written.
enum Buffer {
    /// Bits of both kinds of integers.
    Integers {
        values: Vec<i64>,
        is_there: Vec<i16>,
    },
    Texts {
        values: Vec<ByteArray>,
        is_there: Vec<i16>,
        known: FxHashMap<Box<str>, ByteArray>,
    },
}

impl<W: Write + Send> Parquet<W> {
    pub(super) fn new(columns: &[&Column], out: W) -> io::Result<Self> {
        let fields: Result<Vec<_>, _> = columns.iter().map(|column| field(column)).collect();
        let schema = Type::group_type_builder("rows").with_fields(fields.map_err(failure)?).build();
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let schema = Arc::new(schema.map_err(failure)?);
        let writer =
            SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(failure)?;
        let buffers = columns.iter().map(|column| Buffer::new(column.kind)).collect();
        Ok(Self { writer, buffers, rows: 0 })
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for buffer in &mut self.buffers {
            if let Some(column) = group.next_column()? {
                buffer.write(column)?;
            }
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl<W: Write + Send> Encoder for Parquet<W> {
    fn row(&mut self, columns: &[&'static Column], rows: &Rows<'_>, row: usize) -> io::Result<()> {
        for (column, buffer) in columns.iter().zip(&mut self.buffers) {
            buffer.push(column.cell(rows, row));
        }
        self.rows += 1;
        if self.rows == GROUP { self.write_group().map_err(failure) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        if self.rows > 0 {
            self.write_group().map_err(failure)?;
        }
        self.writer.finish().map(drop).map_err(failure)?;
        self.writer.inner_mut().flush()
    }
}

impl Buffer {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Signed | Kind::Unsigned => {
                Self::Integers { values: Vec::new(), is_there: Vec::new() }
            }
            Kind::Text => Self::Texts {
                values: Vec::new(),
                is_there: Vec::new(),
                known: FxHashMap::default(),
            },
        }
    }

    /// Adds a value; one of another kind than the column's counts as none.
    fn push(&mut self, cell: Option<Cell<'_>>) {
        match self {
            Self::Integers { values, is_there } => {
                let value = match cell {
                    Some(Cell::Signed(value)) => Some(value),
                    Some(Cell::Unsigned(value)) => Some(value.cast_signed()),
                    _ => None,
                };
                is_there.push(i16::from(value.is_some()));
                values.extend(value);
            }
            Self::Texts { values, is_there, known } => {
                let text = if let Some(Cell::Text(text)) = cell { Some(text) } else { None };
                is_there.push(i16::from(text.is_some()));
                values.extend(text.map(|text| match known.get(&*text) {
                    Some(value) => value.clone(),
                    None => {
                        let value = ByteArray::from(text.as_bytes().to_vec());
                        known.insert(text.into(), value.clone());
                        value
                    }
                }));
            }
        }
    }

    fn write(&mut self, mut column: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Self::Integers { values, is_there } => {
                let writer = column.typed::<Int64Type>();
                writer.write_batch(values, Some(is_there), None)?;
                values.clear();
                is_there.clear();
            }
            Self::Texts { values, is_there, known } => {
                let writer = column.typed::<ByteArrayType>();
                writer.write_batch(values, Some(is_there), None)?;
                values.clear();
                is_there.clear();
                known.clear();
            }
        }
        column.close()
    }
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Signed => (PhysicalType::INT64, LogicalType::integer(64, true)),
        Kind::Unsigned => (PhysicalType::INT64, LogicalType::integer(64, false)),
        Kind::Text => (PhysicalType::BYTE_ARRAY, LogicalType::String),
    };
    let field = Type::primitive_type_builder(column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(logical));
    field.build().map(Arc::new)
}

/// The system's own error where there is one: who writes into a pipe must see it broken.
fn failure(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(system) => *system,
            Err(cause) => io::Error::other(cause),
        },
        error => io::Error::other(error),
    }
}
