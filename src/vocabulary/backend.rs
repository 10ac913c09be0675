//! Where a problem runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::{NameKind, VocabularyError};

/// What runs a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The host's processor.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// An AMD GPU.
    Hip,
}

impl Backend {
    /// Every backend.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Cuda, Self::Hip];

    /// The name on the command line and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Hip => "hip",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Backend {
    type Err = VocabularyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|backend| backend.name() == text.to_ascii_lowercase())
            .ok_or_else(|| {
                let known = Self::ALL.iter().map(|backend| backend.name());
                VocabularyError::unknown(NameKind::Backend, text, known)
            })
    }
}

/// What the caches held when a sample began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheState {
    /// The variant has just run on the same tensors.
    Warm,
    /// The inputs have not been touched for longer than the last-level cache remembers.
    Cold,
}

impl CacheState {
    /// The name on the command line and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
        }
    }
}

impl fmt::Display for CacheState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
