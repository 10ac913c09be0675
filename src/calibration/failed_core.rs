//! Kernels that failed, and what took their place.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::vocabulary::Core;

/// How the kernels of a problem failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelFailure {
    /// One of them does not compile.
    Compile,
    /// One of them could not be loaded or launched, or ended with an error.
    Launch,
    /// The process that ran them ended without an answer.
    Crash,
    /// One of them did not end in the time that it was given.
    Hung,
    /// The result is wrong. Such kernels are never timed.
    Wrong,
}

impl KernelFailure {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compile => "compile",
            Self::Launch => "launch",
            Self::Crash => "crash",
            Self::Hung => "hung",
            Self::Wrong => "wrong",
        }
    }
}

impl fmt::Display for KernelFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A core of a GPU on which the kernels of a problem failed, so that they were measured on another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedCore {
    /// The core.
    pub core: Core,
    /// How they failed.
    pub failure: KernelFailure,
    /// What happened, in words.
    pub reason: String,
}

impl fmt::Display for FailedCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { core, failure, reason } = self;
        write!(f, "{core}: {failure}: {reason}")
    }
}
