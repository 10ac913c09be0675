//! Generated pairs of traces differ in what was planted, and in nothing else.

use std::collections::{BTreeMap, HashSet};

use kernel_traces::synthetic::{
    Difference, Model, Pace, PairPlan, PairTruth, Phase, Plan, Planted, Side, Truth, pair_plans,
    pair_text,
};
use kernel_traces::{Classes, Options, Segments, Trace};

/// Calls a function with every pair, on the cores of the machine.
fn for_each(check: impl Fn(&PairPlan) + Sync) {
    let pairs = pair_plans();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (pairs, check) = (&pairs, &check);
            scope.spawn(move || pairs.iter().skip(thread).step_by(threads).for_each(check));
        }
    });
}

fn generate(pair: &PairPlan) -> ([Trace; 2], PairTruth) {
    let (first, second, truth) = pair_text(pair).unwrap();
    let read = |text: &[u8]| Trace::from_json(text, &Options::default()).unwrap();
    ([read(&first), read(&second)], truth)
}

#[test]
fn there_are_pairs_of_every_kind() {
    let pairs = pair_plans();
    assert!(pairs.len() >= 250, "{}", pairs.len());
    let plans: HashSet<String> = pairs.iter().map(|pair| format!("{pair:?}")).collect();
    assert_eq!(plans.len(), pairs.len());
    for difference in Difference::ALL {
        let of: Vec<&PairPlan> = pairs.iter().filter(|p| p.difference == difference).collect();
        assert!(of.len() >= 9);
        let kinds = |kind: &dyn Fn(&PairPlan) -> String| -> usize {
            of.iter().map(|pair| kind(pair)).collect::<HashSet<_>>().len()
        };
        assert_eq!(kinds(&|pair| format!("{:?}", pair.changed)), 2);
        // Only NVIDIA's names show that a collective is fused.
        let vendors = |pair: &PairPlan| format!("{:?} {:?}", pair.first.vendor, pair.second.vendor);
        let least = if difference == Difference::FusedAllReduceNorm { 3 } else { 4 };
        assert!(kinds(&vendors) >= least, "{difference:?}");
        // Operators are recorded only where each kernel is launched by itself.
        let ways = if difference.needs_operators() { 1 } else { 4 };
        assert_eq!(kinds(&|pair| format!("{:?}", pair.first.launching)), ways, "{difference:?}");
        assert_eq!(kinds(&|pair| format!("{:?}", pair.first.timing)), 3, "{difference:?}");
        assert!(kinds(&|pair| format!("{:?}", pair.first.annotations)) >= 4, "{difference:?}");
    }
}

#[test]
fn both_sides_have_their_classes_and_layers() {
    for_each(|pair| {
        let (traces, truth) = generate(pair);
        let sides = [(&pair.first, &truth.first), (&pair.second, &truth.second)];
        for (trace, (plan, truth)) in traces.iter().zip(sides) {
            let classes = Classes::of(trace);
            assert_eq!(trace.kernels.len(), truth.kernels.len());
            for (kernel, of) in truth.kernels.iter().enumerate() {
                let name = trace.names.text(trace.kernels.name[kernel]);
                assert_eq!(classes.get(kernel).main, of.class, "{name}");
            }
            let layers = Segments::of(trace, &classes).layers;
            assert_eq!(u64::from(layers.count), plan.layers, "{:?} {plan:?}", layers.none_because);
            let passes = if plan.model == Model::Training { 2 } else { 1 };
            assert_eq!(layers.passes.len() as u64, plan.steps * passes, "{plan:?}");
        }
    });
}

/// How many kernels of each role a step of each kind has.
fn roles(plan: &Plan, truth: &Truth) -> BTreeMap<(&'static str, String), f64> {
    let mut counts = BTreeMap::new();
    for kernel in &truth.kernels {
        *counts.entry((kernel.role, kernel.class.to_string())).or_insert(0.0) +=
            1.0 / plan.steps as f64;
    }
    counts
}

