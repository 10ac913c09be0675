//! The layers of the model, by number and place by place.

use serde::Serialize;

use super::{PerSide, Status, Sums};
use crate::compare::{Comparison, LayerKind, LayerNumber, Role, Slot};
use crate::segment::Phase;

/// Layers differ if their sums differ by more than this, in milliseconds, and by the ratio too.
const LAYER_GAP_MS: f64 = 0.1;

/// And by more than this ratio.
const LAYER_RATIO: f64 = 1.2;

/// A layer of the model by its number, with sums over the recordings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LayerTotal<'c> {
    /// Its number, from 0.
    pub layer: u32,
    /// Whether it is its backward part.
    pub is_backward: bool,
    /// Its kernels on the first side.
    pub trace1_kernels: u64,
    /// Its kernels on the second side.
    pub trace2_kernels: u64,
    /// Their durations together on the first side, in milliseconds.
    pub trace1_total_ms: f64,
    /// Their durations together on the second side, in milliseconds.
    pub trace2_total_ms: f64,
    /// The first total over the second; null where one side lacks the layer.
    pub ratio: Option<f64>,
    /// The first total minus the second.
    pub gap_ms: f64,
    /// How the sides compare: they differ above 0.1 ms and a ratio of 1.2.
    pub status: Status,
    /// Whether both sides have it.
    pub in_both: bool,
    /// The same layer in the comparison.
    #[serde(skip)]
    pub number: &'c LayerNumber,
}

/// The layers by number.
#[must_use]
pub fn layer_totals(comparison: &Comparison) -> Vec<LayerTotal<'_>> {
    comparison.layers.numbers.iter().map(|number| LayerTotal::of(comparison, number)).collect()
}

impl<'c> LayerTotal<'c> {
    fn of(comparison: &Comparison, number: &'c LayerNumber) -> Self {
        let LayerNumber { layer, is_backward, first_layers, second_layers, part } = number;
        let sums = Sums::of(part);
        let in_both = *first_layers > 0 && *second_layers > 0;
        let [first, second] = sums.total_ms;
        let ratio = (in_both && second > 0.0).then(|| first / second);
        let status = match ratio {
            _ if *first_layers == 0 => Status::SecondOnly,
            _ if *second_layers == 0 => Status::FirstOnly,
            Some(ratio) if sums.gap_ms > LAYER_GAP_MS && ratio > LAYER_RATIO => Status::Slower,
            Some(ratio) if sums.gap_ms < -LAYER_GAP_MS && ratio < 1.0 / LAYER_RATIO => {
                Status::Faster
            }
            _ => Status::Similar,
        };
        Self {
            layer: *layer,
            is_backward: *is_backward,
            trace1_kernels: sums.count[0],
            trace2_kernels: sums.count[1],
            trace1_total_ms: first,
            trace2_total_ms: second,
            ratio,
            gap_ms: sums.gap_ms,
            status: status.of(comparison),
            in_both,
            number,
        }
    }
}

/// A kind of layer, with the places where it is aligned. Times are of one layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(extend("patternProperties" = super::keys_of_sides(&[("total_us", &["number"], "The mean durations of a layer's kernels together, in microseconds.")])))
)]
#[non_exhaustive]
pub struct LayerAlignment<'c> {
    /// The number of the kind.
    pub layer: usize,
    /// Which layers are of it, as `0-22`.
    pub layers: &'c str,
    /// The phase.
    pub phase: Option<Phase>,
    /// The mean durations of a layer's kernels together, in microseconds.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub total_us: PerSide<f64>,
    /// The first over the second; null where a side has none.
    pub ratio: Option<f64>,
    /// The first minus the second, in microseconds.
    pub gap_us: f64,
    /// The places.
    pub operations: Vec<AlignedOperation<'c>>,
}

/// A place of a kind of layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(extend("patternProperties" = super::keys_of_sides(&[("kernel", &["string", "null"], "The kernel; null for a side without one."), ("count", &["integer"], "How many kernels."), ("avg_us", &["number", "null"], "Their mean duration, in microseconds."), ("total_us", &["number"], "Their durations together, in microseconds.")])))
)]
#[non_exhaustive]
pub struct AlignedOperation<'c> {
    /// The class.
    pub operation: Option<&'c str>,
    /// What it is for.
    pub operation_detail: Role,
    /// The place.
    pub position: usize,
    /// The kernel; null for a side without one.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub kernel: PerSide<Option<&'c str>>,
    /// How many kernels.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub count: PerSide<u64>,
    /// Their mean duration, in microseconds.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub avg_us: PerSide<Option<f64>>,
    /// Their durations together, in microseconds.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub total_us: PerSide<f64>,
    /// The first mean over the second.
    pub ratio: Option<f64>,
    /// The first mean minus the second, in microseconds.
    pub gap_us: Option<f64>,
    /// Whether both sides run the same kernel.
    pub is_same_kernel: bool,
    /// The fusion that it is a part of, as text.
    pub fusion_note: Option<String>,
}

/// The kinds of layers.
#[must_use]
pub fn layer_alignments(comparison: &Comparison) -> Vec<LayerAlignment<'_>> {
    comparison.layers.kinds.iter().map(|kind| LayerAlignment::of(comparison, kind)).collect()
}

impl<'c> LayerAlignment<'c> {
    fn of(comparison: &'c Comparison, kind: &'c LayerKind) -> Self {
        let means = [kind.first_mean_ns, kind.second_mean_ns];
        let operations = kind.slots.iter().map(|slot| AlignedOperation::of(comparison, slot));
        Self {
            layer: kind.kind,
            layers: &kind.numbers,
            phase: kind.phase,
            total_us: PerSide::new(comparison, "total_us", means.map(|ns| ns / 1e3)),
            ratio: (means[1] > 0.0 && means[0] > 0.0).then(|| means[0] / means[1]),
            gap_us: (means[0] - means[1]) / 1e3,
            operations: operations.collect(),
        }
    }
}

impl<'c> AlignedOperation<'c> {
    fn of(comparison: &'c Comparison, slot: &'c Slot) -> Self {
        let kernels = [slot.first.as_ref(), slot.second.as_ref()];
        let names = kernels.map(|kernel| kernel.map(|kernel| kernel.kernel.as_str()));
        let means = kernels.map(|kernel| kernel.map(|kernel| kernel.mean_ns));
        let sums = Sums::of(&slot.part);
        let fusion = slot.fusion.and_then(|index| comparison.fusions.get(index));
        Self {
            operation: kernels.into_iter().flatten().next().map(|kernel| kernel.class.as_str()),
            operation_detail: slot.role,
            position: slot.slot,
            kernel: PerSide::new(comparison, "kernel", names),
            count: PerSide::new(comparison, "count", sums.count),
            avg_us: PerSide::new(comparison, "avg_us", sums.avg_us),
            total_us: PerSide::new(comparison, "total_us", sums.total_ms.map(|ms| ms * 1e3)),
            ratio: slot.ratio.map(|ratio| ratio.value),
            gap_us: means[0].zip(means[1]).map(|(first, second)| (first - second) / 1e3),
            is_same_kernel: names[0].is_some() && names[0] == names[1],
            fusion_note: fusion.map(|fusion| comparison.fusion_sentence(fusion)),
        }
    }
}
