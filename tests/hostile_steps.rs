//! First steps that are wrong or missing, and records that are no numbers, say nothing.

use crate::made::{Known, TARGET, calibration};
use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, StepTime, Verdict};
use fusion_cost_model::{Evidence, FusionCostModel, Problem};

fn problem(text: &str) -> Problem {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Records that take 1 ms fused and 1.2 ms unfused, in equal steps.
fn with_steps(problems: &[&str]) -> HardwareCalibration {
    let known = |text: &&str| Known {
        problem: problem(text),
        fused_ms: 1.0,
        speedup: 1.2,
        half_width: 0.01,
    };
    let mut calibration = calibration(problems.iter().map(known));
    for record in &mut calibration.records {
        let ms = 1.2 / record.operators.len() as f64;
        let of = |op: &String| StepTime {
            op: op.clone(),
            ms,
            low_ms: Some(0.99 * ms),
            high_ms: Some(1.01 * ms),
        };
        record.steps = record.operators.iter().map(of).collect();
    }
    calibration
}

fn evidence(calibration: HardwareCalibration, text: &str) -> (Evidence, Option<f64>) {
    let model = FusionCostModel::new(calibration);
    let estimate = model.on(TARGET).estimate(&problem(text));
    (estimate.evidence(), estimate.fused_ms().map(|time| time.value))
}

const LINEAR: &str = "linear/f32/m64.k64.n64";

#[test]
fn a_step_that_is_wrong_or_missing_says_nothing() {
    let good = with_steps(&["linear_bias_relu/f32/m64.k64.n64"]);
    let (found, time) = evidence(good.clone(), LINEAR);
    assert!(found == Evidence::ComposedAtSize && (time.unwrap() / 0.4 - 1.0).abs() < 1e-12);
    type Damage = fn(&mut FusionRecord);
    let damages: [(&str, Damage); 12] = [
        ("no steps", |it| it.steps.clear()),
        ("a step too few", |it| it.steps.truncate(2)),
        ("a step too many", |it| it.steps.push(it.steps[0].clone())),
        ("the step of another op", |it| it.steps.swap(0, 1)),
        ("no time", |it| it.steps[0].ms = 0.0),
        ("a negative time", |it| it.steps[0].ms = -1.0),
        ("no number", |it| it.steps[0].ms = f64::NAN),
        ("an endless time", |it| it.steps[0].ms = f64::INFINITY),
        ("an end that is no number", |it| it.steps[0].high_ms = Some(f64::NAN)),
        ("an endless interval", |it| it.steps[0].high_ms = Some(f64::INFINITY)),
        ("an interval elsewhere", |it| it.steps[0].low_ms = Some(3.0)),
        ("an invalid record", |it| it.verdict = Verdict::Invalid),
    ];
    for (name, damage) in damages {
        let mut bad = good.clone();
        damage(&mut bad.records[0]);
        assert_eq!(evidence(bad.clone(), LINEAR), (Evidence::Unknown, None), "{name}");
        // Nor does it stand in the way of one that is right.
        let mut other = with_steps(&["linear_bias/f32/m64.k64.n64"]);
        other.records.insert(0, bad.records.remove(0));
        let (found, time) = evidence(other, LINEAR);
        let is_right = time.is_some_and(|time| (time / 0.6 - 1.0).abs() < 1e-12);
        assert!(found == Evidence::ComposedAtSize && is_right, "{name}: {found:?} {time:?}");
    }
}

#[test]
fn a_step_without_an_interval_is_less_certain_than_one_with_it() {
    let mut both = with_steps(&["linear_bias/f32/m64.k64.n64", "linear_bias_relu/f32/m64.k64.n64"]);
    let step = &mut both.records[0].steps[0];
    (step.low_ms, step.high_ms) = (None, None);
    let (found, time) = evidence(both, LINEAR);
    assert!(found == Evidence::ComposedAtSize && (time.unwrap() / 0.4 - 1.0).abs() < 1e-12);
}

#[test]
fn first_ops_of_every_kind() {
    for (chain, first) in [
        ("softmax+dropout/f32/m7.n9", "softmax/f32/m7.n9"),
        ("layer_norm+relu/f32/m1.n1", "layer_norm/f32/m1.n1"),
        ("add+relu/f32/m1.n1", "add/f32/m1.n1"),
        ("linear_bias/f32/m1.k1.n1", "linear/f32/m1.k1.n1"),
        ("mlp/f32/m1.k2.n3.o4", "linear/f32/m1.k2.n3"),
        ("conv2d+relu/f32/n1.c1.h1.w1.k1.r1.s1", "conv2d/f32/n1.c1.h1.w1.k1.r1.s1"),
        ("conv_bn_relu_maxpool/f32/n1.c3.h8.w8.k4.r3.s3.pool2", "conv2d/f32/n1.c3.h8.w8.k4.r3.s3"),
        ("attention_output/f32/b1.h2.q3.kv4.d5", "softmax/f32/m6.n4"),
        ("attention_head/f32/b1.h2.q3.kv4.d5.causal1", "qk/f32/b1.h2.q3.kv4.d5"),
    ] {
        let (found, time) = evidence(with_steps(&[chain]), first);
        assert_eq!(found, Evidence::ComposedAtSize, "{first} of {chain}");
        assert!(time.is_some_and(|time| time > 0.0 && time < 1.0), "{first} of {chain}: {time:?}");
    }
    // A softmax that leaves out what a mask hides is not the one that does not.
    let masked = with_steps(&["attention_output/f32/b1.h2.q3.kv4.d5.causal1"]);
    assert_eq!(evidence(masked, "softmax/f32/m6.n4"), (Evidence::Unknown, None));
}

/// The tail of a chain is what it is in its place, with its input in the caches.
#[test]
fn later_steps_are_no_records() {
    let steps = with_steps(&["linear_bias_relu/f32/m64.k64.n64", "mlp/f32/m64.k64.n64.o8"]);
    for later in ["bias/f32/m64.n64", "relu/f32/m64.n64", "linear/f32/m64.k64.n8"] {
        let (found, _) = evidence(steps.clone(), later);
        assert!(!matches!(found, Evidence::Measured | Evidence::ComposedAtSize), "{later}");
    }
}

/// A file is checked when it is loaded; a calibration that a program makes is not.
#[test]
fn records_that_are_no_numbers_are_ignored() {
    type Damage = fn(&mut FusionRecord);
    let damages: [(&str, Damage); 8] = [
        ("no number", |it| it.fused_latency_ms = f64::NAN),
        ("no time", |it| it.fused_latency_ms = 0.0),
        ("an endless time", |it| it.fused_latency_ms = f64::INFINITY),
        ("a negative time", |it| it.fused_latency_ms = -1.0),
        ("no ratio", |it| it.speedup_factor = f64::NAN),
        ("an interval that is none", |it| it.speedup_low = f64::NAN),
        ("an interval that never ends", |it| it.speedup_high = f64::INFINITY),
        ("a time's interval that is none", |it| it.fused_timing.high_ms = Some(f64::NAN)),
    ];
    let sizes = ["m64.k64.n64", "m256.k256.n256", "m1024.k64.n512", "m77.k33.n515"];
    let texts = sizes.map(|sizes| format!("linear_bias_relu/f32/{sizes}"));
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let between = problem("linear_bias_relu/f32/m100.k60.n100");
    for (name, damage) in damages {
        let mut bad = with_steps(&texts);
        damage(&mut bad.records[1]);
        let model = FusionCostModel::new(bad);
        let estimate = model.on(TARGET).estimate(&between);
        assert_eq!(estimate.evidence(), Evidence::Interpolated, "{name}");
        for interval in [estimate.fused_ms(), estimate.unfused_ms(), estimate.speedup()] {
            let interval = interval.unwrap();
            let ends = [interval.low, interval.value, interval.high];
            assert!(ends.iter().all(|end| end.is_finite() && *end > 0.0), "{name}: {ends:?}");
        }
        let measured = model.on(TARGET).estimate(&problem(texts[1]));
        assert_ne!(measured.evidence(), Evidence::Measured, "{name}");
    }
}
