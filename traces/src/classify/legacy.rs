//! The operation names of the older trace comparison, for reports that are compared with its.
//!
//! Its names, not its mistakes: a collective stays `Other` here where substrings made it
//! `Reduce` or `Indexing` there.

use super::by_name;
use super::class::{AttnPhase, Class};

/// The older name of a kernel's class.
#[must_use]
pub fn legacy_name(class: Class, name: &str) -> &'static str {
    let lower = name.to_ascii_lowercase();
    let has = |list: &[&str]| list.iter().any(|item| lower.contains(item));
    let inductor = has(&["triton_poi_", "triton_red_", "triton_per_"]);
    let product = has(&["gemm", "addmm"]);
    match class {
        Class::Attn => match by_name(name).map(|(found, _)| found.phase) {
            Some(AttnPhase::Decode) => "Attention (Decode)",
            _ => "Attention (Prefill)",
        },
        Class::KvCache => "KV Cache",
        Class::MoeRouting => "MoE Routing",
        Class::MoeGemm if has(&["swiglu"]) => "MoE GEMM+SwiGLU",
        Class::MoeGemm => "MoE GEMM",
        Class::MoeFinalize => "MoE Finalize",
        Class::Gemm => "Dense GEMM",
        Class::GemmEpilogue if has(&["splitkreduce"]) => "Reduce",
        Class::GemmEpilogue => "Dense GEMM",
        Class::Norm if product && has(&["embedding"]) => "Embedding+RMSNorm+GEMM",
        Class::Norm if product => "RMSNorm+GEMM",
        Class::Norm => "RMSNorm",
        Class::Act if has(&["silu", "swiglu", "act_and_mul"]) => {
            if inductor && product {
                "SwiGLU+GEMM"
            } else {
                "SwiGLU"
            }
        }
        Class::Act if inductor || has(&["gelu"]) => "Triton Fused",
        Class::Softmax => "SoftMax",
        Class::Reduce | Class::Elementwise | Class::Copy | Class::Fill | Class::EmbedIndex
            if inductor =>
        {
            "Triton Fused"
        }
        Class::Act | Class::Elementwise => "Elementwise",
        Class::Fill if has(&["at::native"]) => "Elementwise",
        Class::Copy | Class::Fill => "Copy/Memory",
        Class::EmbedIndex => "Indexing",
        Class::Reduce => "Reduce",
        Class::ScanSort if has(&["scan"]) => "Reduce",
        Class::ScanSort => "Sorting",
        Class::Conv
        | Class::Pool
        | Class::Ssm
        | Class::Rope
        | Class::Quant
        | Class::Comm
        | Class::Unclassified => "Other",
    }
}
