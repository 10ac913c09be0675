//! Work that the GEMMs of a trace do not show: experts, caches, packed sequences, embedding bags,
//! and the texts of a diffusion.

use kernel_traces::compare::{Answer, Comparison, Headline, WorkAspect};

use super::listed::{Op, mm, op, trace};
use super::{Loaded, answer, compare};

const LAYERS: usize = 6;
pub(crate) const STEPS: usize = 3;

pub(crate) fn loaded(steps: &[(Option<String>, Vec<Op>)]) -> Loaded {
    Loaded::read(trace(steps))
}

pub(crate) fn pair(both: [Loaded; 2]) -> Comparison {
    let [first, second] = both;
    compare(&first, &second)
}

/// A model of layers, with what looks up tokens before and a head behind them.
pub(crate) fn layered(tokens: u64, layer: &[Op]) -> Vec<Op> {
    let gather = "void at::native::vectorized_gather_kernel<16, long>()";
    let table = format!("[[32000, 1024], [{tokens}]]");
    let mut all = vec![op("aten::embedding", &table, gather, 2000)];
    (0..LAYERS).for_each(|_| all.extend_from_slice(layer));
    all.push(mm(tokens, 32_000, 1024));
    all
}

pub(crate) fn norm(tokens: u64) -> Op {
    op("aten::rms_norm", &format!("[[{tokens}, 1024], [1024]]"), "rms_norm_kernel", 1500)
}

/// Decode steps of a server whose layers have experts, with their width and their number per token.
fn experts(width: u64, of_token: u64, has_shown: bool, ns: u64) -> Loaded {
    let rows = 16 * of_token;
    let mut layer = vec![
        norm(16),
        mm(16, 3072, 1024),
        op(
            "_C_cache_ops::reshape_and_cache_flash",
            "[[16, 8, 128], [16, 8, 128]]",
            "reshape_and_cache_flash_kernel",
            1500,
        ),
        Op {
            ints: &[3, 4],
            ..op(
                "_vllm_fa3_C::fwd",
                "[[16, 8, 128], [900, 16, 8, 128], [900, 16, 8, 128], [17], [16, 64]]",
                "flash_fwd_kernel",
                1500,
            )
        },
        mm(16, 1024, 1024),
        norm(16),
    ];
    if has_shown {
        layer.push(op(
            "_moe_C::topk_softmax",
            &format!("[[16, {of_token}], [16, {of_token}], [16, {of_token}], [16, 64]]"),
            "void vllm::moe::topkGatingSoftmax<4, 128, 4, 16, 32, int>()",
            1500,
        ));
    }
    let moe = op("vllm::moe_forward", "[[16, 1024], [16, 64]]", "fused_moe_kernel", ns);
    layer.push(moe.clone());
    if has_shown {
        let dims = format!("[[{rows}, {width}], [{rows}, {}]]", 2 * width);
        layer.push(op("_C::silu_and_mul", &dims, "vllm::act_and_mul_kernel", 1500));
    }
    layer.push(moe);
    let mark = |step: usize| {
        let keys = 4800 + 16 * step;
        format!(
            "execute_16_context_0(sq0sk0sqsq0sqsk0)_generation_16(sq16sk{keys}sqsq16sqsk{keys})"
        )
    };
    let steps: Vec<_> = (0..STEPS).map(|step| (Some(mark(step)), layered(16, &layer))).collect();
    loaded(&steps)
}

#[test]
fn experts_of_unknown_sizes() {
    for other in [experts(2048, 4, true, 60_000), experts(1024, 8, true, 60_000)] {
        let found = pair([experts(1024, 4, true, 30_000), other]);
        assert_eq!(
            answer(&found, WorkAspect::Sizes),
            Some(Answer::Different),
            "{}",
            found.verdict()
        );
        assert_eq!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
    }
    // What shows is alike, or nothing shows.
    for has_shown in [true, false] {
        let found = pair([30_000, 60_000].map(|ns| experts(1024, 4, has_shown, ns)));
        assert_eq!(answer(&found, WorkAspect::Sizes), Some(Answer::Unknown), "{}", found.verdict());
        assert_eq!(found.same_work.headline, Headline::Unconfirmed, "{}", found.verdict());
    }
}

