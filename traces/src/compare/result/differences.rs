//! What one side does in another way than the other.

use serde::Serialize;

use super::super::roles::Role;
use super::{Amount, Part, Ratio};

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
    pub(in crate::compare) fn of(side: usize) -> Self {
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
    /// The GEMM, the convolution or the attention in the first of them, as a problem of the
    /// calibrator, if the trace says its sizes: `linear/bf16/m512.k1024.n4096`.
    pub problem: Option<String>,
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
