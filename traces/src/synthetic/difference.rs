//! How the two traces of a pair differ, and what is true of the difference.

use super::{Edit, Launching};
use crate::classify::Class;

/// How the two traces of a pair differ. One of the sides is the changed one; [`Planted`] says which
/// of the two does more in one kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Difference {
    /// In nothing but noise.
    None,
    /// The changed side adds residuals by kernels of their own.
    SeparateAddNorm,
    /// The changed side rotates and writes the cache in one kernel.
    FusedRopeCache,
    /// Both sides quantise what norms give, the changed one in the norms.
    FusedNormQuant,
    /// Both sides quantise what activations give, the changed one in the activations.
    FusedActQuant,
    /// The changed side computes the activation in the GEMM, and the name says so.
    FusedGemmAct,
    /// The same in the GEMM of experts.
    FusedExpertsAct,
    /// The changed side, which is of NVIDIA, normalises in the collective.
    FusedAllReduceNorm,
    /// The changed side computes attention by GEMMs and a softmax.
    SeparateAttention,
    /// The changed side computes the activation in the GEMM, and no name says so.
    SilentAct,
    /// The changed side rotates while it writes the cache, and no name says so.
    SilentRope,
    /// As `SilentAct`, and the GEMM takes longer by a twentieth of the activation.
    CheapAct,
    /// As `SilentAct`, and the GEMM takes longer by a quarter of the activation.
    ModestAct,
    /// As `SilentRope`, and the write takes longer by a twentieth of the rotation.
    CheapRope,
    /// The changed side computes the activation in the GEMM for nothing, and the operator says so.
    OperatorAct,
    /// The changed side has no activations.
    NoAct,
    /// The same, and the GEMM before them takes longer. Its operator says that it does no more.
    NoActSlowGemm,
    /// The changed side does not rotate.
    NoRope,
    /// The changed side has no norms behind scans.
    NoGatedNorm,
    /// The changed side splits a GEMM.
    SplitK,
    /// The changed side communicates three times as long.
    SlowAllReduce,
    /// The changed side copies something by a kernel.
    ExtraCopy,
    /// The changed side copies something by the runtime.
    ExtraMemcpy,
    /// The changed side fills something by a kernel.
    ExtraFill,
    /// The changed side fills something by the runtime.
    ExtraMemset,
    /// The changed side quantises something by a kernel.
    ExtraQuant,
    /// The changed side scales something by a kernel.
    ExtraScale,
    /// The changed side has three GEMMs for queries, keys and values.
    SeparateQkv,
    /// GEMMs take twice as long on the changed side.
    SlowGemm,
    /// Norms take twice as long on the changed side.
    SlowNorm,
    /// The changed side has three more steps.
    MoreSteps,
    /// The device of the changed side waits for each launch.
    MoreIdle,
    /// The changed side multiplies activations by their gates in kernels of their own.
    SeparateGate,
}

/// A fusion that a comparison must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fused {
    /// Whether the changed side fuses.
    pub by_changed: bool,
    /// What the fused kernel does; of attention what it does by definition.
    pub operation: &'static str,
    /// What the kernels of the other side do, in their order.
    pub separate: &'static [&'static str],
    /// Whether nothing but absence and time shows it.
    pub is_silent: bool,
}

/// Kernels that only one side has, and that are part of no fusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OneSided {
    /// Whether the changed side has them.
    pub by_changed: bool,
    /// What they do.
    pub class: Class,
}

/// What a comparison must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Planted {
    /// Nothing.
    Nothing,
    /// One side does in one kernel what the other does in several.
    Fusion(Fused),
    /// Kernels that only one side has.
    OneSided(OneSided),
    /// Several GEMMs on the changed side where the other has one.
    SeparateGemms,
    /// Kernels of a class take longer on the changed side.
    Slower(Class),
    /// The changed side has more steps, and they take as long.
    Steps,
    /// The device of the changed side is idle for longer.
    Idle,
}

impl Difference {
    /// All of them.
    pub const ALL: [Self; 33] = [
        Self::None,
        Self::SeparateAddNorm,
        Self::FusedRopeCache,
        Self::FusedNormQuant,
        Self::FusedActQuant,
        Self::FusedGemmAct,
        Self::FusedExpertsAct,
        Self::FusedAllReduceNorm,
        Self::SeparateAttention,
        Self::SilentAct,
        Self::SilentRope,
        Self::CheapAct,
        Self::ModestAct,
        Self::CheapRope,
        Self::OperatorAct,
        Self::NoAct,
        Self::NoRope,
        Self::NoGatedNorm,
        Self::SplitK,
        Self::SlowAllReduce,
        Self::ExtraCopy,
        Self::ExtraMemcpy,
        Self::ExtraFill,
        Self::ExtraMemset,
        Self::ExtraQuant,
        Self::ExtraScale,
        Self::SeparateQkv,
        Self::SlowGemm,
        Self::SlowNorm,
        Self::MoreSteps,
        Self::MoreIdle,
        Self::NoActSlowGemm,
        Self::SeparateGate,
    ];

