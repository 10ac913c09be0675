//! The layers of both sides, place by place.

use serde::Serialize;

use super::super::roles::Role;
#[cfg(doc)]
use super::Comparison;
use super::Part;
use crate::segment::Phase;

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
    /// Whether it is not a layer, but the kernels between passes through the model.
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
