//! The published schema of a comparison, and the page about it, are made from the types.
//!
//! After a change of a type, `UPDATE_SCHEMA=1 cargo test -p kernel-traces --test schema` writes both
//! files anew.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod page;

use std::path::PathBuf;
use std::{env, fs};

use kernel_traces::compare::Document;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Map, Value};

/// The schema of what is serialized.
fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Document<'_>>();
    RecursiveTransform(close).transform(&mut schema);
    schema.insert("title".to_owned(), "trace-tool compare --json".into());
    schema.to_value()
}

/// Objects have no keys but those that are listed, numbers no formats that JSON does not know, and
/// descriptions no marks of Rust.
fn close(schema: &mut Schema) {
    schema.remove("format");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = plain(text);
    }
    let has = |key| schema.get(key).is_some();
    if (has("properties") || has("patternProperties")) && !has("additionalProperties") {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
    // Both sides have a key for each pattern.
    let sided = schema.get("patternProperties").and_then(Value::as_object).map(Map::len);
    if let Some(sided) = sided {
        let plain = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        schema.insert("minProperties".to_owned(), (plain + 2 * sided).into());
    }
}

/// A doc comment without line breaks inside of paragraphs and without links to items of Rust.
fn plain(text: &str) -> String {
    let paragraphs: Vec<String> =
        text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
    paragraphs.join("\n\n").replace("[`", "`").replace("`]", "`")
}

fn check(name: &str, made: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    if env::var_os("UPDATE_SCHEMA").is_some() {
        fs::write(&path, made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap();
    assert!(
        committed == made,
        "docs/{name} is stale: run `UPDATE_SCHEMA=1 cargo test -p kernel-traces --test schema`"
    );
}

#[test]
fn the_schema_is_that_of_the_types() {
    check("trace-compare.schema.json", &(serde_json::to_string_pretty(&schema()).unwrap() + "\n"));
}

#[test]
fn the_page_is_that_of_the_schema() {
    check("trace-compare-schema.md", &page::of(&schema()));
}
