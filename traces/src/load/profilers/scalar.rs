//! Numbers that some profilers write as strings.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A number or a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Scalar<'t> {
    /// Missing, or `null`.
    #[default]
    None,
    Number(i64),
    Text(Cow<'t, str>),
}

impl Scalar<'_> {
    /// Its number; none if it has none that fits.
    pub(super) fn number(&self) -> Option<i64> {
        match self {
            Self::None => None,
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok(),
        }
    }

    /// The same without a sign.
    pub(super) fn whole(&self) -> Option<u64> {
        self.number()?.try_into().ok()
    }
}

impl<'de: 't, 't> Deserialize<'de> for Scalar<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Scalar<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a text")
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Scalar::None)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Scalar::Number(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(i64::try_from(number).map_or(Scalar::None, Scalar::Number))
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Scalar::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Scalar::Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts() {
        let number = |text| serde_json::from_str::<Scalar<'_>>(text).unwrap().number();
        assert_eq!(number("17"), Some(17));
        assert_eq!(number("-1"), Some(-1));
        assert_eq!(number("\"9223372036854775807\""), Some(i64::MAX));
        assert_eq!(number("18446744073709551615"), None);
        assert_eq!(number("\"a\\n\""), None);
        assert_eq!(number("null"), None);
        assert!(serde_json::from_str::<Scalar<'_>>("[1]").is_err());
        let whole = |text| serde_json::from_str::<Scalar<'_>>(text).unwrap().whole();
        assert_eq!((whole("\"7\""), whole("-7")), (Some(7), None));
    }
}