/// Decode steps of a model whose cache grows, with the tokens in it.
fn growing(keys: usize) -> Loaded {
    let steps = (0..STEPS).map(|step| {
        let keys = keys + step;
        let long = 2 * keys as u64;
        let copied = format!("[[8, 4, 4, {keys}, 128], [8, 4, 4, {keys}, 128]]");
        let attention = format!("[[8, 1, 16, 128], [8, {keys}, 16, 128], [8, {keys}, 16, 128]]");
        let layer = [
            norm(8),
            mm(8, 3072, 1024),
            op("aten::copy_", &copied, "direct_copy_kernel_cuda", 2 * long),
            op("aten::_flash_attention_forward", &attention, "flash_fwd_splitkv_kernel", long),
            mm(8, 1024, 1024),
            norm(8),
            mm(8, 8192, 1024),
            mm(8, 1024, 4096),
        ];
        (None, layered(8, &layer))
    });
    loaded(&steps.collect::<Vec<_>>())
}

/// Attention makes a small part of the GEMMs' time, and the copies of its cache more.
#[test]
fn a_cache_that_grows_shows_the_context() {
    let found = pair([growing(500), growing(1500)]);
    assert_eq!(answer(&found, WorkAspect::Context), Some(Answer::Different), "{}", found.verdict());
    assert!(!found.same_work.headline.is_of_a_step(), "{}", found.verdict());
    let found = pair([growing(500), growing(503)]);
    assert_eq!(answer(&found, WorkAspect::Context), Some(Answer::Same), "{}", found.verdict());
    assert_eq!(found.same_work.headline, Headline::OfAStep, "{:#?}", found.same_work.questions);
}

/// An encoder that reads sequences behind one another, by the attention of a library.
fn packed(name: &'static str, kernel: &'static str, [tokens, sequences]: [u64; 2]) -> Loaded {
    let one = format!("[{tokens}, 16, 64]");
    let starts = sequences + 1;
    let attention = Op {
        ints: &[3, 4],
        ..op(name, &format!("[{one}, {one}, {one}, [{starts}], [{starts}]]"), kernel, 60_000)
    };
    let layer = [
        norm(tokens),
        mm(tokens, 3072, 1024),
        attention,
        mm(tokens, 1024, 1024),
        norm(tokens),
        mm(tokens, 4096, 1024),
        mm(tokens, 1024, 4096),
    ];
    loaded(&vec![(None, layered(tokens, &layer)); STEPS])
}

#[test]
fn packed_sequences_by_different_libraries() {
    let libraries = [
        ("flash_attn::_flash_attn_varlen_forward", "flash::flash_fwd_kernel"),
        ("aten::_flash_attention_forward", "pytorch_flash::flash_fwd_kernel"),
        ("aiter::fmha_v3_varlen_fwd", "fmha_fwd_hd128_bf16_causal_group_rtne"),
    ];
    let of = |library: usize, sizes| packed(libraries[library].0, libraries[library].1, sizes);
    for library in 1..libraries.len() {
        let found = pair([of(0, [16_384, 4]), of(library, [16_384, 4])]);
        assert_eq!(answer(&found, WorkAspect::Sizes), Some(Answer::Same), "{}", found.verdict());
        let found = pair([of(0, [16_384, 4]), of(library, [16_384, 64])]);
        assert_ne!(answer(&found, WorkAspect::Sizes), Some(Answer::Same), "{}", found.verdict());
        assert!(!found.same_work.headline.is_of_a_step(), "{}", found.verdict());
    }
}

/// An encoder whose attention is computed op by op, by a library, or by the framework.
fn with_heads(heads: u64, by: &str) -> Loaded {
    let (tokens, size) = (2048, 1024 / heads);
    let all = 4 * heads;
    let one = |sizes: String, name, kernel| {
        op(name, &format!("[{sizes}, {sizes}, {sizes}]"), kernel, 4000)
    };
    let attention = match by {
        "library" => vec![one(
            format!("[4, 512, {heads}, {size}]"),
            "aten::_flash_attention_forward",
            "flash_fwd_kernel",
        )],
        "framework" => vec![one(
            format!("[4, {heads}, 512, {size}]"),
            "aten::_scaled_dot_product_flash_attention",
            "flash_fwd_kernel",
        )],
        _ => {
            let (queries, keys) =
                (format!("[{all}, 512, {size}]"), format!("[{all}, {size}, 512]"));
            let scores = format!("[{all}, 512, 512]");
            let softmax =
                "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9>()";
            vec![
                op("aten::bmm", &format!("[{queries}, {keys}]"), "nvjet_tst_scores", 3000),
                op("aten::_softmax", &format!("[[4, {heads}, 512, 512], [], []]"), softmax, 3000),
                op("aten::bmm", &format!("[{scores}, {queries}]"), "nvjet_tst_values", 3000),
            ]
        }
    };
    let mut layer = vec![norm(tokens), mm(tokens, 3072, 1024)];
    layer.extend(attention);
    layer.extend([
        mm(tokens, 1024, 1024),
        norm(tokens),
        mm(tokens, 4096, 1024),
        mm(tokens, 1024, 4096),
    ]);
    loaded(&vec![(None, layered(tokens, &layer)); STEPS])
}

