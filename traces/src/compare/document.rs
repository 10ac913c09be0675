//! A comparison as one object, with what else is known.

use serde::Serialize;

use super::older::{
    Architecture, FusionAnalysis, FusionMapping, FusionOpportunity, LayerAlignment, LayerTotal,
    Metadata, Operation, SameKernelAnalysis, fusion_mappings, fusion_opportunities,
    layer_alignments, layer_totals, operations,
};
use super::{Comparison, FusionRecords};
use crate::collectives::RankSurvey;

/// A comparison of two traces. Numbers that are infinite, or none, are null.
///
/// This is the object that `trace-tool compare --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Document<'c> {
    /// The version of this form.
    #[cfg_attr(feature = "schema", schemars(extend("const" = Document::SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// Who is faster and by how much, in a sentence.
    pub verdict: String,
    /// The comparison.
    #[serde(flatten)]
    pub comparison: &'c Comparison,
    /// What calibration files say about the fusions.
    pub fusion_records: &'c [FusionRecords],
    /// All ranks of each side; null for a side of one trace.
    pub ranks: RanksOfSides<'c>,
    /// Older key: what is compared.
    pub metadata: Metadata<'c>,
    /// Older key: the classes of kernels, the widest gap of the recordings first.
    pub operations: Vec<Operation<'c>>,
    /// Older key, once called layers: the layers by number.
    pub layer_totals: Vec<LayerTotal<'c>>,
    /// Older key: the kinds of layers, place by place.
    pub layer_alignments: Vec<LayerAlignment<'c>>,
    /// Older key: the fusions.
    pub fusion_opportunities: Vec<FusionOpportunity<'c>>,
    /// Older key: the fusions, from one side to the other.
    pub fusion_mappings: Vec<FusionMapping<'c>>,
    /// Older key: the fusions, with a summary.
    pub fusion_analysis: FusionAnalysis<'c>,
    /// Older key: the kernels with the same name, with a summary.
    pub same_kernel_analysis: SameKernelAnalysis<'c>,
    /// Older key: the kinds of model.
    pub architecture: Architecture,
}

/// All ranks of each side, where there are several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RanksOfSides<'c> {
    /// Those of the first side.
    pub first: Option<&'c RankSurvey>,
    /// Those of the second side.
    pub second: Option<&'c RankSurvey>,
}

impl<'c> Document<'c> {
    /// The version of the form. A key that changes its meaning, or goes, makes a new one.
    pub const SCHEMA_VERSION: u32 = 1;

    /// Combines a comparison with what calibration files say of its fusions, and with all ranks of
    /// a side where one was chosen from several.
    #[must_use]
    pub fn new(
        comparison: &'c Comparison,
        fusion_records: &'c [FusionRecords],
        ranks: RanksOfSides<'c>,
    ) -> Self {
        Self {
            schema_version: Self::SCHEMA_VERSION,
            verdict: comparison.verdict(),
            comparison,
            fusion_records,
            ranks,
            metadata: Metadata::of(comparison),
            operations: operations(comparison),
            layer_totals: layer_totals(comparison),
            layer_alignments: layer_alignments(comparison),
            fusion_opportunities: fusion_opportunities(comparison),
            fusion_mappings: fusion_mappings(comparison),
            fusion_analysis: FusionAnalysis::of(comparison),
            same_kernel_analysis: SameKernelAnalysis::of(comparison),
            architecture: Architecture::of(comparison),
        }
    }
}
