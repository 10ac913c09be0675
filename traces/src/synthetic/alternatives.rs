//! The kernels that only some programs have: fused where others run several kernels, several where
//! others run one, or one more than others.

use super::kernels::{Kernel, by_runtime, kernels};
use crate::DeviceWork;
use crate::classify::Class::{
    Act, Comm, Copy, Elementwise, Fill, Gemm, GemmEpilogue, KvCache, MoeGemm, Norm, Quant, Softmax,
};

#[rustfmt::skip]
kernels! {
    ADD, "add", Elementwise, "aten::add",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)",
        "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)";
    PLAIN_NORM, "norm", Norm, "vllm::rms_norm",
        "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, c10::BFloat16 const*, c10::BFloat16 const*, float, int, int)",
        "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassINS_27Rmsnorm2dFwdPipelineProblemIDF16bDF16bfDF16bEEEEEEEvDpT1_";
    ROPE_CACHE, "rope_kv_cache", KvCache, "vllm::fused_rope_and_reshape_cache",
        "void tensorrt_llm::kernels::applyBiasRopeUpdateKVCacheV2<__nv_bfloat16, __nv_bfloat16, 128, false, tensorrt_llm::kernels::KVBlockArray>(tensorrt_llm::kernels::QKVPreprocessingParams<__nv_bfloat16>)",
        "_fused_qk_rope_reshape_and_cache_kernel";
    NORM_QUANT, "norm_quant", Norm, "vllm::fused_add_rms_norm_static_fp8_quant",
        "void vllm::fused_add_rms_norm_static_fp8_quant_kernel<c10::BFloat16, 8, c10::Float8_e4m3fn>(c10::Float8_e4m3fn*, c10::BFloat16 const*, int, c10::BFloat16*, c10::BFloat16 const*, float const*, float, int, int)",
        "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDB8_Li256ELi16ELb1ELb1ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib";
    QUANT, "quant", Quant, "vllm::static_scaled_fp8_quant",
        "void vllm::scaled_fp8_quant_kernel_strided<c10::BFloat16, c10::Float8_e4m3fn>(c10::Float8_e4m3fn*, c10::BFloat16 const*, float const*, int, long, long)",
        "void vllm::scaled_fp8_quant_kernel_strided<c10::BFloat16, c10::Float8_e4m3fnuz>(c10::Float8_e4m3fnuz*, c10::BFloat16 const*, float const*, int, long, long)";
    PLAIN_ACT, "act", Act, "aten::silu",
        "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)",
        "void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)";
    GATE, "gate", Elementwise, "aten::mul",
        "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)",
        "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)";
    ACT_QUANT, "act_quant", Act, "vllm::silu_and_mul_quant",
        "void vllm::act_and_mul_quant_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), c10::Float8_e4m3fn>(c10::Float8_e4m3fn*, c10::BFloat16 const*, float const*, int)",
        "void vllm::act_and_mul_quant_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), c10::Float8_e4m3fnuz>(c10::Float8_e4m3fnuz*, c10::BFloat16 const*, float const*, int)";
    GATE_UP_ACT, "gate_up_act", Gemm, "aten::mm",
        "triton_tem_fused_mm_mul_silu_3",
        "triton_tem_fused_mm_mul_silu_5";
    GATE_UP_OF_OPERATOR, "gate_up", Gemm, "aten::_addmm_activation",
        "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNN",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB0_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    // That of the other side, called by an operator of the program's own, which may do more.
    GATE_UP_SILENT, "gate_up", Gemm, "model::gate_up",
        "nvjet_tst_192x192_64x4_1x2_h_bz_coopB_TNT",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    EXPERTS_UP, "experts_up", MoeGemm, "vllm::fused_experts",
        "fused_moe_kernel",
        "fused_moe_kernel";
    EXPERTS_UP_ACT, "experts_up_act", MoeGemm, "vllm::fused_experts",
        "_matmul_ogs_NNT_bf16xbf16xmxfp4_64x128x128x1_swiglu",
        "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu";
    EXPERTS_DOWN, "experts_down", MoeGemm, "vllm::fused_experts",
        "fused_moe_kernel",
        "fused_moe_kernel";
    // AMD's fused collectives do not say in their names what they fuse.
    ALL_REDUCE_NORM, "all_reduce_norm", Comm, "vllm::flashinfer_trtllm_fused_allreduce_norm",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8, true>(flashinfer::trtllm_allreduce_fusion::AllReduceFusionParams<__nv_bfloat16>)",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __hip_bfloat16, 8, true>(flashinfer::trtllm_allreduce_fusion::AllReduceFusionParams<__hip_bfloat16>)";
    SCORES, "attention_scores", Gemm, "aten::bmm",
        "nvjet_tst_64x256_64x4_1x2_h_bz_NNT",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x128x32_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    ATTENTION_SOFTMAX, "attention_softmax", Softmax, "aten::_softmax",
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, c10::BFloat16, at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(c10::BFloat16*, c10::BFloat16 const*, int)",
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, c10::BFloat16, float, c10::BFloat16, at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(c10::BFloat16*, c10::BFloat16 const*, int)";
    VALUES, "attention_values", Gemm, "aten::bmm",
        "nvjet_tst_128x64_64x8_2x1_v_bz_NNN",
        "Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x64x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    QKV_SPLIT_K, "qkv_split_k", GemmEpilogue, "aten::mm",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, false, false, false>(cublasLt::cublasSplitKParams<float>, float const*, __nv_bfloat16*)",
        "Cijk_Alik_Bljk_BBS_BH_Bias_SAV_PostGSU4_VW4";
    Q, "q", Gemm, "aten::mm",
        "nvjet_tst_128x128_64x4_2x1_v_bz_coopA_TNN",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x192x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    K, "k", Gemm, "aten::mm",
        "nvjet_tst_64x64_64x13_4x1_v_bz_TNN",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x64x128_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    V, "v", Gemm, "aten::mm",
        "nvjet_tst_64x64_64x13_4x1_v_bz_TNN",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x64x128_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    EXTRA_COPY, "extra_copy", Copy, "aten::contiguous",
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>, 4>(int)",
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>, 8>(int)";
    EXTRA_FILL, "extra_fill", Fill, "aten::fill_",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul> >(int, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul>)",
        "void at::native::vectorized_elementwise_kernel<8, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul> >(int, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul>)";
    EXTRA_SCALE, "extra_scale", Elementwise, "aten::mul",
        "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >(int)",
        "void at::native::vectorized_elementwise_kernel<8, at::native::AUnaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >(int)";
}

