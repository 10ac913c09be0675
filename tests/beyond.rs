//! Answers beyond the measured range, and those of sums of ops wherever they are given.

use crate::composition::with_functions;
use crate::made::{Known, Numbers, TARGET, calibration};
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::{Estimate, Evidence, FusionCostModel, Interval};

type Sizes = [u64; 3];

/// Sizes of GEMMs whose depth is in a range.
fn sizes(numbers: &mut Numbers, count: usize, [least_k, most_k]: [f64; 2]) -> Vec<Sizes> {
    let size = |numbers: &mut Numbers, least: f64, most: f64| {
        (least * (most / least).powf(numbers.share())) as u64
    };
    (0..count)
        .map(|_| {
            let [m, n] = [0, 1].map(|_| size(numbers, 64.0, 2048.0));
            [m, size(numbers, least_k, most_k), n]
        })
        .collect()
}

fn known(text: &str, numbers: &mut Numbers) -> Known {
    let (problem, fused_ms, unfused_ms) = with_functions(text);
    let [process, pair] = [0.01, 0.005].map(|sd| (sd * numbers.normal()).exp());
    let speedup = unfused_ms / fused_ms * pair;
    Known { problem, fused_ms: fused_ms * process, speedup, half_width: 0.01 }
}

/// Chains of GEMMs, each with its ops by themselves.
fn chains(chains: &[&str], all: &[Sizes], numbers: &mut Numbers) -> Vec<Known> {
    let ops = ["bias", "relu", "gelu", "silu", "bias+relu", "bias+gelu"];
    let mut texts = Vec::new();
    for [m, k, n] in all {
        texts.extend(chains.iter().map(|chain| format!("{chain}/f32/m{m}.k{k}.n{n}")));
        texts.extend(ops.map(|op| format!("{op}/f32/m{m}.n{n}")));
    }
    texts.iter().map(|text| known(text, numbers)).collect()
}

fn width(interval: Option<Interval>) -> f64 {
    let Interval { low, high, .. } = interval.unwrap();
    (high / low).ln()
}

/// How many of the truths lie in the intervals of times and speedups.
fn held<'m>(
    texts: impl Iterator<Item = String>,
    estimate: impl Fn(&str) -> Estimate<'m>,
) -> ([usize; 2], usize) {
    let (mut held, mut asked) = ([0; 2], 0);
    for text in texts {
        let (_, fused_ms, unfused_ms) = with_functions(&text);
        let found = estimate(&text);
        asked += 1;
        held[0] += usize::from(found.fused_ms().unwrap().contains(fused_ms));
        held[1] += usize::from(found.speedup().unwrap().contains(unfused_ms / fused_ms));
    }
    (held, asked)
}

/// What was measured, and chains with a GELU at the first sizes whose times no sum of ops explains: how far
/// sums are off can be seen from them.
fn with_unexplained(all: &[Sizes], numbers: &mut Numbers) -> Vec<Known> {
    let mut known = chains(&["linear_bias_relu"], all, numbers);
    for one in chains(&["linear_bias_gelu"], &all[..8], numbers) {
        if one.problem.chain().len() == 3 {
            let factor = (0.2 * numbers.normal()).exp();
            let (fused_ms, speedup) = (one.fused_ms * factor, one.speedup / factor);
            known.push(Known { fused_ms, speedup, ..one });
        }
    }
    known
}

/// How far sums are off is not forgotten at the edge of the range.
#[test]
fn a_sum_beyond_the_range_is_no_more_certain_than_within() {
    let mut numbers = Numbers(5);
    let relu = sizes(&mut numbers, 16, [32.0, 1024.0]);
    let model = FusionCostModel::new(calibration(with_unexplained(&relu, &mut numbers)));
    let least = relu.iter().map(|[_, k, _]| *k).min().unwrap();
    let at = |k: u64| {
        let problem = format!("linear+bias+silu/f32/m500.k{k}.n500").parse().unwrap();
        model.on(TARGET).estimate(&problem)
    };
    let [within, beyond] = [at(least + 1), at(least * 3 / 4)];
    assert_eq!(within.evidence(), Evidence::ComposedBetween);
    assert_eq!(beyond.evidence(), Evidence::Extrapolated);
    // A shorter product is another one, but not a much more certain one.
    let widths = [&within, &beyond].map(|one| [one.fused_ms(), one.speedup()].map(width));
    assert!((0..2).all(|of| widths[1][of] > 0.9 * widths[0][of]), "{widths:?}");
}

/// With less depth a GEMM waits for memory, and more is to be gained than was measured.
#[test]
fn a_speedup_that_is_held_may_go_on_as_the_roofline_does() {
    let mut numbers = Numbers(6);
    let known =
        chains(&["linear_bias_relu"], &sizes(&mut numbers, 24, [96.0, 1024.0]), &mut numbers);
    let model = FusionCostModel::new(calibration(known));
    let asked = sizes(&mut numbers, 60, [12.0, 60.0]);
    let texts = asked.iter().map(|[m, k, n]| format!("linear_bias_relu/f32/m{m}.k{k}.n{n}"));
    let (held, asked) = held(texts, |text| {
        let estimate = model.on(TARGET).estimate(&text.parse().unwrap());
        assert_eq!(estimate.evidence(), Evidence::Extrapolated, "{text}");
        estimate
    });
    assert!(10 * held[1] >= 9 * asked, "{held:?} of {asked}");
}

/// Newer records of other chains do not say how far sums are off.
#[test]
fn a_prior_that_is_a_sum_is_as_uncertain_as_the_sum() {
    let mut numbers = Numbers(7);
    let relu = sizes(&mut numbers, 24, [24.0, 512.0]);
    let older = with_unexplained(&relu, &mut numbers);
    let newer: Vec<Known> = older
        .iter()
        .filter(|one| one.problem.to_string().starts_with("linear_bias_relu"))
        .map(|one| known(&one.problem.to_string(), &mut numbers))
        .collect();
    assert_eq!(newer.len(), 24);
    let older: HardwareCalibration = calibration(older);
    let alone = FusionCostModel::new(older.clone());
    let model = FusionCostModel::new(calibration(newer)).with_prior(older).unwrap();
    let mut asked = 0;
    for [m, k, n] in sizes(&mut numbers, 60, [32.0, 256.0]) {
        let problem = format!("linear+bias+silu/f32/m{m}.k{k}.n{n}").parse().unwrap();
        let [before, after] = [&alone, &model].map(|model| model.on(TARGET).estimate(&problem));
        if before.evidence() == Evidence::ComposedBetween && after.evidence() == Evidence::Prior {
            asked += 1;
            let widths = [before.fused_ms(), after.fused_ms()].map(width);
            assert!(widths[1] >= 0.99 * widths[0], "{problem}: {widths:?}");
            let widths = [before.speedup(), after.speedup()].map(width);
            assert!(widths[1] >= 0.99 * widths[0], "{problem}: {widths:?}");
        }
    }
    assert!(asked > 20, "{asked}");
}
