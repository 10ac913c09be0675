//! A comparison under the field names of older tools, for programs that read their files.
//!
//! Sums here (`total_ms`, `gap_ms`) are of whole recordings, as they were there. For recordings of
//! different lengths, read the times of a step in [`Comparison`] instead.

mod fusions;
mod layers;
mod operations;
mod same_kernels;

use serde::Serialize;
use serde::ser::Serializer;

pub use fusions::{
    FusionAnalysis, FusionCounts, FusionMapping, FusionOpportunity, FusionPattern, fusion_mappings,
    fusion_opportunities, layers_of_fusion,
};
pub use layers::{AlignedOperation, LayerAlignment, LayerTotal, layer_alignments, layer_totals};
pub use operations::{Operation, OperationKernel, operations};
pub use same_kernels::{SameKernelAnalysis, SameKernelCounts, SameKernelTotal};

use super::{Comparison, Part, Which};
use crate::segment::{Marker, Phase};

/// How the first side compares with the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// The first side takes longer.
    Slower,
    /// The second side takes longer.
    Faster,
    /// The difference is below the thresholds of older tools.
    Similar,
    /// The sides did different work: sums of recordings do not compare.
    NotComparable,
    /// The second side lacks it.
    #[serde(rename = "trace1_only")]
    FirstOnly,
    /// The first side lacks it.
    #[serde(rename = "trace2_only")]
    SecondOnly,
}

impl Status {
    /// What a comparison may say of it.
    fn of(self, comparison: &Comparison) -> Self {
        match self {
            Self::FirstOnly | Self::SecondOnly => self,
            _ if comparison.same_work.headline.is_of_a_step() => self,
            _ => Self::NotComparable,
        }
    }

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Similar => "similar",
            Self::NotComparable => "not_comparable",
            Self::FirstOnly => "trace1_only",
            Self::SecondOnly => "trace2_only",
        }
    }
}

/// What keys of the first and the second side begin with: `amd` and `nvidia` for these two
/// vendors, else `trace1` and `trace2`.
#[must_use]
pub fn prefixes(comparison: &Comparison) -> [&'static str; 2] {
    match (comparison.first.vendor, comparison.second.vendor) {
        ("AMD", "NVIDIA") => ["amd", "nvidia"],
        ("NVIDIA", "AMD") => ["nvidia", "amd"],
        _ => ["trace1", "trace2"],
    }
}

/// A side in values: its vendor where the vendors differ, else `trace1` or `trace2`.
#[must_use]
pub fn platform(comparison: &Comparison, which: Which) -> &'static str {
    let is_first = which == Which::First;
    match prefixes(comparison) {
        ["trace1", _] if is_first => "trace1",
        ["trace1", _] => "trace2",
        _ if is_first => comparison.first.vendor,
        _ => comparison.second.vendor,
    }
}

/// A value of each side, under keys that begin with the [`prefixes`], as `amd_count` and
/// `nvidia_count`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerSide<T> {
    prefixes: [&'static str; 2],
    key: &'static str,
    /// The values of the first and the second side.
    pub values: [T; 2],
}

impl<T> PerSide<T> {
    fn new(comparison: &Comparison, key: &'static str, values: [T; 2]) -> Self {
        Self { prefixes: prefixes(comparison), key, values }
    }
}

impl<T: Serialize> Serialize for PerSide<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let keys = self.prefixes.map(|prefix| format!("{prefix}_{}", self.key));
        serializer.collect_map(keys.iter().zip(&self.values))
    }
}

/// The schema of values of [`PerSide`]: their keys, types and meanings.
#[cfg(feature = "schema")]
fn keys_of_sides(keys: &[(&str, &[&str], &str)]) -> serde_json::Value {
    let of_key = |(key, types, meaning): &(&str, &[&str], &str)| {
        let pattern = format!("^(amd|nvidia|trace1|trace2)_{key}$");
        (pattern, serde_json::json!({ "description": meaning, "type": types }))
    };
    keys.iter().map(of_key).collect::<serde_json::Map<_, _>>().into()
}

