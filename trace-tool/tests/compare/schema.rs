//! Checks a value against the published schema: the keywords that it uses, and no others.

use serde_json::{Map, Value, json};

/// What is wrong with a value, each with the path to it. Panics on a keyword that it does not know.
pub(super) fn faults(root: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(root, root, value, "", &mut faults);
    faults
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let keywords = match schema {
        Value::Bool(true) => return,
        Value::Bool(false) => return faults.push(format!("{at}: not expected")),
        _ => schema.as_object().unwrap(),
    };
    for (keyword, rule) in keywords {
        let list = || rule.as_array().unwrap();
        let fits = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "format" | "default" => true,
            // `object` looks at these two, which `additionalProperties` depends on.
            "properties" | "patternProperties" | "additionalProperties" => true,
            "type" => match rule {
                Value::Array(types) => types.iter().any(|name| is_of_type(value, name)),
                name => is_of_type(value, name),
            },
            "required" => value.as_object().is_none_or(|object| {
                list().iter().all(|key| object.contains_key(key.as_str().unwrap()))
            }),
            "minProperties" => value.as_object().is_none_or(|it| it.len() as u64 >= count(rule)),
            "minItems" => value.as_array().is_none_or(|it| it.len() as u64 >= count(rule)),
            "maxItems" => value.as_array().is_none_or(|it| it.len() as u64 <= count(rule)),
            "minimum" => value.as_f64().is_none_or(|it| it >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|it| it <= rule.as_f64().unwrap()),
            "enum" => list().contains(value),
            "const" => rule == value,
            "anyOf" => alternatives(root, list(), value) >= 1,
            "oneOf" => alternatives(root, list(), value) == 1,
            "$ref" => {
                let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                check(root, root.pointer(pointer).unwrap(), value, at, faults);
                true
            }
            "prefixItems" => {
                for (index, (one, item)) in list().iter().zip(items(value)).enumerate() {
                    check(root, one, item, &format!("{at}/{index}"), faults);
                }
                true
            }
            "items" => {
                let first = schema["prefixItems"].as_array().map_or(0, Vec::len);
                for (index, item) in items(value).iter().enumerate().skip(first) {
                    check(root, rule, item, &format!("{at}/{index}"), faults);
                }
                true
            }
            unknown => panic!("the check does not know the keyword {unknown}"),
        };
        if !fits {
            faults.push(format!("{at}: {value} does not fit {keyword} {rule}"));
        }
    }
    if let Value::Object(value) = value {
        object(root, keywords, value, at, faults);
    }
}

fn object(
    root: &Value,
    schema: &Map<String, Value>,
    value: &Map<String, Value>,
    at: &str,
    faults: &mut Vec<String>,
) {
    let none = Map::new();
    let of = |keyword: &str| schema.get(keyword).map_or(&none, |it| it.as_object().unwrap());
    let additional = schema.get("additionalProperties").unwrap_or(&Value::Bool(true));
    for (key, inner) in value {
        let plain = of("properties").get(key).into_iter();
        let matching = of("patternProperties").iter().filter(|(pattern, _)| matches(pattern, key));
        let mut rules: Vec<&Value> = plain.chain(matching.map(|(_, rule)| rule)).collect();
        if rules.is_empty() {
            rules.push(additional);
        }
        for rule in rules {
            check(root, rule, inner, &format!("{at}/{key}"), faults);
        }
    }
}

/// Patterns are `^(a|b)rest$`.
fn matches(pattern: &str, key: &str) -> bool {
    let inner = pattern.strip_prefix("^(").unwrap().strip_suffix('$').unwrap();
    let (starts, rest) = inner.split_once(')').unwrap();
    starts.split('|').any(|start| key.strip_prefix(start) == Some(rest))
}

fn alternatives(root: &Value, schemas: &[Value], value: &Value) -> usize {
    let fits = |schema: &&Value| {
        let mut faults = Vec::new();
        check(root, schema, value, "", &mut faults);
        faults.is_empty()
    };
    schemas.iter().filter(fits).count()
}

fn is_of_type(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        unknown => panic!("the check does not know the type {unknown}"),
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn count(rule: &Value) -> u64 {
    rule.as_u64().unwrap()
}

#[test]
fn rules_are_held() {
    let schema = json!({
        "$defs": { "size": { "type": "integer", "minimum": 0 } },
        "properties": {
            "pair": { "prefixItems": [{ "type": "string" }], "items": { "$ref": "#/$defs/size" } },
            "one": { "oneOf": [{ "const": "a" }, { "enum": ["a", "b"] }] },
        },
        "patternProperties": { "^(amd|nvidia)_n$": { "anyOf": [{ "$ref": "#/$defs/size" }] } },
        "additionalProperties": false,
    });
    let fits = |value: Value| faults(&schema, &value).is_empty();
    assert!(fits(json!({ "pair": ["x", 1, 2], "one": "b", "amd_n": 3 })));
    assert!(!fits(json!({ "pair": [1] })));
    assert!(!fits(json!({ "pair": ["x", -1] })));
    assert!(!fits(json!({ "one": "a" })));
    assert!(!fits(json!({ "amd_n": 0.5 })));
    assert!(!fits(json!({ "intel_n": 1 })));
}

#[test]
#[should_panic(expected = "does not know the keyword dependentRequired")]
fn unknown_keywords_are_refused() {
    faults(&json!({ "dependentRequired": {} }), &json!({}));
}
