//! What a comparison says. Every list is in the order in which a report shows it.
//!
//! Times called `first_ns`, `second_ns` and `gap_ns` are of one step, as [`Basis`] defines it, and
//! `gap_ns` is the first minus the second. Times called `total_ns` and `own_ns` are sums over a
//! whole recording.

use serde::Serialize;

use super::roles::Role;
use super::warnings::CompareWarning;
use crate::segment::{Marker, Phase};

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
    /// What a step is.
    pub basis: Basis,
    /// The gap between the two, and what it is made of.
    pub gap: Gap,
    /// The layers, position by position.
    pub layers: LayerComparison,
    /// Where one side does in one kernel what the other does in several.
    pub fusions: Vec<Fusion>,
    /// What one side runs for the sake of its implementation only: tails of split GEMMs, fills,
    /// conversions.
    pub implementation: Vec<ImplementationDifference>,
    /// The kernels with the same name on both sides, the largest gap first.
    pub same_kernels: Vec<SameKernel>,
    /// The kernels of both sides by name, the longest first.
    pub kernels: Vec<KernelRow>,
    /// What a reader must know.
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
    /// The first over the second; none if the second takes no time.
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

/// The layers of both sides.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerComparison {
    /// How many layers of the model are aligned.
    pub aligned: u32,
    /// Why layers are not compared, and classes are instead.
    pub none_because: Option<String>,
    /// The distinct layers, the longest together first.
    pub kinds: Vec<LayerKind>,
    /// The layers of the model by number.
    pub numbers: Vec<LayerNumber>,
}

/// Layers that look alike, or stretches between passes through the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerKind {
    /// Its number, from 0.
    pub kind: usize,
    /// The phase, where both sides have it.
    pub phase: Option<Phase>,
    /// Whether it computes gradients.
    pub is_backward: bool,
    /// Whether it is not a layer, but what runs between passes through the model.
    pub is_outside: bool,
    /// Which layers of the model are such, as `0-22`; empty for what is outside.
    pub numbers: String,
    /// How many such layers ran on the first side.
    pub first_layers: u64,
    /// How many such layers ran on the second side.
    pub second_layers: u64,
    /// The mean durations of such a layer's kernels together on the first side, in nanoseconds.
    pub first_mean_ns: f64,
    /// The same on the second side.
    pub second_mean_ns: f64,
    /// What all of them add to a step.
    #[serde(flatten)]
    pub part: Part,
    /// The kernels, in their order.
    pub slots: Vec<Slot>,
}

/// A place in a layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slot {
    /// The place, from 0.
    pub slot: usize,
    /// What it is for.
    pub role: Role,
    /// Which sides have it.
    pub status: SlotStatus,
    /// The kernel of the first side.
    pub first: Option<SlotKernel>,
    /// The kernel of the second side.
    pub second: Option<SlotKernel>,
    /// What it adds to a step, over all layers of the kind.
    #[serde(flatten)]
    pub part: Part,
    /// The first's mean duration over the second's.
    pub ratio: Option<Ratio>,
    /// The fusion that it is a part of: an index into [`Comparison::fusions`].
    pub fusion: Option<usize>,
    /// The difference that it is a part of: an index into [`Comparison::implementation`].
    pub implementation: Option<usize>,
}

/// Which sides have a place of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SlotStatus {
    /// Both, in the same order.
    Aligned,
    /// Both, at another place in the order.
    Moved,
    /// The first only.
    FirstOnly,
    /// The second only.
    SecondOnly,
}

/// The kernels of one side at a place of a layer. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlotKernel {
    /// The class with what is fused into it, as `ADD+NORM`.
    pub class: String,
    /// The most frequent name.
    pub kernel: String,
    /// How many names there are.
    pub names: usize,
    /// How many kernels.
    pub count: u64,
    /// Their mean duration.
    pub mean_ns: f64,
    /// The standard deviation of their durations; none of one.
    pub deviation_ns: Option<f64>,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// A ratio of mean durations, first over second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ratio {
    /// The ratio; null if it is infinite.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub value: f64,
    /// The interval of 95 % for it; none if a side has fewer than two kernels.
    #[cfg_attr(feature = "schema", schemars(with = "Option<(Option<f64>, Option<f64>)>"))]
    pub interval: Option<(f64, f64)>,
}

