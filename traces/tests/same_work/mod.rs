//! Whether two traces are of the same work is asked before any headline.

mod first;
mod hidden;
mod listed;
mod models;
mod program;

use crate::loaded::Loaded;
use crate::real;
use kernel_traces::compare::{Answer, CompareOptions, Comparison, Headline, WorkAspect, older};
use kernel_traces::segment::Phase;
use kernel_traces::{Options, Trace};
use program::{Mark, Plan, STEP, Sizes, Step};

fn made(plan: &Plan) -> Loaded {
    let loaded = Loaded::read(plan.text());
    assert_eq!(loaded.trace.warnings, []);
    loaded
}

/// Compares in both orders, which must give the same answers.
fn compare(first: &Loaded, second: &Loaded) -> Comparison {
    let [first, second] = [first.side("a.json"), second.side("b.json")];
    let options = CompareOptions::default();
    let there = Comparison::of(first, second, &options).unwrap();
    let back = Comparison::of(second, first, &options).unwrap();
    let (one, other) = (&there.same_work, &back.same_work);
    assert_eq!(one.headline, other.headline, "{}\n{}", there.verdict(), back.verdict());
    assert_eq!(one.questions.len(), other.questions.len());
    for (a, b) in one.questions.iter().zip(&other.questions) {
        assert_eq!((a.about, a.answer), (b.about, b.answer), "{a:?}");
        assert_eq!((&a.first, &a.second), (&b.second, &b.first));
    }
    for (a, b) in one.rates.iter().zip(&other.rates) {
        assert!((a.ratio * b.ratio - 1.0).abs() < 1e-9);
    }
    let ratios = one.matched.ratio.zip(other.matched.ratio);
    assert!(ratios.is_none_or(|(a, b)| (a * b - 1.0).abs() < 1e-9));
    honest(&there);
    honest(&back);
    there
}

/// Steps of different work have no headline of a step anywhere, and the first warning says so.
fn honest(found: &Comparison) {
    let verdict = found.verdict();
    let is_of_a_step = found.same_work.headline.is_of_a_step();
    let is_doubted = ["did not do the same work", "may not have done the same work"]
        .iter()
        .any(|words| verdict.contains(words));
    assert_eq!(is_doubted, !is_of_a_step, "{verdict}");
    if is_of_a_step {
        return;
    }
    assert_eq!(found.gap.ratio, None);
    assert_eq!(found.warnings[0].code, "different-work");
    let is_withheld = found.same_work.headline == Headline::Withheld;
    assert!(!is_withheld || !verdict.contains("as fast"), "{verdict}");
    let has_unit = ["for a token", "for a TFLOP", "for a pass of", "for a step of"];
    assert!(is_withheld || has_unit.iter().any(|unit| verdict.contains(unit)), "{verdict}");
    let of = older::operations(found).into_iter().map(|one| one.status.name());
    assert!(of.into_iter().all(|status| status == "not_comparable"));
}

fn answer(found: &Comparison, about: WorkAspect) -> Option<Answer> {
    found.same_work.questions.iter().find(|one| one.about == about).map(|one| one.answer)
}

fn pair(first: &Plan, second: &Plan) -> Comparison {
    compare(&made(first), &made(second))
}

#[test]
fn the_same_work_has_its_headline() {
    let slower = Plan { pace: [60, 60], ..Plan::transformer().amd() };
    for (first, second) in [
        (Plan::transformer(), slower.clone()),
        // One GEMM for three is the same work.
        (Plan::transformer(), Plan { joined_qkv: false, ..slower }),
        (Plan::of_images(20, 8), Plan { pace: [60, 60], ..Plan::of_images(20, 8).amd() }),
        (
            Plan::transformer().steps(8, 1, Mark::Vllm),
            Plan { pace: [60, 60], ..Plan::transformer().steps(8, 1, Mark::Vllm) },
        ),
    ] {
        let found = pair(&first, &second);
        assert_eq!(found.same_work.headline, Headline::OfAStep, "{:#?}", found.same_work.questions);
        assert!(found.verdict().contains("times as fast"), "{}", found.verdict());
    }
}