/// Whatever computes attention.
#[test]
fn heads_are_of_the_model() {
    let all = ["library", "framework", "ops"];
    for first in all {
        for second in all {
            let found = pair([with_heads(16, first), with_heads(4, second)]);
            assert!(
                found.verdict().contains("16 heads of 64"),
                "{first}, {second}: {}",
                found.verdict()
            );
            assert_eq!(found.same_work.headline, Headline::Withheld);
            let found = pair([with_heads(16, first), with_heads(16, second)]);
            assert_ne!(
                answer(&found, WorkAspect::Model),
                Some(Answer::Different),
                "{}",
                found.verdict()
            );
        }
    }
}

/// A recommender, with the number of its tables and of the rows that are read from each.
fn recommender(tables: usize, rows: u64) -> Loaded {
    let bag = Op {
        ints: &[1, 2],
        ..op(
            "aten::_embedding_bag",
            &format!("[[1000000, 64], [{rows}], [2048]]"),
            "EmbeddingBag_updateOutputKernel_sum_mean",
            2000 + rows / 5,
        )
    };
    let relu = op("aten::relu", "[[2048, 512]]", "relu_kernel", 1500);
    let mut step = vec![bag; tables];
    for (n, k) in [(512, 256), (256, 512), (1024, 512), (512, 1024)] {
        step.extend([mm(2048, n, k), relu.clone()]);
    }
    let steps: Vec<_> =
        (0..STEPS).map(|number| (Some(format!("ProfilerStep#{number}")), step.clone())).collect();
    loaded(&steps)
}

#[test]
fn embedding_bags_are_work() {
    let plain = || recommender(8, 20_480);
    let found = pair([plain(), recommender(26, 20_480)]);
    assert_eq!(found.same_work.headline, Headline::Withheld, "{:#?}", found.same_work.questions);
    let found = pair([plain(), recommender(8, 409_600)]);
    assert_eq!(answer(&found, WorkAspect::Sizes), Some(Answer::Different), "{}", found.verdict());
    assert_eq!(found.same_work.headline, Headline::Withheld, "{:#?}", found.same_work.questions);
    let found = pair([plain(), plain()]);
    assert_ne!(found.same_work.headline, Headline::Withheld, "{:#?}", found.same_work.questions);
}

/// A diffusion of one size of images, with the number of tokens of its text.
fn diffusion(text: u64) -> Loaded {
    let image = 4096;
    let one = format!("[1, {image}, 16, 64]");
    let flash = op(
        "aten::_flash_attention_forward",
        &format!("[{one}, {one}, {one}]"),
        "flash_fwd_kernel",
        60_000,
    );
    let layer = [
        norm(image),
        mm(image, 3072, 1024),
        flash,
        mm(image, 1024, 1024),
        norm(image),
        mm(image, 4096, 1024),
        mm(image, 1024, 4096),
    ];
    let mut step = layered(text, &layer);
    step.pop();
    loaded(&vec![(None, step); STEPS])
}

/// Most of the work is as large whatever the tokens.
#[test]
fn tokens_that_little_of_the_work_is_of() {
    let found = pair([diffusion(77), diffusion(256)]);
    assert_ne!(found.same_work.headline, Headline::ForAToken, "{}", found.verdict());
}

/// Steps of training, with the number of sequences of 256 tokens.
fn trained(batch: u64) -> Loaded {
    let tokens = batch * 256;
    let one = format!("[{batch}, 256, 16, 64]");
    let all = [one.as_str(); 4].join(", ");
    let forward =
        op("aten::_flash_attention_forward", &format!("[{all}]"), "flash_fwd_kernel", 9_000);
    let backward =
        op("aten::_flash_attention_backward", &format!("[{all}]"), "flash_bwd_kernel", 20_000);
    let weights = [(3072, 1024), (1024, 1024), (4096, 1024), (1024, 4096)];
    let mut step = Vec::new();
    for _ in 0..LAYERS {
        step.push(norm(tokens));
        step.extend(weights.map(|(n, k)| mm(tokens, n, k)));
        step.push(forward.clone());
    }
    for _ in 0..LAYERS {
        step.push(backward.clone());
        for (n, k) in weights {
            step.extend([mm(tokens, k, n), mm(n, k, tokens)]);
        }
    }
    loaded(&vec![(None, step); STEPS])
}

/// One has as many tokens as its layers are wide.
#[test]
fn as_many_tokens_as_columns() {
    let found = pair([trained(4), trained(8)]);
    assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Same), "{}", found.verdict());
}
