//! States of the machine that were seen at other times.

use serde::{Deserialize, Serialize};

/// A state that this machine was in at another time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownState {
    /// When it was last seen, in UTC (RFC 3339).
    pub seen_at: String,
    /// The threads that looked at it.
    pub threads: u32,
    /// Its hand-off time in microseconds; `None` with one thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff_us: Option<f64>,
    /// Its triad in 10^9 bytes per second.
    pub triad_gb_per_s: f64,
}