#[test]
fn batches_are_compared_by_token() {
    let small = Plan::transformer().steps(2, 64, Mark::None);
    let large = Plan { pace: [20, 20], ..Plan::transformer().steps(128, 64, Mark::None) };
    let found = pair(&small, &large);
    assert_eq!(found.same_work.headline, Headline::ForAToken);
    assert_eq!(answer(&found, WorkAspect::Batch), Some(Answer::Different));
    assert_eq!(answer(&found, WorkAspect::Sequence), Some(Answer::Same));
    assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Same));
    let rate = found.same_work.rates[0];
    assert_eq!((rate.first_units, rate.second_units), (128.0, 8192.0));
    // Twice as fast, and short kernels wait for the host.
    assert!((1.9..10.0).contains(&rate.ratio), "{}", rate.ratio);
    assert!(found.verdict().contains("batch 2 against 128"), "{}", found.verdict());
}

/// Attention shows the tokens where none are looked up.
#[test]
fn batches_of_what_is_no_text() {
    let of = |batch| Plan { vocabulary: 0, ..Plan::transformer().steps(batch, 64, Mark::None) };
    let found = pair(&of(4), &of(8).amd());
    assert_eq!(found.same_work.headline, Headline::ForAToken, "{:#?}", found.same_work.questions);
    assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Same));
    assert_eq!(answer(&found, WorkAspect::Tokens), Some(Answer::Different));
    let rate = found.same_work.rates[0];
    assert_eq!((rate.first_units, rate.second_units), (256.0, 512.0));
    // Longer sequences are other work for a token.
    let long = Plan { vocabulary: 0, ..Plan::transformer().steps(4, 128, Mark::None) };
    assert_eq!(pair(&of(4), &long).same_work.headline, Headline::ForATflop);
    assert_eq!(pair(&of(4), &of(4).amd()).same_work.headline, Headline::OfAStep);
}

#[test]
fn images_are_compared_by_arithmetic() {
    let found = pair(&Plan::of_images(20, 32), &Plan::of_images(20, 64));
    assert_eq!(found.same_work.headline, Headline::ForATflop, "{:#?}", found.same_work.questions);
    assert_eq!(answer(&found, WorkAspect::Batch), Some(Answer::Different));
    let [rate] = found.same_work.rates[..] else { panic!("one rate") };
    assert!((rate.second_units / rate.first_units - 2.0).abs() < 1e-6);
}

#[test]
fn recordings_of_different_lengths_without_steps() {
    let long = Plan { steps: vec![Step { batch: 8, ..STEP }; 5], ..Plan::of_images(20, 8) };
    let found = pair(&Plan::of_images(20, 8), &long);
    assert_eq!(found.same_work.headline, Headline::ForATflop, "{:#?}", found.same_work.questions);
    assert_eq!(answer(&found, WorkAspect::Amount), Some(Answer::Different));
    let [rate] = found.same_work.rates[..] else { panic!("one rate") };
    assert!((rate.ratio - 1.0).abs() < 0.05, "{}", rate.ratio);
    assert!((found.same_work.matched.ratio.unwrap() - 1.0).abs() < 0.01);
}

#[test]
fn decode_against_prefill() {
    let decode = Plan::transformer().steps(32, 1, Mark::Vllm);
    let prefill = Plan::transformer().steps(15, 1024, Mark::Vllm);
    let found = pair(&decode, &prefill);
    assert_eq!(found.same_work.headline, Headline::Withheld);
    assert_eq!(answer(&found, WorkAspect::Phase), Some(Answer::Different));
    assert!(found.verdict().contains("phase decode against prefill"), "{}", found.verdict());
    // Without marks, and without shapes of anything but the tokens.
    let unmarked = |plan: Plan| Plan {
        steps: plan.steps.iter().map(|step| Step { mark: Mark::None, ..*step }).collect(),
        ..plan
    };
    let found = pair(&unmarked(decode), &unmarked(prefill));
    assert_eq!(found.same_work.headline, Headline::Withheld, "{:#?}", found.same_work.questions);
}

