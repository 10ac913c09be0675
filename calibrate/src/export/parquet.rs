//! Rows as Apache Parquet.

use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use serde_json::Value;

use super::{Column, Kind, Rows};

/// The rows as a file of Apache Parquet, compressed with Snappy. Lists are JSON.
///
/// # Errors
///
/// When the library cannot encode them.
pub fn parquet(rows: &Rows) -> anyhow::Result<Vec<u8>> {
    Ok(encoded(rows)?)
}

fn encoded(rows: &Rows) -> Result<Vec<u8>, ParquetError> {
    let fields = rows.columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("records").with_fields(fields).build()?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (index, column) in rows.columns.iter().enumerate() {
        let values = || rows.rows.iter().map(|row| &row[index]);
        if let Some(mut writer) = group.next_column()? {
            write(&mut writer, column.kind, values)?;
            writer.close()?;
        }
    }
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Bool => (PhysicalType::BOOLEAN, None),
        Kind::Integer => (PhysicalType::INT64, Some(LogicalType::integer(64, true))),
        Kind::Unsigned => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
        Kind::Number => (PhysicalType::DOUBLE, None),
        Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::List => (PhysicalType::BYTE_ARRAY, Some(LogicalType::Json)),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    field.build().map(Arc::new)
}

fn write<'v, I: Iterator<Item = &'v Value>>(
    writer: &mut SerializedColumnWriter<'_>,
    kind: Kind,
    values: impl Fn() -> I,
) -> Result<(), ParquetError> {
    match kind {
        Kind::Bool => batch::<BoolType>(writer, values().map(Value::as_bool)),
        Kind::Integer => batch::<Int64Type>(writer, values().map(Value::as_i64)),
        // The format keeps them as signed ones of the same bits.
        Kind::Unsigned => {
            let bits = |value: &Value| value.as_u64().map(u64::cast_signed);
            batch::<Int64Type>(writer, values().map(bits))
        }
        Kind::Number => batch::<DoubleType>(writer, values().map(Value::as_f64)),
        Kind::Text => batch::<ByteArrayType>(writer, values().map(|one| one.as_str().map(bytes))),
        Kind::List => {
            let list = |value: &Value| (!value.is_null()).then(|| bytes(&value.to_string()));
            batch::<ByteArrayType>(writer, values().map(list))
        }
    }
}

fn bytes(text: &str) -> ByteArray {
    ByteArray::from(text.as_bytes().to_vec())
}

/// A missing value has definition level 0.
fn batch<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = values.collect();
    let is_there: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    writer.typed::<T>().write_batch(&values, Some(&is_there), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_whole_number_of_64_bits_is_kept() {
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        let rows = Rows {
            columns: vec![column("small", Kind::Integer), column("large", Kind::Unsigned)],
            rows: vec![
                vec![json!(i64::MAX), json!(u64::MAX)],
                vec![json!(1), json!(1)],
                vec![Value::Null, Value::Null],
            ],
        };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&parquet(&rows).unwrap()).unwrap();
        let file = SerializedFileReader::new(file).unwrap();
        let read: Vec<Vec<Field>> = file
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().into_columns().into_iter().map(|(_, field)| field).collect())
            .collect();
        assert_eq!(read[0], [Field::Long(i64::MAX), Field::ULong(u64::MAX)]);
        assert_eq!(read[1], [Field::Long(1), Field::ULong(1)]);
        assert_eq!(read[2], [Field::Null, Field::Null]);
    }
}
