//! Other models, though what is compared first is alike: adapters beside joined weights, masks, and
//! convolutions without sizes.

use kernel_traces::compare::{Answer, Headline, WorkAspect};

use super::hidden::{STEPS, layered, loaded, norm, pair};
use super::listed::{Op, mm, op};
use super::{Loaded, answer};

const TOKENS: u64 = 2048;

/// Attention of the framework, and whether its mask is causal; none if the trace does not say.
fn attention(is_causal: Option<bool>) -> Op {
    let one = "[4, 16, 512, 64]";
    let values = match is_causal {
        Some(true) => r#"["", "", "", "0.", "True", "False"]"#,
        Some(false) => r#"["", "", "", "0.", "False", "False"]"#,
        None => "",
    };
    let dims = format!("[{one}, {one}, {one}, [], [], []]");
    let name = "aten::_scaled_dot_product_flash_attention";
    Op { values, ..op(name, &dims, "flash_fwd_kernel", 4000) }
}

/// A model with its projections joined or apart, and adapters of a rank on two of them.
fn adapted(is_joined: bool, rank: Option<u64>) -> Loaded {
    let mut layer = vec![norm(TOKENS)];
    match is_joined {
        true => layer.push(mm(TOKENS, 3072, 1024)),
        false => layer.extend(vec![mm(TOKENS, 1024, 1024); 3]),
    }
    if let Some(rank) = rank {
        for _ in 0..2 {
            layer.extend([mm(TOKENS, rank, 1024), mm(TOKENS, 1024, rank)]);
        }
    }
    layer.extend([attention(None), mm(TOKENS, 1024, 1024), norm(TOKENS)]);
    layer.extend([mm(TOKENS, 4096, 1024), mm(TOKENS, 1024, 4096)]);
    loaded(&vec![(None, layered(TOKENS, &layer)); STEPS])
}

#[test]
fn adapters_are_another_model_however_weights_are_joined() {
    for joined in [true, false] {
        for rank in [4, 8, 64] {
            for other in [true, false] {
                let found = pair([adapted(joined, None), adapted(other, Some(rank))]);
                let verdict = found.verdict();
                assert_eq!(found.same_work.headline, Headline::Withheld, "{rank}: {verdict}");
                assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Different), "{rank}");
            }
        }
        let found = pair([adapted(joined, Some(8)), adapted(true, Some(8))]);
        assert_ne!(answer(&found, WorkAspect::Model), Some(Answer::Different), "{joined}");
        let found = pair([adapted(joined, None), adapted(true, None)]);
        assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Same), "{joined}");
    }
}

fn masked(is_causal: Option<bool>) -> Loaded {
    let layer = [
        &[norm(TOKENS), mm(TOKENS, 3072, 1024), attention(is_causal), mm(TOKENS, 1024, 1024)][..],
        &[norm(TOKENS), mm(TOKENS, 4096, 1024), mm(TOKENS, 1024, 4096)],
    ];
    loaded(&vec![(None, layered(TOKENS, &layer.concat())); STEPS])
}

#[test]
fn a_causal_mask_is_of_the_model() {
    let found = pair([masked(Some(true)), masked(Some(false))]);
    let verdict = found.verdict();
    assert_eq!(found.same_work.headline, Headline::Withheld, "{verdict}");
    assert!(verdict.contains("causal attention against attention to all keys"), "{verdict}");
    for other in [Some(true), None] {
        let found = pair([masked(Some(true)), masked(other)]);
        assert_ne!(answer(&found, WorkAspect::Model), Some(Answer::Different), "{other:?}");
    }
}

/// Marked steps of operators without sizes: convolutions with their norms, and GEMMs.
fn without_sizes(convolutions: usize, gemms: usize) -> Loaded {
    let convolution = "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_cudnn";
    let norms = "void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float, true, 1>(float, float)";
    let mut step = Vec::new();
    for number in 0..convolutions {
        step.push(op("aten::cudnn_convolution", "[]", convolution, 9000));
        step.push(op("aten::cudnn_batch_norm", "[]", norms, 3000));
        // Nothing repeats that could be a layer.
        if number.count_ones() % 2 == 1 {
            step.push(op("aten::relu", "[]", "relu_kernel", 2000));
        }
    }
    for _ in 0..gemms {
        step.push(op("aten::mm", "[]", "nvjet_tst_256x128_64x4", 9000));
    }
    let mark = |number: usize| Some(format!("ProfilerStep#{number}"));
    loaded(&(0..STEPS).map(|number| (mark(number), step.clone())).collect::<Vec<_>>())
}

#[test]
fn a_model_without_convolutions_is_not_one_of_them() {
    let found = pair([without_sizes(53, 1), without_sizes(0, 24)]);
    assert_eq!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
    // One convolution makes tokens of an image.
    let found = pair([without_sizes(1, 24), without_sizes(0, 25)]);
    assert_ne!(answer(&found, WorkAspect::Model), Some(Answer::Different), "{}", found.verdict());
}

#[test]
fn numbers_of_convolutions_that_differ_are_not_the_same() {
    for (other, expected) in
        [(20, Answer::Same), (24, Answer::Unknown), (18, Answer::Unknown), (30, Answer::Different)]
    {
        let found = pair([without_sizes(20, 1), without_sizes(other, 1)]);
        assert_eq!(answer(&found, WorkAspect::Model), Some(expected), "{}", found.verdict());
    }
}
