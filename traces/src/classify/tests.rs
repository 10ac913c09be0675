use std::collections::HashSet;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::name::{Parts, words};
use super::rules::RULES;
use super::{AttnPhase, Class, classify, classify_with, legacy_name};

#[test]
fn every_rule_takes_its_own_example() {
    let mut ids = HashSet::new();
    let mut wrong = String::new();
    for rule in RULES {
        assert!(ids.insert(rule.id), "two rules are named {}", rule.id);
        let found = classify(rule.example);
        if found.why != rule.id {
            let _ = writeln!(wrong, "{}: {} was taken by {}", rule.id, rule.example, found.why);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn patterns_are_in_lower_case() {
    for rule in RULES {
        let tests = format!("{:?}", rule.when);
        for pattern in tests.split('"').skip(1).step_by(2) {
            assert_eq!(pattern, pattern.to_ascii_lowercase(), "in {}", rule.id);
        }
    }
}

#[test]
fn both_spellings_have_the_same_parts() {
    let plain = Parts::of("void at::native::f<4, at::native::Add<float>>(int, float*)");
    let mangled = Parts::of("_ZN2at6native1fILi4ENS0_3AddIfEEEEviPf");
    assert_eq!((plain.space.as_str(), plain.base.as_str()), ("at::native", "f"));
    assert_eq!((mangled.space.as_str(), mangled.base.as_str()), ("at::native", "f"));
    assert!(plain.args.contains(" 4 ") && plain.args.contains(" add "), "{}", plain.args);
    assert!(mangled.args.contains(" 4 ") && mangled.args.contains(" add "), "{}", mangled.args);
    for (plain, mangled) in [
        ("void f<(a::Kind)3, true>(int)", "_Z1fILN1a4KindE3ELb1EEvi"),
        ("void f<(a::Kind)3, true>(int)", "_Z1fIL4Kind3ELb1EEvi.kd"),
    ] {
        let (plain, mangled) = (Parts::of(plain), Parts::of(mangled));
        assert_eq!(mangled.base, "f");
        assert!(plain.args.contains("kind=3 true"), "{}", plain.args);
        assert!(mangled.args.contains("kind=3 true"), "{}", mangled.args);
    }
}

#[test]
fn mangled_names_have_the_class_of_plain_ones() {
    for (mangled, class) in [
        (
            "_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_22gpu_kernel_impl_nocastIZZZNS0_23direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE1_clEvENKUlvE6_clEvEUlfE_EEvS4_RKT_EUlibE_EEviT1_",
            Class::Copy,
        ),
        (
            "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
            Class::Fill,
        ),
        (
            "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_7MeanOpsIffffEEjfLi4ELi4EEEEEvT1_",
            Class::Reduce,
        ),
        (
            "_ZN7cutlass13device_kernelIN5flash19enable_sm90_or_laterINS1_16FlashAttnFwdSm90INS1_1XEEEEEEEvNT_6ParamsE",
            Class::Attn,
        ),
        (
            "_ZN7cutlass7Kernel2I66cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8EEvNT_6ParamsE",
            Class::Gemm,
        ),
        (
            "_ZN4vllm25paged_attention_v1_kernelIttLi128ELi16ELi128ELNS_18Fp8KVCacheDataTypeE0ELb0EEEvPT_",
            Class::Attn,
        ),
        ("_ZN4vllm3moe17topkGatingSoftmaxILi8ELi128EEEvPKf.kd", Class::MoeRouting),
    ] {
        let found = classify(mangled);
        assert_eq!(found.main, class, "{mangled} by {}", found.why);
    }
}

#[test]
fn names_lose_return_type_parameters_and_arguments() {
    for (name, space, base) in [
        ("attn_fwd", "", "attn_fwd"),
        ("attn_fwd.kd", "", "attn_fwd"),
        ("void (anonymous namespace)::store<1l, false>((anonymous namespace)::P)", "", "store"),
        (
            "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, 7>(P)",
            "internal::gemvx",
            "kernel",
        ),
        ("unsigned int* a::b<(c)1>::d(int)", "a::b", "d"),
        ("void a::operator()<b>(c)", "a", "operator"),
        ("_ZN12_GLOBAL__N_15storeIfEEvPT_", "", "store"),
        ("_ZL5storePf", "", "store"),
        ("_Z", "", "_z"),
    ] {
        let parts = Parts::of(name);
        assert_eq!((parts.space.as_str(), parts.base.as_str()), (space, base), "{name}");
    }
}

#[test]
fn words_are_split_at_case_and_underscore() {
    assert_eq!(words("RMSNormKernel"), "_rms_norm_kernel_");
    assert_eq!(words("fused__add_rms_norm"), "_fused_add_rms_norm_");
    assert_eq!(words("FlashAttnFwdSm90"), "_flash_attn_fwd_sm90_");
    assert_eq!(words(""), "_");
}

/// Names that substrings lead astray.
#[test]
fn arguments_and_substrings_do_not_mislead() {
    for (name, class) in [
        ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", Class::Rope),
        (
            "void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(int)",
            Class::Attn,
        ),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", Class::Comm),
        ("void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(int)", Class::Norm),
        ("void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &silu>(int)", Class::Act),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_relu_f2f_stages_64x4_tn", Class::Gemm),
        ("void vllm::cross_device_reduce_2stage<half, 8>(int)", Class::Comm),
        (
            "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)",
            Class::Norm,
        ),
        (
            "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128_4x1x1_kernel0_0",
            Class::Attn,
        ),
        // `broadcast_kernel` is not a cast.
        (
            "void at::native::elementwise_kernel_manual_unroll<128, 4, at::native::(anonymous namespace)::type_specialized_broadcast_kernel_launcher<1>::apply<at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> > >(long)::{lambda(int, bool)#1}>(int)",
            Class::Elementwise,
        ),
        ("my_kernel_1", Class::Unclassified),
    ] {
        let found = classify(name);
        assert_eq!(found.main, class, "{name} by {}", found.why);
    }
}

#[test]
fn fused_kernels_are_told_from_their_names() {
    for (name, label) in [
        ("void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(int)", "ADD+NORM"),
        ("void vllm::rms_norm_static_fp8_quant_kernel<c10::BFloat16>(int)", "NORM+QUANT"),
        (
            "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1ELb0ELb1ELi1EEEvPT0_",
            "ADD+NORM",
        ),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0ELb0ELb1ELi1EEEvPT0_", "NORM"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDB8_Li64ELi8ELb1EEEvPT0_", "ADD+NORM+QUANT"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_64x128x128x1_swiglu", "ACT+MOE_GEMM"),
        ("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8", "GEMM"),
        ("triton_red_fused__to_copy_add_mean_mul_pow_rocm_unquantized_gemm_rsqrt_0", "ADD+NORM"),
        ("triton_red_fused__to_copy_mean_pow_rsqrt_0", "NORM"),
        ("triton_red_fused_add_all_reduce_embedding_mean_mul_pow_rsqrt_0", "EMBED_INDEX+ADD+NORM"),
        ("triton_poi_fused_all_gather_into_tensor_cat_2", "ELEMENTWISE"),
        ("triton_poi_fused_mul_reduce_scatter_tensor_1", "ELEMENTWISE"),
        ("triton_poi_fused_gather_mul_1", "EMBED_INDEX"),
        ("triton_per_fused_add_native_layer_norm_2", "ADD+NORM"),
        ("triton_red_fused_add_addmm_mul_native_layer_norm_split_unsqueeze_view_16", "ADD+NORM"),
        ("triton_tem_fused_addmm_gelu_1", "ACT+GEMM"),
        (
            "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8>(int)",
            "COMM+ADD+NORM",
        ),
        ("void vllm::act_and_mul_quant_kernel<c10::BFloat16>(int)", "ACT+MUL+QUANT"),
        ("void vllm::act_and_mul_kernel<c10::BFloat16, &silu>(int)", "ACT+MUL"),
        ("_ZN5aiter18act_and_mul_kernelIDF16bDF16bEEvPT0_PKS3_i", "ACT+MUL"),
        ("_swiglu_forward_kernel", "ACT+MUL"),
        ("void kernel<SwiGluOp<float> >(int)", "ACT+MUL"),
        ("triton_poi_fused_mul_silu_slice_0", "ACT+MUL"),
        ("triton_poi_fused_silu_0", "ACT"),
        ("triton_poi_fused_add_erf_mul_2", "ACT"),
        ("triton_poi_fused_add_mul_pow_tanh_4", "ACT"),
        ("triton_poi_fused_mul_sigmoid_3", "ACT+MUL"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}, std::array<char*, 2ul> >(int)",
            "ACT",
        ),
    ] {
        let found = classify(name);
        assert_eq!(found.label(), label, "{name} by {}", found.why);
    }
}

#[test]
fn attention_phase_is_told_only_where_the_name_says_it() {
    for (name, phase) in [
        ("kernel_unified_attention_3d", AttnPhase::Decode),
        ("kernel_unified_attention_2d", AttnPhase::Unknown),
        ("reduce_segments", AttnPhase::Decode),
        ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<1>(int)", AttnPhase::Decode),
        (
            "fmhaSm100aKernel_QkvBfloat16OBfloat16H64PagedKvCausalP32VarSeqQ128Kv128PersistentContext",
            AttnPhase::Prefill,
        ),
    ] {
        let found = classify(name);
        assert_eq!((found.main, found.phase), (Class::Attn, phase), "{name} by {}", found.why);
    }
}

#[test]
fn operator_and_frame_help_where_the_name_does_not() {
    let class = |name, op, frame| classify_with(name, op, frame).main;
    assert_eq!(class("kernel_1", Some("aten::mm"), None), Class::Gemm);
    assert_eq!(class("kernel_1", Some("_C::fused_add_rms_norm"), None), Class::Norm);
    assert_eq!(class("kernel_1", Some("vllm::unified_attention_with_output"), None), Class::Attn);
    let backward = "autograd::engine::evaluate_function: NativeLayerNormBackward0";
    assert_eq!(class("kernel_1", Some(backward), None), Class::Norm);
    assert_eq!(class("kernel_1", None, Some("nn.Module: Qwen2RMSNorm_12")), Class::Norm);
    let frame = "vllm/model_executor/layers/rotary_embedding.py(98): forward_cuda";
    assert_eq!(class("kernel_1", None, Some(frame)), Class::Rope);
    assert_eq!(class("kernel_1", None, Some("nn.Module: GemmaRMSNorm_3")), Class::Norm);
    // Modules and files of attention hold its GEMMs too; a function does not.
    let module = "nn.Module: LlamaAttention_3";
    assert_eq!(class("kernel_1", None, Some(module)), Class::Unclassified);
    let file = "vllm/attention/layer.py(98): forward";
    assert_eq!(class("kernel_1", None, Some(file)), Class::Unclassified);
    let function = "flash_attn/interface.py(50): flash_attn_varlen_func";
    assert_eq!(class("kernel_1", None, Some(function)), Class::Attn);
    assert_eq!(class("kernel_1", Some("aten::unheard_of"), None), Class::Unclassified);
    assert_eq!(class("_fwd_kernel", None, None), Class::Attn);
    assert_eq!(class("_fwd_kernel", Some("aten::mm"), None), Class::Gemm);
    assert_eq!(class("nvjet_tst_128x8", Some("aten::add"), None), Class::Gemm);
}

#[test]
fn legacy_names() {
    for (name, legacy) in [
        ("kernel_unified_attention_2d", "Attention (Prefill)"),
        ("kernel_unified_attention_3d", "Attention (Decode)"),
        ("Cijk_Alik_Bljk_BBS_BH", "Dense GEMM"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_64x128x128x1_swiglu", "MoE GEMM+SwiGLU"),
        ("triton_red_fused_add_mean_mul_pow_rocm_unquantized_gemm_rsqrt_0", "RMSNorm+GEMM"),
        ("triton_poi_fused_add_3", "Triton Fused"),
        ("ncclDevKernel_AllGather_RING_LL", "Other"),
        ("Memcpy DtoD (Device -> Device)", "Copy/Memory"),
    ] {
        assert_eq!(legacy_name(classify(name).main, name), legacy, "{name}");
    }
}

#[test]
fn class_names_are_read_back() {
    for class in Class::ALL {
        assert_eq!(Class::from_name(class.name()), Some(class));
    }
    assert_eq!(Class::from_name("gemm"), None);
}

proptest! {
    #[test]
    fn no_text_panics(name in any::<String>(), op in any::<String>(), frame in any::<String>()) {
        let found = classify_with(&name, Some(&op), Some(&frame));
        let _ = (found.label(), legacy_name(found.main, &name));
    }

    #[test]
    fn no_brackets_panic(name in "(void )?[a-z_:<>(){}\\[\\],&* é0-9-]{0,300}") {
        let _ = classify(&name);
    }

    #[test]
    fn no_mangling_panics(name in "_Z[NLISTEXFZUJKDAla-d0-9_é]{0,300}") {
        let _ = classify(&name);
    }

    #[test]
    fn no_prefix_of_a_real_name_panics(rule in 0..RULES.len(), cut in 0_usize..300) {
        let name: String = RULES[rule].example.chars().take(cut).collect();
        let _ = classify(&name);
    }
}

#[test]
fn deep_nesting_is_read_in_time() {
    for text in ["<", "(", "_ZN", "_ZI", ">", "<(", "{[", "a<b<", "::", "L", "_ZNL"] {
        let _ = classify(&text.repeat(100_000));
        let _ = classify(&format!("_Z{}", text.repeat(100_000)));
    }
    let _ = classify("_Z99999999999999999999999f");
    let _ = classify("_ZN4294967295fE");
}

/// Prints microseconds a name; `--nocapture` in a release build shows it.
#[test]
fn speed() {
    let start = std::time::Instant::now();
    for _ in 0..10 {
        for rule in RULES {
            std::hint::black_box(classify(std::hint::black_box(rule.example)));
        }
    }
    let each = start.elapsed() / u32::try_from(10 * RULES.len()).unwrap();
    println!("{each:?} a name");
}
