//! Tables with tables in them as one table: keys are joined with dots, as in
//! `unfused_timing.median_ms`.

use serde::Serialize;
use serde_json::{Map, Value};

/// Puts every value of a table into another one, under its keys joined with dots behind a prefix.
/// Lists stay lists.
///
/// # Errors
///
/// When a value has no JSON form.
pub fn put(
    flat: &mut Map<String, Value>,
    prefix: &str,
    table: impl Serialize,
) -> serde_json::Result<()> {
    if let Value::Object(table) = serde_json::to_value(table)? {
        flatten(flat, prefix, table);
    }
    Ok(())
}

fn flatten(flat: &mut Map<String, Value>, prefix: &str, table: Map<String, Value>) {
    for (key, value) in table {
        let name = format!("{prefix}{key}");
        match value {
            Value::Object(table) => flatten(flat, &format!("{name}."), table),
            value => {
                flat.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_joined() {
        let mut flat = Map::new();
        put(&mut flat, "x.", json!({"a": 1, "b": {"c": {"d": [1, 2]}, "e": null}})).unwrap();
        assert_eq!(Value::Object(flat), json!({"x.a": 1, "x.b.c.d": [1, 2], "x.b.e": null}));
    }
}
