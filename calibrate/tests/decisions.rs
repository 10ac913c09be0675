//! What one standard calibration says about models that it was not made for.

#[path = "../../tests/made/mod.rs"]
#[allow(dead_code, reason = "made-up machines have more than these tests need")]
mod made;

use std::collections::BTreeMap;

use calibrate::profiles;
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::cost::Traffic;
use fusion_cost_model::{
    DType, Evidence, FusionCostModel, OnTarget, Policy, Problem, WhenUnknown, possible_kernels,
};
use made::{Known, Numbers, TARGET, calibration};
use model_graphs::synthetic::{bert_base, resnet50};
use model_graphs::{Dims, Graph};

/// What a partitioner of a bottleneck of ResNet-50 and of a layer of BERT-base asks: every pair of
/// neighbours, and what it grows to.
const QUESTIONS: [&str; 18] = [
    "conv_bn/f32/n1.c256.h56.w56.k64.r1.s1",
    "conv_bn_relu/f32/n1.c256.h56.w56.k64.r1.s1",
    "conv_bn/f32/n1.c64.h56.w56.k64.r3.s3.pad1",
    "conv_bn_relu/f32/n1.c64.h56.w56.k64.r3.s3.pad1",
    "conv_bn/f32/n1.c64.h56.w56.k256.r1.s1",
    "conv2d+batch_norm+add/f32/n1.c64.h56.w56.k256.r1.s1",
    "conv2d+batch_norm+add+relu/f32/n1.c64.h56.w56.k256.r1.s1",
    "add_relu/f32/m3136.n256",
    "linear_bias/f32/m128.k768.n768",
    "qk+scale/f32/b1.h12.q128.d64",
    "attention_scores/f32/b1.h12.q128.d64",
    "attention_output/f32/b1.h12.q128.d64",
    "attention_head/f32/b1.h12.q128.d64",
    "multihead_linear/f32/b1.h12.q128.d64.n768",
    "linear+bias+add/f32/m128.k768.n768",
    "add_layernorm/f32/m128.n768",
    "linear_bias_gelu/f32/m128.k768.n3072",
    "linear+bias+add/f32/m128.k3072.n768",
];

/// The standard problems on a machine whose kernels take a launch, their flops and their bytes.
fn standard() -> HardwareCalibration {
    let set = profiles::find_shapes("standard").unwrap();
    let problems: Vec<Problem> =
        set.all_chains().iter().flat_map(|chain| set.problems(chain, DType::F32)).collect();
    let mut numbers = Numbers(31);
    let ms = |problem: &Problem| {
        let traffic = Traffic::of(problem);
        0.002 + traffic.flops as f64 / 100e6 + traffic.fused_bytes as f64 / 15e6
    };
    let known = problems.iter().map(|problem| {
        let fused_ms = ms(problem);
        let ops = 0..problem.chain().len();
        let unfused: f64 = ops.filter_map(|op| problem.slice(op..op + 1)).map(|op| ms(&op)).sum();
        let is_single = problem.chain().is_single();
        let noise = (0.01 * numbers.normal()).exp();
        Known {
            problem: *problem,
            fused_ms: fused_ms * (0.03 * numbers.normal()).exp(),
            speedup: if is_single { 1.0 } else { unfused / fused_ms * noise },
            half_width: if is_single { 0.0 } else { 0.02 },
        }
    });
    calibration(known.collect::<Vec<_>>())
}

/// Asks all questions: each must have an answer from kernels.
fn ask(on: OnTarget<'_>) {
    let policy = Policy::new(WhenUnknown::Error);
    for text in QUESTIONS {
        let problem: Problem = text.parse().unwrap();
        let decision = on.decide(&problem, &policy).unwrap_or_else(|error| panic!("{error}"));
        let estimate = decision.estimate();
        let speedup = estimate.speedup().unwrap();
        println!(
            "{text}: {}, {:.3} [{:.3}, {:.3}]",
            estimate.evidence(),
            speedup.value,
            speedup.low,
            speedup.high
        );
        assert!(estimate.evidence().is_from_kernels());
        assert!(estimate.nearest().next().is_some());
    }
}

#[test]
fn eighteen_questions_have_eighteen_answers() {
    ask(FusionCostModel::new(standard()).on(TARGET));
}

/// Splits a model, and counts its possible kernels by evidence. Those without an answer from kernels
/// come back, and how many kernels there are.
fn unanswered(on: OnTarget<'_>, model: Vec<u8>, dims: &Dims) -> (Vec<Problem>, usize) {
    let found = Graph::from_onnx(model).unwrap().segments(dims).unwrap();
    let nodes = found.graph_nodes().unwrap();
    let mut counts: BTreeMap<Evidence, usize> = BTreeMap::new();
    let mut unanswered = Vec::new();
    let kernels = possible_kernels(&nodes).unwrap();
    for kernel in &kernels {
        let evidence = on.estimate(&kernel.problem).evidence();
        *counts.entry(evidence).or_default() += 1;
        if !evidence.is_from_kernels() {
            unanswered.push(kernel.problem);
        }
    }
    let best = on.partition_graph(&nodes, &Policy::new(WhenUnknown::Conservative)).unwrap();
    println!("{} possible kernels: {counts:?}; best: {}", kernels.len(), best.segments.len());
    assert!(best.always.slower_by_ms.value >= 0.0 && best.never.slower_by_ms.value >= 0.0);
    (unanswered, kernels.len())
}

/// Asks about ResNet-50 and BERT-base at batch 1.
fn ask_models(on: OnTarget<'_>) -> [(Vec<Problem>, usize); 2] {
    let batch = Dims::default().with("batch", 1);
    [(resnet50(), batch.clone()), (bert_base(), batch.with("sequence", 128))]
        .map(|(model, dims)| unanswered(on, model, &dims))
}

/// Most kernels of both models are answered. What is not: convolutions of kinds that the standard
/// problems lack, such as strided ones without their ReLU, and tails by themselves.
#[test]
fn most_kernels_of_models_are_answered() {
    let model = FusionCostModel::new(standard());
    let [of_resnet, of_bert] = ask_models(model.on(TARGET));
    for (unanswered, kernels) in [of_resnet, of_bert] {
        assert!(2 * unanswered.len() < kernels, "{kernels}: {unanswered:#?}");
    }
}

/// The same of a standard calibration of a real machine.
#[test]
fn a_real_calibration_answers_them_too() {
    let calibration = include_str!("../profiles/calibrations/intel-xeon-2-threads.toml");
    let model = FusionCostModel::new(HardwareCalibration::from_toml(calibration).unwrap());
    let on = model.on(model.targets()[0]);
    ask(on);
    for (unanswered, kernels) in ask_models(on) {
        assert!(2 * unanswered.len() < kernels, "{kernels}: {unanswered:#?}");
    }
}
