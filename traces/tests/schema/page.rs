//! The page about the schema: a table of keys for each type.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

const HEAD: &str = "\
# The JSON of `calibrate trace compare`

`calibrate trace compare A B --json`, and `trace-tool compare` likewise, prints one object. In Rust
it is `kernel_traces::compare::Document`. [trace-compare.schema.json](trace-compare.schema.json) is
its JSON Schema (draft 2020-12). Both that file and this page are made from the types: after a
change, `UPDATE_SCHEMA=1 cargo test -p kernel-traces --test schema` writes them anew. A key that
changes its meaning, or goes, makes a new `schema_version`; new keys may come.

Keys that end in `_ns` are nanoseconds, in `_us` microseconds, in `_ms` milliseconds. `first` is A,
`second` is B; a gap is the first minus the second, a ratio the first over the second. `first_ns`,
`second_ns` and `gap_ns` are of one step; `total_ns` and `own_ns`, and all sums under the older
keys, are of a whole recording. What is none, and a number that is infinite, is `null`. Layers,
kinds, slots and indexes are numbered from 0.

The older keys are those of earlier comparisons of traces; their `layers` is here `layer_totals`.
`{side}` is `amd` or `nvidia` if the two sides are of these two vendors, else `trace1` or `trace2`.
`advice` of a warning is what they called `suggestion`. They named operators that launched kernels
(`cpu_op`, `python_stacks`), which this comparison does not record.
";

/// The page.
pub(super) fn of(schema: &Value) -> String {
    let mut page = String::from(HEAD);
    section(&mut page, "The object", schema);
    let types = schema["$defs"].as_object().unwrap();
    for (name, one) in types {
        section(&mut page, name, one);
    }
    page
}

fn section(page: &mut String, name: &str, schema: &Value) {
    page.push_str(&format!("\n## {name}\n"));
    if let Some(text) = schema["description"].as_str() {
        page.push_str(&format!("\n{}\n", wrapped(text)));
    }
    if let Some(values) = values(schema) {
        page.push_str(&format!("\n{}\n", wrapped(&format!("One of {values}."))));
    }
    let mut rows = Vec::new();
    for one in std::iter::once(schema).chain(alternatives(schema)) {
        rows.extend(keys(one));
    }
    if rows.is_empty() {
        return;
    }
    page.push_str("\n| key | type | meaning |\n|---|---|---|\n");
    let mut seen = BTreeSet::new();
    for row in rows {
        if seen.insert(row.clone()) {
            page.push_str(&row);
        }
    }
}

/// The kinds of object that a type can be.
fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    ["oneOf", "anyOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten()
}

/// A row of the table for each key.
fn keys(schema: &Value) -> Vec<String> {
    let none = Map::new();
    let of = |key: &str| schema[key].as_object().unwrap_or(&none).clone();
    let row = |key: &str, one: &Value| {
        let meaning = one["description"].as_str().unwrap_or_default().replace('\n', " ");
        format!("| `{key}` | {} | {meaning} |\n", type_of(one))
    };
    let plain = of("properties");
    let sided = of("patternProperties");
    let name = |pattern: &str| {
        pattern.replace("^(amd|nvidia|trace1|trace2)", "{side}").trim_end_matches('$').to_owned()
    };
    let sided = sided.iter().map(|(pattern, one)| row(&name(pattern), one));
    // The required keys are listed in the order of the type.
    let required = schema["required"].as_array();
    let place = |key: &str| required.and_then(|list| list.iter().position(|one| one == key));
    let mut plain: Vec<_> = plain.iter().collect();
    plain.sort_by_key(|(key, _)| place(key));
    plain.into_iter().map(|(key, one)| row(key, one)).chain(sided).collect()
}

/// The values of a list of names.
fn values(schema: &Value) -> Option<String> {
    let of_list = |list: &Value| {
        let names: Option<Vec<String>> =
            list.as_array()?.iter().map(|value| Some(format!("`{}`", value.as_str()?))).collect();
        names
    };
    let names = of_list(&schema["enum"]).or_else(|| {
        let one = |one: &Value| {
            one["const"]
                .as_str()
                .map(|name| vec![format!("`{name}`")])
                .or_else(|| of_list(&one["enum"]))
        };
        let all: Option<Vec<Vec<String>>> = schema["oneOf"].as_array()?.iter().map(one).collect();
        all.map(|all| all.concat())
    })?;
    Some(names.join(", "))
}

fn type_of(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(values) = values(schema) {
        return values;
    }
    if let Some(constant) = schema.get("const") {
        return format!("`{constant}`");
    }
    let alternatives: Vec<String> = alternatives(schema).map(type_of).collect();
    if !alternatives.is_empty() {
        return alternatives.join(" or ");
    }
    if schema["items"].is_object() {
        return format!("list of {}", type_of(&schema["items"]));
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => "list".to_owned(),
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

/// Wraps a text at 100 columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().unwrap();
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > 100 {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}
