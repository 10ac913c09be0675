//! Estimates between measured sizes, on machines whose truth is known.

use crate::made::{Known, Numbers, TARGET, calibration};
use fusion_cost_model::{
    AttentionSizes, Chain, ConvSizes, DType, Decision, Evidence, FusionCostModel, Interval,
    LinearSizes, Policy, Problem, RowsSizes, WhenUnknown,
};

fn chain(text: &str) -> Chain {
    text.parse().unwrap()
}

fn linear([m, k, n]: [u64; 3]) -> Problem {
    Problem::linear(chain("linear_bias_relu"), DType::F32, LinearSizes { m, k, n }).unwrap()
}

fn rows(text: &str, m: u64, n: u64) -> Problem {
    Problem::rows(chain(text), DType::F32, RowsSizes { m, n }).unwrap()
}

/// The fused time and the speedup of a machine: a GEMM at 300 GFLOP/s with tails at 20 GB/s, and an
/// efficiency that depends on the sizes.
fn gemm([m, k, n]: [u64; 3]) -> (f64, f64) {
    let [m, k, n] = [m, k, n].map(|size| size as f64);
    let efficiency = 1.0 - 0.3 / (1.0 + m / 32.0) - 0.2 / (1.0 + n / 64.0);
    let fused_ms = 0.005 + 2.0 * m * k * n / (300e6 * efficiency);
    let tail_ms = 2.0 * (0.002 + 8.0 * m * n / 20e6);
    (fused_ms, 1.0 + tail_ms / fused_ms)
}

/// A measured record: what a process does to both variants alike, and noise of the ratio.
fn measured(problem: Problem, (fused_ms, speedup): (f64, f64), numbers: &mut Numbers) -> Known {
    let [process, pair] = [0.04, 0.01].map(|sd| (sd * numbers.normal()).exp());
    Known { problem, fused_ms: fused_ms * process, speedup: speedup * pair, half_width: 0.02 }
}

fn any_size(numbers: &mut Numbers, low: f64, high: f64) -> u64 {
    (low * (high / low).powf(numbers.share())) as u64
}

fn any_gemm(numbers: &mut Numbers) -> [u64; 3] {
    [(); 3].map(|()| any_size(numbers, 16.0, 4096.0))
}

fn any_gemms(count: usize, numbers: &mut Numbers) -> Vec<Known> {
    let any = |_| {
        let sizes = any_gemm(numbers);
        measured(linear(sizes), gemm(sizes), numbers)
    };
    (0..count).map(any).collect()
}

fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[(share * (values.len() - 1) as f64) as usize]
}

fn assert_ordered(interval: Interval, what: &dyn std::fmt::Display) {
    let Interval { value, low, high, .. } = interval;
    assert!(0.0 < low && low <= value && value <= high && high.is_finite(), "{what}: {interval:?}");
}

/// All that an estimate says is a number.
fn assert_sound(model: &FusionCostModel, problem: &Problem) -> Evidence {
    let estimate = model.on(TARGET).estimate(problem);
    let values = [estimate.speedup(), estimate.fused_ms(), estimate.unfused_ms()];
    for interval in values {
        assert_ordered(interval.unwrap_or_else(|| panic!("{problem}: unknown")), problem);
    }
    let [speedup, fused, unfused] = values.map(|interval| interval.unwrap().value);
    if estimate.evidence() != Evidence::Measured {
        assert!((unfused / (fused * speedup) - 1.0).abs() < 1e-9, "{problem}");
    }
    assert!(estimate.octaves_beyond() >= 0.0);
    assert!(estimate.nearest().count() >= 1);
    estimate.evidence()
}

#[test]
fn speedups_are_estimated_far_better_than_times() {
    let mut numbers = Numbers(1);
    let known = any_gemms(48, &mut numbers);
    let model = FusionCostModel::new(calibration(known.iter().copied()));
    let (mut of_speedup, mut of_time, mut covered) = (Vec::new(), Vec::new(), [0, 0]);
    for _ in 0..400 {
        let sizes = any_gemm(&mut numbers);
        let estimate = model.on(TARGET).estimate(&linear(sizes));
        let (fused_ms, speedup) = gemm(sizes);
        let [time, gain] = [estimate.fused_ms(), estimate.speedup()].map(Option::unwrap);
        of_time.push((time.value / fused_ms).ln().abs());
        of_speedup.push((gain.value / speedup).ln().abs());
        covered[0] += u32::from((time.low..=time.high).contains(&fused_ms));
        covered[1] += u32::from((gain.low..=gain.high).contains(&speedup));
    }
    let [time, speedup] = [&of_time, &of_speedup].map(|off| quantile(off.clone(), 0.5));
    println!("time {time:.4}, speedup {speedup:.4}, covered {covered:?} of 400");
    assert!(speedup < 0.015 && quantile(of_speedup, 0.9) < 0.06, "{speedup}");
    assert!(time < 0.05 && speedup < time, "{time} {speedup}");
    assert!(covered.iter().all(|&covered| covered >= 360), "{covered:?}");
}

