//! Where a problem runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

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
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        by_name("backend", text, Self::ALL, Self::name)
    }
}

/// The one of `all` that is called so, in upper or lower case.
pub(super) fn by_name<T: Copy, const N: usize>(
    what: &'static str,
    text: &str,
    all: [T; N],
    name: fn(T) -> &'static str,
) -> Result<T, Error> {
    let is_called_so = |one: &T| name(*one) == text.to_ascii_lowercase();
    let unknown = || Error::unknown_name(what, text, all.into_iter().map(name));
    all.into_iter().find(is_called_so).ok_or_else(unknown)
}

/// What a measured time begins and ends with.
///
/// Fusion removes launches. An eager framework pays for each of them, a captured graph hardly
/// does, so that both times of a GPU are true, and a question must say which one it means.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The clock of the processor that the kernels run on: from the call to its return.
    #[default]
    Host,
    /// The clock of a GPU: from the first kernel's start to the last one's end, with the queue full.
    Device,
    /// The host's clock around a GPU's work: from handing it to an idle GPU to its end.
    LaunchInclusive,
}

impl Clock {
    /// Every clock.
    pub const ALL: [Self; 3] = [Self::Host, Self::Device, Self::LaunchInclusive];

    /// The name on the command line and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Device => "device",
            Self::LaunchInclusive => "launch-inclusive",
        }
    }

    /// Whether it is the host's, which files leave out.
    #[must_use]
    pub fn is_host(&self) -> bool {
        *self == Self::Host
    }
}

impl FromStr for Clock {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        by_name("clock", text, Self::ALL, Self::name)
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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

    /// What follows the name of a problem in reports: ` cold`, or nothing behind one that was measured
    /// with warm caches, which is the usual case.
    #[must_use]
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Warm => "",
            Self::Cold => " cold",
        }
    }
}

impl fmt::Display for CacheState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