/// A layer of the model on both sides, over all times that it ran. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerNumber {
    /// Its number, from 0.
    pub layer: u32,
    /// Whether it is its backward part.
    pub is_backward: bool,
    /// How many times it ran on the first side.
    pub first_layers: u64,
    /// How many times it ran on the second side.
    pub second_layers: u64,
    /// What it adds to a step.
    #[serde(flatten)]
    pub part: Part,
}

/// Which side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// The first.
    First,
    /// The second.
    Second,
}

impl Which {
    /// The side of a place in a pair.
    pub(super) fn of(side: usize) -> Self {
        if side == 0 { Self::First } else { Self::Second }
    }
}

/// What one side does in one kernel and the other in several.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fusion {
    /// Who fuses.
    pub fused_by: Which,
    /// What the fused kernel does, as `ADD+NORM`.
    pub operation: String,
    /// The fused kernel.
    pub fused_kernel: String,
    /// The classes of the kernels that the other side runs instead, in their order.
    pub separate: Vec<String>,
    /// Their names.
    pub separate_kernels: Vec<String>,
    /// Where in the layer.
    pub role: Role,
    /// How many times the fused kernel runs in a step.
    pub per_step: f64,
    /// How many fused kernels the recording has there.
    pub count: u64,
    /// The times of the fused kernel and of the separate ones.
    #[serde(flatten)]
    pub part: Part,
    /// How sure it is, up to 1.
    pub confidence: f64,
    /// What kind of evidence it rests on.
    pub by: FusionEvidence,
    /// Of an absence, by how much longer the neighbour takes than it should, over what the missing
    /// kernel would take.
    pub excess: Option<f64>,
    /// The evidence.
    pub evidence: String,
}

/// What shows that a kernel is fused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FusionEvidence {
    /// Its name, or the operator that launched it.
    Name,
    /// What such a kernel computes by definition: attention in one kernel.
    Definition,
    /// A class is missing from every layer of one side, and its neighbour takes correspondingly
    /// longer.
    Absence,
}

/// What a difference of the implementation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ImplementationKind {
    /// A reduction, or another tail, after a GEMM that is split.
    SplitGemm,
    /// Attention takes several kernels.
    SplitAttention,
    /// Several GEMMs where the other side has one.
    SeparateGemms,
    /// Something is set to a value first.
    Fill,
    /// Numbers are converted to fewer bits or back.
    Quantisation,
    /// Data are copied, cast or laid out anew.
    Copy,
    /// A collective.
    Collective,
}

/// What one side runs for the sake of its implementation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImplementationDifference {
    /// What it is.
    pub kind: ImplementationKind,
    /// Who runs it.
    pub run_by: Which,
    /// The class.
    pub class: String,
    /// Where in the layer.
    pub role: Role,
    /// The kernel.
    pub kernel: String,
    /// How many times it runs in a step.
    pub per_step: f64,
    /// The times.
    #[serde(flatten)]
    pub part: Part,
    /// What to say of it.
    pub sentence: String,
}

/// Kernels with one name on both sides. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SameKernel {
    /// The name.
    pub kernel: String,
    /// The class.
    pub class: String,
    /// The times.
    #[serde(flatten)]
    pub part: Part,
    /// The mean on the first side.
    pub first_mean_ns: f64,
    /// The mean on the second side.
    pub second_mean_ns: f64,
    /// The first's mean over the second's.
    pub ratio: Ratio,
}

/// The kernels of one name on one side.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelRow {
    /// Whose.
    pub side: Which,
    /// The name.
    pub kernel: String,
    /// The class.
    pub class: String,
    /// How many, and how long.
    #[serde(flatten)]
    pub amount: Amount,
    /// What they add to a step.
    pub step_ns: f64,
    /// Their part of the durations of their side.
    pub share: f64,
}
