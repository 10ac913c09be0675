//! An older calibration of the same machine as a prior, on machines whose truth is known.

use crate::made::{Known, Numbers, TARGET, calibration};
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::{
    Chain, DType, Evidence, FusionCostModel, Interval, LinearSizes, Policy, Problem, RowsSizes,
    WhenUnknown,
};

fn chain(text: &str) -> Chain {
    text.parse().unwrap()
}

fn linear(text: &str, [m, k, n]: [u64; 3]) -> Problem {
    Problem::linear(chain(text), DType::F32, LinearSizes { m, k, n }).unwrap()
}

fn any_gemm(numbers: &mut Numbers) -> [u64; 3] {
    [(); 3].map(|()| (16.0 * 256.0_f64.powf(numbers.share())) as u64)
}

/// The fused time and the speedup of a machine with steps in its efficiency, which a few points do
/// not show.
fn before([m, k, n]: [u64; 3]) -> (f64, f64) {
    let tiles = (m.div_ceil(128) * n.div_ceil(128)) as f64;
    let waves = (tiles / 12.0).ceil() * 12.0 / tiles;
    let [m, k, n] = [m, k, n].map(|size| size as f64);
    let fused_ms = 0.005 + 2.0 * m * k * n / 300e6 * (1.0 + 0.2 * waves.min(4.0));
    (fused_ms, 1.0 + 2.0 * (0.002 + 8.0 * m * n / 20e6) / fused_ms)
}

/// The same machine under another version of the software: faster, most of all with much depth, and
/// with a little less to be gained.
fn after(sizes: [u64; 3]) -> (f64, f64) {
    let (fused_ms, speedup) = before(sizes);
    let depth = (sizes[1] as f64).log2();
    (fused_ms * (-0.1 - 0.02 * (depth - 8.0)).exp(), 0.98 * speedup)
}

fn measured(problem: Problem, (fused_ms, speedup): (f64, f64), numbers: &mut Numbers) -> Known {
    let [process, pair] = [0.02, 0.01].map(|sd| (sd * numbers.normal()).exp());
    Known { problem, fused_ms: fused_ms * process, speedup: speedup * pair, half_width: 0.02 }
}

/// Some hundred records from before.
fn older(numbers: &mut Numbers) -> Vec<Known> {
    let any = |_| {
        let sizes = any_gemm(numbers);
        measured(linear("linear_bias_relu", sizes), before(sizes), numbers)
    };
    (0..240).map(any).collect()
}

/// Thirty of the same problems from after.
fn newer(older: &[Known], numbers: &mut Numbers) -> Vec<Known> {
    let again = |index: usize| {
        let problem = older[8 * index].problem;
        let LinearSizes { m, k, n } = problem.sizes().linear().unwrap();
        measured(problem, after([m, k, n]), numbers)
    };
    (0..30).map(again).collect()
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[(share * (values.len() - 1) as f64) as usize]
}

fn off(interval: Interval, truth: f64) -> f64 {
    (interval.value / truth).ln().abs()
}

fn holds(interval: Interval, truth: f64) -> bool {
    (interval.low..=interval.high).contains(&truth)
}

