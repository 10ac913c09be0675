//! Rows as CSV and as lines of JSON.

use cli_support::sheet::Sheet;
use serde_json::Value;

use super::Rows;

/// The rows as CSV with a header. Lists are JSON.
///
/// # Errors
///
/// When a value cannot be written as CSV, which none of these is.
pub fn csv(rows: &Rows) -> anyhow::Result<Vec<u8>> {
    let cell = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let header = rows.columns.iter().map(|column| column.name.clone()).collect();
    let rows = rows.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    Ok(Sheet { header, rows }.csv()?)
}

/// The rows as JSON, an object on each line, each with every column.
#[must_use]
pub fn json_lines(rows: &Rows) -> String {
    let mut text = String::new();
    for row in &rows.rows {
        let members = rows
            .columns
            .iter()
            .zip(row)
            .map(|(column, value)| format!("{}:{value}", Value::from(column.name.as_str())));
        text += &format!("{{{}}}\n", members.collect::<Vec<_>>().join(","));
    }
    text
}
