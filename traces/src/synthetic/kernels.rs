//! The kernels of the models: what they do, and what they are called at both vendors.

use crate::DeviceWork;
use crate::classify::Class;
use crate::classify::Class::{
    Act, Attn, Comm, Conv, Copy, Elementwise, EmbedIndex, Fill, Gemm, GemmEpilogue, KvCache,
    MoeFinalize, MoeGemm, MoeRouting, Norm, Reduce, Rope, ScanSort, Softmax, Ssm,
};

/// A kernel, a copy or a fill.
#[derive(Debug)]
pub(super) struct Kernel {
    /// What it is for in its layer.
    pub(super) role: &'static str,
    pub(super) class: Class,
    pub(super) work: DeviceWork,
    /// The operator that launches it.
    pub(super) op: &'static str,
    pub(super) nvidia: &'static str,
    pub(super) amd: &'static str,
}

impl Kernel {
    pub(super) fn name(&self, is_amd: bool) -> &'static str {
        if is_amd { self.amd } else { self.nvidia }
    }
}

macro_rules! kernels {
    ($($name:ident, $role:literal, $class:expr, $op:literal, $nvidia:literal, $amd:literal;)*) => {
        $(pub(super) static $name: Kernel = Kernel {
            role: $role,
            class: $class,
            work: DeviceWork::Kernel,
            op: $op,
            nvidia: $nvidia,
            amd: $amd,
        };)*

        /// Every kernel of this list.
        #[cfg(test)]
        pub(super) static ALL: &[&Kernel] = &[$(&$name),*];
    };
}
pub(super) use kernels;

