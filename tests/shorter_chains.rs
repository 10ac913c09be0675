//! What records say of chains that lack ops which cost a fused kernel nothing, compared with records of
//! these chains in the committed calibrations.

use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Verdict};
use fusion_cost_model::{
    Evidence, FusionCostModel, LeaveOut, Policy, Problem, Target, WhenUnknown,
};

const TARGET: Target = Target::cpu(2);

const FILES: [&str; 3] = ["amd-epyc-2-threads", "amd-epyc-zen5-2-threads", "intel-xeon-2-threads"];

fn calibration(file: &str) -> HardwareCalibration {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/calibrate/profiles/calibrations");
    HardwareCalibration::load(format!("{folder}/{file}.toml")).unwrap()
}

/// The record of a problem, unless it is INVALID.
fn record<'c>(calibration: &'c HardwareCalibration, problem: &str) -> Option<&'c FusionRecord> {
    let problem: Problem = problem.parse().unwrap();
    let is_it = |record: &&FusionRecord| record.problem == problem;
    calibration.records.iter().find(is_it).filter(|record| record.verdict != Verdict::Invalid)
}

/// The sizes of the records of a chain.
fn sizes_of(calibration: &HardwareCalibration, chain: &str) -> Vec<String> {
    let texts = calibration.records.iter().map(|record| record.problem.to_string());
    let of_chain = texts.filter_map(|text| {
        let sizes = text.strip_prefix(chain)?.strip_prefix("/f32/")?;
        Some(sizes.to_owned())
    });
    of_chain.collect()
}

#[test]
fn a_chain_without_its_relu_is_as_measured() {
    let (mut asked, mut held, mut errors) = (0, [0; 2], Vec::new());
    for file in FILES {
        let whole = calibration(file);
        for (longer, shorter) in [("linear_bias_relu", "linear_bias"), ("conv_bn_relu", "conv_bn")]
        {
            for sizes in sizes_of(&whole, longer) {
                let [longer, shorter] = [longer, shorter].map(|it| format!("{it}/f32/{sizes}"));
                let (Some(longer), Some(shorter)) =
                    (record(&whole, &longer), record(&whole, &shorter))
                else {
                    continue;
                };
                // Nothing else is there that the answer could come from.
                let alone = HardwareCalibration { records: vec![longer.clone()], ..whole.clone() };
                let model = FusionCostModel::new(alone);
                let estimate = model.on(TARGET).estimate(&shorter.problem);
                assert_eq!(estimate.evidence(), Evidence::ComposedAtSize, "{}", shorter.problem);
                let time = estimate.fused_ms().unwrap();
                assert!((time.value / longer.fused_latency_ms - 1.0).abs() < 1e-12);
                let speedup = estimate.speedup().unwrap();
                let ms = |steps: &[_]| -> f64 {
                    let of_step = |step: &fusion_cost_model::calibration::StepTime| step.ms;
                    steps.iter().map(of_step).sum()
                };
                let before_last = &longer.steps[..longer.steps.len() - 1];
                let expected = longer.speedup_factor * ms(before_last) / ms(&longer.steps);
                assert!((speedup.value / expected - 1.0).abs() < 1e-9, "{}", shorter.problem);
                held[0] += usize::from(time.contains(shorter.fused_latency_ms));
                held[1] += usize::from(speedup.contains(shorter.speedup_factor));
                errors.push((speedup.value / shorter.speedup_factor).ln().abs());
                asked += 1;
            }
        }
    }
    assert!(asked >= 25, "{asked}");
    errors.sort_unstable_by(f64::total_cmp);
    assert!(errors[asked / 2] < 0.01, "{errors:?}");
    assert!(held.iter().all(|held| 100 * held >= 90 * asked), "{held:?} of {asked}");
}

#[test]
fn a_size_that_is_left_out_is_not_seen_through_longer_chains() {
    for file in FILES {
        let model = FusionCostModel::new(calibration(file));
        let policy = Policy::new(WhenUnknown::Roofline);
        let trials = model.on(TARGET).validate(LeaveOut::Shape, &policy).unwrap();
        for trial in trials {
            let problem = &trial.record.problem;
            let evidence = trial.estimate.evidence();
            assert_ne!(evidence, Evidence::ComposedAtSize, "{file}: {problem}");
            for nearest in trial.estimate.nearest() {
                assert_ne!(nearest.problem.sizes(), problem.sizes(), "{file}: {problem}");
            }
        }
    }
}

#[test]
fn a_vague_record_of_a_longer_chain_leaves_the_chain_to_its_own() {
    let whole = calibration("amd-epyc-zen5-2-threads");
    let evidence = |calibration: &HardwareCalibration, problem: &Problem| {
        let model = FusionCostModel::new(calibration.clone());
        model.on(TARGET).estimate(problem).evidence()
    };
    let mut asked = 0;
    for sizes in sizes_of(&whole, "conv_bn_relu") {
        let [longer, shorter] = ["conv_bn_relu", "conv_bn"]
            .map(|chain| format!("{chain}/f32/{sizes}").parse::<Problem>().unwrap());
        if evidence(&whole, &shorter) != Evidence::ComposedAtSize {
            continue;
        }
        let mut vague = whole.clone();
        let is_it = |record: &&mut FusionRecord| record.problem == longer;
        let record = vague.records.iter_mut().find(is_it).unwrap();
        record.speedup_low /= 2.0;
        record.speedup_high *= 2.0;
        asked += usize::from(evidence(&vague, &shorter) == Evidence::Interpolated);
    }
    assert!(asked >= 10, "{asked}");
}

#[test]
fn a_chain_that_was_never_measured_is_known_between_sizes() {
    let whole = calibration("amd-epyc-zen5-2-threads");
    let model = FusionCostModel::new(whole);
    for problem in
        ["linear+relu/f32/m100.k300.n500", "conv2d+relu/f32/n1.c48.h30.w30.k48.r3.s3.pad1"]
    {
        let estimate = model.on(TARGET).estimate(&problem.parse().unwrap());
        assert_eq!(estimate.evidence(), Evidence::Interpolated, "{problem}");
        let speedup = estimate.speedup().unwrap();
        assert!(speedup.low > 0.8 && speedup.high < 1.5, "{problem}: {speedup:?}");
    }
}