#[test]
fn new_measurements_are_in_their_intervals_where_records_say_how_certain_they_are() {
    /// Half of the interval of a time whose logarithm has a standard deviation of 4 %, as
    /// [`measured`] gives it.
    const HALF_WIDTH: f64 = 1.96 * 0.04;
    for seed in 1..=3 {
        let numbers = &mut Numbers(seed);
        let mut calibration = calibration(any_gemms(200, numbers));
        for record in &mut calibration.records {
            let fused_ms = record.fused_latency_ms;
            record.fused_timing.low_ms = Some(fused_ms * (-HALF_WIDTH).exp());
            record.fused_timing.high_ms = Some(fused_ms * HALF_WIDTH.exp());
        }
        let model = FusionCostModel::new(calibration);
        let (mut inside, mut asked) = (0, 0);
        for new in any_gemms(400, numbers) {
            let estimate = model.on(TARGET).estimate(&new.problem);
            if estimate.evidence() == Evidence::Interpolated {
                asked += 1;
                inside += u32::from(estimate.fused_ms().unwrap().contains(new.fused_ms));
            }
        }
        let share = f64::from(inside) / f64::from(asked);
        assert!(asked > 200 && (0.92..=0.99).contains(&share), "{inside} of {asked}");
    }
}

#[test]
fn what_was_measured_comes_back_as_it_is() {
    let mut numbers = Numbers(2);
    let known = any_gemms(30, &mut numbers);
    let calibration = calibration(known);
    let model = FusionCostModel::new(calibration.clone());
    for record in &calibration.records {
        let estimate = model.on(TARGET).estimate(&record.problem);
        assert_eq!(estimate.evidence(), Evidence::Measured);
        assert_eq!(estimate.record(), Some(record));
        let Interval { value, low, high, .. } = estimate.speedup().unwrap();
        assert_eq!(
            [low, value, high],
            [record.speedup_low, record.speedup_factor, record.speedup_high]
        );
        assert_eq!(estimate.fused_ms().unwrap().value, record.fused_latency_ms);
        assert_eq!(estimate.unfused_ms().unwrap().value, record.unfused_latency_ms);
    }
}

/// Gains of an elementwise chain fall in steps, where a cache is full.
#[test]
fn cliffs_are_followed() {
    let truth = |m: u64, n: u64| {
        let bytes = (12 * m * n) as f64;
        let (speedup, gb_per_s) = match bytes {
            ..48e3 => (1.9, 400.0),
            ..2e6 => (1.75, 200.0),
            ..100e6 => (1.4, 60.0),
            _ => (1.34, 20.0),
        };
        (0.0005 + bytes / (gb_per_s * 1e6), speedup)
    };
    let mut numbers = Numbers(3);
    let any = |numbers: &mut Numbers| {
        let n = any_size(numbers, 64.0, 4096.0);
        (any_size(numbers, 8.0, 8192.0), n)
    };
    let known: Vec<Known> = (0..27)
        .map(|_| {
            let (m, n) = any(&mut numbers);
            measured(rows("add_relu", m, n), truth(m, n), &mut numbers)
        })
        .collect();
    let model = FusionCostModel::new(calibration(known));
    let mut off = Vec::new();
    for _ in 0..300 {
        let (m, n) = any(&mut numbers);
        let estimate = model.on(TARGET).estimate(&rows("add_relu", m, n));
        off.push((estimate.speedup().unwrap().value / truth(m, n).1).ln().abs());
    }
    let [median, p90] = [0.5, 0.9].map(|share| quantile(off.clone(), share));
    println!("median {median:.4}, p90 {p90:.4}");
    assert!(median < 0.03 && p90 < 0.12, "{median} {p90}");
}

/// A grid of powers of two does not know what other sizes cost. Its intervals cannot know it either,
/// but its numbers stay sound.
#[test]
fn powers_of_two_alone() {
    let mut numbers = Numbers(4);
    let truth = |sizes: [u64; 3]| {
        let (fused, speedup) = gemm(sizes);
        let is_odd = sizes.iter().any(|size| size % 16 != 0);
        (if is_odd { 1.05 * fused } else { fused }, speedup)
    };
    let powers = [32, 128, 512, 2048];
    let mut known = Vec::new();
    for m in powers {
        for k in powers {
            for n in powers {
                known.push(measured(linear([m, k, n]), truth([m, k, n]), &mut numbers));
            }
        }
    }
    let model = FusionCostModel::new(calibration(known));
    let mut covered = 0;
    for _ in 0..400 {
        let sizes = [(); 3].map(|()| any_size(&mut numbers, 32.0, 2048.0));
        let problem = linear(sizes);
        assert_sound(&model, &problem);
        let time = model.on(TARGET).estimate(&problem).fused_ms().unwrap();
        covered += u32::from((time.low..=time.high).contains(&truth(sizes).0));
    }
    println!("covered {covered} of 400");
    assert!(covered >= 300, "{covered}");
}

