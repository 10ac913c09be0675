//! A node of a workload: `output = Operator(input, input) attribute=value`.

use std::str::FromStr;

use serde_json::{Map, Value};

/// A node as its line says it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodeLine {
    /// The name of what it writes.
    pub(super) output: String,
    /// The operator.
    pub(super) op: String,
    /// Names as strings, empty ones where an input is left out; numbers, and lists of whole numbers.
    pub(super) inputs: Vec<Value>,
    /// By name.
    pub(super) attributes: Map<String, Value>,
}

impl FromStr for NodeLine {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let form = "expected `output = Operator(input, input) attribute=value`";
        let missing = |what: &str| format!("`{line}` has no `{what}`; {form}");
        let (output, rest) = line.split_once('=').ok_or_else(|| missing("="))?;
        let (op, rest) = rest.split_once('(').ok_or_else(|| missing("("))?;
        let (inputs, attributes) = rest.rsplit_once(')').ok_or_else(|| missing(")"))?;
        let (output, op) = (name(output)?, name(op)?);
        let inputs = split(inputs).into_iter().map(input).collect::<Result<_, _>>()?;
        let attributes = attributes.split_whitespace().map(attribute);
        let attributes = attributes.collect::<Result<_, _>>()?;
        Ok(Self { output, op, inputs, attributes })
    }
}

/// A name without spaces.
fn name(text: &str) -> Result<String, String> {
    let name = text.trim();
    let is_name = |letter: char| letter.is_alphanumeric() || "_.".contains(letter);
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(format!("`{name}` is not a name of letters, digits, `_` and `.`"));
    }
    Ok(name.to_owned())
}

/// What commas part that are not in brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_u32);
    for (at, letter) in text.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// A name, a number, or a list of numbers.
fn input(text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Ok(Value::String(String::new()));
    }
    let is_number = text.starts_with(['[', '-', '+', '.']) || text.starts_with(char::is_numeric);
    if !is_number {
        return name(text).map(Value::String);
    }
    match serde_json::from_str(text) {
        Ok(value @ Value::Number(_)) => Ok(value),
        Ok(Value::Array(list)) if list.iter().all(Value::is_i64) => Ok(Value::Array(list)),
        _ => Err(format!("`{text}` is neither a number nor a list of whole numbers")),
    }
}

/// `name=value`, where a value that is not JSON is a text.
fn attribute(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| {
        format!("`{text}` is not an attribute; write it as name=value, without spaces")
    })?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((name(key)?, value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_a_node() {
        let line: NodeLine = "y = Conv(x, w) strides=[2,2] auto_pad=VALID group=1".parse().unwrap();
        assert_eq!((line.output.as_str(), line.op.as_str()), ("y", "Conv"));
        assert_eq!(line.inputs, [json!("x"), json!("w")]);
        let expected = json!({"strides": [2, 2], "auto_pad": "VALID", "group": 1});
        assert_eq!(Value::Object(line.attributes), expected);
        let line: NodeLine = "a=com.microsoft.Gelu( x , [0, -1] , 8.0,, )".parse().unwrap();
        assert_eq!(line.inputs, [json!("x"), json!([0, -1]), json!(8.0), json!(""), json!("")]);
        assert!(line.attributes.is_empty());
    }

    #[test]
    fn other_lines_say_what_is_missing() {
        for (line, reason) in [
            ("Relu(x)", "has no `=`"),
            ("y = Relu x", "has no `(`"),
            ("y = Relu(x", "has no `)`"),
            ("y z = Relu(x)", "`y z` is not a name"),
            ("y = (x)", "`` is not a name"),
            ("y = Relu(x z)", "`x z` is not a name"),
            ("y = Reshape(x, [a])", "`[a]` is neither a number"),
            ("y = Reshape(x, [1.5])", "`[1.5]` is neither a number"),
            ("y = Relu(x) loud", "`loud` is not an attribute"),
        ] {
            let error = line.parse::<NodeLine>().unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
}
