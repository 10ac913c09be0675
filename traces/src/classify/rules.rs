//! The rules: which name means which class. The first rule that fits decides.
//!
//! To teach the classifier a kernel, add a rule (or a word to one) in the section of its class,
//! with a real name as its example; a test checks that exactly this rule takes the example. Rules
//! name families, never one kernel. Prefer [`Word`] and [`Starts`] to [`Has`]: substrings are how
//! `rotary_embedding` becomes an embedding. Sections come in the order in which their words are
//! specific: collectives first, arithmetic last.

use Class::{
    Act, Attn, Comm, Conv, Copy, Elementwise, EmbedIndex, Fill, Gemm, GemmEpilogue, KvCache,
    MoeFinalize, MoeGemm, MoeRouting, Norm, Pool, Quant, Reduce, Rope, ScanSort, Softmax, Ssm,
};
use Test::{Arg, Has, Name, NoOps, Not, Only, Root, Space, Starts, Word};

use super::class::{AttnPhase, Class};
use super::name::Parts;

/// A condition on one part of a name. Lists are alternatives; everything is in lower case.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    /// The whole name starts so.
    Name(&'static [&'static str]),
    /// The base name starts so.
    Starts(&'static [&'static str]),
    /// The base name contains it.
    Has(&'static [&'static str]),
    /// The base name contains these whole words: `rms_norm` is in `RMSNormKernel`.
    Word(&'static [&'static str]),
    /// The namespaces contain it.
    Space(&'static [&'static str]),
    /// The template arguments contain it.
    Arg(&'static [&'static str]),
    /// Nothing but these words, and numbers, after `fused` in the base name.
    Only(&'static [&'static str]),
    /// No word after `fused` in the base name.
    NoOps,
    /// The namespaces start with this component.
    Root(&'static str),
    /// The opposite.
    Not(&'static Test),
}

impl Test {
    pub(super) fn holds(&self, parts: &Parts) -> bool {
        let contains = |text: &str, list: &[&str]| list.iter().any(|item| text.contains(item));
        let starts = |text: &str, list: &[&str]| list.iter().any(|item| text.starts_with(item));
        match self {
            Name(list) => starts(&parts.name, list),
            Starts(list) => starts(&parts.base, list),
            Has(list) => contains(&parts.base, list),
            Word(list) => list.iter().any(|word| has_word(&parts.words, word)),
            Space(list) => contains(&parts.space, list),
            Arg(list) => contains(&parts.args, list),
            Only(list) => {
                fused_ops(parts).next().is_some() && fused_ops(parts).all(|op| list.contains(&op))
            }
            NoOps => fused_ops(parts).next().is_none(),
            Root(root) => parts.space.split("::").next() == Some(root),
            Not(test) => !test.holds(parts),
        }
    }
}

/// The words after `fused`, without numbers.
fn fused_ops(parts: &Parts) -> impl Iterator<Item = &str> {
    let ops = parts.words.split_once("_fused_").map_or("", |(_, ops)| ops);
    ops.split('_').filter(|op| !op.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether `word` is in `words` (`_a_b_c_`), bounded on both sides.
pub(super) fn has_word(words: &str, word: &str) -> bool {
    words
        .match_indices(word)
        .any(|(at, _)| words[..at].ends_with('_') && words[at + word.len()..].starts_with('_'))
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) id: &'static str,
    pub(super) class: Class,
    /// All must hold.
    pub(super) when: &'static [Test],
    pub(super) example: &'static str,
    pub(super) phase: AttnPhase,
    /// The name alone is a guess: the launching op and the python frame know better.
    pub(super) weak: bool,
}

const fn rule(
    id: &'static str,
    class: Class,
    when: &'static [Test],
    example: &'static str,
) -> Rule {
    Rule { id, class, when, example, phase: AttnPhase::Unknown, weak: false }
}

impl Rule {
    const fn prefill(mut self) -> Self {
        self.phase = AttnPhase::Prefill;
        self
    }

    const fn decode(mut self) -> Self {
        self.phase = AttnPhase::Decode;
        self
    }

    const fn weak(mut self) -> Self {
        self.weak = true;
        self
    }
}

/// Kernels that Inductor generates; the operators they cover are in the name, sorted.
const INDUCTOR: Test = Starts(&["triton_poi_", "triton_red_", "triton_per_", "triton_for_"]);
const INDUCTOR_REDUCTION: Test = Starts(&["triton_red_", "triton_per_"]);
const INDUCTOR_TEMPLATE: Test = Starts(&["triton_tem_"]);

/// PyTorch's loops over elements; the functor in the template arguments says what they compute.
const LOOP: Test = Has(&["elementwise_kernel", "multi_tensor_apply_kernel", "foreach_tensor"]);

/// Functions that only drive a functor or an operation given as their template argument.
const WRAPPER: Test =
    Starts(&["kernel", "device_kernel", "kentry", "_kernel_agent", "static_kernel"]);

/// Operators of Inductor that move data and compute nothing.
#[rustfmt::skip]
const MOVES: &[&str] = &[
    "to", "copy", "clone", "cat", "stack", "view", "unsafe", "permute", "transpose", "slice",
    "split", "expand", "t", "unsqueeze", "squeeze", "select", "reshape", "contiguous", "repeat",
    "as", "strided", "constant", "pad", "nd", "detach", "alias", "unbind", "chunk", "with",
    "sizes", "roll", "flip", "convert", "element", "type", "prims", "lift", "fresh", "scaled",
    "dot", "product", "flash", "efficient", "attention",
];

/// Attention kernels that name the cache they read.
#[rustfmt::skip]
const ATTENTIONS: &[&str] = &[
    "attention", "attn", "fmha", "flash_fwd", "batchdecode", "batchprefill", "singledecode",
    "singleprefill", "batch_decode", "batch_prefill", "batchmla", "prefillwithkvcache",
];

/// Operators of Inductor that write a constant.
#[rustfmt::skip]
const FILLS: &[&str] = &[
    "full", "zeros", "ones", "zero", "fill", "empty", "new", "like", "scalar", "tensor",
];

/// Activations by name.
#[rustfmt::skip]
pub(super) const ACTIVATIONS: &[&str] = &[
    "gelu", "silu", "swiglu", "geglu", "reglu", "relu", "relu6", "sigmoid", "tanh", "mish", "elu",
    "selu", "celu", "softplus", "hardswish", "hardsigmoid", "hardtanh", "swish", "quick_gelu",
    "leaky_relu", "prelu", "glu", "erf", "logsigmoid", "log_sigmoid", "swigluoai",
];

/// Every rule, the first that fits decides. One line a rule.
#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    // Copies and fills of the runtime.
    rule("memcpy", Copy, &[Name(&["memcpy", "hipmemcpy", "cudamemcpy", "[cuda memcpy", "__amd_rocclr_copy"])], "Memcpy HtoD (Pageable -> Device)"),
    rule("memset", Fill, &[Name(&["memset", "hipmemset", "cudamemset", "[cuda memset", "__amd_rocclr_fill"])], "Memset (Device)"),
    // Inductor. A collective in the name of its kernel is one whose result it reads.
    rule("inductor.moe", MoeRouting, &[INDUCTOR, Word(&["moe_forward", "moe_forward_shared", "moe", "fused_moe"])], "triton_poi_fused_constant_pad_nd_moe_forward_0"),
    rule("inductor.attention", Attn, &[INDUCTOR_TEMPLATE, Word(&["attention", "flex_attention"])], "triton_tem_fused_flex_attention_0"),
    rule("inductor.convolution", Conv, &[INDUCTOR_TEMPLATE, Word(&["convolution", "conv"])], "triton_tem_fused_convolution_3"),
    rule("inductor.template", Gemm, &[INDUCTOR_TEMPLATE], "triton_tem_fused_addmm_relu_1"),
    rule("inductor.pool", Pool, &[INDUCTOR, Has(&["max_pool", "avg_pool"])], "triton_poi_fused_max_pool2d_with_indices_relu_4"),
    rule("inductor.norm", Norm, &[INDUCTOR, Word(&["rsqrt", "var_mean", "layer_norm", "rms_norm", "group_norm", "batch_norm", "native_layer_norm", "native_group_norm", "layernorm", "rmsnorm"])], "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0"),
    rule("inductor.norm.mean_square", Norm, &[INDUCTOR_REDUCTION, Word(&["mean"]), Word(&["pow"]), Not(&Word(&["sub", "loss"]))], "triton_per_fused__to_copy_mean_pow_7"),
    rule("inductor.softmax", Softmax, &[INDUCTOR, Word(&["softmax", "log_softmax", "logsumexp"])], "triton_per_fused__softmax_2"),
    rule("inductor.rope.named", Rope, &[INDUCTOR, Word(&["rotary", "rotary_embedding", "rope", "apply_rotary"])], "triton_poi_fused_apply_rotary_3"),
    rule("inductor.rope", Rope, &[INDUCTOR, Word(&["cos"]), Word(&["sin"]), Word(&["neg", "cat", "stack", "sub", "split", "slice"]), Not(&Word(&["arange"]))], "triton_poi_fused_add_cat_cos_mul_neg_sin_slice_4"),
    rule("inductor.rope.applied", Rope, &[Starts(&["triton_poi_"]), Word(&["neg"]), Word(&["cat", "stack"]), Word(&["mul"]), Word(&["add"])], "triton_poi_fused_add_cat_mul_neg_slice_2"),
    rule("inductor.rope.halves", Rope, &[Starts(&["triton_poi_"]), Word(&["cat", "stack"]), Word(&["mul"]), Word(&["sub"]), Word(&["add", "split", "slice", "index", "index_select", "unbind", "select"])], "triton_poi_fused_add_cat_index_select_mul_split_sub_unsqueeze_3"),
    rule("inductor.act", Act, &[INDUCTOR, Word(ACTIVATIONS)], "triton_poi_fused__unsafe_view_mul_silu_2"),
    rule("inductor.quant", Quant, &[INDUCTOR, Word(&["quant", "quantize", "dequantize", "scaled_fp8_quant", "abs_amax", "amax_clamp", "quantize_per_tensor"])], "triton_red_fused__to_copy_abs_amax_clamp_div_1"),
    rule("inductor.kvcache", KvCache, &[INDUCTOR, Word(&["reshape_and_cache", "kv_cache", "kvcache"])], "triton_poi_fused_reshape_and_cache_1"),
    rule("inductor.scan", ScanSort, &[INDUCTOR, Word(&["sort", "topk", "cumsum", "cumprod", "searchsorted", "bucketize", "argsort"])], "triton_per_fused_cumsum_0"),
    rule("inductor.index", EmbedIndex, &[INDUCTOR, Word(&["embedding", "index", "index_select", "index_put", "embedding_dense_backward", "nonzero", "take"])], "triton_poi_fused_embedding_0"),
    rule("inductor.index.gathered", EmbedIndex, &[INDUCTOR, Word(&["gather", "scatter"]), Not(&Has(&["all_gather", "reduce_scatter"]))], "triton_poi_fused_gather_0"),
    rule("inductor.reduce", Reduce, &[INDUCTOR_REDUCTION], "triton_red_fused_sum_1"),
    rule("inductor.fill", Fill, &[INDUCTOR, Only(FILLS)], "triton_poi_fused_new_zeros_0"),
    rule("inductor.joined", Copy, &[INDUCTOR, Only(MOVES), Word(&["cat", "stack"])], "triton_poi_fused_cat_5").weak(),
    rule("inductor.copy", Copy, &[INDUCTOR, Only(MOVES)], "triton_poi_fused__to_copy_1"),
    rule("inductor.unnamed", Elementwise, &[INDUCTOR, NoOps], "triton_poi_fused_0").weak(),
    rule("inductor.pointwise", Elementwise, &[INDUCTOR], "triton_poi_fused__unsafe_view_add_3"),
    // Communication.
    rule("nccl", Comm, &[Starts(&["nccl", "rccl", "msccl", "mscclpp"])], "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
    rule("comm.one_device", Comm, &[Has(&["cross_device_reduce", "quickreduce", "quick_all_reduce", "multimem_", "multimemall", "two_shot", "twoshot", "one_shot_all", "oneshot", "lamport", "userbuffers"])], "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals, vllm::Signal*, __nv_bfloat16*, int, int)"),
    rule("comm.collective", Comm, &[Has(&["allreduce", "all_reduce", "allgather", "all_gather", "reducescatter", "reduce_scatter", "alltoall", "all_to_all", "all2all", "a2a_dispatch", "a2a_combine", "a2adispatch", "a2acombine", "allbroadcast"]), Not(&Has(&["before_all", "for_all", "after_all"]))], "void flashinfer::trtllm_allreduce::allreduce_kernel<__half>(flashinfer::Params)"),
    rule("comm.library", Comm, &[Space(&["deep_ep", "nvshmem", "internode", "intranode", "internode_ll", "mori", "symm_mem", "c10d", "pplx"])], "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)"),
    rule("comm.shmem", Comm, &[Starts(&["nvshmem", "rocshmem", "epdispatch", "epcombine", "barrier_on_stream", "sendrecv"])], "nvshmemi_barrier_all_kernel"),
    // PyTorch's loops: the functor decides.
    rule("at.scatter_gather", EmbedIndex, &[Starts(&["_scatter_gather", "index_elementwise_kernel"])], "void at::native::_scatter_gather_elementwise_kernel<128, 4, at::native::_cuda_scatter_gather_internal_kernel<true, float> >(int)"),
    rule("at.reduce.norms", Reduce, &[LOOP, Arg(&["lpnorm", "l2norm", "maxnorm", "lpmax"])], "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<1>, at::native::(anonymous namespace)::LpNormFunctor<float, (at::native::NormType)1, float, 1, 1, 0> >(int)"),
    rule("at.copy", Copy, &[LOOP, Arg(&["copy_kernel", "copy_functor", "copyfunctor", " copy ", " cast_kernel", "flip_kernel", "roll_cuda"])], "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>, 4>(int)"),
    rule("at.norm", Norm, &[LOOP, Arg(&["batch_norm", "layer_norm", "group_norm", "groupnorm", "rms_norm"])], "void at::native::(anonymous namespace)::unrolled_elementwise_kernel_for_multi_outputs<3, at::native::(anonymous namespace)::batch_norm_update_stats_and_invert(at::Tensor const&)::{lambda()#1} >(int)"),
    rule("at.masked", Elementwise, &[LOOP, Arg(&["masked_fill", "masked_scale"])], "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::masked_fill_kernel(at::TensorIterator&, c10::Scalar const&)::{lambda()#1}>(int)"),
    rule("at.fill", Fill, &[LOOP, Arg(&["fillfunctor", "fill_kernel", "zerofunctor"])], "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)"),
    rule("at.act", Act, &[LOOP, Arg(&["gelu", "silu", "tanh_kernel", "sigmoid_kernel", "mish", "hardswish", "hardsigmoid", "hardtanh", "leaky_relu", "elu_kernel", " elu", "softplus", "glu_kernel", "relu", "shrink"])], "void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}, std::array<char*, 2ul> >(int)"),
    rule("at.quant", Quant, &[LOOP, Arg(&["quantize", "fake_quant"])], "void at::native::vectorized_elementwise_kernel<4, at::native::quantize_tensor_per_tensor_affine_cuda(at::Tensor const&)::{lambda()#1}>(int)"),
    rule("at.index", EmbedIndex, &[LOOP, Arg(&["index_kernel", "index_put", "gather_kernel", "take_kernel", "put_kernel", "index_fill", "index_copy"])], "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::take_kernel(at::TensorIterator&)::{lambda()#1}> >(int)"),
    rule("at.loop.unnamed", Elementwise, &[LOOP, Not(&Arg(&[" "]))], "void at::native::vectorized_elementwise_kernel").weak(),
    rule("at.loop", Elementwise, &[LOOP], "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)"),
    rule("at.reduce", Reduce, &[Starts(&["reduce_kernel"]), Space(&["at::native"])], "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, unsigned int, float, 4> >(int)"),
    rule("at.topk", ScanSort, &[Has(&["gathertopk", "radixfindkth", "computeblockwisewithinkcounts", "computeblockwisekthcounts", "computedigitcumsum", "gathermedian", "gatherkthvalue", "bitonicsort", "sort_postprocess", "radixsortkv", "fill_reverse_indices", "fillsliceindices"])], "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(at::cuda::detail::TensorInfo<float const, unsigned int>)"),
    rule("at.distribution", Elementwise, &[Has(&["distribution_elementwise", "fused_dropout", "distribution_", "philox"])], "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel_v2<float, 4>(int)"),
    // Key-value cache.
    rule("kvcache.write", KvCache, &[Has(&["reshape_and_cache", "concat_and_cache", "cache_mla", "store_kv", "storekv", "kvcache", "kv_cache", "kv_buffer", "kvbuffer", "cp_gather", "gather_cache", "gather_and_maybe_dequant_cache", "paged_kv", "pagedkv", "indexer_k_quant_and_cache", "set_k_and_s"]), Not(&Has(ATTENTIONS))], "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(__hip_bfloat16 const*)"),
    rule("kvcache.index", KvCache, &[Has(&["kv_indices", "kv_indptr", "req_to_token", "kvindices", "page_indices", "slot_mapping"])], "create_flashinfer_kv_indices_triton"),
    rule("kvcache.blocks", KvCache, &[Starts(&["alloc_extend", "alloc_decode", "transfer_kernel_impl", "swap_blocks", "copy_blocks", "transfer_kv", "transfer_page"])], "alloc_extend_kernel"),
    // State-space models and linear attention.
    rule("ssm.scan", Ssm, &[Has(&["selective_scan", "selective_state_update", "chunk_scan", "chunk_state", "state_passing", "chunk_cumsum", "bmm_chunk"])], "_chunk_scan_fwd_kernel"),
    rule("ssm.delta", Ssm, &[Has(&["gated_delta", "delta_rule", "fused_recurrent", "recompute_w_u", "wy_repr", "chunk_scaled_dot_kkt", "to_64x64_inverse", "to_32x32_inverse", "solve_tril", "gdn_gating"])], "chunk_gated_delta_rule_fwd_kernel_h_blockdim64"),
    rule("ssm.chunk", Ssm, &[Has(&["chunk_fwd_o", "chunk_fwd_kernel", "chunk_bwd_kernel", "chunk_bwd_dqkwg", "chunk_bwd_dv", "chunk_local_cumsum", "chunk_global_cumsum", "chunk_kda", "chunk_gla", "kda_gate"])], "chunk_fwd_kernel_o"),
    rule("ssm.linear_attention", Ssm, &[Has(&["linear_attn", "linear_attention", "lightning_attn", "rwkv", "wkv6", "wkv7"])], "_linear_attn_decode_kernel"),
    rule("ssm.lightning", Ssm, &[Starts(&["_fwd_diag_kernel", "_fwd_none_diag_kernel", "_fwd_kv_parallel", "_fwd_kv_reduce", "_bwd_diag_kernel", "_bwd_none_diag_kernel"])], "_fwd_diag_kernel"),
    // What prepares the heads of latent attention.
    rule("rope.latent", Rope, &[Has(&["mlarope", "mla_rope"])], "void tensorrt_llm::kernels::applyMLARopeAndAssignQKVKernelGeneration<__nv_bfloat16, 256, 512, 64, tensorrt_llm::kernels::KVBlockArray>(int)"),
    rule("copy.latent", Copy, &[Has(&["concat_mla"])], "void concat_mla_k_kernel<__nv_bfloat16, 128>(__nv_bfloat16*, __nv_bfloat16 const*)"),
    // Attention.
    rule("attn.decode", Attn, &[Has(&["paged_attention", "pa_decode", "pa_fwd", "mla_decode", "decode_attention", "masked_multihead", "mmha", "batchdecode", "batch_decode", "singledecode", "decode_mla", "mla_fwd_decode", "flash_decode", "flashdecod", "fwd_kernel_stage1", "fwd_kernel_stage2", "grouped_kernel_stage1", "kernel_mha", "fwd_splitkv_mla", "unified_attention_3d", "attention_3d", "pa_bf16", "pa_fp16", "pa_a16w16", "reduce_segments", "decode_attn"])], "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0, 1>(int)").decode(),
    rule("attn.prefill", Attn, &[Has(&["batchprefill", "batch_prefill", "singleprefill", "prefillwithkvcache", "prefill_attn", "prefill_attention", "context_attention", "attn_prefill", "attention_prefill", "mla_prefill", "extend_attention", "pa_prefill", "fmha_v2_flash_attention"])], "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits>(flashinfer::Params)").prefill(),
    rule("attn.context", Attn, &[Has(&["fmha"]), Word(&["context", "qkv_context", "qkvpacked"])], "fmhaSm100aKernel_QkvE4m3OBfloat16H128PagedKvCausalVarSeqQ128Kv128PersistentContext").prefill(),
    rule("attn.generation", Attn, &[Has(&["fmha"]), Has(&["forgen"])], "fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvDenseP32VarSeqQ8Kv128PersistentSwapsAbForGen").decode(),
    rule("attn.named", Attn, &[Has(&["attention", "fmha", "sdpa", "flash_fwd", "flash_bwd", "flashattn", "flash_attn", "flash_fprop", "flash_bprop", "flash_mla", "flashmla", "flash_dq", "flash_dkv"])], "kernel_unified_attention_2d"),
    rule("attn.wrapped.prefill", Attn, &[WRAPPER, Arg(&["batchprefill", "batch_prefill"])], "_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelIiEEEEvDpT1_").prefill(),
    rule("attn.wrapped", Attn, &[WRAPPER, Arg(&["flashattn", "fmha", "flash_attn", "attentionkernel", " attention"])], "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2> > > >(flash::Params)"),
    rule("attn.sage", Attn, &[Starts(&["sage_fwd", "sage_attn", "sageattn", "qk_int_sv_"])], "sage_fwd"),
    rule("attn.word", Attn, &[Word(&["attn", "mha", "mqa", "gqa", "mla", "xqa", "merge_states", "merge_state", "cascade"])], "attn_fwd"),
    rule("attn.helper", Attn, &[Has(&["mergestates", "prepare_varlen_num_blocks", "get_mla_metadata", "batchmlapaged", "convert_dq_to", "compute_dot_do_o", "num_kv_splits"])], "void flash::prepare_varlen_num_blocks_kernel(int, int)"),
    rule("attn.backward", Attn, &[Starts(&["bwd_kernel_dk_dv", "bwd_kernel_dq", "bwd_kernel_fuse", "bwd_preprocess", "_bwd_preprocess", "_bwd_kernel_dkdv", "_bwd_kernel_dq", "_bwd_dq", "_bwd_dkdv"])], "bwd_kernel_dk_dv"),
    rule("attn.triton", Attn, &[Starts(&["_fwd_kernel", "_bwd_kernel", "fwd_kernel"]), Not(&Has(&["ep_scatter", "ep_gather", "norm", "gemm", "moe", "quant"]))], "_fwd_kernel").weak(),
    // Mixture of experts.
    rule("moe.finalize", MoeFinalize, &[Has(&["finalize_matmul", "finalizemoe", "finalize_moe", "moe_finalize", "moe_sum", "moe_combine", "moe_unpermute", "unpermute", "ep_gather", "post_reorder", "apply_shuffle_mul_sum", "_reduce_grouped", "moe_reduce"])], "void vllm::moe::moe_sum_kernel<c10::BFloat16, 4>(c10::BFloat16*)"),
    rule("moe.finalize.dev", MoeFinalize, &[Starts(&["finalizekernel", "finalize_kernel"])], "void moe::dev::finalize::finalizeKernel<moe::dev::finalize::KernelParams<cutlass::bfloat16_t> >(int)"),
    rule("moe.act", Act, &[Space(&["moe"]), Has(&["activation"])], "void moe::dev::activation::activationKernel<moe::dev::activation::KernelParams>(int)"),
    rule("moe.act.gated", Act, &[Has(&["doactivation", "dogatedactivation"])], "void tensorrt_llm::kernels::cutlass_kernels::doActivationKernel<__nv_bfloat16>(int)"),
    rule("moe.quant", Quant, &[Space(&["moe"]), Has(&["convertsf", "permutequant", "quantize"])], "void moe::dev::convertsf::convertSfKernel<moe::dev::convertsf::KernelParams>(int)"),
    rule("moe.gemm", MoeGemm, &[Has(&["fused_moe_kernel", "matmul_ogs", "moe_gemm", "moegemm", "fmoe", "moe_mxgemm", "moeflatmm", "moe_flatmm", "moe_wna16", "fused_moe", "moe_stage", "moe_ck2stages", "cktile_moe", "grouped_gemm", "groupedgemm", "group_gemm", "grouped_matmul", "moefcgemm", "moe_mlp", "moe_matmul", "invoke_moe", "moe_fused_kernel", "grouped_mm"]), Not(&Has(&["get_group_gemm", "routing", "offsets", "starts_data"]))], "fused_moe_kernel"),
    rule("moe.gemm.marlin", MoeGemm, &[Space(&["moe_wna16", "moe_marlin"])], "void marlin_moe_wna16::Marlin<__nv_bfloat16, 1125899907892224l, 128, 1, 8, 8>(int4 const*)"),
    rule("moe.gemm.batched", MoeGemm, &[Starts(&["batched_triton_kernel"])], "batched_triton_kernel"),
    rule("moe.gemm.run", MoeGemm, &[Space(&["fused_moe"]), Starts(&["run_global"])], "void tensorrt_llm::kernels::cutlass_kernels_oss::fused_moe::run_global<cutlass::bfloat16_t>(int)"),
    rule("moe.gemm.trtllm", MoeGemm, &[Starts(&["bmm_", "gemm_"]), Has(&["dynbatch", "_dynb_"])], "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x8x512_s3_et64x8_m64x8x32_cga1x1x1_16dp256b_TN_transOut_schedS_biasM_bN_ldgsts_tmaOpt_clmp_swiGlu_dynBatch_sm100f"),
    rule("moe.gemm.wrapped", MoeGemm, &[WRAPPER, Arg(&["moefcgemm", "fusedmoe", "moegemm", "moe_gemm", "groupproblemshape", "moeflatmm", "fused_moe", "gemmgrouped"])], "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GroupProblemShape<cute::tuple<int, int, int> >, float> >(int)"),
    rule("moe.gemm.m_grouped", MoeGemm, &[Has(&["_m_grouped", "_k_grouped"]), Has(&["gemm"])], "void deep_gemm::sm90_m_grouped_fp8_gemm<4096u, 7168u, 128u, 128u, 128u>(float*, int*)"),
    rule("moe.gemm.deepgemm", MoeGemm, &[Has(&["gemm"]), Arg(&[" gemmtype=1 ", " gemmtype=2 ", " gemmtype=3 "])], "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 4096u, 7168u, 8u, (deep_gemm::GemmType)1>(float*, int*)"),
    rule("gemm.router", Gemm, &[Has(&["router_gemm", "routergemm"])], "void router_gemm_kernel_bf16_output<__nv_bfloat16, 128, 8, 4, 256, 7168>(__nv_bfloat16*, __nv_bfloat16 const*)"),
    rule("moe.routing", MoeRouting, &[Has(&["topk_gating", "topkgating", "topk_softmax", "topksoftmax", "topk_sigmoid", "grouped_topk", "groupedtopk", "moe_align", "count_and_sort_expert", "moe_sorting", "moesorting", "moe_fused_gate", "bitmatrix", "topk_forward", "topk_backward", "combined_routing", "buildexpertmaps", "expandinputrows", "expert_offsets", "problem_sizes", "ep_scatter", "pre_reorder", "moe_permute", "shuffle_rows", "routingindices", "routing_compute", "expt_data", "expt_hist", "get_group_gemm", "compute_arg_sorts", "seg_indptr_triton", "deepep_", "compute_src2dst", "expert_histogram", "computestrides", "expertfirsttoken", "blockexpertprefixsum", "globalexpertprefixsum", "mergeexpertprefixsum", "ragged_metadata", "topk_softplus", "writeback_idx", "masked_compaction", "opus_moe"])], "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, int>(float const*)"),
    rule("moe.routing.word", MoeRouting, &[Word(&["moe", "expert", "experts", "routing", "router", "gating"])], "void moe::dev::routing::routingRenormalize::routingMainKernel<int>(int)"),
    rule("moe.routing.wrapped", MoeRouting, &[WRAPPER, Arg(&["moesorting"])], "void ck_tile::kentry<1, ck_tile::MoeSortingKernel<ck_tile::MoeSortingProblemEx<int, float, 8, true, false> > >(int)"),
    rule("moe.routing.space", MoeRouting, &[Space(&["moe::routing", "moe::dev::routing", "vllm::moe", "fused_router"])], "void moe::dev::routing::topk::reduceKernel<int>(int)"),
    // Pooling, and the norms of the libraries of convolutions.
    rule("pool.cudnn", Pool, &[Space(&["cudnn"]), Has(&["pooling", "maxpool", "avgpool"])], "void cudnn::pooling_fw_4d_kernel<float, float, cudnn::maxpooling_func<float, float, (cudnnNanPropagation_t)0>, 0, false>(cudnnTensorStruct, float const*)"),
    rule("pool.miopen", Pool, &[Starts(&["mlopool", "mlo_pool", "miopenpool"])], "mloPoolingG"),
    rule("pool.named", Pool, &[Has(&["max_pool", "avg_pool", "maxpool", "avgpool", "average_pool", "adaptiveaveragepool", "adaptivemaxpool", "adaptive_average", "fractional_max", "pooling"]), Not(&Has(&["embedding", "pooled_emb"]))], "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(int, float const*)"),
    rule("norm.cudnn", Norm, &[Space(&["cudnn"]), Starts(&["bn_fw", "bn_bw", "batchnorm", "batch_norm", "bnfw", "bnbw", "layernorm", "layer_norm", "instancenorm", "rmsnorm"])], "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 128, true, 1, true>(cudnnTensorStruct, float const*)"),
    rule("norm.cudnn.name", Norm, &[Has(&["cudnn"]), Has(&["batchnorm", "batch_norm", "layernorm", "layer_norm", "rmsnorm", "rms_norm", "instancenorm", "_bn_fw", "_bn_bw"]), Not(&Has(&["conv", "gemm"]))], "nhwc_batch_norm_fwd_cudnn"),
    rule("softmax.cudnn", Softmax, &[Space(&["cudnn"]), Has(&["softmax"])], "void cudnn::softmax_fw_kernel<2, float, float, 256, 1, 1, 1>(cudnnTensorStruct, float const*)"),
    rule("act.cudnn", Act, &[Space(&["cudnn"]), Has(&["activation_fw", "activation_bw"])], "void cudnn::activation_fw_4d_kernel<float, float, 128, 1, 4, cudnn::relu_func<float, (cudnnNanPropagation_t)0> >(cudnnTensorStruct, float const*)"),
    // Convolutions and their libraries.
    rule("conv.cudnn", Conv, &[Space(&["cudnn", "cask"])], "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(int)"),
    rule("conv.cudnn.name", Conv, &[Has(&["cudnn"])], "cudnn_infer_ampere_scudnn_128x64_relu_xregs_large_nn_v1"),
    rule("conv.cudnn.types", Conv, &[Arg(&[" cudnn"])], "void tensorTransformGeneric<__nv_bfloat16, __nv_bfloat16, float, true, false, false, (cudnnKernelDataType_t)0>(int)"),
    rule("conv.layout", Conv, &[Has(&["nchw2", "nhwc2", "cnhw2", "ndhwc2", "ncdhw2", "2nchw", "2nhwc"]), Not(&Root("at"))], "transpose_CNHW2NCHW_V2_2D_WG_off64"),
    rule("conv.implicit", Conv, &[Has(&["bwd_weight", "bwd_data", "2col", "implicit_gemm", "convolve", "wgrad", "dgrad", "_fprop", "winograd", "im2col", "col2im", "vol2col", "nchwtonhwc", "nhwctonchw"])], "Im2d2Col_v2"),
    rule("conv.wrapped", Conv, &[WRAPPER, Arg(&["implicitgemm", "convolution", "conv2d", "conv3d", "fprop", "wgrad", "dgrad", "grouped_conv", "groupedconv"])], "void cutlass::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_64x128_32x3_nhwc_align4>(int)"),
    rule("conv.fft", Conv, &[Starts(&["fft2d_r2c", "fft2d_c2r", "fft1d_r2c", "fft1d_c2r"])], "void fft2d_r2c_32x32<float, false, 1u, false>(float2*, float const*, int, int)"),
    rule("conv.act.miopen", Act, &[Starts(&["miopenactive", "miopenneuron"])], "MIOpenActiveFwdLite"),
    rule("conv.norm.miopen", Norm, &[Starts(&["miopenbatchnorm", "miopenlayernorm", "miopengroupnorm"])], "MIOpenBatchNormFwdTrainSpatial"),
    rule("conv.softmax.miopen", Softmax, &[Starts(&["miopensoftmax"])], "MIOpenSoftmaxForward"),
    rule("conv.miopen", Conv, &[Starts(&["miopen", "igemm_", "batched_transpose_", "subtensorop", "op1dtensor", "op2dtensor", "op3dtensor", "op4dtensor", "op5dtensor", "naive_conv", "gridwise_conv", "_zn2ck16kernel_gemm_conv"])], "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt256x64x8_wt64x16x4_ws1x1_wr2x2_ta1x1x8x1_1x8x1x32_tb1x1x2x1_1x8x1x32_me"),
    rule("conv.word", Conv, &[Word(&["conv", "conv1d", "conv2d", "conv3d", "convolution", "conv_depthwise2d", "conv_depthwise3d", "depthwise", "deconv"])], "_causal_conv1d_fwd_kernel"),
    // Activations that carry a GEMM's name.
    rule("act.before_gemm", Act, &[Has(&["silu_mul_fp8_quant", "act_and_mul", "silu_and_mul", "gelu_and_mul", "silu_mul_quant"])], "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i"),
    rule("act.gated", Act, &[Has(&["gated_act"])], "void transformer_engine::gated_act_kernel<__nv_bfloat16, __nv_bfloat16, float>(int)"),
    rule("act.function", Act, &[Root("transformer_engine"), Has(&["unary", "gated"]), Arg(&["gelu", "silu", "relu"])], "void transformer_engine::unary_kernel<8, true, transformer_engine::Empty, float, &(float transformer_engine::gelu<float, float>(float, transformer_engine::Empty const&))>(int)"),
    // GEMMs.
    rule("gemm.tail.tensile", GemmEpilogue, &[Starts(&["cijk_", "custom_cijk_"]), Has(&["postgsu", "betaonly"])], "Cijk_Ailk_Bljk_BBS_BH_Bias_SAV_PostGSU8_VW4"),
    rule("gemm.tail.splitk", GemmEpilogue, &[Has(&["splitkreduce", "splitk_reduce", "split_k_reduce", "reduce_splitk", "reduce_1block", "splitkreduction", "splitk_sum"])], "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true, true, false>(int)"),
    rule("gemm.tail.triton", GemmEpilogue, &[Starts(&["_gemm_", "_batched_gemm_"]), Word(&["reduce"])], "_gemm_afp4wfp4_reduce_kernel"),
    rule("gemm.tail.wrapped", GemmEpilogue, &[WRAPPER, Arg(&["reducesplitk", "reduction kernel"])], "void cutlass::Kernel<cutlass::reduction::kernel::ReduceSplitK<cutlass::MatrixShape<4, 128> > >(int)"),
    rule("gemm.tail.cublas", GemmEpilogue, &[Space(&["epilogue::impl"])], "void epilogue::impl::globalKernel<float, float, float, true, true>(int)"),
    rule("gemm.tail.scale", GemmEpilogue, &[Starts(&["scal_kernel", "scal_64addr"])], "void scal_kernel<float, float, 1, true, 6, 5, 5, 3>(int)"),
    rule("gemm.tensile", Gemm, &[Starts(&["cijk_", "custom_cijk_", "hipblas", "tensile"])], "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1"),
    rule("gemm.skinny", Gemm, &[Starts(&["wvsplitk", "wv_splitk", "llgemm", "llmm", "wvspltk"])], "void wvSplitK_hf_sml_<__hip_bfloat16, 64, 2, 16, 8, 2, 1>(int)"),
    rule("gemm.nvjet", Gemm, &[Starts(&["nvjet"])], "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT"),
    rule("gemm.vector", Gemm, &[Space(&["gemv"])], "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float, float, float, false, true>(int)"),
    rule("gemm.weight_only", Gemm, &[Space(&["weight_only"]), WRAPPER], "void tensorrt_llm::kernels::weight_only::kernel<tensorrt_llm::kernels::weight_only::KernelDetails<int>, 1, 2, 8>(int)"),
    rule("gemm.wrapped", Gemm, &[WRAPPER, Arg(&["gemm", "gemv", "matmul", "cutlass_80_tensorop"])], "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(int)"),
    rule("gemm.named", Gemm, &[Has(&["gemm", "gemv", "matmul", "flatmm", "marlin", "machete", "addmm", "cublas", "sgmv", "bgmv", "lora_shrink", "lora_expand", "gptq", "exllama", "awq_mm"]), Not(&Has(&["gemma"]))], "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"),
    rule("gemm.word", Gemm, &[Word(&["mm", "bmm", "mm_kernel", "dot_kernel", "dot", "trsm", "syrk", "fp8_mm", "scaled_mm", "w8a8_block_fp8", "linear"]), Not(&Space(&["at::native"]))], "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float const>, cublasGemvTensorStridedBatched<float> > >(int)"),
    // Normalisation.
    rule("norm.reduce", Reduce, &[Has(&["lpnorm", "l2_norm_reduce", "multi_tensor_l2norm", "norm_cleanup"])], "void lpnorm_cleanup<float, (at::native::NormType)1, float>(int)"),
    rule("norm.named", Norm, &[Has(&["rmsnorm", "rms_norm", "layernorm", "layer_norm", "groupnorm", "group_norm", "batchnorm", "batch_norm", "instancenorm", "instance_norm", "l2norm", "qknorm", "qk_norm", "gammabeta", "rowwisemoments", "computeinternalgradients", "fusedparams", "cucomputegradinput", "cuapplylayernorm", "welford", "weight_norm"])], "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)"),
    rule("norm.wrapped", Norm, &[WRAPPER, Arg(&["rmsnorm", "layernorm", "groupnorm", "batchnorm", "rms_norm", "layer_norm"])], "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassEEEEEvDpT1_"),
    rule("norm.word", Norm, &[Word(&["norm", "ln", "rms"]), Not(&Space(&["at::native"]))], "void layer_norm::ln_fwd_kernel<layer_norm::Kernel_traits<float> >(int)"),
    // Rotary embedding.
    rule("rope.named", Rope, &[Has(&["rotary", "rotate_half", "mrope"])], "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)"),
    rule("rope.word", Rope, &[Word(&["rope", "qk_rope", "apply_rope"])], "_ZN5aiter11rope_kernelIfEEvPf"),
    rule("rope.aiter", Rope, &[Space(&["aiter"]), Starts(&["kn_entry"])], "void aiter::kn_entry_2c_sbhd_cached_indirect_inplace<aiter::OpCachedFwd, 0, false, true>(int)"),
    // Activations.
    rule("act.quant", Act, &[Has(&["silu", "gelu", "swiglu", "geglu", "swish", "mish_", "hardtanh", "prelu"])], "_swiglu"),
    rule("act.word", Act, &[Word(ACTIVATIONS)], "fused_relu_kernel"),
    rule("act.kernel", Act, &[Starts(&["activation_kernel", "activationkernel"])], "void vllm::activation_kernel<c10::BFloat16, &(c10::BFloat16 vllm::quick_gelu(c10::BFloat16 const&))>(int)"),
    rule("act.wrapped", Act, &[WRAPPER, Arg(&["silu", "gelu", "swiglu"])], "void kernel<SwiGluOp<float> >(int)"),
    // Softmax.
    rule("softmax.named", Softmax, &[Has(&["softmax", "soft_max"])], "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, c10::BFloat16>(int)"),
    rule("softmax.loss", Softmax, &[Has(&["cross_entropy"])], "liger_cross_entropy_kernel"),
    // Sorts and scans.
    rule("sort.library", ScanSort, &[Space(&["cub", "rocprim", "thrust", "hipcub"]), Has(&["sort", "scan", "merge", "radix", "partition", "select", "compact", "unique", "reducebykey", "reduce_by_key", "runlength", "run_length", "onesweep", "histogram", "lookback"])], "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800, false, long, int, int, int>(int)"),
    rule("sort.library.wrapped", ScanSort, &[Space(&["cub", "rocprim", "thrust"]), Arg(&["scan", "sort", "radix", "merge", "unique", "partition", "select_", "reducebykey", "reduce_by_key", "run_length", "histogram", "onesweep", "lookback"])], "void rocprim::ROCPRIM_400200_NS::detail::trampoline_kernel<rocprim::ROCPRIM_400200_NS::detail::wrapped_scan_config<rocprim::default_config, long>, int>(int)"),
    rule("sort.named", ScanSort, &[Has(&["searchsorted", "bucketize_", "cumsum", "cumprod", "radixsort", "bitonic", "prefix_sum", "prefixsum", "scan_innermost", "scan_outer", "topp", "top_p", "min_p"]), Not(&Space(&["fbgemm"]))], "void at::native::(anonymous namespace)::searchsorted_cuda_kernel<float, long>(int)"),
    rule("sort.word", ScanSort, &[Word(&["sort", "scan", "topk", "top_k", "sampling", "sample", "argsort", "multinomial", "unique", "nms"])], "void at::native::(anonymous namespace)::sampleMultinomialOnce<float, float>(long*)"),
    // Quantisation.
    rule("quant.named", Quant, &[Has(&["quant", "cvt_fp16_to_fp4", "cvt_bf16_to_fp4", "segmented_max_reduction", "block_scale_interleave", "mxfp4", "mxfp8", "per_token_cast", "fp8_cast", "cast_transpose", "amax_kernel", "to_fp8", "fp8_scale", "scaled_fp8"])], "void vllm::per_token_group_quant_8bit_kernel<c10::BFloat16, c10::Float8_e4m3fn, false, false, float>(int)"),
    // Embedding and indexing.
    rule("index.fbgemm", EmbedIndex, &[Space(&["fbgemm"])], "void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*)"),
    rule("index.embedding", EmbedIndex, &[Has(&["embedding", "pooled_embs", "partial_segment", "partials_per_segment", "num_of_segments", "lxu_cache", "jagged", "segment_offset"])], "void split_embedding_codegen_forward_unweighted_kernel<float, float, float, long, 5ul>(int)"),
    rule("index.named", EmbedIndex, &[Has(&["gather", "scatter", "indexselect", "index_select", "indexfunc", "index_put", "index_copy", "index_add", "indexcopy", "indices", "nonzero", "indexing_backward", "masked_select", "linearize_index", "bounds_check", "compute_grad_weight"])], "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>(int)"),
    rule("index.word", EmbedIndex, &[Word(&["index", "embed", "lookup", "offsets", "take"]), Not(&Has(&["with_index"]))], "void _offsets_range_kernel<long>(long)"),
    // Concatenation, copies, casts.
    rule("copy.named", Copy, &[Has(&["memcpy", "copy", "catarray", "chunk_cat", "split_with_sizes", "upsample", "transpose", "reflection_pad", "replication_pad", "pad2d", "concat"]), Not(&Has(&["argcopy"]))], "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)"),
    rule("copy.word", Copy, &[Word(&["cat", "cast", "permute", "roll", "flip", "repeat", "pad", "repack", "reorder", "clone", "contiguous"])], "cast_kernel_bf16"),
    // Fills.
    rule("fill.library", Fill, &[Space(&["thrust", "cub", "rocprim"]), Arg(&["fill"])], "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<thrust::cuda_cub::__uninitialized_fill::functor<thrust::device_ptr<float>, float>, unsigned long> >(int)"),
    rule("fill.named", Fill, &[Has(&["memset", "fillbuffer", "zero_fill"])], "_memset_kernel"),
    rule("fill.word", Fill, &[Word(&["fill", "zero", "zeros", "zero_kernel", "clear"])], "zero_kernel"),
    // Reductions.
    rule("reduce.library", Reduce, &[Space(&["cub", "rocprim", "thrust", "hipcub"]), Has(&["reduce"])], "void cub::DeviceReduceSingleTileKernel<cub::DeviceReducePolicy<float, int, cub::Sum>::Policy600, float*>(int)"),
    rule("reduce.library.wrapped", Reduce, &[Space(&["cub", "rocprim", "thrust"]), Arg(&["reduce"])], "void rocprim::detail::trampoline_kernel<rocprim::detail::wrapped_reduce_config<rocprim::default_config, float>, int>(int)"),
    rule("reduce.word", Reduce, &[Word(&["reduce", "reduction", "argmax", "argmin", "amax", "amin", "sum", "mean", "max_kernel"]), Not(&Has(&["nll_loss_backward"]))], "void block_reduce_kernel<float>(float*)"),
    // Arithmetic.
    rule("elementwise.library", Elementwise, &[Space(&["thrust", "cub", "rocprim"])], "void cub::detail::for_each::static_kernel<cub::Policy, long, Op>(long)"),
    rule("elementwise.optimizer", Elementwise, &[Word(&["adam", "adamw", "sgd", "lamb", "adagrad", "optimizer", "multi_tensor"])], "void multi_tensor_adam_cuda_kernel<float>(float*)"),
    rule("elementwise.named", Elementwise, &[Has(&["elementwise", "element_wise", "pointwise", "dropout", "clamp", "add_bias", "bias_add", "arange", "penalt", "bitmask", "token_ids", "position", "residual", "hadamard"])], "void (anonymous namespace)::clamp_position_kernel<long>(long*, long const*, unsigned long)"),
    rule("elementwise.word", Elementwise, &[Word(&["add", "mul", "sub", "div", "pow", "sqrt", "exp", "log", "cos", "sin", "neg", "abs", "scale", "where", "compare", "bias", "mask", "tril", "triu", "axpy", "axpby", "loss"])], "void add_kernel<float>(float*)"),
    rule("elementwise.at", Elementwise, &[Root("at")], "void at::to_dense_representation_kernel<float>(long, long, long const*, float const*, long const*, float*)"),
];
