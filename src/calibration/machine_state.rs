//! The states that a machine was in while it was calibrated.

use serde::{Deserialize, Serialize};

use super::two::two;

/// A state of the machine: a `[[state]]` table of the file.
///
/// A virtual machine moves between states that it does not report, for minutes at a time: its
/// processors share a cache in one of them and not in another, or somebody else uses the memory. A
/// short look at the machine before and after the samples of every process shows in which one it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineState {
    /// Its number in this file, from 1.
    pub id: u32,
    /// Microseconds until all threads have begun and ended an empty kernel, the median; absent with
    /// one thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff_us: Option<f64>,
    /// 10^9 bytes per second of `a = b + c` on tensors that no cache holds, the median.
    pub triad_gb_per_s: f64,
    /// The lowest and the highest of the middle 90 % of the triads.
    #[serde(deserialize_with = "two")]
    pub triad_range: [f64; 2],
    /// Processes that measured in it.
    pub processes: u32,
}

/// A state that the machine was in during an earlier run, and that this one did not meet: an
/// `[[earlier_state]]` table of the file. What fusion gains in it is in no interval of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierState {
    /// When it was last seen, in UTC (RFC 3339).
    pub seen_at: String,
    /// The threads that looked at it.
    pub threads: u32,
    /// Its hand-off time in microseconds; absent with one thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff_us: Option<f64>,
    /// Its triad in 10^9 bytes per second.
    pub triad_gb_per_s: f64,
}

/// What was measured of a problem in one state of the machine: a `[[fusion.by_state]]` table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateSpeedup {
    /// The state, as [`MachineState::id`].
    pub state: u32,
    /// Processes that measured in it.
    pub processes: u32,
    /// Unfused time over fused time in this state.
    pub speedup_factor: f64,
    /// Lower end of its 95 % interval.
    pub speedup_low: f64,
    /// Upper end of its 95 % interval.
    pub speedup_high: f64,
}
