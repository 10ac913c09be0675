//! What a comparison says. Every list is in the order in which a report shows it.
//!
//! Times called `first_ns`, `second_ns` and `gap_ns` are of one step, as [`Basis`] defines it, and
//! `gap_ns` is the first minus the second. Times called `total_ns` and `own_ns` are sums over a
//! whole recording.

mod differences;
mod gap;
mod layers;
mod rates;
mod same_work;

use serde::Serialize;

use super::warnings::CompareWarning;
use crate::segment::{Marker, Phase};

pub use differences::{
    Fusion, FusionEvidence, ImplementationDifference, ImplementationKind, KernelRow, SameKernel,
    Which,
};
pub use gap::{Amount, Cause, CauseKind, ClassPart, Gap, OverlapPart, Part, PhasePart, RolePart};
pub use layers::{LayerComparison, LayerKind, LayerNumber, Ratio, Slot, SlotKernel, SlotStatus};
pub use rates::{IdleComparison, IdleRow, RateComparison, RateRow, SideRate};
pub use same_work::{
    Answer, Headline, MatchedOperator, MatchedWork, Question, SameWork, WorkAspect, WorkRate,
};

/// What a comparison of two traces says.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The first trace.
    pub first: SideSummary,
    /// The second trace.
    pub second: SideSummary,
    /// The phase that was asked for; all if none was.
    pub phase: Option<Phase>,
    /// The layer that was asked for; everything if none was.
    pub layer: Option<u32>,
    /// Whether both sides did the same work.
    pub same_work: SameWork,
    /// What a step is.
    pub basis: Basis,
    /// The gap between the two, and what it is made of.
    pub gap: Gap,
    /// How fast kernels were, where their work is known.
    pub rates: RateComparison,
    /// For what the devices waited.
    pub idle: IdleComparison,
    /// The layers, position by position.
    pub layers: LayerComparison,
    /// Where one side does in one kernel what the other does in several.
    pub fusions: Vec<Fusion>,
    /// Kernels that only one side runs, although it fuses no less: tails of split GEMMs, fills,
    /// conversions.
    pub implementation: Vec<ImplementationDifference>,
    /// The kernels with the same name on both sides, the largest gap first.
    pub same_kernels: Vec<SameKernel>,
    /// The kernels of both sides by name, the longest first.
    pub kernels: Vec<KernelRow>,
    /// Warnings for the reader.
    pub warnings: Vec<CompareWarning>,
}

/// One of the two sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SideSummary {
    /// The short name in sentences and tables, different on both sides: the device's, or else
    /// `first` and `second`.
    pub label: String,
    /// The name of the file, as the caller gives it.
    pub name: String,
    /// Who made the device: `AMD`, `NVIDIA` or `unknown`.
    pub vendor: &'static str,
    /// The name of the device; empty if the trace has none.
    pub gpu: String,
    /// The number of the device.
    pub device: i64,
    /// Kernels, copies and fills that are compared.
    pub kernels: u64,
    /// Their durations together, in nanoseconds.
    pub total_ns: u64,
    /// From the first beginning to the last end, in nanoseconds; with a phase or a layer, the sum
    /// of what its kernels add to that.
    pub span_ns: u64,
    /// The time in which at least one of them ran.
    pub busy_ns: u64,
    /// The time in which none ran.
    pub idle_ns: u64,
    /// The marked steps.
    pub marked_steps: u64,
    /// How many steps the recording has, in the sense of [`Basis`]; not whole where the recording
    /// begins or ends inside of one.
    pub steps: f64,
    /// The layers of the model; 0 if none were found.
    pub layers: u32,
    /// What layers begin with.
    pub marker: Option<Marker>,
    /// The kind of model.
    pub family: &'static str,
    /// The share of the busy time that is in places of layers that both sides have, or in kernels
    /// that are named as those of one side.
    pub covered_share: f64,
    /// The share of the busy time that is compared by class only.
    pub by_class_share: f64,
    /// The share of the durations in kernels that no rule knows.
    pub unclassified_share: f64,
}

/// What a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A pass through all layers: the layers that ran over the layers of the model.
    Layers,
    /// A marked step that has kernels.
    MarkedSteps,
    /// The whole recording.
    Recording,
}

impl Basis {
    /// What a step is called: `pass`, `step` or `recording`.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Layers => "pass",
            Self::MarkedSteps => "step",
            Self::Recording => "recording",
        }
    }
}
