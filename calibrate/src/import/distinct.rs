//! Whether a key stands twice in an object: a reader takes one of the two, and nobody knows which was
//! meant.

use std::collections::HashSet;
use std::fmt::{self, Formatter};

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Any value, if no object in it has a key twice.
pub(super) struct DistinctKeys;

impl<'de> Deserialize<'de> for DistinctKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for DistinctKeys {
    type Value = Self;

    fn expecting(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format!("{key} is there twice; keep one")));
            }
            keys.insert(key);
            map.next_value::<Self>()?;
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_found_at_any_depth() {
        let read = |text: &str| serde_json::from_str::<DistinctKeys>(text).map(|_| ());
        for text in [
            r#"{"a": {"x": 1, "x": 2}}"#,
            r#"[1, {"b": null, "x": 1, "x": true}]"#,
            r#"{"a": [{"c": [{"x": -1, "y": "z", "x": 1.5}]}]}"#,
            r#"{"x": 1, "\u0078": 2}"#,
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.starts_with("x is there twice; keep one at line 1"), "{message}");
        }
        let of_others = r#"{"x": {"x": [-1, 1.5, true, null, "x"]}, "y": {"x": {}}}"#;
        read(of_others).unwrap();
    }
}