#[test]
fn other_models() {
    let deep = Plan { layers: 9, ..Plan::transformer() };
    let found = pair(&Plan::transformer(), &deep);
    assert_eq!(found.same_work.headline, Headline::Withheld);
    assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Different));
    // Layers that are nearly as many are called nearly as often.
    for layers in [[8, 10], [12, 13], [30, 32], [36, 80]] {
        let [few, more] = layers.map(|layers| Plan { layers, ..Plan::transformer() });
        let found = pair(&few, &more);
        assert_eq!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
        assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Different));
    }
    let wide = Plan { hidden: 640, ..Plan::transformer() };
    let found = pair(&Plan::transformer(), &wide);
    assert_eq!(found.same_work.headline, Headline::Withheld, "{:#?}", found.same_work.questions);
    // Of residual networks the deeper one has all sizes of the other; and without sizes.
    for sizes in [Sizes::All, Sizes::None] {
        let of = |convolutions| Plan { sizes, ..Plan::of_images(convolutions, 8) };
        let found = pair(&of(20), &of(53));
        assert_eq!(
            found.same_work.headline,
            Headline::Withheld,
            "{:#?}",
            found.same_work.questions
        );
        assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Different));
    }
}

/// All but a few weights may be alike, or all of them and one is used more often.
#[test]
fn models_that_are_nearly_alike() {
    let plain = Plan { layers: 12, ..Plan::transformer() };
    for other in [
        Plan { vocabulary: 128_256, ..plain.clone() },
        Plan { more_gemms: 1, ..plain.clone() },
        Plan { has_adapters: true, ..plain.clone() },
    ] {
        let found = pair(&plain, &other);
        assert_eq!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
        assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Different));
        // Recordings of other lengths, too.
        let long = Plan { steps: vec![STEP; 5], ..other };
        assert_eq!(pair(&plain, &long).same_work.headline, Headline::Withheld);
    }
    // A vocabulary that is rounded up is the same, and so is one more step.
    for other in [
        Plan { vocabulary: 32_064, ..plain.clone() },
        Plan { steps: vec![STEP; 4], ..plain.clone() },
        Plan { joined_qkv: false, steps: vec![STEP; 4], ..plain.clone() },
    ] {
        let found = pair(&plain, &other);
        assert_eq!(found.same_work.headline, Headline::OfAStep, "{}", found.verdict());
    }
}

/// The weights of both are alike, and so is most of the time.
#[test]
fn other_heads_of_attention() {
    let plain = Plan { layers: 12, hidden: 1024, ..Plan::transformer() };
    let few = Plan { heads: Some(4), ..plain.clone() };
    for (first, second) in [
        (plain.clone(), few.clone()),
        (plain.clone().amd(), few.clone()),
        (plain.clone(), few.clone().amd()),
    ] {
        let found = pair(&first, &second);
        assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Different));
        assert_eq!(found.same_work.headline, Headline::Withheld, "{}", found.verdict());
        let words = "model 16 heads of 64 against 4 heads of 256";
        assert!(found.verdict().contains(words), "{}", found.verdict());
    }
    // On two devices each has some of the heads.
    let narrow = Plan { hidden: 512, ..plain };
    assert!(!pair(&narrow, &few).verdict().contains("heads"));
}

/// As many tokens of more arithmetic are compared by arithmetic.
#[test]
fn alike_sizes_that_are_called_more_often() {
    // One GEMM more in a large head: less than what makes another model.
    let of = |vocabulary, more_gemms| Plan {
        hidden: 256,
        vocabulary,
        more_gemms,
        ..Plan::transformer()
    };
    let found = pair(&of(32_000, 4), &of(32_000, 5));
    assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Same), "{}", found.verdict());
    assert_eq!(answer(&found, WorkAspect::Sizes), Some(Answer::Different));
    assert_eq!(found.same_work.headline, Headline::ForATflop, "{}", found.verdict());
    assert!(found.verdict().contains("FLOP against"), "{}", found.verdict());
}

#[test]
fn a_fusion_has_the_size_of_its_gemm() {
    for (sizes, expected) in
        [(Sizes::All, Some("linear/bf16/m256.k512.n2048")), (Sizes::None, None)]
    {
        let plain = Plan { sizes, ..Plan::transformer() };
        let found = pair(&plain, &Plan { fuses_activation: true, ..plain.clone() });
        let [fusion] = &found.fusions[..] else { panic!("{:?}", found.fusions) };
        assert_eq!((fusion.operation.as_str(), fusion.problem.as_deref()), ("ACT+GEMM", expected));
    }
}