    /// What is true of a pair of dense models with this difference.
    pub(super) fn planted(self) -> Planted {
        let fusion = |by_changed, operation, separate| {
            Planted::Fusion(Fused { by_changed, operation, separate, is_silent: false })
        };
        let silent = |operation, separate| {
            Planted::Fusion(Fused { by_changed: true, operation, separate, is_silent: true })
        };
        let more = |class| Planted::OneSided(OneSided { by_changed: true, class });
        let less = |class| Planted::OneSided(OneSided { by_changed: false, class });
        match self {
            Self::None => Planted::Nothing,
            Self::SeparateAddNorm => fusion(false, "ADD+NORM", &["ELEMENTWISE", "NORM"]),
            Self::FusedRopeCache => fusion(true, "ROPE+KVCACHE", &["ROPE", "KVCACHE"]),
            Self::FusedNormQuant => fusion(true, "ADD+NORM+QUANT", &["ADD+NORM", "QUANT"]),
            Self::FusedActQuant => fusion(true, "ACT+MUL+QUANT", &["ACT+MUL", "QUANT"]),
            Self::SeparateGate => fusion(false, "ACT+MUL", &["ACT", "ELEMENTWISE"]),
            Self::FusedGemmAct => fusion(true, "ACT+GEMM", &["GEMM", "ACT+MUL"]),
            Self::FusedExpertsAct => fusion(true, "ACT+MOE_GEMM", &["MOE_GEMM", "ACT+MUL"]),
            Self::FusedAllReduceNorm => fusion(true, "COMM+ADD+NORM", &["COMM", "ADD+NORM"]),
            Self::SeparateAttention => {
                fusion(false, "GEMM+SOFTMAX+GEMM", &["GEMM", "SOFTMAX", "GEMM"])
            }
            Self::SilentAct | Self::CheapAct | Self::ModestAct => {
                silent("ACT+GEMM", &["GEMM", "ACT+MUL"])
            }
            Self::OperatorAct => fusion(true, "ACT+GEMM", &["GEMM", "ACT+MUL"]),
            Self::SilentRope | Self::CheapRope => silent("ROPE+KVCACHE", &["ROPE", "KVCACHE"]),
            Self::NoAct | Self::NoActSlowGemm => less(Class::Act),
            Self::NoRope => less(Class::Rope),
            Self::NoGatedNorm => less(Class::Norm),
            Self::SplitK => more(Class::GemmEpilogue),
            Self::SlowAllReduce => Planted::Slower(Class::Comm),
            Self::ExtraCopy | Self::ExtraMemcpy => more(Class::Copy),
            Self::ExtraFill | Self::ExtraMemset => more(Class::Fill),
            Self::ExtraQuant => more(Class::Quant),
            Self::ExtraScale => more(Class::Elementwise),
            Self::SeparateQkv => Planted::SeparateGemms,
            Self::SlowGemm => Planted::Slower(Class::Gemm),
            Self::SlowNorm => Planted::Slower(Class::Norm),
            Self::MoreSteps => Planted::Steps,
            Self::MoreIdle => Planted::Idle,
        }
    }

    /// What the changed side does in another way.
    pub(super) fn edit(self) -> Option<Edit> {
        Some(match self {
            Self::None | Self::MoreSteps | Self::MoreIdle => return None,
            Self::SeparateAddNorm => Edit::SeparateAddNorm,
            Self::FusedRopeCache => Edit::FusedRopeCache,
            Self::FusedNormQuant => Edit::FusedNormQuant,
            Self::FusedActQuant => Edit::FusedActQuant,
            Self::SeparateGate => Edit::SeparateGate,
            Self::FusedGemmAct => Edit::FusedGemmAct,
            Self::FusedExpertsAct => Edit::FusedExpertsAct,
            Self::FusedAllReduceNorm => Edit::FusedAllReduceNorm,
            Self::SeparateAttention => Edit::SeparateAttention,
            Self::SilentAct => Edit::SilentAct,
            Self::SilentRope => Edit::SilentRope,
            Self::CheapAct => Edit::CheapAct(5),
            Self::ModestAct => Edit::CheapAct(25),
            Self::CheapRope => Edit::CheapRope(5),
            Self::OperatorAct => Edit::OperatorAct,
            Self::NoAct => Edit::NoAct,
            Self::NoActSlowGemm => Edit::NoActSlowGemm,
            Self::NoRope => Edit::NoRope,
            Self::NoGatedNorm => Edit::NoGatedNorm,
            Self::SplitK => Edit::SplitK,
            Self::SlowAllReduce => Edit::SlowAllReduce,
            Self::ExtraCopy => Edit::ExtraCopy,
            Self::ExtraMemcpy => Edit::ExtraMemcpy,
            Self::ExtraFill => Edit::ExtraFill,
            Self::ExtraMemset => Edit::ExtraMemset,
            Self::ExtraQuant => Edit::ExtraQuant,
            Self::ExtraScale => Edit::ExtraScale,
            Self::SeparateQkv => Edit::SeparateQkv,
            Self::SlowGemm => Edit::Slow(Class::Gemm),
            Self::SlowNorm => Edit::Slow(Class::Norm),
        })
    }

    /// What the other side does in another way than most.
    pub(super) fn other_edit(self) -> Option<Edit> {
        match self {
            Self::FusedNormQuant => Some(Edit::QuantAfterNorm),
            Self::FusedActQuant => Some(Edit::QuantAfterAct),
            Self::FusedExpertsAct => Some(Edit::SeparateExpertsAct),
            _ => None,
        }
    }

    /// Whether operators tell what it is: there is none around what a graph launches.
    #[must_use]
    pub const fn needs_operators(self) -> bool {
        matches!(self, Self::OperatorAct | Self::NoActSlowGemm)
    }

    /// How long the device of the changed side waits for each call, in nanoseconds.
    pub(super) fn call_pause_ns(self, launching: Launching) -> u64 {
        match (self, launching) {
            (Self::MoreIdle, Launching::Eager) => 8000,
            (Self::MoreIdle, Launching::LayerGraphs | Launching::Piecewise) => 40_000,
            (Self::MoreIdle, Launching::StepGraph) => 300_000,
            _ => 0,
        }
    }

    /// Whether it adds so much time that a device which is some percent slower does not hide it.
    pub(super) fn is_large(self) -> bool {
        matches!(self, Self::SlowAllReduce | Self::SlowGemm | Self::MoreIdle)
    }
}
