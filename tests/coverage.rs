//! What is known of a list of problems and what to measure next, on machines whose truth is known.

use crate::made::{Known, Numbers, TARGET, calibration};
use fusion_cost_model::{
    Chain, Coverage, DType, Evidence, FusionCostModel, LinearSizes, Policy, Problem, WhenUnknown,
};

const POLICY: Policy = Policy::new(WhenUnknown::Conservative);

fn chain(text: &str) -> Chain {
    text.parse().unwrap()
}

fn linear(text: &str, [m, k, n]: [u64; 3]) -> Problem {
    Problem::linear(chain(text), DType::F32, LinearSizes { m, k, n }).unwrap()
}

/// The fused time and the speedup.
fn truth(problem: &Problem) -> (f64, f64) {
    let LinearSizes { m, k, n } = problem.sizes().linear().unwrap();
    let [m, k, n] = [m, k, n].map(|size| size as f64);
    let fused_ms = 0.005 + 2.0 * m * k * n / 300e6;
    let tail_ms = 0.002 + 8.0 * m * n / 20e6;
    // Deep GEMMs gain nothing, and lose a little.
    let speedup = 0.99 + tail_ms / fused_ms;
    (fused_ms, if problem.chain().is_single() { 1.0 } else { speedup })
}

fn measured(problem: Problem, numbers: &mut Numbers) -> Known {
    let (fused_ms, speedup) = truth(&problem);
    let is_single = problem.chain().is_single();
    let [process, pair] = [0.02, 0.003].map(|sd| (sd * numbers.normal()).exp());
    let pair = if is_single { 1.0 } else { pair };
    let half_width = if is_single { 0.0 } else { 0.006 };
    Known { problem, fused_ms: fused_ms * process, speedup: speedup * pair, half_width }
}

fn any_gemm(numbers: &mut Numbers) -> [u64; 3] {
    [(); 3].map(|()| (32.0 * 64.0_f64.powf(numbers.share())) as u64)
}

/// The questions of a made-up model: two chains and what they are made of.
fn questions(count: usize, numbers: &mut Numbers) -> Vec<Problem> {
    let of_size = |_| {
        let sizes = any_gemm(numbers);
        ["linear", "linear_bias", "linear_bias_relu"].map(|text| linear(text, sizes))
    };
    (0..count).flat_map(of_size).collect()
}

fn chosen(coverage: &Coverage<'_>) -> Vec<Problem> {
    coverage.to_measure.iter().map(|point| point.problem).collect()
}

#[test]
fn what_is_chosen_makes_everything_known_and_nearly_everything_safe() {
    let mut numbers = Numbers(1);
    let questions = questions(30, &mut numbers);
    let nothing = FusionCostModel::new(calibration([]));
    let before = nothing.on(TARGET).coverage(&questions, &POLICY);
    assert_eq!((before.known(), before.safe_decisions(), before.decisions()), (0, 0, 60));
    let points = chosen(&before);
    assert!(points.len() < 60, "{} points of 90 questions", points.len());
    let mut known: Vec<Known> = points.iter().map(|one| measured(*one, &mut numbers)).collect();
    let mut rounds = 1;
    loop {
        let model = FusionCostModel::new(calibration(known.iter().copied()));
        let coverage = model.on(TARGET).coverage(&questions, &POLICY);
        println!(
            "{} measured: {} of 90 known, {} of 60 decisions safe, {:.4} ms at stake, {} next",
            known.len(),
            coverage.known(),
            coverage.safe_decisions(),
            coverage.expected_regret_ms(),
            coverage.to_measure.len()
        );
        assert_eq!(coverage.known(), 90);
        if coverage.to_measure.is_empty() {
            // What is left was measured, and is too close to call.
            let is_done = |one: &fusion_cost_model::Covered<'_>| {
                one.is_safe || one.estimate.evidence() == Evidence::Measured
            };
            assert!(coverage.questions.iter().all(is_done));
            break;
        }
        known.extend(chosen(&coverage).iter().map(|one| measured(*one, &mut numbers)));
        rounds += 1;
        assert!(rounds <= 12, "it goes on and on");
    }
    assert!(known.len() < 70, "{} of 90 had to be measured", known.len());
}

#[test]
fn what_costs_most_comes_first_and_counts_as_often_as_it_is_asked() {
    let (small, large) = (linear("linear_bias", [32; 3]), linear("linear+relu", [2048; 3]));
    let nothing = FusionCostModel::new(calibration([]));
    let on = nothing.on(TARGET);
    let first = |questions: &[Problem]| on.coverage(questions, &POLICY).to_measure[0].problem;
    assert_eq!(first(&[small, large]), large);
    let mut many = vec![small; 100_000];
    many.push(large);
    assert_eq!(first(&many), small);
    let coverage = on.coverage(&many, &POLICY);
    assert_eq!((coverage.questions.len(), coverage.questions[0].count), (2, 100_000));
    assert!(
        coverage.to_measure.is_sorted_by(|a, b| a.lowers_regret_by_ms >= b.lowers_regret_by_ms)
    );
    // The same question has the same answer.
    assert_eq!(chosen(&coverage), chosen(&on.coverage(&many, &POLICY)));
}

#[test]
fn a_measured_decision_is_asked_for_once_and_a_clear_one_never() {
    let problem = linear("linear_bias", [256; 3]);
    let known = |speedup, half_width| Known { problem, fused_ms: 0.2, speedup, half_width };
    for (known, is_safe) in [(known(1.3, 0.02), true), (known(1.0, 0.2), false)] {
        let model = FusionCostModel::new(calibration([known]));
        let coverage = model.on(TARGET).coverage(&[problem], &POLICY);
        assert_eq!(coverage.questions[0].is_safe, is_safe);
        assert!(coverage.to_measure.is_empty());
    }
    // Near a record with a large gain, a decision is safe; far away it is not, and is measured.
    let model = FusionCostModel::new(calibration([known(1.3, 0.02)]));
    let near = linear("linear_bias", [250, 256, 256]);
    let far = linear("linear_bias", [1 << 20, 256, 256]);
    let coverage = model.on(TARGET).coverage(&[near, far], &POLICY);
    assert!(coverage.questions[0].is_safe && !coverage.questions[1].is_safe);
    assert_eq!(chosen(&coverage), [far]);
    assert_eq!(coverage.with_evidence(Evidence::Extrapolated), 1);
}

/// Without a record of a chain, a few of many sizes are measured, and they are spread.
#[test]
fn neighbours_need_not_be_measured() {
    let mut numbers = Numbers(2);
    let questions: Vec<Problem> =
        (0..100).map(|_| linear("linear_bias", any_gemm(&mut numbers))).collect();
    let nothing = FusionCostModel::new(calibration([]));
    let coverage = nothing.on(TARGET).coverage(&questions, &POLICY);
    println!("{} of 100", coverage.to_measure.len());
    assert!(coverage.to_measure.len() < 100);
    let regret = coverage.expected_regret_ms();
    assert!(regret == 0.0 && regret.is_sign_positive(), "nothing is known");
    assert!(coverage.questions.iter().all(|one| one.expected_regret_ms.is_none()));
}
