//! Lists of two numbers: the reader of TOML takes longer ones for arrays, and drops what is behind.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Reads two values, neither fewer nor more.
pub(super) fn two<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<[T; 2], D::Error> {
    let all = Vec::deserialize(deserializer)?;
    all.try_into().map_err(|all: Vec<T>| D::Error::invalid_length(all.len(), &"two values"))
}

/// The same where there may be none.
pub(super) fn two_if_any<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<[T; 2]>, D::Error> {
    two(deserializer).map(Some)
}
