//! What a runtime answers: a line of JSON with the number of the request, and either what was asked
//! for or why there is nothing.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::error::RuntimeError;
use super::message::{Hello, Prepare, Request as _, Supports};

/// Characters of an answer that cannot be read which an error shows.
const SHOWN: usize = 60;

/// Characters of what a runtime says in its own words that are kept.
const MOST_WORDS: usize = 500;

/// Characters of a version at most.
const MOST_OF_VERSION: usize = 100;

/// What a runtime says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Introduction {
    /// Its name: that of the file which describes it.
    #[serde(deserialize_with = "short")]
    pub name: String,
    /// The version of what its kernels come from.
    #[serde(deserialize_with = "version")]
    pub version: String,
    /// The device that it runs on.
    #[serde(deserialize_with = "short")]
    pub device: String,
    /// The dtypes that it computes in.
    #[serde(deserialize_with = "short_list")]
    pub dtypes: Vec<String>,
    /// What its times begin and end with: `host`.
    #[serde(deserialize_with = "short")]
    pub clock: String,
    /// How it is set up.
    #[serde(default, deserialize_with = "options")]
    pub options: BTreeMap<String, String>,
}

/// A version, which becomes a part of names.
fn version<'de, D: Deserializer<'de>>(text: D) -> Result<String, D::Error> {
    let version = String::deserialize(text)?;
    let length = version.chars().count();
    if length > MOST_OF_VERSION {
        let text = format!("its version has {length} characters, and {MOST_OF_VERSION} at most");
        return Err(D::Error::custom(text));
    }
    if version.chars().any(char::is_control) {
        return Err(D::Error::custom("its version has control characters"));
    }
    Ok(version)
}

fn short<'de, D: Deserializer<'de>>(text: D) -> Result<String, D::Error> {
    String::deserialize(text).map(cut)
}

fn short_list<'de, D: Deserializer<'de>>(list: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<String>::deserialize(list)?.into_iter().map(cut).collect())
}

fn options<'de, D: Deserializer<'de>>(map: D) -> Result<BTreeMap<String, String>, D::Error> {
    let options = BTreeMap::<String, String>::deserialize(map)?;
    Ok(options.into_iter().map(|(name, value)| (cut(name), cut(value))).collect())
}

/// The beginning of words that may have no end.
fn cut(words: String) -> String {
    match words.char_indices().nth(MOST_WORDS) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

/// What was made ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// The kernels of each variant, in words.
    pub kernels: Kernels,
    /// Whether it moves its tensors when it is asked to.
    pub layouts: bool,
}

/// The kernels of each variant, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernels {
    /// One per op.
    #[serde(deserialize_with = "some")]
    pub unfused: Vec<String>,
    /// As few as the runtime makes of the chain.
    #[serde(deserialize_with = "some")]
    pub fused: Vec<String>,
}

/// At least one kernel: something computes the result.
fn some<'de, D: Deserializer<'de>>(list: D) -> Result<Vec<String>, D::Error> {
    let kernels = Vec::<String>::deserialize(list)?;
    if kernels.is_empty() {
        return Err(D::Error::custom("a variant without kernels computes nothing"));
    }
    if kernels.iter().any(|kernel| kernel.trim().is_empty()) {
        return Err(D::Error::custom("a kernel has no words"));
    }
    Ok(kernels)
}

/// How long all of the runs took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ran {
    /// In nanoseconds.
    pub ns: u64,
}

/// An answer that says nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {}

/// JSON whose objects have each key once: of two times none would be that of the runs.
struct Unambiguous(Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyJson)
    }
}

struct AnyJson;

