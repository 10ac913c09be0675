//! Chains that are composed at a measured size, by brute force: of all siblings and all ways to
//! exchange some of their ops or to add some, those whose parts were measured.

use std::ops::Range;

use crate::made::{Known, Numbers, TARGET, calibration};
use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Verdict};
use fusion_cost_model::{
    Evidence, FusionCostModel, LeaveOut, Op, Policy, Problem, Trial, WhenUnknown,
};

/// From a sibling to a wanted chain: the ops of the one and of the other that are exchanged. Those of
/// the sibling may be none.
type Way = (Range<usize>, Range<usize>);

/// The ways to exchange the fewest ops, and those to add ops where that is possible.
fn ways(wanted: &[Op], sibling: &[Op]) -> Vec<Way> {
    let rows = |ops: &[Op]| ops.iter().filter(|op| op.is_row()).count();
    let (mut exchanged, mut added) = (Vec::new(), Vec::new());
    for start in 1..=wanted.len().min(sibling.len()) {
        for (new, old) in (start + 1..=wanted.len())
            .flat_map(|new| (start..=sibling.len()).map(move |old| (new, old)))
        {
            let is_same_around =
                wanted[..start] == sibling[..start] && wanted[new..] == sibling[old..];
            let (new, old) = (start..new, start..old);
            if !is_same_around || rows(&wanted[new.clone()]) != rows(&sibling[old.clone()]) {
                continue;
            }
            if !old.is_empty() {
                exchanged.push((new, old));
            } else if sibling.len() > 1 && wanted[new.clone()].iter().all(computes_on_what_is_held)
            {
                added.push((new, old));
            }
        }
    }
    let cost = |way: &Way| way.0.len() + way.1.len();
    let least = exchanged.iter().map(cost).min().unwrap_or(0);
    exchanged.retain(|way| cost(way) == least);
    exchanged.into_iter().chain(added).collect()
}

/// Of the ops of these tests and of the standard chains: pointwise ones that read no tensor.
fn computes_on_what_is_held(op: &Op) -> bool {
    let names = ["bias", "batch_norm", "relu", "gelu", "silu", "sigmoid", "scale", "dropout"];
    names.contains(&op.name())
}

/// A difference that leaves less than this share of what it started with is mostly error.
const LEAST_LEFT: f64 = 0.2;

/// A fused kernel shows at most twice of the arithmetic that ops hide by themselves, which is at most
/// what they take.
const MOST_SHOWN: f64 = 2.0;

/// The times of a chain from those of a sibling and of parts.
#[derive(Debug)]
struct Composed {
    unfused_ms: f64,
    /// Without what ops hide by themselves.
    fused_ms: f64,
    /// What they hide: the fused time is off by at most that.
    hidden_ms: f64,
    /// Whether enough is left of it, whatever of that the fused kernel shows.
    is_certain: bool,
}

impl Composed {
    fn allows(&self, fused_ms: f64, unfused_ms: f64) -> bool {
        (unfused_ms / self.unfused_ms - 1.0).abs() < 1e-9
            && (fused_ms - self.fused_ms).abs() <= self.hidden_ms * (1.0 + 1e-9)
    }
}

/// What a chain could be composed of at its size, of parts that were measured.
fn composed(problem: &Problem, others: &[&FusionRecord]) -> Vec<Composed> {
    let times = |part: Option<Problem>| {
        let record = others.iter().find(|record| Some(record.problem) == part)?;
        Some([record.fused_latency_ms, record.fused_latency_ms * record.speedup_factor])
    };
    let mut found = Vec::new();
    for sibling in others {
        let (own, other) = (problem, &sibling.problem);
        let is_at_size = (own.sizes(), own.dtype()) == (other.sizes(), other.dtype());
        if !is_at_size || own.chain()[0] != other.chain()[0] || own.chain() == other.chain() {
            continue;
        }
        for (new, old) in ways(own.chain(), other.chain()) {
            let is_added = old.is_empty();
            let old = if is_added { Some([0.0; 2]) } else { times(other.slice(old)) };
            let parts = (times(Some(*other)), times(own.slice(new)), old);
            let (Some(known), Some(new), Some(old)) = parts else { continue };
            let of_new = if is_added { 0.0 } else { new[0] };
            let least = if is_added { new[0] } else { new[0].min(old[0]) };
            let (fused_ms, unfused_ms) = (known[0] + of_new - old[0], known[1] + new[1] - old[1]);
            let hidden_ms = MOST_SHOWN * least;
            let is_enough = |fused_ms: f64| {
                fused_ms > LEAST_LEFT * known[0] && unfused_ms > LEAST_LEFT * known[1]
            };
            if is_enough(fused_ms + hidden_ms) {
                let is_certain = is_enough(fused_ms - hidden_ms);
                found.push(Composed { unfused_ms, fused_ms, hidden_ms, is_certain });
            }
        }
    }
    found
}

