//! Chains that were not measured, from those that were.

use crate::made::{Known, Numbers, TARGET, calibration};
use fusion_cost_model::calibration::{HardwareCalibration, StepTime};
use fusion_cost_model::cost::Traffic;
use fusion_cost_model::kernel::Step;
use fusion_cost_model::{Evidence, FusionCostModel, Problem};

fn problem(text: &str) -> Problem {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The time of one op by itself: launch, flops and bytes.
fn step_ms(flops: f64, bytes: f64) -> f64 {
    0.002 + flops / 300e6 + bytes / 20e6
}

/// Both times of a problem: a kernel takes its flops and the bytes that cross its boundary.
fn truth(problem: &Problem) -> (f64, f64) {
    let ms = |problem: &Problem| {
        let traffic = Traffic::of(problem);
        step_ms(traffic.flops as f64, traffic.fused_bytes as f64)
    };
    let steps = 0..problem.chain().len();
    let unfused: f64 = steps.map(|op| ms(&problem.slice(op..op + 1).unwrap())).sum();
    if problem.chain().len() == 1 { (unfused, unfused) } else { (ms(problem), unfused) }
}

fn known(text: &str) -> Known {
    let problem = problem(text);
    let (fused_ms, unfused_ms) = truth(&problem);
    Known { problem, fused_ms, speedup: unfused_ms / fused_ms, half_width: 0.01 }
}

/// GEMMs with bias and ReLU at some sizes, and ops by themselves.
fn model(sizes: &[[u64; 3]]) -> FusionCostModel {
    let gemms =
        sizes.iter().map(|[m, k, n]| known(&format!("linear_bias_relu/f32/m{m}.k{k}.n{n}")));
    let tails = ["relu", "silu", "bias", "bias+relu", "relu+dropout", "add+relu", "add"];
    let tails = tails.into_iter().flat_map(|tail| {
        [(64, 64), (256, 512), (2048, 512), (512, 4096)]
            .map(move |(m, n)| known(&format!("{tail}/f32/m{m}.n{n}")))
    });
    FusionCostModel::new(calibration(gemms.chain(tails)))
}

fn assert_composed(model: &FusionCostModel, text: &str, evidence: Evidence, most_off: f64) {
    let problem = problem(text);
    let estimate = model.on(TARGET).estimate(&problem);
    assert_eq!(estimate.evidence(), evidence, "{text}");
    let (fused_ms, unfused_ms) = truth(&problem);
    let expected = [fused_ms, unfused_ms, unfused_ms / fused_ms];
    let found = [estimate.fused_ms(), estimate.unfused_ms(), estimate.speedup()];
    for (expected, found) in expected.into_iter().zip(found) {
        let found = found.unwrap();
        let off = (found.value / expected).ln().abs();
        assert!(off < most_off, "{text}: {off:.4}, {found:?}, not {expected}");
        assert!(found.low < expected && expected < found.high, "{text}: {found:?} {expected}");
    }
}

const SIZES: [[u64; 3]; 6] = [
    [256, 512, 512],
    [2048, 512, 512],
    [64, 64, 64],
    [512, 256, 4096],
    [100, 900, 300],
    [700, 90, 900],
];

/// `linear+bias+leaky_relu` at one size from `linear+bias+relu` there, and from itself at others.
#[test]
fn a_speedup_is_weighed_with_the_chains_own() {
    const ASKED: &str = "linear+bias+leaky_relu/f32/m256.k512.n512";
    let asked_elsewhere = |speedup: f64, half_width: f64| {
        let at = |[m, k, n]: [u64; 3]| {
            let known = known(&format!("linear+bias+leaky_relu/f32/m{m}.k{k}.n{n}"));
            Known { speedup, half_width, ..known }
        };
        SIZES[1..].iter().copied().map(at).collect::<Vec<Known>>()
    };
    let estimate = |own: Vec<Known>| {
        let gemms = SIZES.iter().map(|[m, k, n]| format!("linear_bias_relu/f32/m{m}.k{k}.n{n}"));
        let tails = ["relu", "leaky_relu"].map(|op| format!("{op}/f32/m256.n512"));
        let all = gemms.chain(tails).map(|text| known(&text));
        let model = FusionCostModel::new(calibration(all.chain(own)));
        let estimate = model.on(TARGET).estimate(&problem(ASKED));
        assert_eq!(estimate.evidence(), Evidence::ComposedAtSize);
        let [fused_ms, speedup] = [estimate.fused_ms(), estimate.speedup()].map(Option::unwrap);
        assert!(speedup.low < speedup.value && speedup.value < speedup.high);
        let unfused_ms = estimate.unfused_ms().unwrap();
        assert!((unfused_ms.value / fused_ms.value / speedup.value - 1.0).abs() < 1e-9);
        (fused_ms.value, speedup.value)
    };
    let (composed_ms, composed) = estimate(Vec::new());
    // Elsewhere, fusing gained twice as much.
    let own = 2.0 * composed;
    let (ms, certain) = estimate(asked_elsewhere(own, 0.01));
    let (_, vague) = estimate(asked_elsewhere(own, 0.5));
    // But for what the chain's own records say of the arithmetic that is hidden.
    assert!((ms / composed_ms - 1.0).abs() < 1e-6, "the time is composed: {ms} {composed_ms}");
    assert!(composed < vague && vague < certain && certain < own, "{composed} {vague} {certain}");
}

#[test]
fn a_tail_is_exchanged_at_the_measured_size() {
    let model = model(&SIZES);
    for text in [
        "linear+bias+silu/f32/m256.k512.n512",
        "linear+bias+relu+dropout/f32/m256.k512.n512",
        "linear+bias+add+relu/f32/m2048.k512.n512",
    ] {
        assert_composed(&model, text, Evidence::ComposedAtSize, 0.03);
    }
    let estimate = model.on(TARGET).estimate(&problem("linear+bias+silu/f32/m256.k512.n512"));
    let nearest: Vec<String> = estimate.nearest().map(|it| it.problem.to_string()).collect();
    assert_eq!(
        nearest,
        ["linear_bias_relu/f32/m256.k512.n512", "silu/f32/m256.n512", "relu/f32/m256.n512"]
    );
}

/// `linear+bias+silu` of one chain by exchanging two ops, and of another by exchanging three.
#[test]
fn the_more_certain_sibling_is_taken_even_if_more_ops_differ() {
    let wanted = problem("linear+bias+silu/f32/m256.k512.n512");
    let unfused_ms = |half_widths: [f64; 2]| {
        let siblings = ["linear+bias+relu", "linear+relu"].map(|chain| {
            let known = known(&format!("{chain}/f32/m256.k512.n512"));
            // So that it is seen of which of them the unfused time is.
            let speedup = known.speedup * if chain == "linear+relu" { 1.3 } else { 1.0 };
            Known { speedup, ..known }
        });
        let siblings = siblings.into_iter().zip(half_widths);
        let siblings = siblings.map(|(known, half_width)| Known { half_width, ..known });
        let parts =
            ["relu", "silu", "bias+silu"].map(|tail| known(&format!("{tail}/f32/m256.n512")));
        let model = FusionCostModel::new(calibration(siblings.chain(parts)));
        let estimate = model.on(TARGET).estimate(&wanted);
        assert_eq!(estimate.evidence(), Evidence::ComposedAtSize);
        let of_sibling = estimate.nearest().next().unwrap().problem.to_string();
        (estimate.unfused_ms().unwrap().value, of_sibling)
    };
    let (_, expected_ms) = truth(&wanted);
    let (ms, sibling) = unfused_ms([0.01, 0.5]);
    assert_eq!(sibling, "linear_bias_relu/f32/m256.k512.n512");
    assert!((ms / expected_ms - 1.0).abs() < 1e-9, "{ms} {expected_ms}");
    let (ms, sibling) = unfused_ms([0.5, 0.01]);
    assert_eq!(sibling, "linear+relu/f32/m256.k512.n512");
    assert!(ms / expected_ms > 1.2, "{ms} {expected_ms}");
}

/// A tail that is longer by one op, and no chain of its ops that was measured.
#[test]
fn ops_that_read_no_tensor_are_added_to_a_measured_chain() {
    let gemm = "linear_bias_relu/f32/m256.k512.n512";
    let estimate_of = |wanted: &str, tail: &str| {
        let all = [known(gemm), known(&format!("{tail}/f32/m256.n512"))];
        let model = FusionCostModel::new(calibration(all));
        let wanted = problem(&format!("{wanted}/f32/m256.k512.n512"));
        let estimate = model.on(TARGET).estimate(&wanted);
        let of = |interval: Option<fusion_cost_model::Interval>| interval.map(|it| it.value);
        (estimate.evidence(), of(estimate.fused_ms()), of(estimate.unfused_ms()))
    };
    let [(fused_ms, unfused_ms), (scale_ms, _), (gelu_ms, _)] =
        [gemm, "scale/f32/m256.n512", "gelu/f32/m256.n512"].map(|text| truth(&problem(text)));
    for (wanted, tail, tail_ms, hidden_ms) in [
        // It is computed on what the kernel holds, and next to nothing.
        ("linear+bias+relu+scale", "scale", scale_ms, 0.01 * fused_ms),
        ("linear+bias+scale+relu", "scale", scale_ms, 0.01 * fused_ms),
        // Its arithmetic takes time.
        ("linear+bias+relu+gelu", "gelu", gelu_ms, 2.0 * gelu_ms),
    ] {
        let (evidence, fused, unfused) = estimate_of(wanted, tail);
        assert_eq!(evidence, Evidence::ComposedAtSize, "{wanted}");
        let (fused, unfused) = (fused.unwrap(), unfused.unwrap());
        assert!((unfused / (unfused_ms + tail_ms) - 1.0).abs() < 1e-9, "{wanted}: {unfused}");
        let more_ms = fused - fused_ms;
        assert!((0.0..=hidden_ms).contains(&more_ms), "{wanted}: {more_ms} {hidden_ms}");
        assert_eq!(more_ms > 0.01 * fused_ms, tail == "gelu", "{wanted}: {more_ms}");
    }
    // An add reads a tensor, and a norm waits for whole rows.
    for (wanted, tail) in
        [("linear+bias+relu+add", "add"), ("linear+bias+relu+layer_norm", "layer_norm")]
    {
        assert_ne!(estimate_of(wanted, tail).0, Evidence::ComposedAtSize, "{wanted}");
    }
}

#[test]
fn the_first_op_is_what_the_others_leave() {
    let model = model(&SIZES);
    let wanted = problem("linear/f32/m256.k512.n512");
    let estimate = model.on(TARGET).estimate(&wanted);
    assert_eq!(estimate.evidence(), Evidence::ComposedAtSize);
    let (expected, _) = truth(&wanted);
    let found = estimate.fused_ms().unwrap();
    assert!((found.value / expected).ln().abs() < 0.03, "{found:?} {expected}");
    assert_eq!(estimate.speedup().unwrap().low, 1.0);
}

/// A linear layer with its tail, each step of which takes half as long in place as by itself.
fn with_steps(sizes: [u64; 3]) -> HardwareCalibration {
    let [m, k, n] = sizes;
    let mut calibration = calibration([known(&format!("linear_bias_relu/f32/m{m}.k{k}.n{n}"))]);
    for record in &mut calibration.records {
        let step = |op: usize| {
            let (alone, _) = truth(&record.problem.slice(op..op + 1).unwrap());
            let ms = if op == 0 { alone } else { 0.5 * alone };
            let op = record.problem.chain()[op].name().to_owned();
            StepTime { op, ms, low_ms: Some(0.99 * ms), high_ms: Some(1.01 * ms) }
        };
        record.steps = (0..record.problem.chain().len()).map(step).collect();
    }
    calibration
}

#[test]
fn the_first_op_has_the_time_of_its_step() {
    let mut all = with_steps(SIZES[0]);
    all.records.extend(SIZES[1..].iter().flat_map(|sizes| with_steps(*sizes).records));
    all.num_records = all.records.len() as u64;
    let model = FusionCostModel::new(all);
    for (sizes, evidence, most_off) in [
        ("m256.k512.n512", Evidence::ComposedAtSize, 1e-9),
        ("m300.k400.n700", Evidence::Interpolated, 0.15),
    ] {
        let wanted = problem(&format!("linear/f32/{sizes}"));
        let estimate = model.on(TARGET).estimate(&wanted);
        assert_eq!(estimate.evidence(), evidence, "{sizes}");
        let (expected, _) = truth(&wanted);
        let found = estimate.fused_ms().unwrap();
        assert!((found.value / expected).ln().abs() < most_off, "{found:?} {expected}");
        assert!(found.low < expected && expected < found.high, "{found:?} {expected}");
        assert!(estimate.nearest().next().is_some());
    }
    // Of what stands behind another kernel, the step says nothing.
    let relu = model.on(TARGET).estimate(&problem("relu/f32/m256.n512"));
    assert_eq!(relu.evidence(), Evidence::Unknown);
}

#[test]
fn what_was_measured_by_itself_is_not_its_step() {
    let mut all = with_steps(SIZES[0]);
    let measured = known("linear/f32/m256.k512.n512");
    let measured = Known { fused_ms: 7.0, ..measured };
    all.records.extend(calibration([measured]).records);
    all.num_records = all.records.len() as u64;
    let model = FusionCostModel::new(all);
    let estimate = model.on(TARGET).estimate(&measured.problem);
    assert_eq!(estimate.evidence(), Evidence::Measured);
    assert_eq!(estimate.fused_ms().unwrap().value, 7.0);
}

#[test]
fn a_row_op_is_not_exchanged_for_a_pointwise_one() {
    let sizes = "m256.n512";
    let of = |chain: &str| known(&format!("{chain}/f32/{sizes}"));
    let chains = ["add+layer_norm", "layer_norm", "relu", "rms_norm", "silu", "add+silu"];
    let all = FusionCostModel::new(calibration(chains.map(of)));
    let evidence = |chain: &str, model: &FusionCostModel| {
        model.on(TARGET).estimate(&problem(&format!("{chain}/f32/{sizes}"))).evidence()
    };
    assert_eq!(evidence("add+rms_norm", &all), Evidence::ComposedAtSize);
    assert_eq!(evidence("add+relu", &all), Evidence::ComposedAtSize, "from add+silu");
    let without = FusionCostModel::new(calibration(chains[..5].iter().map(|chain| of(chain))));
    assert_eq!(evidence("add+relu", &without), Evidence::Unknown);
}

#[test]
fn between_sizes_it_is_composed_of_estimates() {
    let model = model(&SIZES);
    assert_composed(&model, "linear+bias+silu/f32/m500.k400.n700", Evidence::ComposedBetween, 0.15);
}

/// The order of trust, from a file that could answer in several ways.
#[test]
fn the_most_trusted_evidence_answers() {
    let own = [[300, 300, 300], [900, 300, 900], [300, 900, 300], [128, 64, 64]];
    let gemms = SIZES.map(|[m, k, n]| known(&format!("linear_bias_relu/f32/m{m}.k{k}.n{n}")));
    let own = own.map(|[m, k, n]| known(&format!("linear+bias+silu/f32/m{m}.k{k}.n{n}")));
    let tails = ["relu", "silu"].into_iter().flat_map(|tail| {
        [(64, 64), (512, 512), (2048, 4096)]
            .map(move |(m, n)| known(&format!("{tail}/f32/m{m}.n{n}")))
    });
    let model = FusionCostModel::new(calibration(gemms.into_iter().chain(own).chain(tails)));
    for (sizes, evidence) in [
        ("m300.k300.n300", Evidence::Measured),
        ("m256.k512.n512", Evidence::ComposedAtSize),
        ("m400.k400.n400", Evidence::Interpolated),
        ("m1200.k500.n600", Evidence::ComposedBetween),
        ("m9999.k9999.n9999", Evidence::Extrapolated),
    ] {
        let estimate =
            model.on(TARGET).estimate(&problem(&format!("linear+bias+silu/f32/{sizes}")));
        assert_eq!(estimate.evidence(), evidence, "{sizes}");
    }
    let order = [
        Evidence::Measured,
        Evidence::ComposedAtSize,
        Evidence::Interpolated,
        Evidence::ComposedBetween,
        Evidence::Extrapolated,
        Evidence::Roofline,
        Evidence::Unknown,
    ];
    assert!(order.is_sorted());
}

#[test]
fn without_its_tails_a_chain_stays_unknown() {
    let gemms = SIZES.map(|[m, k, n]| known(&format!("linear_bias_relu/f32/m{m}.k{k}.n{n}")));
    let model = FusionCostModel::new(calibration(gemms));
    let unknown = model.on(TARGET).estimate(&problem("linear+bias+silu/f32/m256.k512.n512"));
    assert_eq!(unknown.evidence(), Evidence::Unknown);
    let linear = model.on(TARGET).estimate(&problem("linear/f32/m256.k512.n512"));
    assert_eq!(linear.evidence(), Evidence::Unknown);
}

/// Times on a machine that does arithmetic while it waits for memory, where a function of a number
/// takes as long as many multiply-adds.
pub(crate) fn with_functions(text: &str) -> (Problem, f64, f64) {
    let problem = problem(text);
    let flops = |problem: &Problem| -> f64 {
        let of_step = |step: Step| {
            let function = match step.op.name() {
                "gelu" => 40.0,
                "silu" | "tanh" => 25.0,
                _ => 0.0,
            };
            step.flops() as f64 + function * step.output.elements() as f64
        };
        problem.steps().map(of_step).sum()
    };
    let ms = |problem: &Problem| {
        let bytes = Traffic::of(problem).fused_bytes as f64;
        0.002 + (flops(problem) / 300e6).max(bytes / 20e6)
    };
    let steps = 0..problem.chain().len();
    let unfused = steps.map(|op| ms(&problem.slice(op..op + 1).unwrap())).sum();
    (problem, ms(&problem), unfused)
}

/// All that the chains of the file exchange is a bias, which hides next to nothing.
#[test]
fn what_ops_hide_is_in_the_interval_of_a_chain_that_shows_it() {
    let mut numbers = Numbers(11);
    let sizes: Vec<[u64; 3]> =
        (0..30).map(|_| [(); 3].map(|()| (32.0 * 64.0_f64.powf(numbers.share())) as u64)).collect();
    let at = |[m, k, n]: [u64; 3]| {
        let gemms = ["linear_bias_relu", "linear+relu"].map(|c| format!("{c}/f32/m{m}.k{k}.n{n}"));
        let ops = ["relu", "gelu", "silu", "tanh", "bias", "bias+relu"];
        gemms.into_iter().chain(ops.map(|op| format!("{op}/f32/m{m}.n{n}")))
    };
    let known: Vec<Known> = sizes
        .iter()
        .flat_map(|&sizes| at(sizes))
        .map(|text| {
            let (problem, fused_ms, unfused_ms) = with_functions(&text);
            let [process, pair] = [0.01, 0.005].map(|sd| (sd * numbers.normal()).exp());
            let speedup = unfused_ms / fused_ms * pair;
            Known { problem, fused_ms: fused_ms * process, speedup, half_width: 0.01 }
        })
        .collect();
    let model = FusionCostModel::new(calibration(known));
    let (mut asked, mut held) = (0, [0, 0]);
    for [m, k, n] in sizes {
        for op in ["gelu", "silu", "tanh"] {
            let text = format!("linear+bias+{op}/f32/m{m}.k{k}.n{n}");
            let (problem, fused_ms, unfused_ms) = with_functions(&text);
            let estimate = model.on(TARGET).estimate(&problem);
            assert_eq!(estimate.evidence(), Evidence::ComposedAtSize, "{text}");
            let [time, gain] = [estimate.fused_ms(), estimate.speedup()].map(Option::unwrap);
            asked += 1;
            held[0] += u32::from((time.low..=time.high).contains(&fused_ms));
            held[1] += u32::from((gain.low..=gain.high).contains(&(unfused_ms / fused_ms)));
        }
    }
    assert!(held.iter().all(|held| 10 * held >= 9 * asked), "{held:?} of {asked}");
}
