//! What one program does in another way than most.

use super::alternatives as a;
use super::kernels::{self as k, Kernel};
use super::model::Kernels;
use crate::classify::Class;

/// What a program does in another way than most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edit {
    /// The residual is added by a kernel of its own.
    SeparateAddNorm,
    /// One kernel rotates and writes the key-value cache.
    FusedRopeCache,
    /// The result of a norm is quantised by a kernel of its own.
    QuantAfterNorm,
    /// Every norm but the first quantises its result.
    FusedNormQuant,
    /// The result of an activation is quantised by a kernel of its own.
    QuantAfterAct,
    /// The activation quantises its result.
    FusedActQuant,
    /// A kernel of its own multiplies the activation by its gate.
    SeparateGate,
    /// The GEMM before an activation computes it, and its name says so.
    FusedGemmAct,
    /// The same kernels at both vendors for the GEMMs of experts, with a separate activation.
    SeparateExpertsAct,
    /// The first GEMM of the experts computes the activation, and its name says so.
    FusedExpertsAct,
    /// The collective adds the residual and normalises.
    FusedAllReduceNorm,
    /// Attention over prompts is a GEMM, a softmax and a GEMM.
    SeparateAttention,
    /// The GEMM before an activation computes it and takes longer, and its name is as before. Its
    /// operator is one of the program's own.
    SilentAct,
    /// The write of the cache rotates and takes longer, and its name is as before.
    SilentRope,
    /// The same as `SilentAct`, but it adds only this percentage of the activation's time.
    CheapAct(u8),
    /// The same as `SilentRope`, but it adds only this percentage of the rotation's time.
    CheapRope(u8),
    /// The GEMM before an activation computes it for nothing, and only its operator says so.
    OperatorAct,
    /// There is no activation, and nothing else takes longer.
    NoAct,
    /// There is no activation, and the GEMM before it takes longer.
    NoActSlowGemm,
    /// There is no rotation, and nothing else takes longer.
    NoRope,
    /// There is no norm behind the scan of a state space.
    NoGatedNorm,
    /// The first GEMM of each layer is split, and its parts are added up.
    SplitK,
    /// Collectives take three times as long.
    SlowAllReduce,
    /// A kernel copies something in each layer.
    ExtraCopy,
    /// The runtime copies something in each layer.
    ExtraMemcpy,
    /// A kernel fills something in each layer.
    ExtraFill,
    /// The runtime fills something in each layer.
    ExtraMemset,
    /// Something is quantised in each layer before the output projection.
    ExtraQuant,
    /// Something is scaled in each layer behind each norm.
    ExtraScale,
    /// Queries, keys and values are three GEMMs.
    SeparateQkv,
    /// Kernels of a class take twice as long.
    Slow(Class),
}

impl Edit {
    /// Whether it changes what is between and behind the layers too.
    pub(super) fn reaches_tail(self) -> bool {
        matches!(self, Self::SeparateAddNorm | Self::FusedAllReduceNorm | Self::ExtraScale)
    }

