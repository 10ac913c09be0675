//! Rows as CSV and as lines of JSON.

use cli_support::plain;
use cli_support::sheet::Sheet;
use serde_json::Value;

use super::Rows;

/// The rows as CSV with a header. Lists are JSON. What would control a terminal is an escape.
///
/// # Errors
///
/// When a value cannot be written as CSV, which none of these is.
pub fn csv(rows: &Rows) -> anyhow::Result<Vec<u8>> {
    let cell = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => plain::text(text).into_owned(),
        value => plain::json(&value.to_string()).into_owned(),
    };
    let header = rows.columns.iter().map(|column| column.name.clone()).collect();
    let rows = rows.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    Ok(Sheet { header, rows }.csv()?)
}

/// The rows as JSON, an object on each line, each with every column. What would control a terminal is
/// an escape, which programs read as what it was.
#[must_use]
pub fn json_lines(rows: &Rows) -> String {
    let mut text = String::new();
    for row in &rows.rows {
        let members = rows
            .columns
            .iter()
            .zip(row)
            .map(|(column, value)| format!("{}:{value}", Value::from(column.name.as_str())));
        let members = members.collect::<Vec<_>>().join(",");
        text += &format!("{{{}}}\n", plain::json(&members));
    }
    text
}
