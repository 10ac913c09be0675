//! What one side fuses and the other does not.

use serde::Serialize;

use super::{PerSide, platform};
use crate::compare::{Comparison, Slot, Which};

/// A fusion.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FusionOpportunity<'c> {
    /// What the fused kernel does.
    pub kernel_type: &'c str,
    /// Which layers it is in, as `0-22`; `all` outside of aligned layers.
    pub layer: String,
    /// Who fuses: the vendor, or `trace1` or `trace2`.
    pub fused_by: &'static str,
    /// The fused kernel.
    pub fused_kernel: &'c str,
    /// The classes of the kernels that the other side runs instead, joined with `+`.
    pub unfused_kernels: String,
    /// How many fused kernels the recording has.
    pub count: u64,
    /// The evidence.
    pub evidence: &'c str,
}

/// The fusions.
#[must_use]
pub fn fusion_opportunities(comparison: &Comparison) -> Vec<FusionOpportunity<'_>> {
    let all = comparison.fusions.iter().enumerate();
    all.map(|(index, fusion)| FusionOpportunity {
        kernel_type: &fusion.operation,
        layer: layers_of_fusion(comparison, index),
        fused_by: platform(comparison, fusion.fused_by),
        fused_kernel: &fusion.fused_kernel,
        unfused_kernels: fusion.separate.join("+"),
        count: fusion.count,
        evidence: &fusion.evidence,
    })
    .collect()
}

/// A fusion, from one side to the other.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FusionMapping<'c> {
    /// Who fuses: the vendor, or `trace1` or `trace2`.
    pub fused_platform: &'static str,
    /// What the fused kernel does.
    pub fused_kernel_type: &'c str,
    /// The fused kernel.
    pub fused_kernel_name: &'c str,
    /// Who does not.
    pub unfused_platform: &'static str,
    /// The classes of the kernels that run instead, in their order.
    pub unfused_sequence: &'c [String],
    /// How many fused kernels the recording has.
    pub pattern_count: u64,
    /// The evidence.
    pub evidence: &'c str,
    /// Which layers it is in, as `0-22`; `all` outside of aligned layers.
    pub layer: String,
}

/// The fusions, from one side to the other.
#[must_use]
pub fn fusion_mappings(comparison: &Comparison) -> Vec<FusionMapping<'_>> {
    let all = comparison.fusions.iter().enumerate();
    all.map(|(index, fusion)| FusionMapping {
        fused_platform: platform(comparison, fusion.fused_by),
        fused_kernel_type: &fusion.operation,
        fused_kernel_name: &fusion.fused_kernel,
        unfused_platform: platform(comparison, fusion.fused_by.other()),
        unfused_sequence: &fusion.separate,
        pattern_count: fusion.count,
        evidence: &fusion.evidence,
        layer: layers_of_fusion(comparison, index),
    })
    .collect()
}

/// The fusions, with a summary.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FusionAnalysis<'c> {
    /// The fusions.
    pub patterns: Vec<FusionPattern<'c>>,
    /// How many there are.
    pub summary: FusionCounts,
}

/// A fusion, with how sure it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FusionPattern<'c> {
    /// Which layers it is in, as `0-22`; `all` outside of aligned layers.
    pub layer: String,
    /// What the fused kernel does.
    pub operation: &'c str,
    /// Who fuses: the vendor, or `trace1` or `trace2`.
    pub fused_platform: &'static str,
    /// The fused kernel.
    pub fused_kernel: &'c str,
    /// The classes of the kernels that the other side runs instead, in their order.
    pub unfused_kernels: &'c [String],
    /// How many fused kernels the recording has.
    pub count: u64,
    /// The evidence.
    pub evidence: &'c str,
    /// How sure it is, up to 1.
    pub confidence: f64,
}

/// How many fusions there are.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(extend("patternProperties" = super::keys_of_sides(&[("fuses", &["integer"], "How many the side does.")])))
)]
#[non_exhaustive]
pub struct FusionCounts {
    /// How many there are.
    pub total_fusion_opportunities: usize,
    /// How many each side does.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub fuses: PerSide<usize>,
}

impl<'c> FusionAnalysis<'c> {
    /// Of a comparison.
    #[must_use]
    pub fn of(comparison: &'c Comparison) -> Self {
        let all = comparison.fusions.iter();
        let patterns = all.clone().enumerate().map(|(index, fusion)| FusionPattern {
            layer: layers_of_fusion(comparison, index),
            operation: &fusion.operation,
            fused_platform: platform(comparison, fusion.fused_by),
            fused_kernel: &fusion.fused_kernel,
            unfused_kernels: &fusion.separate,
            count: fusion.count,
            evidence: &fusion.evidence,
            confidence: fusion.confidence,
        });
        let by = |which| all.clone().filter(|fusion| fusion.fused_by == which).count();
        let fuses = [by(Which::First), by(Which::Second)];
        Self {
            patterns: patterns.collect(),
            summary: FusionCounts {
                total_fusion_opportunities: comparison.fusions.len(),
                fuses: PerSide::new(comparison, "fuses", fuses),
            },
        }
    }
}

/// Which layers a fusion is in, as `0-22`; `all` outside of aligned layers.
#[must_use]
pub fn layers_of_fusion(comparison: &Comparison, index: usize) -> String {
    let has = |slots: &[Slot]| slots.iter().any(|slot| slot.fusion == Some(index));
    let mut numbers: Vec<&str> = Vec::new();
    for kind in comparison.layers.kinds.iter().filter(|kind| has(&kind.slots)) {
        if !kind.is_outside && !numbers.contains(&kind.numbers.as_str()) {
            numbers.push(&kind.numbers);
        }
    }
    if numbers.is_empty() { "all".to_owned() } else { numbers.join(",") }
}