    /// The kernels of a program that does it.
    pub(super) fn apply(self, kernels: Kernels) -> Kernels {
        let by = |kernel: &'static Kernel| {
            let mut instead = self.instead().into_iter();
            let found = instead.find(|(of, _)| std::ptr::eq(*of, kernel));
            found.map_or_else(|| vec![kernel], |(_, kernels)| kernels)
        };
        kernels.into_iter().flat_map(by).collect()
    }

    /// Which kernels are replaced, and by which others.
    fn instead(self) -> Vec<(&'static Kernel, Kernels)> {
        match self {
            Self::SeparateAddNorm => vec![(&k::NORM, vec![&a::ADD, &a::PLAIN_NORM])],
            Self::FusedRopeCache => {
                vec![(&k::ROPE, vec![]), (&k::CACHE_WRITE, vec![&a::ROPE_CACHE])]
            }
            Self::QuantAfterNorm => vec![
                (&k::FIRST_NORM, vec![&k::FIRST_NORM, &a::QUANT]),
                (&k::NORM, vec![&k::NORM, &a::QUANT]),
            ],
            Self::FusedNormQuant => vec![
                (&k::FIRST_NORM, vec![&k::FIRST_NORM, &a::QUANT]),
                (&k::NORM, vec![&a::NORM_QUANT]),
            ],
            Self::QuantAfterAct => vec![(&k::ACT_MUL, vec![&k::ACT_MUL, &a::QUANT])],
            Self::FusedActQuant => vec![(&k::ACT_MUL, vec![&a::ACT_QUANT])],
            Self::SeparateGate => vec![(&k::ACT_MUL, vec![&a::PLAIN_ACT, &a::GATE])],
            Self::FusedGemmAct => {
                vec![(&k::GATE_UP, vec![&a::GATE_UP_ACT]), (&k::ACT_MUL, vec![])]
            }
            Self::SeparateExpertsAct => vec![
                (&k::EXPERTS_UP, vec![&a::EXPERTS_UP, &k::ACT_MUL]),
                (&k::EXPERTS_DOWN, vec![&a::EXPERTS_DOWN]),
            ],
            Self::FusedExpertsAct => vec![
                (&k::EXPERTS_UP, vec![&a::EXPERTS_UP_ACT]),
                (&k::EXPERTS_DOWN, vec![&a::EXPERTS_DOWN]),
            ],
            Self::FusedAllReduceNorm => {
                vec![(&k::ALL_REDUCE_SAME, vec![&a::ALL_REDUCE_NORM]), (&k::NORM, vec![])]
            }
            Self::SeparateAttention => {
                let parts = || -> Kernels { vec![&a::SCORES, &a::ATTENTION_SOFTMAX, &a::VALUES] };
                vec![(&k::ATTENTION_PREFILL, parts()), (&k::WINDOW_PREFILL, parts())]
            }
            Self::SilentAct | Self::CheapAct(_) => {
                vec![(&k::GATE_UP, vec![&a::GATE_UP_SILENT]), (&k::ACT_MUL, vec![])]
            }
            Self::NoAct | Self::NoActSlowGemm => vec![(&k::ACT_MUL, vec![])],
            Self::SilentRope | Self::CheapRope(_) | Self::NoRope => vec![(&k::ROPE, vec![])],
            Self::OperatorAct => {
                vec![(&k::GATE_UP, vec![&a::GATE_UP_OF_OPERATOR]), (&k::ACT_MUL, vec![])]
            }
            Self::NoGatedNorm => vec![(&k::GATED_NORM, vec![])],
            Self::SplitK => vec![
                (&k::QKV, vec![&k::QKV, &a::QKV_SPLIT_K]),
                (&k::IN_PROJECTION, vec![&k::IN_PROJECTION, &a::QKV_SPLIT_K]),
            ],
            Self::ExtraCopy => vec![(&k::OUT, vec![&a::EXTRA_COPY, &k::OUT])],
            Self::ExtraMemcpy => vec![(&k::OUT, vec![&a::EXTRA_MEMCPY, &k::OUT])],
            Self::ExtraFill => vec![(&k::OUT, vec![&a::EXTRA_FILL, &k::OUT])],
            Self::ExtraMemset => vec![(&k::OUT, vec![&a::EXTRA_MEMSET, &k::OUT])],
            Self::ExtraQuant => vec![(&k::OUT, vec![&a::QUANT, &k::OUT])],
            Self::ExtraScale => vec![(&k::NORM, vec![&k::NORM, &a::EXTRA_SCALE])],
            Self::SeparateQkv => vec![(&k::QKV, vec![&a::Q, &a::K, &a::V])],
            Self::SlowAllReduce | Self::Slow(_) => vec![],
        }
    }

    /// How long a kernel takes in such a program if it usually takes so long, in nanoseconds.
    pub(super) fn duration_ns(self, kernel: &Kernel, usual_ns: u64) -> u64 {
        match self {
            Self::SlowAllReduce if kernel.class == Class::Comm => usual_ns * 3,
            Self::Slow(class) if kernel.class == class => usual_ns * 2,
            _ => usual_ns,
        }
    }

    /// How much longer a kernel takes because it does something else too, in nanoseconds.
    pub(super) fn absorbed_ns(self, kernel: &Kernel, usual_ns: impl Fn(&str) -> u64) -> u64 {
        // It saves a launch and the memory between the two, a quarter of the time.
        let most_of = |role| usual_ns(role) * 3 / 4;
        match (self, kernel.role) {
            (Self::SilentAct, "gate_up" | "experts_up") => most_of("act"),
            (Self::NoActSlowGemm, "gate_up") => most_of("act"),
            (Self::SilentRope, "kv_cache") => most_of("rope"),
            (Self::CheapAct(percent), "gate_up" | "experts_up") => {
                usual_ns("act") * u64::from(percent) / 100
            }
            (Self::CheapRope(percent), "kv_cache") => usual_ns("rope") * u64::from(percent) / 100,
            _ => 0,
        }
    }
}
