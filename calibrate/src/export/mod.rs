//! Records as rows for other programs: CSV, lines of JSON, and Parquet.
//!
//! A row is a record with what it was measured on and by: nested keys are joined with dots, as in
//! `unfused_timing.median_ms`. Names are those of the calibration file. `text` and `parquet` write
//! the rows.

#[cfg(feature = "parquet")]
mod parquet;
mod text;

use std::collections::BTreeMap;

use fusion_cost_model::calibration::HardwareCalibration;
use serde_json::{Map, Value};

use crate::flat::put;

#[cfg(feature = "parquet")]
pub use parquet::parquet;
pub use text::{csv, json_lines};

/// The columns that stand first, in this order; all others follow by name.
const FIRST: [&str; 22] = [
    "file",
    "hardware.id",
    "hardware.name",
    "problem",
    "fusion_pattern",
    "backend",
    "dtype",
    "threads",
    "clock",
    "implementation",
    "cache_state",
    "rewrite",
    "verdict",
    "speedup_factor",
    "speedup_low",
    "speedup_high",
    "noise_floor",
    "ceiling_speedup",
    "unfused_latency_ms",
    "fused_latency_ms",
    "processes",
    "tool.started_at",
];

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Yes or no.
    Bool,
    /// Whole numbers.
    Integer,
    /// Whole numbers, some beyond the signed ones of 64 bits. None of a calibration is
    /// negative.
    Unsigned,
    /// Numbers.
    Number,
    /// Words.
    Text,
    /// Lists, which are JSON where a format has none.
    List,
}

impl Kind {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Bool(_) => Some(Self::Bool),
            Value::Number(number) if number.is_f64() => Some(Self::Number),
            Value::Number(number) if number.as_i64().is_none() => Some(Self::Unsigned),
            Value::Number(_) => Some(Self::Integer),
            Value::String(_) => Some(Self::Text),
            Value::Array(_) | Value::Object(_) => Some(Self::List),
        }
    }

    /// What holds the values of both.
    const fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Number, Self::Integer | Self::Unsigned)
            | (Self::Integer | Self::Unsigned, Self::Number) => Self::Number,
            (Self::Integer, Self::Unsigned) => Self::Unsigned,
            (kind, _) => kind,
        }
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The keys that lead to its values, joined with dots.
    pub name: String,
    /// What they are.
    pub kind: Kind,
}

/// The records of several files, one row for each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Every key that some record has.
    pub columns: Vec<Column>,
    /// A value for each column; null where the record lacks the key.
    pub rows: Vec<Vec<Value>>,
}

impl Rows {
    /// The records of calibrations, each with the name of its file.
    ///
    /// # Errors
    ///
    /// When a record has no JSON form, which none of a file lacks.
    pub fn of(files: &[(String, HardwareCalibration)]) -> serde_json::Result<Self> {
        let mut kinds: BTreeMap<String, Kind> = BTreeMap::new();
        let mut flat = Vec::new();
        for (file, calibration) in files {
            let origin = origin(file, calibration)?;
            for record in &calibration.records {
                let mut row = origin.clone();
                put(&mut row, "", record)?;
                for (name, value) in &row {
                    if let Some(kind) = Kind::of(value) {
                        let known = kinds.entry(name.clone()).or_insert(kind);
                        *known = known.with(kind);
                    }
                }
                flat.push(row);
            }
        }
        let place =
            |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
        let mut columns: Vec<Column> =
            kinds.into_iter().map(|(name, kind)| Column { name, kind }).collect();
        columns.sort_by_key(|column| place(&column.name));
        let values = |mut row: Map<String, Value>| {
            columns.iter().map(|column| row.remove(&column.name).unwrap_or_default()).collect()
        };
        let rows = flat.into_iter().map(values).collect();
        Ok(Self { columns, rows })
    }
}

/// Where records are from, and how they were measured.
fn origin(file: &str, calibration: &HardwareCalibration) -> serde_json::Result<Map<String, Value>> {
    let HardwareCalibration { hardware, tool, settings, fingerprint, .. } = calibration;
    let mut row = Map::new();
    row.insert("file".to_owned(), file.into());
    row.insert("schema_version".to_owned(), calibration.schema_version.into());
    row.insert("hardware.id".to_owned(), hardware.id.as_str().into());
    row.insert("hardware.name".to_owned(), hardware.name.as_str().into());
    put(&mut row, "tool.", tool)?;
    put(&mut row, "settings.", settings)?;
    put(&mut row, "fingerprint.", fingerprint)?;
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../../../tests/data/example.toml");

    fn rows() -> Rows {
        let calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
        let mut other = calibration.clone();
        other.records.truncate(1);
        other.records[0].ceiling_speedup = None;
        Rows::of(&[("a.toml".to_owned(), calibration), ("b.toml".to_owned(), other)]).unwrap()
    }

    fn column<'r>(rows: &'r Rows, name: &str) -> (Kind, Vec<&'r Value>) {
        let at = rows.columns.iter().position(|column| column.name == name).unwrap();
        (rows.columns[at].kind, rows.rows.iter().map(|row| &row[at]).collect())
    }

    #[test]
    fn a_row_for_each_record_with_nested_keys_joined() {
        let rows = rows();
        let calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
        assert_eq!(rows.rows.len(), calibration.records.len() + 1);
        let first: Vec<&str> = rows.columns[..4].iter().map(|one| one.name.as_str()).collect();
        assert_eq!(first, ["file", "hardware.id", "hardware.name", "problem"]);
        for (name, expected) in [
            ("file", Kind::Text),
            ("speedup_factor", Kind::Number),
            ("unfused_timing.median_ms", Kind::Number),
            ("extra_params.n", Kind::Integer),
            ("settings.quick", Kind::Bool),
            ("operators", Kind::List),
            ("fingerprint.memory_bytes", Kind::Integer),
        ] {
            let (kind, values) = column(&rows, name);
            assert_eq!(kind, expected, "{name}");
            assert!(!values[0].is_null(), "{name}");
        }
        let (_, ceilings) = column(&rows, "ceiling_speedup");
        assert!(ceilings.last().unwrap().is_null() && !ceilings[0].is_null());
        let (_, medians) = column(&rows, "unfused_timing.median_ms");
        for (record, median) in calibration.records.iter().zip(medians) {
            assert_eq!(median.as_f64(), Some(record.unfused_timing.median_ms));
        }
    }

    #[test]
    fn all_formats_have_all_rows() {
        let rows = rows();
        let csv = String::from_utf8(csv(&rows).unwrap()).unwrap();
        assert!(csv.starts_with("file,hardware.id,hardware.name,problem,"));
        assert_eq!(csv.lines().count(), rows.rows.len() + 1);
        let lines = json_lines(&rows);
        assert_eq!(lines.lines().count(), rows.rows.len());
        for (line, row) in lines.lines().zip(&rows.rows) {
            let object: Map<String, Value> = serde_json::from_str(line).unwrap();
            assert_eq!(object.len(), rows.columns.len());
            for (column, value) in rows.columns.iter().zip(row) {
                assert_eq!(object[&column.name], *value);
            }
        }
        let nothing = Rows::of(&[]).unwrap();
        assert_eq!((json_lines(&nothing), nothing.columns.len()), (String::new(), 0));
    }
}