#[test]
fn one_record_is_held_everywhere() {
    let known = Known { problem: linear([256; 3]), fused_ms: 0.2, speedup: 1.3, half_width: 0.01 };
    let model = FusionCostModel::new(calibration([known]));
    let on = model.on(TARGET);
    assert_eq!(assert_sound(&model, &linear([250, 256, 256])), Evidence::Interpolated);
    let far = on.estimate(&linear([1024, 256, 256]));
    assert_eq!((far.evidence(), far.octaves_beyond()), (Evidence::Extrapolated, 2.0));
    assert!((far.speedup().unwrap().value.ln() - 1.3_f64.ln()).abs() < 0.05);
    assert!((far.fused_ms().unwrap().value / 0.8).ln().abs() < 0.3, "{:?}", far.fused_ms());
    assert_eq!(far.nearest().map(|record| record.problem).collect::<Vec<_>>(), [known.problem]);
    // The farther away, the less certain.
    let width = |sizes| {
        let Interval { low, high, .. } = on.estimate(&linear(sizes)).fused_ms().unwrap();
        high / low
    };
    assert!(width([512, 256, 256]) < width([2048, 256, 256]));
    assert!(width([2048, 256, 256]) < width([65_536, 256, 256]));
}

/// Nor the other way round: a mask, or keys that heads share, is not a distance in size. A single
/// query sees everything, so that one is the same problem with and without a mask.
#[test]
fn records_without_a_mask_say_nothing_about_causal_attention() {
    let attention = |q, kvh, causal| {
        let sizes = AttentionSizes { b: 1, h: 8, q, kv: 512, d: 64, kvh, causal };
        Problem::attention(chain("attention_head"), DType::F32, sizes).unwrap()
    };
    let kinds = [(8, false), (8, true), (2, false), (2, true)];
    for measured in kinds {
        let known = |q| Known {
            problem: attention(q, measured.0, measured.1),
            fused_ms: 0.1 + q as f64 / 100.0,
            speedup: 1.1,
            half_width: 0.01,
        };
        let model = FusionCostModel::new(calibration([32, 64, 128, 256, 512].map(known)));
        let decoding = FusionCostModel::new(calibration([known(1)]));
        let on = model.on(TARGET);
        for asked in kinds {
            let evidence = |q| on.estimate(&attention(q, asked.0, asked.1)).evidence();
            let is_known = asked == measured;
            let expected = if is_known { Evidence::Interpolated } else { Evidence::Unknown };
            assert_eq!(evidence(200), expected, "{asked:?} from {measured:?}");
            let one = decoding.on(TARGET).estimate(&attention(1, asked.0, asked.1)).evidence();
            assert_eq!(one == Evidence::Measured, asked.0 == measured.0, "{asked:?}");
        }
    }
}

#[test]
fn records_at_the_same_place_are_averaged() {
    // Four heads of two images are as much work as eight heads of one.
    let attention = |b, h| {
        let sizes = AttentionSizes { b, h, q: 64, kv: 64, d: 64, kvh: h, causal: false };
        Problem::attention(chain("attention_head"), DType::F32, sizes).unwrap()
    };
    let known = |b, h, fused_ms| Known {
        problem: attention(b, h),
        fused_ms,
        speedup: 1.1,
        half_width: 0.01,
    };
    let model = FusionCostModel::new(calibration([known(1, 8, 0.9), known(2, 4, 1.1)]));
    let third = attention(8, 1);
    assert_eq!(assert_sound(&model, &third), Evidence::Interpolated);
    let time = model.on(TARGET).estimate(&third).fused_ms().unwrap().value;
    assert!((time - 1.0).abs() < 0.05, "{time}");
}

