//! The gap between two traces, its causes and its parts.

use serde::Serialize;

use super::super::roles::Role;
#[cfg(doc)]
use super::Comparison;
use crate::segment::Phase;

/// The gap between two traces. All times are of one step, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// The time of a step on the first side, from end to end.
    pub first_ns: f64,
    /// The same on the second.
    pub second_ns: f64,
    /// The first minus the second.
    pub gap_ns: f64,
    /// The first over the second; none if the second takes no time, or the sides did different
    /// work.
    pub ratio: Option<f64>,
    /// The gap split by what it comes from, the largest first.
    pub causes: Vec<Cause>,
    /// The gap split by class.
    pub classes: Vec<ClassPart>,
    /// The gap split by role in the layer, in the order of a layer, and by what is outside.
    pub roles: Vec<RolePart>,
    /// The phases, where both sides have them.
    pub phases: Vec<PhasePart>,
    /// Communication with what is hidden behind computation.
    pub communication: OverlapPart,
    /// Copies of the runtime likewise.
    pub copies: OverlapPart,
    /// Fills of the runtime likewise.
    pub fills: OverlapPart,
    /// By how much the parts miss the whole, for rounding only: less than a nanosecond a kernel.
    pub rounding_ns: f64,
}

/// What a part of the gap comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// A fusion that one side does: an index into [`Comparison::fusions`].
    Fusion,
    /// Something of the implementation: an index into [`Comparison::implementation`].
    Implementation,
    /// Kernels that only one side has.
    OneSided,
    /// Communication that nothing hides.
    Communication,
    /// Copies of the runtime that nothing hides.
    Copies,
    /// Fills of the runtime that nothing hides.
    Fills,
    /// Kernels of a class that both sides have, and that take different times.
    Class,
    /// Kernels outside of all marked steps.
    OutsideSteps,
    /// Nothing runs on the device.
    Idle,
    /// The recordings have their phases in different shares.
    PhaseMix,
}

/// A part of the gap.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    /// What it comes from.
    pub kind: CauseKind,
    /// What it is called in tables.
    pub name: String,
    /// For a fusion or an implementation difference its place in its list.
    pub index: Option<usize>,
    /// The times.
    #[serde(flatten)]
    pub part: Part,
    /// What to say of it, with numbers.
    pub sentence: String,
}

/// A part of both sides.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// What the first side has of it.
    pub first_amount: Amount,
    /// What the second side has of it.
    pub second_amount: Amount,
    /// What it adds to a step of the first side.
    pub first_ns: f64,
    /// What it adds to a step of the second side.
    pub second_ns: f64,
    /// The first minus the second.
    pub gap_ns: f64,
}

/// Some kernels of a recording, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Amount {
    /// How many kernels, copies and fills.
    pub count: u64,
    /// Their durations together.
    pub total_ns: u64,
    /// The time of the device that is theirs: where several things run at once, it is that of the
    /// first that began, computation before communication, copies and fills.
    pub own_ns: u64,
}

/// The part of a class, of idle time, or of the mix of phases.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassPart {
    /// The class with what is fused into it, as `ADD+NORM`; `IDLE`; `PHASE_MIX`.
    pub class: String,
    /// The times.
    #[serde(flatten)]
    pub part: Part,
    /// The mean duration on the first side over that on the second; none if one has no such kernel.
    pub ratio: Option<f64>,
}

/// The part of a role.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RolePart {
    /// The role.
    pub role: Role,
    /// The times.
    #[serde(flatten)]
    pub part: Part,
}

/// A phase, in steps of this phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhasePart {
    /// Which phase.
    pub phase: Phase,
    /// How many steps of it the first side has.
    pub first_steps: f64,
    /// How many steps of it the second side has.
    pub second_steps: f64,
    /// How long such a step takes on the first side; none if it has none.
    pub first_ns: Option<f64>,
    /// How long such a step takes on the second side; none if it has none.
    pub second_ns: Option<f64>,
}

/// What runs alongside computation, for one step, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverlapPart {
    /// The time of a step of the first side that nothing hides.
    pub first_exposed_ns: f64,
    /// The time of a step of the first side during which something else has the device.
    pub first_overlapped_ns: f64,
    /// The time of a step of the second side that nothing hides.
    pub second_exposed_ns: f64,
    /// The time of a step of the second side during which something else has the device.
    pub second_overlapped_ns: f64,
}