/// The framework has an operator for a GEMM with its activation, which is the same work.
#[test]
fn an_activation_in_the_operator_of_a_gemm() {
    let plain = Plan { layers: 12, ..Plan::transformer() };
    let fused = Plan { fuses_activation: true, by_operator: true, ..plain.clone() };
    let found = pair(&plain, &fused);
    assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Same), "{}", found.verdict());
    assert_eq!(answer(&found, WorkAspect::Sizes), Some(Answer::Same), "{}", found.verdict());
    assert_eq!(found.same_work.headline, Headline::OfAStep, "{}", found.verdict());
}

/// Another library's GEMM may have the weights first.
#[test]
fn gemms_of_another_library() {
    let plain = Plan::transformer().steps(8, 1, Mark::Vllm);
    let found = pair(&plain, &Plan { weights_first: true, ..plain.clone() }.amd());
    assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Same), "{}", found.verdict());
    assert_eq!(answer(&found, WorkAspect::Sizes), Some(Answer::Same), "{}", found.verdict());
    assert_eq!(found.same_work.headline, Headline::OfAStep, "{}", found.verdict());
}

/// A mix of phases is compared phase by phase.
#[test]
fn other_shares_of_phases() {
    let prefill = Step { batch: 2, sequence: 512, mark: Mark::Vllm };
    let decode = Step { batch: 64, sequence: 1, mark: Mark::Vllm };
    let of = |prefills, decodes| Plan {
        steps: [vec![prefill; prefills], vec![decode; decodes]].concat(),
        ..Plan::transformer()
    };
    let found = pair(&of(2, 6), &of(6, 2));
    assert_eq!(found.same_work.headline, Headline::OfEachPhase, "{}", found.verdict());
    assert_eq!(answer(&found, WorkAspect::Phase), Some(Answer::Different));
    let rates: Vec<_> = found.same_work.rates.iter().map(|rate| rate.phase).collect();
    assert_eq!(rates, [Some(Phase::Prefill), Some(Phase::Decode)]);
    assert!(found.same_work.rates.iter().all(|rate| (rate.ratio - 1.0).abs() < 0.02));
    let verdict = found.verdict();
    assert!(verdict.contains("2 prefill and 6 decode against 6 prefill and 2 decode"), "{verdict}");
    // The same shares of more steps are the same mix.
    let found = pair(&of(2, 6), &of(1, 3));
    assert_eq!(found.same_work.headline, Headline::OfAStep, "{}", found.verdict());
}

#[test]
fn what_the_traces_do_not_say_is_said() {
    for (first, second) in [
        (Sizes::None, Sizes::None),
        (Sizes::All, Sizes::None),
        (Sizes::Symbols, Sizes::Symbols),
        (Sizes::Symbols, Sizes::All),
    ] {
        let of = |sizes| Plan { sizes, ..Plan::transformer() };
        let found = pair(&of(first), &of(second));
        assert_eq!(found.same_work.headline, Headline::Unconfirmed);
        assert!(found.doubt().contains("sizes"), "{}", found.doubt());
        assert!(found.warnings.iter().any(|warning| warning.code == "unconfirmed-work"));
    }
}

/// Marks tell how many tokens a step has, and nothing of the model or the number type.
#[test]
fn marks_alone_do_not_show_the_same_work() {
    let narrow = Plan { sizes: Sizes::None, ..Plan::transformer().steps(8, 1, Mark::Vllm) };
    let wide = Plan { hidden: 1024, ..narrow.clone() };
    for other in [wide, narrow.clone()] {
        let found = pair(&narrow, &other);
        assert_eq!(answer(&found, WorkAspect::Tokens), Some(Answer::Same));
        assert_eq!(found.same_work.headline, Headline::Unconfirmed, "{}", found.verdict());
        assert!(found.doubt().contains("sizes and dtype"), "{}", found.doubt());
    }
}

#[test]
fn sizes_that_no_machine_has() {
    for plan in [Plan::transformer(), Plan::of_images(20, 8)] {
        let huge = Plan { sizes: Sizes::Huge, ..plan.clone() };
        assert_ne!(pair(&huge, &plan).same_work.headline, Headline::OfAStep);
        let found = pair(&huge, &huge);
        assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Same));
        assert!(found.same_work.rates.iter().all(|rate| rate.ratio.is_finite()));
    }
}

