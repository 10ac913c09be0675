//! Whose kernels a problem runs with.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, ErrorKind};

/// Whose kernels run.
///
/// The text form is `native`, `vendor`, or the name and the version of a runtime: `pytorch@2.9.1`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Implementation {
    /// The project's own, with the same core in both variants.
    #[default]
    Native,
    /// Those of a vendor's library: its fused entry point against its plain one with separate
    /// kernels after it.
    Vendor,
    /// Those of a runtime, such as a framework or a compiler: one call of it for each op against its
    /// own fusion of the whole chain.
    Runtime(RuntimeId),
}

/// A runtime in one of its versions. Another version has other kernels, so that its measurements say
/// nothing about this one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuntimeId {
    /// `name@version`, then zeros.
    text: [u8; RuntimeId::MOST_BYTES],
    length: u8,
}

impl RuntimeId {
    /// The bytes of a text form at most: it is kept in every target and question.
    pub const MOST_BYTES: usize = 48;

    /// A version of a runtime.
    ///
    /// # Errors
    ///
    /// When the name is not made of small letters, digits, `-` and `_`, or the version of letters,
    /// digits and `.+-_`, or both together are too long.
    pub fn new(name: &str, version: &str) -> Result<Self, Error> {
        let is_of_name = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        let is_of_version =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-' | b'_');
        let is_good = !name.is_empty()
            && !version.is_empty()
            && name.bytes().all(is_of_name)
            && version.bytes().all(is_of_version);
        let joined = format!("{name}@{version}");
        let mut text = [0; Self::MOST_BYTES];
        match (text.get_mut(..joined.len()), u8::try_from(joined.len())) {
            (Some(place), Ok(length)) if is_good => {
                place.copy_from_slice(joined.as_bytes());
                Ok(Self { text, length })
            }
            _ => Err(ErrorKind::RuntimeText(joined).into()),
        }
    }

    /// The name and the version, joined with `@`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let text = self.text.get(..usize::from(self.length)).unwrap_or_default();
        // All of it is ASCII.
        std::str::from_utf8(text).unwrap_or_default()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.as_str().split_once('@').map_or("", |(name, _)| name)
    }

    /// The version.
    #[must_use]
    pub fn version(&self) -> &str {
        self.as_str().split_once('@').map_or("", |(_, version)| version)
    }
}

impl fmt::Debug for RuntimeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RuntimeId").field(&self.as_str()).finish()
    }
}

impl fmt::Display for RuntimeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Implementation {
    /// Those that are not a runtime's.
    pub const BUILT_IN: [Self; 2] = [Self::Native, Self::Vendor];

    /// The name on the command line and in files.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Native => "native",
            Self::Vendor => "vendor",
            Self::Runtime(id) => id.as_str(),
        }
    }

    /// Whether the kernels are the project's own.
    #[must_use]
    pub fn is_native(&self) -> bool {
        *self == Self::Native
    }

    /// The runtime, if it is one.
    #[must_use]
    pub const fn runtime(&self) -> Option<&RuntimeId> {
        match self {
            Self::Runtime(id) => Some(id),
            Self::Native | Self::Vendor => None,
        }
    }

    /// Whose A/A runs say how noisy its measurements are: its own for a runtime, whose process is
    /// another one, else those of the project's kernels.
    #[must_use]
    pub const fn yardstick(self) -> Self {
        match self {
            Self::Runtime(_) => self,
            Self::Native | Self::Vendor => Self::Native,
        }
    }
}

/// Fails with an [`Error`] that names what is known, or what is wrong with the text of a runtime.
impl FromStr for Implementation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((name, version)) = text.split_once('@') {
            return RuntimeId::new(name, version).map(Self::Runtime);
        }
        let wanted = text.to_ascii_lowercase();
        let known = Self::BUILT_IN.into_iter().find(|one| one.name() == wanted);
        let names = Self::BUILT_IN.iter().map(Self::name);
        known.ok_or_else(|| Error::unknown_name("implementation", text, names))
    }
}

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Implementation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Implementation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_its_name_and_its_version() {
        let one: Implementation = "pytorch@2.9.1+cu128".parse().unwrap();
        let id = one.runtime().unwrap();
        assert_eq!((id.name(), id.version()), ("pytorch", "2.9.1+cu128"));
        assert_eq!((one.to_string(), one.name()), (id.to_string(), id.as_str()));
        assert_ne!(one, "pytorch@2.10.0".parse().unwrap());
        assert_eq!(serde_json::to_string(&one).unwrap(), "\"pytorch@2.9.1+cu128\"");
        assert_eq!(serde_json::from_str::<Implementation>("\"pytorch@2.9.1+cu128\"").unwrap(), one);
        assert_eq!("NATIVE".parse::<Implementation>().unwrap(), Implementation::Native);
        assert!(Implementation::default().is_native() && !one.is_native());
    }

    #[test]
    fn what_is_no_runtime_says_why() {
        let message = |text: &str| text.parse::<Implementation>().unwrap_err().to_string();
        assert!(message("naitve").contains("did you mean `native`?"));
        for text in ["@1", "py torch@1", "PyTorch@1", "pytorch@", "pytorch@1/2", "a@b@c"] {
            assert!(message(text).contains("small letters"), "{}", message(text));
        }
        let long = format!("{}@1", "a".repeat(RuntimeId::MOST_BYTES));
        assert!(message(&long).contains("48 bytes"));
        assert!(long[2..].parse::<Implementation>().is_ok());
    }
}