pub(super) static EXTRA_MEMCPY: Kernel =
    by_runtime("extra_copy", DeviceWork::Memcpy, "Memcpy DtoD (Device -> Device)");
pub(super) static EXTRA_MEMSET: Kernel =
    by_runtime("extra_fill", DeviceWork::Memset, "Memset (Device)");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::classify_with;

    /// What the names must prove, more than the main class.
    fn label(kernel: &Kernel) -> &'static str {
        match kernel.role {
            "rope_kv_cache" => "ROPE+KVCACHE",
            "norm_quant" => "ADD+NORM+QUANT",
            "act_quant" => "ACT+MUL+QUANT",
            "gate_up_act" => "ACT+GEMM",
            "experts_up_act" => "ACT+MOE_GEMM",
            "all_reduce_norm" => "COMM+ADD+NORM",
            _ => kernel.class.name(),
        }
    }

    #[test]
    fn names_prove_what_the_kernels_do() {
        for kernel in ALL.iter().copied().chain([&EXTRA_MEMCPY, &EXTRA_MEMSET]) {
            for name in [kernel.nvidia, kernel.amd] {
                for op in [None, Some(kernel.op)] {
                    assert_eq!(classify_with(name, op, None).label(), label(kernel), "{name}");
                }
            }
        }
    }

    /// But for the experts, which pairs therefore spell alike.
    #[test]
    fn what_most_programs_run_is_fused_alike_at_both_vendors() {
        use super::super::kernels::{self, ALL};
        for kernel in ALL.iter().copied().filter(|kernel| kernel.class != MoeGemm) {
            let labels = [kernel.nvidia, kernel.amd].map(|name| classify_with(name, None, None));
            assert_eq!(labels[0].label(), labels[1].label(), "{}", kernel.role);
            let is_fused = [&kernels::NORM, &kernels::ACT_MUL]
                .into_iter()
                .any(|fused| std::ptr::eq(kernel, fused));
            assert_eq!(labels[0].is_fused(), is_fused, "{}", kernel.role);
        }
    }
}
