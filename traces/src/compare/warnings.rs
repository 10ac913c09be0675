//! What a reader of a comparison must know.

use serde::Serialize;

/// How much a warning matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It explains how the numbers were made.
    Info,
    /// Some numbers mean less than they seem to.
    Warning,
}

impl Severity {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "note",
            Self::Warning => "warning",
        }
    }
}

/// Something about a comparison that changes what its numbers mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompareWarning {
    /// A short name that never changes, for programs.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The file that it is about; none if it is about both.
    pub file: Option<String>,
    /// The finding.
    pub message: String,
    /// What to do about it.
    pub advice: String,
}
