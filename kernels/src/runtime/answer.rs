//! What a runtime answers: a line of JSON with the number of the request, and either what was asked
//! for or why there is nothing.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::error::RuntimeError;

/// Characters of an answer that cannot be read which an error shows.
const SHOWN: usize = 60;

/// What a runtime says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Introduction {
    /// Its name: that of the file which describes it.
    pub name: String,
    /// The version of what its kernels come from.
    pub version: String,
    /// The device that it runs on.
    pub device: String,
    /// The dtypes that it computes in.
    pub dtypes: Vec<String>,
    /// What its times begin and end with: `host`.
    pub clock: String,
    /// How it is set up.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
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
        reason,
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
        Some(if text.is_empty() { "it does not say why".to_owned() } else { text })
    };
    if let Some(reason) = word("error") {
        return Err(RuntimeError::Failed { step, reason });
    }
    if let Some(reason) = word("unsupported") {
        return Err(RuntimeError::Unsupported(reason));
    }
    if let Some(reason) = word("missing") {
        return Err(RuntimeError::Missing(reason));
    }
    serde_json::from_value(Value::Object(answer)).map_err(|error| unreadable(error.to_string()))
}
