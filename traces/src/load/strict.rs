//! The parser for every event that the fast one does not know: full JSON, with repairs of what
//! profilers are known to get wrong.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::event::{Arg, Args, Category, Event, Field, Inputs};
use crate::number::{nanoseconds, scaled};
use crate::repair::repaired;

/// Reads an event: `Some(None)` if it is one that is not kept, `None` if it is not JSON.
pub(crate) fn parse(bytes: &[u8]) -> Option<Option<Event<'static>>> {
    if let Ok(members) = serde_json::from_slice(bytes) {
        return Some(event(&members));
    }
    let text = repaired(bytes);
    let members = serde_json::from_str(&text).ok()?;
    Some(event(&members))
}

/// The members of an object, in order, with values as they stand in the text.
struct Members<'b>(Vec<(Cow<'b, str>, &'b RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                // Not as strings: half of a surrogate pair in one key is not a reason to lose all.
                while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    members.push((string(key.get()).unwrap_or_default(), value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl<'b> Members<'b> {
    /// The first value of a key.
    fn get(&self, key: &str) -> Option<&'b str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.get())
    }
}

fn event(members: &Members<'_>) -> Option<Event<'static>> {
    if members.get("ph").and_then(string)? != "X" {
        return None;
    }
    let category = Category::of(members.get("cat").and_then(string)?.as_bytes());
    if category == Category::Other {
        return None;
    }
    let text = |key| {
        let text = members.get(key).and_then(scalar).unwrap_or_default();
        Cow::Owned(text.into_owned().into_bytes())
    };
    let mut args = Args::default();
    let mut inputs = Inputs::NONE;
    let mut collective = Cow::Borrowed(&b""[..]);
    let object = members.get("args").and_then(|raw| serde_json::from_str::<Members<'_>>(raw).ok());
    for (key, raw) in object.iter().flat_map(|object| &object.0) {
        let Some(arg) = Arg::of(key.as_bytes()) else { continue };
        match arg {
            Arg::Device => set(&mut args.device, raw.get(), whole),
            Arg::Stream => set(&mut args.stream, raw.get(), whole),
            Arg::Correlation => set(&mut args.correlation, raw.get(), whole),
            Arg::ExternalId => set(&mut args.external_id, raw.get(), whole),
            Arg::Gradient => set(&mut args.gradient, raw.get(), whole),
            Arg::GraphNode => set(&mut args.graph_node, raw.get(), whole),
            Arg::Collective => {
                if category == Category::Kernel {
                    keep(&mut collective, members.get("args").unwrap_or_default());
                }
            }
            Arg::Dims => keep(&mut inputs.dims, raw.get()),
            Arg::Types => keep(&mut inputs.types, raw.get()),
            Arg::Values => keep(&mut inputs.values, raw.get()),
        }
    }
    let name = members.get("name").and_then(string).unwrap_or_default();
    let (mut start_ns, mut duration_ns) = (Field::Missing, Field::Missing);
    set(&mut start_ns, members.get("ts").unwrap_or("null"), nanoseconds);
    set(&mut duration_ns, members.get("dur").unwrap_or("null"), nanoseconds);
    Some(Event {
        category,
        name: Cow::Owned(name.into_owned().into_bytes()),
        process: text("pid"),
        thread: text("tid"),
        start_ns,
        duration_ns,
        args,
        inputs,
        collective,
    })
}

/// Takes the text of a value if there was none before.
fn keep(text: &mut Cow<'static, [u8]>, raw: &str) {
    if text.is_empty() {
        *text = Cow::Owned(raw.as_bytes().to_vec());
    }
}

/// Takes a value if there was none before.
fn set<T>(field: &mut Field<T>, raw: &str, read: impl Fn(&[u8]) -> Option<T>) {
    if field.is_missing() && raw != "null" {
        let text = scalar(raw);
        *field = text.and_then(|text| read(text.as_bytes())).map_or(Field::Bad, Field::Is);
    }
}

fn whole<T: TryFrom<i128>>(text: &[u8]) -> Option<T> {
    scaled(text, 0).and_then(|value| value.try_into().ok())
}

/// The text of a string.
fn string(raw: &str) -> Option<Cow<'_, str>> {
    let content = raw.strip_prefix('"')?.strip_suffix('"')?;
    if !content.contains('\\') {
        return Some(Cow::Borrowed(content));
    }
    // Half of a surrogate pair is not text; it stays as it is written.
    Some(serde_json::from_str(raw).map_or(Cow::Borrowed(content), Cow::Owned))
}

/// The text of a string or a number.
fn scalar(raw: &str) -> Option<Cow<'_, str>> {
    let is_number = raw.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    if is_number { Some(Cow::Borrowed(raw)) } else { string(raw) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_strict_parser_reads() {
        let text = br#"{"\u0070h": "X", "cat": "Kern\u0065l", "name": "a\"b\u00e9", "ts": 1.5e1,
            "dur": "2.0004", "pid": 0, "tid": "x",
            "args": {"correlation": 18446744073709551615, "stream": -1, "device": 1e99,
                     "External id": 1.0, "graph node id": [1], "Sequence number": 7}}"#;
        let event = parse(text).unwrap().unwrap();
        assert_eq!(event.category, Category::Kernel);
        assert_eq!(&*event.name, "a\"bé".as_bytes());
        assert_eq!((event.start_ns, event.duration_ns), (Field::Is(15_000), Field::Is(2000)));
        let expected = Args {
            device: Field::Bad,
            stream: Field::Is(-1),
            correlation: Field::Is(u64::MAX),
            external_id: Field::Is(1),
            gradient: Field::Is(7),
            graph_node: Field::Bad,
        };
        assert_eq!(event.args, expected);
        // Half of a surrogate pair in a key that is not looked for, and in one that is.
        let text = br#"{"ph": "X", "cat": "kernel", "\ud83d": 1,
            "args": {"\ud83d": 2, "External id": 3}}"#;
        assert_eq!(parse(text).unwrap().unwrap().args.external_id, Field::Is(3));
        assert_eq!(parse(b"{\"ph\": \"i\"}"), Some(None));
        assert_eq!(parse(b"{\"name\": \"say \"x\" loud\"}"), None);
    }
}
