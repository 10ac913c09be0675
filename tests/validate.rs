//! Records are estimated by the others as if they had not been measured.

use crate::made::{Known, Numbers, TARGET, calibration};
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::{
    Accuracy, Evidence, FusionCostModel, LeaveOut, Policy, Problem, Regret, Trial, WhenUnknown,
};

const POLICY: Policy = Policy::new(WhenUnknown::Roofline);

fn problem(text: &str) -> Problem {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A machine whose kernels take a launch, their flops and their bytes, and in which noise makes some
/// fusions look like a loss.
fn machine() -> HardwareCalibration {
    let mut numbers = Numbers(11);
    let mut known = Vec::new();
    for (m, k, n) in [
        (64, 64, 64),
        (256, 256, 256),
        (1024, 512, 256),
        (77, 333, 515),
        (128, 768, 768),
        (512, 512, 1024),
        (33, 1025, 259),
        (1001, 37, 129),
    ] {
        for (chain, tail) in [("linear", 0), ("linear_bias", 1), ("linear_bias_relu", 2)] {
            let of_gemm = 0.004 + 2.0 * f64::from(m * k * n) / 300e6;
            let of_tail = f64::from(tail) * (0.002 + 8.0 * f64::from(m * n) / 20e6);
            let [process, pair] = [0.03, 0.01].map(|sd| (sd * numbers.normal()).exp());
            known.push(Known {
                problem: problem(&format!("{chain}/f32/m{m}.k{k}.n{n}")),
                fused_ms: of_gemm * process,
                speedup: if tail == 0 { 1.0 } else { (1.0 + of_tail / of_gemm) * pair },
                half_width: if tail == 0 { 0.0 } else { 0.02 },
            });
        }
        for op in ["bias", "relu", "bias+relu"] {
            let is_single = !op.contains('+');
            known.push(Known {
                problem: problem(&format!("{op}/f32/m{m}.n{n}")),
                fused_ms: 0.002 + 8.0 * f64::from(m * n) / 20e6,
                speedup: if is_single { 1.0 } else { 1.8 },
                half_width: if is_single { 0.0 } else { 0.02 },
            });
        }
    }
    calibration(known)
}

fn trials(model: &FusionCostModel, leave_out: LeaveOut) -> Vec<Trial<'_>> {
    model.on(TARGET).validate(leave_out, &POLICY).unwrap()
}

/// What a trial says is what a model says that was made without what is left out.
#[test]
fn a_trial_is_the_answer_of_a_model_without_the_record() {
    let calibration = machine();
    let model = FusionCostModel::new(calibration.clone());
    for leave_out in [LeaveOut::Shape, LeaveOut::Problem] {
        let trials = trials(&model, leave_out);
        assert_eq!(trials.len(), calibration.records.len());
        // Every fifth will do: each has a model of its own.
        for trial in trials.iter().step_by(5) {
            let asked = trial.record.problem;
            let mut others = calibration.clone();
            others.records.retain(|record| match leave_out {
                LeaveOut::Shape => record.problem.sizes() != asked.sizes(),
                _ => record.problem != asked,
            });
            let others = FusionCostModel::new(others);
            let expected = others.on(TARGET).estimate(&asked);
            let found = trial.estimate;
            assert_eq!(found.evidence(), expected.evidence(), "{asked}");
            let values = |of: fusion_cost_model::Estimate<'_>| {
                [of.fused_ms(), of.speedup()].map(|it| it.unwrap().value)
            };
            assert_eq!(values(found), values(expected), "{asked}");
            // How far the others are off was found with the record, and is nearly the same.
            let width = |of: fusion_cost_model::Estimate<'_>| {
                let time = of.fused_ms().unwrap();
                (time.high / time.low).ln()
            };
            let widths = [width(found), width(expected)];
            assert!((0.5..2.0).contains(&(widths[0] / widths[1])), "{asked}: {widths:?}");
        }
    }
}

#[test]
fn a_shape_is_left_out_with_all_of_its_chains() {
    let model = FusionCostModel::new(machine());
    let shapes = trials(&model, LeaveOut::Shape);
    let is_at_size = |trial: &&Trial<'_>| trial.estimate.evidence() == Evidence::ComposedAtSize;
    assert_eq!(shapes.iter().filter(is_at_size).count(), 0);
    assert!(shapes.iter().all(|trial| trial.estimate.evidence() != Evidence::Measured));
    let problems = trials(&model, LeaveOut::Problem);
    // Of three chains at a size, the other two are known.
    assert!(problems.iter().filter(is_at_size).count() > 10);
    assert!(problems.iter().all(|trial| trial.estimate.evidence() != Evidence::Measured));
}

#[test]
fn errors_are_small_intervals_hold_and_decisions_cost_little() {
    let model = FusionCostModel::new(machine());
    for leave_out in [LeaveOut::Shape, LeaveOut::Problem] {
        let trials = trials(&model, leave_out);
        let found = Accuracy::of(&trials, &POLICY);
        println!("{leave_out:?}: {found:?}");
        assert_eq!(found.records, 48);
        let (time, speedup) = (found.time.unwrap(), found.speedup.unwrap());
        assert_eq!((time.count, speedup.count), (48, 24));
        assert!(speedup.median < 0.03 && time.median < 0.15, "{found:?}");
        assert!(time.covered > 0.8 && speedup.covered > 0.8, "{found:?}");
        let Regret { count, decided, always, never, oracle, .. } = found.regret.unwrap();
        assert_eq!(count, 24, "single ops are not decided");
        assert!(oracle == 0.0 && decided <= always + 1e-3 && always < never, "{found:?}");
    }
}

/// An oracle that obeys a high threshold loses what it does not fuse.
#[test]
fn a_threshold_costs_even_an_oracle() {
    let model = FusionCostModel::new(machine());
    let policy = POLICY.with_threshold(1.2);
    let trials = model.on(TARGET).validate(LeaveOut::Problem, &policy).unwrap();
    let regret = Accuracy::of(&trials, &policy).regret.unwrap();
    assert!(regret.oracle > 0.0 && regret.oracle < regret.never, "{regret:?}");
    let trial = trials.iter().find(|trial| trial.fuse == Some(false)).unwrap();
    assert!(trial.estimate.speedup().unwrap().value < 1.2);
}

#[test]
fn nothing_is_left_to_say_of_an_only_record() {
    let known = Known {
        problem: problem("linear_bias_relu/f32/m64.k64.n64"),
        fused_ms: 0.1,
        speedup: 1.2,
        half_width: 0.01,
    };
    let model = FusionCostModel::new(calibration([known]));
    let trials = trials(&model, LeaveOut::Shape);
    let [trial] = trials[..] else { panic!("one") };
    assert_eq!(trial.estimate.evidence(), Evidence::Unknown);
    assert_eq!((trial.time_error(), trial.covers_speedup(), trial.fuse), (None, None, Some(false)));
    let found = Accuracy::of(&trials, &POLICY);
    assert_eq!((found.time, found.speedup), (None, None));
    assert!((found.regret.unwrap().decided - 0.2).abs() < 1e-9, "not fusing loses a fifth");
    // A target without records has no trials.
    let other = model.on(TARGET.with_threads(7));
    assert_eq!(other.validate(LeaveOut::Shape, &POLICY).unwrap(), []);
    let strict = Policy::new(WhenUnknown::Error);
    assert!(model.on(TARGET).validate(LeaveOut::Shape, &strict).unwrap_err().is_undecided());
}