#[test]
fn any_chain_at_a_size_of_others() {
    let ops = ["bias", "relu", "silu", "gelu", "layer_norm", "softmax", "rms_norm"];
    let mut numbers = Numbers(7);
    let (mut composed_of, mut unknown) = (0, 0);
    for _ in 0..300 {
        let mut chain = |least: usize| {
            let mut left = ops.to_vec();
            let len = least + numbers.below(3);
            (0..len).map(|_| left.swap_remove(numbers.below(left.len()))).collect::<Vec<_>>()
        };
        let tails: Vec<String> = (0..30).map(|_| chain(1).join("+")).collect();
        let longer: Vec<String> =
            (0..10).map(|_| format!("linear+{}", chain(1).join("+"))).collect();
        let wanted = format!("linear+{}", chain(1).join("+"));
        let problem = |chain: &str| {
            let sizes = if chain.starts_with("linear") { "m64.k32.n48" } else { "m64.n48" };
            format!("{chain}/f32/{sizes}").parse::<Problem>().unwrap()
        };
        let wanted = problem(&wanted);
        let mut problems: Vec<Problem> =
            tails.iter().chain(&longer).map(|chain| problem(chain)).collect();
        problems.sort_unstable_by_key(Problem::to_string);
        problems.dedup();
        problems.retain(|problem| *problem != wanted);
        let known = problems.into_iter().map(|problem| Known {
            problem,
            fused_ms: 0.1 + numbers.share() * problem.chain().len() as f64,
            speedup: if problem.chain().is_single() { 1.0 } else { 1.0 + numbers.share() },
            half_width: 0.01,
        });
        let model = FusionCostModel::new(calibration(known));
        let others: Vec<&FusionRecord> = model.calibration().records.iter().collect();
        let estimate = model.on(TARGET).estimate(&wanted);
        let sums = composed(&wanted, &others);
        if sums.is_empty() {
            assert_eq!(estimate.evidence(), Evidence::Unknown, "{wanted}");
            unknown += 1;
            continue;
        }
        if !sums.iter().any(|sum| sum.is_certain) && estimate.evidence() == Evidence::Unknown {
            continue;
        }
        assert_eq!(estimate.evidence(), Evidence::ComposedAtSize, "{wanted} of {sums:?}");
        let [fused, unfused] =
            [estimate.fused_ms(), estimate.unfused_ms()].map(|time| time.unwrap().value);
        let is_it = |sum: &Composed| sum.allows(fused, unfused);
        assert!(sums.iter().any(is_it), "{wanted}: {fused} {unfused} of {sums:?}");
        composed_of += 1;
    }
    assert!(composed_of > 50 && unknown > 50, "{composed_of} {unknown}");
}

fn committed(file: &str) -> HardwareCalibration {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/calibrate/profiles/calibrations");
    HardwareCalibration::load(format!("{folder}/{file}.toml")).unwrap()
}

/// In a real file few parts were measured at the very size; none may be composed without a way.
#[test]
fn the_committed_calibrations_are_composed_by_the_same_ways() {
    let policy = Policy::new(WhenUnknown::Roofline);
    for file in ["amd-epyc-2-threads", "amd-epyc-zen5-2-threads", "intel-xeon-2-threads"] {
        let model = FusionCostModel::new(committed(file));
        let trials = model.on(TARGET).validate(LeaveOut::Problem, &policy).unwrap();
        let (mut equal, mut none) = (0, 0);
        for Trial { record, estimate, .. } in trials {
            let problem = &record.problem;
            let is_other =
                |it: &&FusionRecord| it.problem != *problem && it.verdict != Verdict::Invalid;
            let others: Vec<&FusionRecord> =
                model.calibration().records.iter().filter(is_other).collect();
            let has_way = others.iter().any(|other| {
                other.problem.sizes() == problem.sizes()
                    && !ways(problem.chain(), other.problem.chain()).is_empty()
            });
            let is_composed = estimate.evidence() == Evidence::ComposedAtSize;
            if problem.chain().is_single() {
                continue;
            }
            if !has_way {
                assert!(!is_composed, "{file}: {problem} from nothing");
                none += 1;
            }
            let sums = composed(problem, &others);
            if sums.iter().any(|sum| sum.is_certain) {
                assert!(is_composed, "{file}: {problem} of {sums:?}: {estimate:?}");
                let (low, high) = sums.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), sum| {
                    let Composed { fused_ms, hidden_ms, .. } = sum;
                    (low.min(fused_ms - hidden_ms), high.max(fused_ms + hidden_ms))
                });
                let found = estimate.fused_ms().unwrap().value;
                // From parts at other sizes it may be more certain.
                let is_it = low / 1.1 < found && found < high * 1.1;
                assert!(is_it, "{file}: {problem}: {found} of {sums:?}");
                equal += 1;
            }
        }
        assert!(equal >= 2 && none >= 20, "{file}: {equal} sums, {none} without a way");
    }
}