#[test]
fn thirty_points_and_a_prior_say_more_than_thirty_points() {
    let mut numbers = Numbers(1);
    let older = older(&mut numbers);
    let newer = newer(&older, &mut numbers);
    let alone = FusionCostModel::new(calibration(newer.iter().copied()));
    let with_prior = FusionCostModel::new(calibration(newer.iter().copied()))
        .with_prior(calibration(older.iter().copied()))
        .unwrap();
    let (mut times, mut of_alone, mut speedups) = (Vec::new(), Vec::new(), Vec::new());
    let mut held = [0, 0];
    for known in older.iter().filter(|known| newer.iter().all(|new| new.problem != known.problem)) {
        let LinearSizes { m, k, n } = known.problem.sizes().linear().unwrap();
        let (fused_ms, speedup) = after([m, k, n]);
        let estimate = with_prior.on(TARGET).estimate(&known.problem);
        assert_eq!(estimate.evidence(), Evidence::Prior);
        let [time, gain] = [estimate.fused_ms(), estimate.speedup()].map(Option::unwrap);
        times.push(off(time, fused_ms));
        speedups.push(off(gain, speedup));
        held[0] += u32::from(holds(time, fused_ms));
        held[1] += u32::from(holds(gain, speedup));
        of_alone.push(off(alone.on(TARGET).estimate(&known.problem).fused_ms().unwrap(), fused_ms));
        // Whom an answer names is a record that there is.
        assert_eq!(estimate.nearest().next().map(|record| record.problem), Some(known.problem));
    }
    let [time, by_alone] = [&mut times, &mut of_alone].map(|off| quantile(off, 0.5));
    let speedup = quantile(&mut speedups, 0.5);
    println!("time {time:.4} (alone {by_alone:.4}), speedup {speedup:.4}, held {held:?} of 210");
    assert!(time < 0.03 && time < 0.6 * by_alone, "{time} {by_alone}");
    assert!(speedup < 0.015, "{speedup}");
    assert!(held.iter().all(|held| *held >= 185), "{held:?}");
}

/// What the older calibration is uncertain of counts once: beside what a new measurement is off by.
#[test]
fn intervals_are_of_an_older_and_a_new_measurement() {
    let mut numbers = Numbers(4);
    let older: Vec<Known> =
        older(&mut numbers).into_iter().map(|known| Known { half_width: 0.1, ..known }).collect();
    // Nothing has changed.
    let newer = older.iter().step_by(8).copied();
    let model = FusionCostModel::new(calibration(newer))
        .with_prior(calibration(older.iter().copied()))
        .unwrap();
    let sd = (1.1_f64 / 0.9).ln() / 3.92;
    let expected = 2.04 * sd.hypot(sd);
    for known in older.iter().skip(1).step_by(8) {
        let speedup = model.on(TARGET).estimate(&known.problem).speedup().unwrap();
        let half_width = (speedup.high / speedup.value).ln();
        assert!((0.95..1.1).contains(&(half_width / expected)), "{half_width} {expected}");
    }
}

#[test]
fn what_was_measured_anew_comes_back_as_it_is() {
    let mut numbers = Numbers(2);
    let older = older(&mut numbers);
    let newer = calibration(newer(&older, &mut numbers));
    let model = FusionCostModel::new(newer.clone()).with_prior(calibration(older)).unwrap();
    for record in &newer.records {
        let estimate = model.on(TARGET).estimate(&record.problem);
        assert_eq!((estimate.evidence(), estimate.record()), (Evidence::Measured, Some(record)));
    }
}

/// A chain that was not measured again has drifted as its family has, as far as anybody knows.
#[test]
fn other_chains_drift_like_their_family_and_are_less_certain() {
    let mut numbers = Numbers(3);
    let mut older = older(&mut numbers);
    let newer = newer(&older, &mut numbers);
    let other = linear("linear_bias_gelu", [512; 3]);
    older.push(Known { problem: other, fused_ms: 1.0, speedup: 1.2, half_width: 0.02 });
    let rows = RowsSizes { m: 64, n: 64 };
    let elementwise = Problem::rows(chain("add_relu"), DType::F32, rows).unwrap();
    older.push(Known { problem: elementwise, fused_ms: 1.0, speedup: 1.2, half_width: 0.02 });
    let model =
        FusionCostModel::new(calibration(newer)).with_prior(calibration(older.clone())).unwrap();
    let width = |problem: &Problem| {
        let estimate = model.on(TARGET).estimate(problem);
        assert_eq!(estimate.evidence(), Evidence::Prior, "{problem}");
        let Interval { low, high, value, .. } = estimate.fused_ms().unwrap();
        (value, (high / low).ln())
    };
    let (value, of_other) = width(&other);
    assert!((0.8..0.98).contains(&value), "{value}");
    assert!(of_other > width(&older[7].problem).1);
    assert!(width(&elementwise).1 >= of_other);
    // Far beyond what either file knows, and of what neither knows, a prior says nothing.
    let far = model.on(TARGET).estimate(&linear("linear_bias_relu", [1 << 20, 16, 16]));
    assert_eq!(far.evidence(), Evidence::Extrapolated);
}

