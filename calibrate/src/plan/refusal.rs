//! Why a subject is not measured.

use serde::{Deserialize, Serialize};

use crate::exit::UsageError;

/// Why a subject cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// In words.
    pub reason: String,
    /// Whether something failed, instead of not being there.
    pub is_failure: bool,
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { reason, is_failure: false }
    }
}

impl Refusal {
    /// The error of a run that ends with it.
    pub(super) fn error(&self, text: String) -> anyhow::Error {
        if self.is_failure { anyhow::Error::msg(text) } else { UsageError(text).into() }
    }
}