#[test]
fn only_what_was_planted_differs() {
    for_each(|pair| {
        let (_, _, truth) = pair_text(pair).unwrap();
        let (first, second) =
            (roles(&pair.first, &truth.first), roles(&pair.second, &truth.second));
        let keys: HashSet<_> = first.keys().chain(second.keys()).collect();
        let (mut more, mut fewer) = (Vec::new(), Vec::new());
        for key in keys {
            let of = |roles: &BTreeMap<_, f64>| roles.get(key).copied().unwrap_or_default();
            let (changed, other) = match pair.changed {
                Side::First => (of(&first), of(&second)),
                Side::Second => (of(&second), of(&first)),
            };
            if changed > other + 1e-9 {
                more.push(key.1.clone());
            } else if other > changed + 1e-9 {
                fewer.push(key.1.clone());
            }
        }
        more.sort();
        fewer.sort();
        let has = |classes: &[String]| classes.join(" ");
        let differs = (has(&more), has(&fewer));
        let differs = (differs.0.as_str(), differs.1.as_str());
        let expected: &[(&str, &str)] = match pair.difference {
            Difference::SeparateAddNorm | Difference::SeparateGate => &[("ELEMENTWISE", "")],
            Difference::FusedRopeCache => &[("KVCACHE", "KVCACHE ROPE")],
            Difference::FusedNormQuant => &[("NORM", "NORM QUANT")],
            Difference::FusedActQuant => &[("ACT", "ACT QUANT")],
            Difference::FusedGemmAct => &[("GEMM", "ACT GEMM")],
            Difference::FusedExpertsAct => &[("MOE_GEMM", "ACT MOE_GEMM")],
            Difference::FusedAllReduceNorm => &[("COMM", "COMM NORM")],
            Difference::SeparateAttention => &[("GEMM GEMM SOFTMAX", "ATTN")],
            Difference::SeparateQkv => &[("GEMM GEMM GEMM", "GEMM")],
            _ => match pair.planted() {
                Planted::OneSided(side) if side.by_changed => &[(side.class.name(), "")],
                Planted::OneSided(side) => &[("", side.class.name())],
                Planted::Fusion(fused) => {
                    let missing = fused.separate[usize::from(fused.separate[0] != "ROPE")];
                    &[("", missing.trim_end_matches("+MUL"))]
                }
                _ => &[("", "")],
            },
        };
        assert!(expected.contains(&differs), "{differs:?} {pair:?}");
    });
}

/// The time from the first beginning to the last end for each step.
fn span_ns(plan: &Plan, truth: &Truth) -> f64 {
    (truth.busy_ns + truth.idle_ns) as f64 / plan.steps as f64
}

#[test]
fn the_gap_is_what_was_planted() {
    for_each(|pair| {
        let (_, _, truth) = pair_text(pair).unwrap();
        let sides = [span_ns(&pair.first, &truth.first), span_ns(&pair.second, &truth.second)];
        let gap_ns = sides[0] - sides[1];
        // One device may be slower, each kernel varies, and no pause before the first is seen.
        let pace = |plan: &Plan| plan.pace.unwrap_or_default();
        let slower = pace(&pair.first).permille.abs_diff(pace(&pair.second).permille);
        let kernels = truth.first.kernels.len() as f64;
        let noise = sides[0] * (slower as f64 / 1000.0 + 0.01 / kernels.sqrt());
        let pause = pace(pair.side(pair.changed)).call_pause_ns as f64 / pair.first.steps as f64;
        let allowed = noise + 0.01 * truth.gap_ns.abs() + pause + 6000.0;
        assert!(
            (gap_ns - truth.gap_ns).abs() < allowed,
            "{gap_ns} for {} of {sides:?}, {allowed} is allowed: {pair:?}",
            truth.gap_ns
        );
        // What was planted is more than all of that.
        let is_none = matches!(pair.planted(), Planted::Nothing | Planted::Steps);
        let is_clear = truth.gap_ns.abs() > 2.0 * (noise + 500.0);
        assert!(is_clear != is_none, "{} of {noise}: {pair:?}", truth.gap_ns);
        let is_longer = (truth.gap_ns > 0.0) == (pair.changed == Side::First);
        let saves = match pair.planted() {
            Planted::Fusion(fused) => fused.by_changed,
            Planted::OneSided(side) => !side.by_changed,
            _ => false,
        };
        assert!(is_none || is_longer != saves, "{pair:?}");
    });
}

#[test]
fn the_pace_is_the_same_with_and_without_what_was_planted() {
    // All kernels that both sides have take the same time, but for noise.
    for_each(|pair| {
        let slow = [Difference::SlowGemm, Difference::SlowNorm, Difference::SlowAllReduce];
        let silent = [
            Difference::SilentAct,
            Difference::NoActSlowGemm,
            Difference::SilentRope,
            Difference::CheapAct,
            Difference::ModestAct,
            Difference::CheapRope,
        ];
        if slow.contains(&pair.difference) || silent.contains(&pair.difference) {
            return;
        }
        let (_, _, truth) = pair_text(pair).unwrap();
        let phases: HashSet<Phase> = pair.first.phases.iter().copied().collect();
        if phases.len() > 1 {
            return;
        }
        let permille = |plan: &Plan| plan.pace.unwrap_or_default().permille as f64;
        let mut times: BTreeMap<&str, f64> = BTreeMap::new();
        for kernel in &truth.first.kernels {
            times.insert(kernel.role, kernel.duration_ns as f64 / permille(&pair.first));
        }
        for kernel in &truth.second.kernels {
            let Some(of_first) = times.get(kernel.role) else { continue };
            let of_second = kernel.duration_ns as f64 / permille(&pair.second);
            let noise = 2.1 * Pace::default().noise as f64 / 1000.0;
            assert!((of_second / of_first - 1.0).abs() < noise, "{} {pair:?}", kernel.role);
        }
    });
}
