//! How fast kernels were on both sides, and for what the devices waited.

use serde::Serialize;

use crate::idle::Cause;
use crate::rates::Bound;

/// How fast kernels computed and moved data.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateComparison {
    /// The name of the data sheet of the first side's machine; none if no peaks are known.
    pub first_machine: Option<String>,
    /// The same on the second side.
    pub second_machine: Option<String>,
    /// The part of the first side's durations in kernels whose work is known.
    pub first_known_share: f64,
    /// The same on the second side.
    pub second_known_share: f64,
    /// By class and dtype, where the work of either side is known, the longest for a step first.
    pub rows: Vec<RateRow>,
}

/// Kernels of one class and dtype.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateRow {
    /// The class with what is fused into it.
    pub class: String,
    /// The dtype of the operands, if it is known.
    pub dtype: Option<&'static str>,
    /// Those of the first side.
    pub first: Option<SideRate>,
    /// Those of the second side.
    pub second: Option<SideRate>,
}

/// How fast kernels of one side were.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SideRate {
    /// Their durations for a step, in nanoseconds.
    pub step_ns: f64,
    /// Their durations in the recording, in nanoseconds: of those whose work is known.
    pub known_ns: u64,
    /// Operations in the recording, a multiply-add counted as two.
    pub flops: f64,
    /// Bytes that must be moved at least: each tensor once.
    pub bytes: f64,
    /// 10^12 operations per second; none of what only moves data.
    pub tflop_per_s: Option<f64>,
    /// 10^9 bytes per second.
    pub gb_per_s: Option<f64>,
    /// The share of the dtype's peak rate that was reached.
    pub of_peak: Option<f64>,
    /// The share of the peak bandwidth that was reached.
    pub of_bandwidth: Option<f64>,
    /// What limits them by the roofline.
    pub bound: Option<Bound>,
    /// The time that the roofline allows over the time that they took.
    pub of_roofline: Option<f64>,
}

/// For what the devices waited, in a step. The causes add up to the class `IDLE` of the gap.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleComparison {
    /// By cause, the widest gap first.
    pub rows: Vec<IdleRow>,
}

/// Idle time of one cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleRow {
    /// The cause.
    pub cause: Cause,
    /// The idle time of a step on the first side, in nanoseconds.
    pub first_ns: f64,
    /// The same on the second side.
    pub second_ns: f64,
    /// The first less the second.
    pub gap_ns: f64,
    /// Gaps of the first recording with a part of this cause.
    pub first_gaps: u64,
    /// Those of the second recording.
    pub second_gaps: u64,
    /// What the first side's host did for most of it: a call, an operator, a Python frame or a
    /// mark; none if the trace does not say.
    pub first_doing: Option<String>,
    /// The same on the second side.
    pub second_doing: Option<String>,
}
