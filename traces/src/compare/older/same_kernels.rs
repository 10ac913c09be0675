//! Kernels with the same name on both sides.

use serde::Serialize;

use super::{PerSide, Sums};
use crate::compare::{Comparison, SameKernel};

/// The kernels with the same name, with a summary.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SameKernelAnalysis<'c> {
    /// The kernels.
    pub kernels: Vec<SameKernelTotal<'c>>,
    /// How many are faster on each side.
    pub summary: SameKernelCounts,
}

/// Kernels of one name, with sums over the recordings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(extend("patternProperties" = super::keys_of_sides(&[("count", &["integer"], "How many."), ("avg_us", &["number", "null"], "Their mean duration, in microseconds."), ("total_us", &["number"], "Their durations together, in microseconds.")])))
)]
#[non_exhaustive]
pub struct SameKernelTotal<'c> {
    /// The name.
    pub kernel: &'c str,
    /// The class.
    pub operation: &'c str,
    /// How many.
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
    /// The first mean over the second; null if it is infinite.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub ratio: f64,
    /// The first mean minus the second, in microseconds.
    pub gap_us: f64,
}

/// How many kernels are faster where.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(extend("patternProperties" = super::keys_of_sides(&[("faster", &["integer"], "How many are faster on the side.")])))
)]
#[non_exhaustive]
pub struct SameKernelCounts {
    /// How many there are.
    pub total: usize,
    /// The mean of their ratios.
    pub mean_ratio: Option<f64>,
    /// How many are faster on each side.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub faster: PerSide<usize>,
}

impl<'c> SameKernelAnalysis<'c> {
    /// Of a comparison.
    #[must_use]
    pub fn of(comparison: &'c Comparison) -> Self {
        let all = comparison.same_kernels.iter();
        let ratios: Vec<f64> =
            all.clone().map(|same| same.ratio.value).filter(|ratio| ratio.is_finite()).collect();
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let mean = (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64);
        let faster = [
            ratios.iter().filter(|ratio| **ratio < 1.0).count(),
            ratios.iter().filter(|ratio| **ratio > 1.0).count(),
        ];
        Self {
            kernels: all.map(|same| SameKernelTotal::of(comparison, same)).collect(),
            summary: SameKernelCounts {
                total: comparison.same_kernels.len(),
                mean_ratio: mean,
                faster: PerSide::new(comparison, "faster", faster),
            },
        }
    }
}

impl<'c> SameKernelTotal<'c> {
    fn of(comparison: &'c Comparison, same: &'c SameKernel) -> Self {
        let sums = Sums::of(&same.part);
        Self {
            kernel: &same.kernel,
            operation: &same.class,
            count: PerSide::new(comparison, "count", sums.count),
            avg_us: PerSide::new(comparison, "avg_us", sums.avg_us),
            total_us: PerSide::new(comparison, "total_us", sums.total_ms.map(|ms| ms * 1e3)),
            ratio: same.ratio.value,
            gap_us: (same.first_mean_ns - same.second_mean_ns) / 1e3,
        }
    }
}