impl<'de> Visitor<'de> for AnyJson {
    type Value = Unambiguous;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Unambiguous, E> {
        Ok(Unambiguous(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Unambiguous, E> {
        Ok(Unambiguous(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Unambiguous, E> {
        Ok(Unambiguous(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Unambiguous, E> {
        Ok(Unambiguous(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Unambiguous, E> {
        Ok(Unambiguous(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Unambiguous, E> {
        Ok(Unambiguous(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unambiguous, A::Error> {
        let mut list = Vec::new();
        while let Some(Unambiguous(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Unambiguous(list.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Unambiguous, A::Error> {
        let mut keys = Map::new();
        while let Some((key, Unambiguous(value))) = entries.next_entry::<String, _>()? {
            if keys.contains_key(&key) {
                return Err(A::Error::custom(format!("it has `{key}` twice")));
            }
            keys.insert(key, value);
        }
        Ok(Unambiguous(keys.into()))
    }
}

/// Reads a line as the answer to the request with a number and a name.
///
/// # Errors
///
/// When it is the answer to another request, cannot be read, or says that there is none.
pub fn read<A: DeserializeOwned>(
    line: &[u8],
    step: &'static str,
    request: u64,
) -> Result<A, RuntimeError> {
    let unreadable = |reason: String| RuntimeError::Unreadable {
        step,
        reason: cut(reason),
        shown: String::from_utf8_lossy(line).chars().take(SHOWN).collect(),
    };
    let Unambiguous(answer) =
        serde_json::from_slice(line).map_err(|error| unreadable(error.to_string()))?;
    let mut answer: Map<String, Value> =
        serde_json::from_value(answer).map_err(|error| unreadable(error.to_string()))?;
    let number = answer.remove("n");
    if number.as_ref().and_then(Value::as_u64) != Some(request) {
        let found = number.map_or_else(|| "no `n`".to_owned(), |found| format!("n = {found}"));
        let reason = format!("it has {found}, and request {request} was asked");
        return Err(RuntimeError::OutOfTurn { step, reason });
    }
    // On one line: a message of several could pass for one of this program.
    let mut word = |key: &str| {
        let text = match answer.remove(key)? {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let text = lines.collect::<Vec<_>>().join("; ");
        Some(if text.is_empty() { "it does not say why".to_owned() } else { cut(text) })
    };
    let out_of_place = |word: &str, steps: &str, reason: String| RuntimeError::Failed {
        step,
        reason: format!("it answers `{word}`, as it can to {steps} only: {reason}"),
    };
    if let Some(reason) = word("error") {
        return Err(RuntimeError::Failed { step, reason });
    }
    if let Some(reason) = word("unsupported") {
        return Err(match step {
            Supports::NAME | Prepare::NAME => RuntimeError::Unsupported(reason),
            _ => out_of_place("unsupported", "`supports` and `prepare`", reason),
        });
    }
    if let Some(reason) = word("missing") {
        return Err(match step {
            Hello::NAME => RuntimeError::Missing(reason),
            _ => out_of_place("missing", "`hello`", reason),
        });
    }
    serde_json::from_value(Value::Object(answer)).map_err(|error| unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error<A: DeserializeOwned>(line: &str, step: &'static str) -> String {
        read::<A>(line.as_bytes(), step, 1)
            .err()
            .map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn words_have_an_end() {
        let long = "é".repeat(900_000);
        let kept = format!("{}…", "é".repeat(MOST_WORDS));
        for (key, step) in [("error", "run"), ("unsupported", "supports"), ("missing", "hello")] {
            let found = error::<Done>(&format!(r#"{{"n": 1, "{key}": "{long}"}}"#), step);
            assert!(found.ends_with(&kept), "{key}");
        }
        let found = error::<Done>(&format!(r#"{{"n": 1, "{long}": 2}}"#), "layout");
        assert!(found.chars().count() < 2 * MOST_WORDS);
        let hello = |version: &str, option: &str| {
            format!(
                r#"{{"n": 1, "name": "a", "version": "{version}", "device": "cpu", "dtypes": [],
                "clock": "host", "options": {{"a": "{option}"}}}}"#
            )
        };
        let said: Introduction = read(hello("1.2", &long).as_bytes(), "hello", 1).unwrap();
        assert_eq!((said.version.as_str(), &said.options["a"]), ("1.2", &kept));
        let found = error::<Introduction>(&hello(&long, ""), "hello");
        assert!(found.contains("its version has 900000 characters, and 100 at most"), "{found}");
        let found = error::<Introduction>(&hello(r"1\u001b[31m", ""), "hello");
        assert!(found.contains("its version has control characters"), "{found}");
    }

    #[test]
    fn what_is_not_run_is_said_where_it_is_asked() {
        for step in ["supports", "prepare"] {
            assert_eq!(error::<Done>(r#"{"n": 1, "unsupported": "no add"}"#, step), "no add");
        }
        for (word, step, steps) in [
            ("unsupported", "run", "`supports` and `prepare`"),
            ("unsupported", "hello", "`supports` and `prepare`"),
            ("missing", "output", "`hello`"),
            ("missing", "prepare", "`hello`"),
        ] {
            let expected =
                format!("its `{step}` failed: it answers `{word}`, as it can to {steps} only: no");
            let line = format!(r#"{{"n": 1, "{word}": "no"}}"#);
            assert_eq!(error::<Done>(&line, step), expected);
        }
    }
}