/// The sums over the recordings of both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Sums {
    /// How many kernels.
    pub count: [u64; 2],
    /// Their mean durations in microseconds; `None` without any.
    pub avg_us: [Option<f64>; 2],
    /// Their durations together in milliseconds.
    pub total_ms: [f64; 2],
    /// The first total minus the second.
    pub gap_ms: f64,
}

impl Sums {
    /// The sums of a part of both sides.
    #[must_use]
    pub fn of(part: &Part) -> Self {
        let (first, second) = (part.first_amount, part.second_amount);
        let total_ms = [ms(first.total_ns), ms(second.total_ns)];
        Self {
            count: [first.count, second.count],
            avg_us: [avg_us(first.count, first.total_ns), avg_us(second.count, second.total_ns)],
            total_ms,
            gap_ms: total_ms[0] - total_ms[1],
        }
    }

    /// The first mean over the second.
    fn ratio_of_means(&self) -> Option<f64> {
        let [first, second] = self.avg_us;
        second.filter(|second| *second > 0.0).and_then(|second| Some(first? / second))
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds with a fraction")]
fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The mean in microseconds; `None` without any.
#[expect(clippy::cast_precision_loss, reason = "microseconds with a fraction")]
fn avg_us(count: u64, total_ns: u64) -> Option<f64> {
    (count > 0).then(|| total_ns as f64 / 1e3 / count as f64)
}

/// What is compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Metadata<'c> {
    /// The first file.
    pub trace1_name: &'c str,
    /// Who made its device.
    pub trace1_platform: &'static str,
    /// The name of its device.
    pub trace1_gpu: &'c str,
    /// The number of its device.
    pub trace1_device: i64,
    /// Its kernels, copies and fills that are compared.
    pub trace1_kernels: u64,
    /// Their durations together, in milliseconds.
    pub trace1_total_ms: f64,
    /// The layers of its model.
    pub trace1_layers: u32,
    /// The second file.
    pub trace2_name: &'c str,
    /// Who made its device.
    pub trace2_platform: &'static str,
    /// The name of its device.
    pub trace2_gpu: &'c str,
    /// The number of its device.
    pub trace2_device: i64,
    /// Its kernels, copies and fills that are compared.
    pub trace2_kernels: u64,
    /// Their durations together, in milliseconds.
    pub trace2_total_ms: f64,
    /// The layers of its model.
    pub trace2_layers: u32,
    /// The phase that was asked for, or `all`.
    pub phase: &'static str,
}

impl<'c> Metadata<'c> {
    /// Of a comparison.
    #[must_use]
    pub fn of(comparison: &'c Comparison) -> Self {
        let Comparison { first, second, phase, .. } = comparison;
        Self {
            trace1_name: &first.name,
            trace1_platform: first.vendor,
            trace1_gpu: &first.gpu,
            trace1_device: first.device,
            trace1_kernels: first.kernels,
            trace1_total_ms: ms(first.total_ns),
            trace1_layers: first.layers,
            trace2_name: &second.name,
            trace2_platform: second.vendor,
            trace2_gpu: &second.gpu,
            trace2_device: second.device,
            trace2_kernels: second.kernels,
            trace2_total_ms: ms(second.total_ns),
            trace2_layers: second.layers,
            phase: phase.map_or("all", Phase::name),
        }
    }
}

/// The kinds of model of both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Architecture {
    /// The first side.
    pub trace1: ModelKind,
    /// The second side.
    pub trace2: ModelKind,
}

/// A kind of model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ModelKind {
    /// The kind.
    #[serde(rename = "type")]
    pub family: &'static str,
    /// What its layers begin with.
    pub markers: Vec<Marker>,
}

impl Architecture {
    /// Of a comparison.
    #[must_use]
    pub fn of(comparison: &Comparison) -> Self {
        let [trace1, trace2] = [&comparison.first, &comparison.second].map(|side| ModelKind {
            family: side.family,
            markers: side.marker.into_iter().collect(),
        });
        Self { trace1, trace2 }
    }
}