#[test]
fn the_smallest_and_the_largest_sizes_are_sound() {
    let mut numbers = Numbers(5);
    let mut known = Vec::new();
    for sizes in [[64, 64, 64], [256, 64, 128], [512, 512, 512], [100, 300, 70]] {
        known.push(measured(linear(sizes), gemm(sizes), &mut numbers));
    }
    for (m, n) in [(64, 64), (1000, 1000), (37, 4096)] {
        known.push(measured(rows("add_layernorm", m, n), (0.1, 1.2), &mut numbers));
        known.push(measured(rows("relu", m, n), (0.1, 1.0), &mut numbers));
    }
    let conv = |h, k, r| {
        let (pad, stride, groups) = (0, 1, 1);
        let sizes = ConvSizes { n: 1, c: 8, h, w: h, k, r, s: r, stride, pad, groups };
        Problem::conv(chain("conv_bn"), DType::F32, sizes).unwrap()
    };
    known.push(measured(conv(32, 16, 3), (0.3, 1.1), &mut numbers));
    let model = FusionCostModel::new(calibration(known));
    let huge = u64::from(u32::MAX);
    for problem in [
        linear([1; 3]),
        linear([1, 1, huge]),
        linear([1 << 18; 3]),
        rows("add_layernorm", 1, 1),
        rows("add_layernorm", huge, 1),
        rows("relu", 1, huge),
        conv(3, 1, 3),
        conv(60_000, 64, 3),
    ] {
        assert_eq!(assert_sound(&model, &problem), Evidence::Extrapolated, "{problem}");
    }
    // A filter of 1 x 1 is another kernel, and says nothing about one of 3 x 3.
    assert_eq!(model.on(TARGET).estimate(&conv(32, 16, 1)).evidence(), Evidence::Unknown);
}

#[test]
fn a_single_op_has_one_time_and_gains_nothing() {
    let known = [(64, 0.004), (512, 0.03), (4096, 0.3)].map(|(m, fused_ms)| Known {
        problem: rows("relu", m, 1024),
        fused_ms,
        speedup: 1.0,
        half_width: 0.0,
    });
    let model = FusionCostModel::new(calibration(known));
    for m in [64, 100, 2000, 9000] {
        let estimate = model.on(TARGET).estimate(&rows("relu", m, 1024));
        let Interval { value, low, high, .. } = estimate.speedup().unwrap();
        assert_eq!([low, value, high], [1.0; 3]);
        assert_eq!(estimate.unfused_ms().unwrap().value, estimate.fused_ms().unwrap().value);
    }
}

#[test]
fn decisions_are_made_on_estimates() {
    let mut numbers = Numbers(6);
    let known = any_gemms(30, &mut numbers);
    let model = FusionCostModel::new(calibration(known));
    let policy = Policy::new(WhenUnknown::Error);
    let small = model.on(TARGET).decide(&linear([40, 40, 2000]), &policy).unwrap();
    assert!(matches!(small, Decision::Fuse(_)), "{small:?}");
    assert_eq!(small.estimate().evidence(), Evidence::Interpolated);
    let keep = model.on(TARGET).decide(&linear([500; 3]), &policy.with_threshold(3.0)).unwrap();
    assert!(matches!(keep, Decision::Keep(_)));
}

fn state(id: u32) -> fusion_cost_model::calibration::MachineState {
    fusion_cost_model::calibration::MachineState {
        id,
        handoff_us: Some(0.5),
        triad_gb_per_s: 55.0,
        triad_range: [50.0, 60.0],
        processes: 5,
    }
}

#[test]
fn a_state_that_was_not_met_makes_every_interval_wider() {
    let mut numbers = Numbers(7);
    let known = any_gemms(8, &mut numbers);
    let mut calibration = calibration(known);
    let of = |state, speedup_factor: f64| fusion_cost_model::calibration::StateSpeedup {
        state,
        processes: 5,
        speedup_factor,
        speedup_low: 0.9 * speedup_factor,
        speedup_high: 1.1 * speedup_factor,
    };
    calibration.states = [1, 2].map(state).to_vec();
    calibration.records[0].states = vec![1, 2];
    calibration.records[0].by_state = vec![of(1, 1.2), of(2, 1.5)];
    let mut met_one = calibration.clone();
    let model = FusionCostModel::new(calibration);
    let problem = linear([300, 200, 100]);
    let speedup = |on: fusion_cost_model::OnTarget<'_>| on.estimate(&problem).speedup().unwrap();
    let in_one = speedup(model.on(TARGET).in_state(2).unwrap());
    let over_all = speedup(model.on(TARGET));
    assert_eq!(over_all.value, in_one.value);
    assert!(in_one.low < over_all.low && over_all.high < in_one.high);
    // Where no record met two states, nobody knows what they differ by.
    for record in &mut met_one.records {
        (record.states, record.by_state) = (vec![1], Vec::new());
    }
    let model = FusionCostModel::new(met_one);
    let record = &model.calibration().records[0];
    let measured = model.on(TARGET).in_state(2).unwrap().estimate(&record.problem);
    let speedup = measured.speedup().unwrap();
    assert!(speedup.low < record.speedup_low && record.speedup_high < speedup.high);
}
