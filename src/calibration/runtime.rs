//! A runtime whose kernels were measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::vocabulary::Implementation;

/// A runtime whose kernels were measured: a `[[runtime]]` table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuntimeUsed {
    /// What its records say of whose kernels ran: its name and its version, joined with `@`.
    pub implementation: Implementation,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The device that it ran on, as it says.
    pub device: String,
    /// How it was set up, as it says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}
