//! Kernels that only help the one that computes: layouts, fills, offsets, partial results.
//!
//! They have the class of what they help, whose time is theirs. The work of an operator is that of
//! the kernels that multiply and add; a helper that counted would have a rate that it never had, and
//! leave too little for the others.

use crate::classify::Words;

/// Whether a kernel of a class that computes is such a helper, by its name.
pub(super) fn is_helper(name: &str) -> bool {
    let Words { base, arguments } = Words::of(name);
    HELPERS.iter().any(|(part, _)| base.contains(part))
        || WRAPPED.iter().any(|(part, _)| arguments.contains(part))
}

/// What is in the names of helpers, in words with `_` between and around them, and an example.
#[rustfmt::skip]
const HELPERS: &[(&str, &str)] = &[
    // Layouts, casts and fills around a convolution.
    ("_transpose_", "batched_transpose_32x32_half"),
    ("_sub_tensor_op_", "SubTensorOpWithScalar1d"),
    ("_tensor_transform_", "void tensorTransformGeneric<__nv_bfloat16, __nv_bfloat16, float, true, false, false, (cudnnKernelDataType_t)0>(int)"),
    ("_nchw_to_", "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(int)"),
    ("_nhwc_to_", "void cudnn::ops::nhwcToNchwKernel<float, float, float, true, false, (cudnnKernelDataType_t)0>(int)"),
    ("_scale_packed_tensor_", "void cudnn::ops::scalePackedTensor_kernel<float, float>(cudnnTensor4dStruct, float*, float)"),
    ("_offsets_kernel_", "cask_cudnn::computeOffsetsKernel(cask_cudnn::ComputeOffsetsParams)"),
    // Images as matrices; a GEMM beside them computes.
    ("_im2col", "void at::native::im2col_kernel<float>(long, float const*)"),
    ("_im2d2_col", "Im2d2Col_v2"),
    ("_col2im", "void at::native::col2im_kernel<float, float>(long, float const*)"),
    // The transforms of Winograd's algorithm; the products are beside them.
    ("_winograd_forward_data", "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(int)"),
    ("_winograd_forward_filter", "void cudnn::winograd_nonfused::winogradForwardFilter4x4<float, float>(int)"),
    ("_winograd_forward_output", "void cudnn::winograd_nonfused::winogradForwardOutput4x4<float, float>(int)"),
    ("_winograd_wgrad_", "void cudnn::winograd_nonfused::winogradWgradData4x4<float, float>(int)"),
    ("_generate_winograd_tiles_", "void cudnn::winograd::generateWinogradTilesKernel<0, float, float>(int)"),
    // Sums and casts around attention.
    ("_splitkv_combine_", "void flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4> >(int)"),
    ("_dot_do_o_", "void flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64, 128, 128, 8> >(int)"),
    ("_convert_dq_", "void flash_bwd_convert_dq_kernel<Flash_bwd_kernel_traits<64, 128, 128, 8> >(int)"),
    ("_bwd_preprocess_", "_bwd_preprocess"),
    ("_prepare_varlen_", "void flash::prepare_varlen_num_blocks_kernel(int, int)"),
];

/// The same for functions that only run what their template arguments name.
#[rustfmt::skip]
const WRAPPED: &[(&str, &str)] = &[
    ("flashattnfwdcombine", "void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<int, int>, 5, 256> >(int)"),
    ("flashattnbwdpreprocess", "void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<cute::tuple<int, int>, float> >(int)"),
    ("flashattnbwdpostprocess", "void cutlass::device_kernel<flash::FlashAttnBwdPostprocessConvertdQ<cute::tuple<int, int>, float> >(int)"),
    ("fmhafwdsplitkvcombine", "void ck_tile::kentry<2, ck_tile::FmhaFwdSplitKVCombineKernel<int> >(int)"),
    ("fmhabwdograddoto", "void ck_tile::kentry<2, ck_tile::FmhaBwdOGradDotOKernel<int> >(int)"),
    ("fmhabwdconvertqgrad", "void ck_tile::kentry<2, ck_tile::FmhaBwdConvertQGradKernel<int> >(int)"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Class, classify};

    #[test]
    fn helpers_have_the_class_of_what_they_help() {
        assert!(is_helper("transpose_CNHW2NCHW_V2_2D_WG_off64"));
        for (part, example) in HELPERS {
            let first = HELPERS.iter().find(|(part, _)| Words::of(example).base.contains(part));
            assert!(is_helper(example), "{example}: {}", Words::of(example).base);
            assert_eq!(first.map(|(part, _)| part), Some(part), "{example}");
            let class = classify(example).main;
            assert!(matches!(class, Class::Conv | Class::Attn), "{example}: {class}");
        }
    }

    #[test]
    fn wrapped_helpers_too() {
        for (part, example) in WRAPPED {
            assert!(Words::of(example).arguments.contains(part), "{example}");
            assert_eq!(classify(example).main, Class::Attn, "{example}");
        }
        assert!(!is_helper(
            "void ck_tile::kentry<2, ck_tile::FmhaFwdSplitKVKernel<ck_tile::Pipeline> >(int)"
        ));
    }

    #[test]
    fn what_computes_is_no_helper() {
        for name in [
            "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt256x64x8_wt64x16x4_ws1x1_wr2x2_ta1x1x8x1_me",
            "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1",
            "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
            "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int)",
            "void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>(int)",
            "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nchw_tilesize128x128x32",
            "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4> >(int)",
            "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<int>(int)",
            "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_nn",
        ] {
            assert!(!is_helper(name), "{name}: {}", Words::of(name).base);
        }
    }
}