#[test]
fn another_machine_or_nothing_new_is_no_prior() {
    let mut numbers = Numbers(4);
    let known = older(&mut numbers);
    let changes: [fn(&mut HardwareCalibration); 3] = [
        |of_other| of_other.hardware.id = "another".to_owned(),
        // Clouds give the same name to several processors.
        |of_other| {
            of_other.fingerprint.cpu_family_model_stepping = Some("25/1/1".to_owned());
        },
        |of_other| of_other.fingerprint.logical_cores = 64,
    ];
    for change in changes {
        let mut of_other = calibration(known.iter().copied());
        change(&mut of_other);
        let model = FusionCostModel::new(calibration(known[..3].iter().copied()));
        let error = model.with_prior(of_other).unwrap_err();
        assert!(error.is_hardware_mismatch(), "{error}");
    }
    let model = FusionCostModel::new(calibration([]))
        .with_prior(calibration(known.iter().copied()))
        .unwrap();
    assert_eq!(model.on(TARGET).estimate(&known[0].problem).evidence(), Evidence::Unknown);
}

/// Eight points of an older file are spread over its chains, and the next ones are others.
#[test]
fn points_to_refresh_are_spread() {
    let mut numbers = Numbers(5);
    let mut known = older(&mut numbers);
    known.truncate(60);
    for (index, m) in [64, 128, 256, 512].into_iter().enumerate() {
        for text in ["add_relu", "relu", "softmax"] {
            let rows = RowsSizes { m, n: 100 + index as u64 };
            let problem = Problem::rows(chain(text), DType::F32, rows).unwrap();
            let speedup = if text == "add_relu" { 1.4 } else { 1.0 };
            known.push(Known { problem, fused_ms: 0.1, speedup, half_width: 0.01 });
        }
    }
    let model = FusionCostModel::new(calibration(known.iter().copied()));
    let on = model.on(TARGET);
    let first = on.points_to_refresh(8, &[]);
    assert_eq!((first.len(), &first), (8, &on.points_to_refresh(8, &[])));
    for text in ["linear_bias_relu", "add_relu", "relu", "softmax"] {
        assert!(first.iter().any(|problem| *problem.chain() == chain(text)), "{text}: {first:?}");
    }
    let next = on.points_to_refresh(8, &first);
    assert!(next.len() == 8 && next.iter().all(|problem| !first.contains(problem)));
    let all = on.points_to_refresh(1000, &[]);
    assert_eq!(all.len(), known.len());
    assert_eq!(all[..8], first);
}

/// With a prior, fewer points are left that a decision needs.
#[test]
fn a_prior_leaves_less_to_measure() {
    let mut numbers = Numbers(6);
    let older = older(&mut numbers);
    let newer = newer(&older, &mut numbers);
    let questions: Vec<Problem> = older[..200].iter().map(|known| known.problem).collect();
    let policy = Policy::new(WhenUnknown::Conservative).with_threshold(1.05);
    let left =
        |model: FusionCostModel| model.on(TARGET).coverage(&questions, &policy).to_measure.len();
    let eight = || calibration(newer[..8].iter().copied());
    let alone = left(FusionCostModel::new(eight()));
    let with_prior = left(FusionCostModel::new(eight()).with_prior(calibration(older)).unwrap());
    println!("{alone} alone, {with_prior} with a prior");
    assert!(with_prior < alone, "{with_prior} {alone}");
}
