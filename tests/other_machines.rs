//! Composed chains of machines of another kind than the model assumes: each op by itself takes the longer
//! of its arithmetic and of its bytes, a fused kernel shows any share of the arithmetic, and functions
//! take 3 to 120 flops.

use crate::made::{Known, Numbers, TARGET, calibration};
use fusion_cost_model::cost::Traffic;
use fusion_cost_model::{Estimate, Evidence, FusionCostModel, Interval, Problem};

struct Machine {
    launch_ms: f64,
    flops_per_ms: f64,
    bytes_per_ms: f64,
    flops_of_a_function: f64,
    /// How much of the pointwise arithmetic a fused kernel takes longer by.
    shown: f64,
}

impl Machine {
    fn any(numbers: &mut Numbers) -> Self {
        Self {
            launch_ms: between(numbers, 0.0005, 0.01),
            flops_per_ms: between(numbers, 2e7, 4e8),
            bytes_per_ms: between(numbers, 1e7, 2e8),
            flops_of_a_function: between(numbers, 3.0, 120.0),
            shown: 1.3 * numbers.share(),
        }
    }

    /// What a kernel takes, of one op or fused.
    fn kernel_ms(&self, problem: &Problem) -> f64 {
        let (mut products, mut pointwise) = (0.0, 0.0);
        for op in 0..problem.chain().len() {
            let traffic = Traffic::of(&problem.slice(op..op + 1).unwrap());
            let flops = traffic.flops as f64;
            match problem.chain()[op].name() {
                // The less work, the less efficient.
                "linear" => products += flops * (1.0 + 2e5 / (flops + 1e5)),
                "gelu" | "silu" | "tanh" | "dropout" => {
                    let elements = traffic.fused_bytes as f64 / 8.0;
                    pointwise += flops + self.flops_of_a_function * elements;
                }
                _ => pointwise += flops,
            }
        }
        let shown = if products > 0.0 { self.shown } else { 1.0 };
        let busy_ms = (products + shown * pointwise) / self.flops_per_ms;
        let bytes_ms = Traffic::of(problem).fused_bytes as f64 / self.bytes_per_ms;
        self.launch_ms + busy_ms.max(bytes_ms)
    }

    /// Fused and unfused.
    fn truth(&self, problem: &Problem) -> [f64; 2] {
        let step_ms = |op: usize| self.kernel_ms(&problem.slice(op..op + 1).unwrap());
        [self.kernel_ms(problem), (0..problem.chain().len()).map(step_ms).sum()]
    }

    fn measured(&self, problem: Problem, numbers: &mut Numbers) -> Known {
        const SD_OF_TIME: f64 = 0.02;
        const SD_OF_SPEEDUP: f64 = 0.01;
        let [fused_ms, unfused_ms] = self.truth(&problem);
        let mut off = |sd: f64| (sd * numbers.normal()).exp();
        let fused = fused_ms * off(SD_OF_TIME);
        let is_single = problem.chain().is_single();
        let speedup = if is_single { 1.0 } else { unfused_ms / fused_ms * off(SD_OF_SPEEDUP) };
        Known { problem, fused_ms: fused, speedup, half_width: 1.96 * SD_OF_SPEEDUP }
    }
}

fn between(numbers: &mut Numbers, low: f64, high: f64) -> f64 {
    low * (high / low).powf(numbers.share())
}

/// One chain at all sizes, others at four of them, and most ops by themselves.
fn measured(machine: &Machine, sizes: &[[u64; 3]], numbers: &mut Numbers) -> Vec<Known> {
    let mut texts = Vec::new();
    for (index, [m, k, n]) in sizes.iter().enumerate() {
        let few = ["linear+bias", "linear+bias+gelu", "linear+bias+relu+dropout"];
        let chains =
            std::iter::once("linear+bias+relu").chain(few.into_iter().filter(|_| index < 4));
        texts.extend(chains.map(|chain| format!("{chain}/f32/m{m}.k{k}.n{n}")));
        for op in ["relu", "gelu", "silu", "tanh", "dropout", "bias", "scale", "add"] {
            if numbers.share() < 0.6 {
                texts.push(format!("{op}/f32/m{m}.n{n}"));
            }
        }
    }
    texts.sort_unstable();
    texts.dedup();
    texts.iter().map(|text| machine.measured(text.parse().unwrap(), numbers)).collect()
}

fn intervals(estimate: &Estimate<'_>) -> Option<[Interval; 2]> {
    Some([estimate.fused_ms()?, estimate.speedup()?])
}

#[test]
fn machines_that_hide_arithmetic_in_other_ways_are_in_the_intervals() {
    const ASKED: [&str; 8] = [
        "linear+bias+gelu",
        "linear+bias+silu",
        "linear+bias+tanh",
        "linear+gelu",
        "linear+bias+scale",
        "linear+bias+relu+scale",
        "linear+bias+relu+dropout",
        "linear+bias+gelu+dropout",
    ];
    let mut numbers = Numbers(1);
    let (mut asked, mut covered) = (0, [0; 2]);
    for _ in 0..20 {
        let machine = Machine::any(&mut numbers);
        let size = |numbers: &mut Numbers| between(numbers, 8.0, 4096.0) as u64;
        let sizes: Vec<[u64; 3]> = (0..16).map(|_| [0; 3].map(|_| size(&mut numbers))).collect();
        let known = measured(&machine, &sizes, &mut numbers);
        let model = FusionCostModel::new(calibration(known.iter().copied()));
        let reversed = FusionCostModel::new(calibration(known.into_iter().rev()));
        let problems = sizes.iter().flat_map(|[m, k, n]| {
            ASKED.map(|chain| format!("{chain}/f32/m{m}.k{k}.n{n}").parse::<Problem>().unwrap())
        });
        for problem in problems {
            let [estimate, other] = [&model, &reversed].map(|it| it.on(TARGET).estimate(&problem));
            assert_eq!(estimate.evidence(), other.evidence(), "{problem}");
            let Some(found) = intervals(&estimate) else { continue };
            for (one, other) in found.iter().zip(intervals(&other).unwrap()) {
                let is_sound = 0.0 < one.low && one.low <= one.value && one.value <= one.high;
                assert!(is_sound && one.high.is_finite(), "{problem}: {one:?}");
                let is_same = (one.value / other.value - 1.0).abs() < 1e-9;
                assert!(is_same, "{problem}: {one:?}, in another order {other:?}");
            }
            let is_composed =
                matches!(estimate.evidence(), Evidence::ComposedAtSize | Evidence::ComposedBetween);
            if is_composed {
                let [fused_ms, unfused_ms] = machine.truth(&problem);
                let truth = [fused_ms, unfused_ms / fused_ms];
                for ((covered, found), truth) in covered.iter_mut().zip(found).zip(truth) {
                    *covered += usize::from(found.low <= truth && truth <= found.high);
                }
                asked += 1;
            }
        }
    }
    assert!(asked > 1000, "{asked}");
    let shares = covered.map(|covered| covered as f64 / asked as f64);
    assert!(shares.iter().all(|share| (0.93..=0.99).contains(share)), "{shares:?} of {asked}");
}