// One kernel is its name here, its role, its class, its operator, and both vendors' names.
#[rustfmt::skip]
kernels! {
    EMBEDDING, "embedding", EmbedIndex, "aten::embedding",
        "void at::native::(anonymous namespace)::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)",
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2, true>(at::cuda::detail::TensorInfo<c10::BFloat16, unsigned int>, long)";
    FIRST_NORM, "norm", Norm, "vllm::rms_norm",
        "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, c10::BFloat16 const*, c10::BFloat16 const*, float, int, int)",
        "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassINS_27Rmsnorm2dFwdPipelineProblemIDF16bDF16bfDF16bEEEEEEEvDpT1_";
    NORM, "norm", Norm, "vllm::fused_add_rms_norm",
        "std::enable_if<(((8) > (0))) && vllm::_typeConvert<c10::BFloat16>::exists, void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, c10::BFloat16 const*, float, int, int)",
        "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib";
    QKV, "qkv", Gemm, "aten::mm",
        "nvjet_tst_128x152_64x4_2x1_v_bz_coopA_TNN",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    ROPE, "rope", Rope, "vllm::rotary_embedding",
        "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, int, long, long, int, int, int)",
        "_ZN5aiter33kn_entry_2c_sbhd_cached_indirect_inplaceI11OpCachedFwdLi0ELb0ELb1EEEvPT_";
    CACHE_WRITE, "kv_cache", KvCache, "vllm::reshape_and_cache_flash",
        "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>(__nv_bfloat16 const*, __nv_bfloat16 const*, __nv_bfloat16*, long const*, long, long)",
        "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(__hip_bfloat16 const*, __hip_bfloat16 const*, __hip_bfloat16*, long const*, long, long)";
    ATTENTION_PREFILL, "attention", Attn, "vllm::unified_attention_with_output",
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<128>, cute::C<128>, cute::C<128> >, cutlass::bfloat16_t> > > >(flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2> >::Params)",
        "kernel_unified_attention_2d";
    ATTENTION_DECODE, "attention", Attn, "vllm::unified_attention_with_output",
        "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t, Flash_kernel_traits<128, 64, 128, 4, cutlass::bfloat16_t> >, false, false, false, true, true, false>(flash::Flash_fwd_params)",
        "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0, 1, 128, 256, false, 4>(__hip_bfloat16 const*, __hip_bfloat16 const*, int const*)";
    ATTENTION_REDUCE, "attention_reduce", Attn, "vllm::unified_attention_with_output",
        "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t, Flash_kernel_traits<128, 64, 128, 4, cutlass::bfloat16_t> >, 4, 3, true>(flash::Flash_fwd_params)",
        "void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, __hip_bfloat16, 128, 128, 256, 3, false>(__hip_bfloat16*, float const*, float const*, int const*)";
    WINDOW_PREFILL, "attention", Attn, "vllm::unified_attention_with_output",
        "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<(flashinfer::MaskMode)3, 128, 2, 1> >(flashinfer::PagedParams)",
        "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelIiEEEEvDpT1_";
    WINDOW_DECODE, "attention", Attn, "vllm::unified_attention_with_output",
        "void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u, 4u, 8u>(flashinfer::BatchDecodeParams)",
        "kernel_unified_attention_3d";
    OUT, "out", Gemm, "aten::mm",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT160x256x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    SPLIT_K, "out_split_k", GemmEpilogue, "aten::mm",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, true, false, false>(cublasLt::cublasSplitKParams<float>, float const*, __nv_bfloat16*)",
        "Cijk_Alik_Bljk_BBS_BH_Bias_SAV_PostGSU8_VW4";
    GATE_UP, "gate_up", Gemm, "aten::mm",
        "nvjet_tst_192x192_64x4_1x2_h_bz_coopB_TNT",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    ACT_MUL, "act", Act, "vllm::silu_and_mul",
        "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)",
        "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i";
    DOWN, "down", Gemm, "aten::mm",
        "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    EXTRA, "extra", Elementwise, "aten::add",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)",
        "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)";
    ROUTER, "router", Gemm, "aten::mm",
        "nvjet_tst_64x8_64x16_4x1_v_bz_TNN",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x64x128_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    TOP_K, "routing", MoeRouting, "vllm::topk_softmax",
        "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, int>(float const*, bool const*, float*, int, int*, int*, int, int, int)",
        "_topk_forward";
    ALIGN, "routing", MoeRouting, "vllm::moe_align_block_size",
        "void vllm::moe::moe_align_block_size_kernel<int>(int const*, int*, int*, int*, int, int, int, unsigned long)",
        "_sum_bitmatrix_rows";
    SORT_TOKENS, "routing", MoeRouting, "vllm::moe_align_block_size",
        "void vllm::moe::count_and_sort_expert_tokens_kernel<int>(int const*, int*, int*, unsigned long)",
        "_combined_routing_memset";
    GATE, "routing", MoeRouting, "vllm::grouped_topk",
        "void vllm::moe::grouped_topk_fused_kernel<float, int>(float*, float*, int*, long, long)",
        "_combined_routing_compute";
    EXPERTS_UP, "experts_up", MoeGemm, "vllm::fused_experts",
        "fused_moe_kernel",
        "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu";
    EXPERTS_DOWN, "experts_down", MoeGemm, "vllm::fused_experts",
        "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x8x512_s3_et64x8_m64x8x32_cga1x1x1_16dp256b_TN_transOut_schedS_biasM_bN_ldgsts_tmaOpt_clmp_dynBatch_sm100f",
        "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1";
    FINALIZE, "finalize", MoeFinalize, "vllm::moe_sum",
        "void vllm::moe::moe_sum_kernel<c10::BFloat16, 4>(c10::BFloat16*, c10::BFloat16 const*, int)",
        "_finalize_matmul_scatter_bf16";
    IN_PROJECTION, "in", Gemm, "aten::mm",
        "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x128x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    CONV_PREFILL, "conv", Conv, "vllm::causal_conv1d_fwd",
        "void causal_conv1d_fwd_kernel<Causal_conv1d_fwd_kernel_traits<128, 4, true, c10::BFloat16, c10::BFloat16> >(ConvParamsBase)",
        "_causal_conv1d_fwd_kernel";
    CONV_DECODE, "conv", Conv, "vllm::causal_conv1d_update",
        "void causal_conv1d_update_kernel<Causal_conv1d_update_kernel_traits<64, 4, c10::BFloat16, c10::BFloat16>, false>(ConvParamsBase)",
        "_causal_conv1d_update_kernel";
    STATE_PROJECTION, "state", Gemm, "aten::mm",
        "nvjet_tst_64x16_64x16_2x1_v_bz_TNN",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x256_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    SCAN_PREFILL, "scan", Ssm, "vllm::selective_scan_fwd",
        "void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<128, 16, 1, true, true, true, true, c10::BFloat16, float> >(SSMParamsBase)",
        "void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<64, 16, 1, true, true, true, true, c10::BFloat16, float> >(SSMParamsBase)";
    SCAN_DECODE, "scan", Ssm, "vllm::selective_state_update",
        "_selective_scan_update_kernel",
        "_selective_scan_update_kernel";
    GATED_NORM, "gated_norm", Norm, "vllm::gated_rms_norm",
        "_layer_norm_fwd_1pass_kernel",
        "_layer_norm_fwd_1pass_kernel";
    SELECT, "select", EmbedIndex, "aten::index",
        "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::index_kernel_impl<at::native::OpaqueType<2> >(at::TensorIteratorBase&, c10::ArrayRef<long>)::{lambda(char*, char const*, long)#1}> >(long)",
        "void at::native::(anonymous namespace)::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)";
    LM_HEAD, "lm_head", Gemm, "aten::mm",
        "nvjet_tst_256x152_64x4_2x1_v_bz_coopA_TNN",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x48x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    TO_FLOAT, "cast", Copy, "aten::_to_copy",
        "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16tofloat32_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int, std::array<char*, 2ul>)",
        "void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16tofloat32_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int, std::array<char*, 2ul>)";
    ARGMAX, "sampling", Reduce, "aten::argmax",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >(at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4>)",
        "void at::native::reduce_kernel<256, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >(at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4>)";
    ALL_REDUCE_OWN, "all_reduce", Comm, "c10d::allreduce_",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)";
    ALL_REDUCE_SAME, "all_reduce", Comm, "vllm::all_reduce",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals, vllm::Signal*, __nv_bfloat16*, int, int)",
        "void vllm::cross_device_reduce_2stage<__hip_bfloat16, 8>(vllm::RankData*, vllm::RankSignals, vllm::Signal*, __hip_bfloat16*, int, int)";
    ATTENTION_TRAIN, "attention", Attn, "aten::_flash_attention_forward",
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>, false, true, false, false, true, true, false>(pytorch_flash::Flash_fwd_params)",
        "attn_fwd";
    LOSS, "loss", Softmax, "aten::_log_softmax",
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float, float, float, at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>(float*, float const*, int)",
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>(float*, float const*, int)";
    NORM_BACKWARD, "norm_backward", Norm, "aten::native_layer_norm_backward",
        "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<c10::BFloat16, float>(c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, c10::BFloat16*, int)",
        "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<c10::BFloat16, float>(long, long, c10::BFloat16 const*, float const*, c10::BFloat16*)";
    ACT_BACKWARD, "act_backward", Act, "aten::silu_backward",
        "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::silu_backward_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda(c10::BFloat16, c10::BFloat16)#1}, std::array<char*, 3ul> >(int)",
        "void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::silu_backward_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda(c10::BFloat16, c10::BFloat16)#1}, std::array<char*, 3ul> >(int)";
    ATTENTION_BACKWARD, "attention_backward", Attn, "aten::_flash_attention_backward",
        "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<pytorch_flash::Flash_bwd_kernel_traits<128, 64, 128, 8, 2, 4, 2, false, false, cutlass::bfloat16_t>, false, true>(pytorch_flash::Flash_bwd_params)",
        "bwd_kernel_dk_dv";
    GRADIENT, "gradient", Gemm, "aten::mm",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_nt_n_tilesize128x256x64_warpgroupsize2x1x1_execute_segment_k_off_kernel__5x_cublas",
        "Cijk_Ailk_Bjlk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x32_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0";
    OPTIMIZER, "optimizer", Elementwise, "aten::_fused_adamw_",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4>, float const*, double>(at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, double)",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<c10::BFloat16, 4>, float const*, double>(at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, double)";
    PERMUTE, "permute", EmbedIndex, "fbgemm::permute_2D_sparse_data",
        "void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*, int const*, int*)",
        "void fbgemm_gpu::permute_2D_lengths_kernel<long>(int, int, long const*, int const*, long*)";
    BAGS, "bags", EmbedIndex, "fbgemm::split_embedding_codegen_lookup_adagrad_function",
        "void split_embedding_codegen_forward_unweighted_kernel<float, float, float, long, 5ul>(at::PackedTensorAccessor32<float, 1>, long)",
        "void split_embedding_codegen_forward_unweighted_kernel<float, float, float, long, 2ul>(at::PackedTensorAccessor32<float, 1>, long)";
    MLP, "mlp", Gemm, "aten::addmm",
        "ampere_sgemm_128x64_tn",
        "Cijk_Alik_Bljk_SB_MT64x64x32_MI32x32x1_SE_1LDSB0";
    RELU, "relu", Act, "aten::relu",
        "void at::native::vectorized_elementwise_kernel<4, at::native::launch_relu_kernel<float>(at::TensorIterator&)::{lambda(float)#1}, at::detail::Array<char*, 2> >(int, at::detail::Array<char*, 2>)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::launch_relu_kernel<float>(at::TensorIterator&)::{lambda(float)#1}, std::array<char*, 2ul> >(int, std::array<char*, 2ul>)";
    CONCATENATE, "concatenate", Copy, "aten::cat",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*, at::native::(anonymous namespace)::CatArrInputTensorMetadata<float, unsigned int, 128, 1>, int)",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 64, 64>(float*, at::native::(anonymous namespace)::CatArrInputTensorMetadata<float, unsigned int, 64, 64>, int)";
    SUM, "sum", Reduce, "aten::sum",
        "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> >(int)",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> >(int)";
    SORT, "sort", ScanSort, "aten::sort",
        "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800, false, long, int, int, int>(int*, int*, int*, int const*, long*, long const*)",
        "void rocprim::detail::trampoline_kernel<rocprim::detail::wrapped_radix_sort_onesweep_config<rocprim::default_config, long, int>, int>(int)";
}