#[test]
fn another_number_type() {
    for (dtype, words) in [("float", "bf16 against f32"), ("c10::Half", "bf16 against f16")] {
        for other in [Plan::transformer(), Plan::transformer().amd()] {
            let found = pair(&Plan::transformer(), &Plan { dtype, ..other });
            assert_eq!(found.same_work.headline, Headline::ForAToken);
            assert_eq!(answer(&found, WorkAspect::Dtype), Some(Answer::Different));
            let verdict = found.verdict();
            assert!(verdict.contains(&format!("dtype {words}")), "{verdict}");
        }
    }
}

#[test]
fn each_phase_has_its_own_statement() {
    let prefill = Step { batch: 2, sequence: 512, mark: Mark::Vllm };
    let decode = Step { batch: 64, sequence: 1, mark: Mark::Vllm };
    let of = |batch, pace| Plan {
        steps: vec![prefill, Step { batch, ..decode }, Step { batch, ..decode }],
        pace,
        ..Plan::transformer()
    };
    // The first is faster in decoding and slower in prefill.
    let found = pair(&of(64, [2000, 60]).amd(), &of(96, [3000, 40]));
    assert_eq!(found.same_work.headline, Headline::ForAToken);
    let of_phase = |phase| {
        let mut rates = found.same_work.rates.iter();
        rates.find(|rate| rate.phase == Some(phase)).unwrap().ratio
    };
    assert!((0.5..0.9).contains(&of_phase(Phase::Decode)), "{}", found.verdict());
    assert!((1.3..1.7).contains(&of_phase(Phase::Prefill)), "{}", found.verdict());
    let verdict = found.verdict();
    assert!(verdict.contains("of prefill") && verdict.contains("of decode"), "{verdict}");
}

fn real(path: &str) -> Loaded {
    let path = real::folder().join("..").join(path);
    Loaded::of(Trace::load(path, &Options::default(), &mut |_, _| {}).unwrap())
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn public_pairs_of_the_same_work() {
    for name in ["qwen1.5-0.5b_eager", "bert-small_eager", "timesformer_eager"] {
        let of = |device| real(&format!("traces/{device}_{name}.json.gz"));
        let found = compare(&of("mi300x"), &of("h100"));
        println!("{name}: {}\n{:#?}", found.verdict(), found.same_work.questions);
        assert_eq!(found.same_work.headline, Headline::OfAStep, "{name}");
    }
}

#[test]
#[ignore = "needs the public traces in ../shared/traces and ../shared/more_traces"]
fn three_batch_sizes_are_distinguished() {
    let of =
        |batch| real(&format!("more_traces/a100_particle-transformer_forward_bs{batch}.json.gz"));
    let traces = [2, 128, 256].map(of);
    for (first, second) in [(0, 1), (1, 2), (0, 2)] {
        let found = compare(&traces[first], &traces[second]);
        println!("{}\n{:#?}", found.verdict(), found.same_work.questions);
        assert!(!found.same_work.headline.is_of_a_step(), "{}", found.verdict());
        assert_eq!(answer(&found, WorkAspect::Model), Some(Answer::Same));
    }
    assert_eq!(compare(&traces[1], &traces[1]).same_work.headline, Headline::OfAStep);
}

#[test]
#[ignore = "needs the public traces in ../shared/traces and ../shared/more_traces"]
fn public_pairs_of_different_work() {
    for (first, second) in [
        ("more_traces/mi300x_resnet18_ddp_train", "more_traces/v100_resnet50_train_rank0"),
        // Six passes of training, and three.
        ("more_traces/v100_resnet50_train_rank0", "traces/a100_nccl_train"),
        (
            "traces/mi300x_qwen3-8b_sglang_decode_graph",
            "traces/mi300x_gpt-oss-20b_vllm_prefilldecode",
        ),
        ("traces/mi300x_qwen1.5-0.5b_eager", "traces/h100_bert-small_eager"),
        ("more_traces/mi300x_flux_aiter", "traces/h100_qwen1.5-0.5b_eager"),
        // Neither has sizes. One has no convolution, the other one 53 in a step.
        ("more_traces/dlrm_8ranks/rank0", "traces/a100_nccl_train"),
    ] {
        let [one, other] = [first, second].map(|path| real(&format!("{path}.json.gz")));
        let found = compare(&one, &other);
        println!("{}\n{:#?}", found.verdict(), found.same_work.questions);
        assert_eq!(found.same_work.headline, Headline::Withheld, "{first}, {second}");
    }
}