pub(super) const fn by_runtime(role: &'static str, work: DeviceWork, name: &'static str) -> Kernel {
    let (class, op) = match work {
        DeviceWork::Memset => (Fill, "aten::zero_"),
        _ => (Copy, "aten::copy_"),
    };
    Kernel { role, class, work, op, nvidia: name, amd: name }
}

pub(super) static INPUTS: Kernel =
    by_runtime("inputs", DeviceWork::Memcpy, "Memcpy HtoD (Pageable -> Device)");
pub(super) static POSITIONS: Kernel =
    by_runtime("positions", DeviceWork::Memcpy, "Memcpy DtoD (Device -> Device)");
pub(super) static OUTPUTS: Kernel =
    by_runtime("outputs", DeviceWork::Memcpy, "Memcpy DtoH (Device -> Pinned)");
pub(super) static CLEAR: Kernel = by_runtime("clear", DeviceWork::Memset, "Memset (Device)");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::classify_with;

    #[test]
    fn names_have_their_classes() {
        for kernel in ALL.iter().copied().chain([&INPUTS, &POSITIONS, &OUTPUTS, &CLEAR]) {
            for name in [kernel.nvidia, kernel.amd] {
                for op in [None, Some(kernel.op)] {
                    assert_eq!(classify_with(name, op, None).main, kernel.class, "{name}");
                }
            }
        }
    }
}
