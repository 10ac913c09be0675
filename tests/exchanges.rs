//! Chains that are composed at a measured size, by brute force: of all siblings and all ways to
//! exchange some of their ops, the fewest ops whose times were measured.

use std::ops::Range;

use crate::made::{Known, Numbers, TARGET, calibration};
use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Verdict};
use fusion_cost_model::{
    Evidence, FusionCostModel, LeaveOut, Op, Policy, Problem, Trial, WhenUnknown,
};

/// Ways from a sibling to a wanted chain: the ops of the one and of the other that are exchanged.
fn exchanges(wanted: &[Op], sibling: &[Op]) -> Vec<(Range<usize>, Range<usize>)> {
    let rows = |ops: &[Op]| ops.iter().filter(|op| op.is_row()).count();
    let mut found = Vec::new();
    for start in 1..wanted.len().min(sibling.len()) {
        for (new, old) in (start + 1..=wanted.len())
            .flat_map(|new| (start + 1..=sibling.len()).map(move |old| (new, old)))
        {
            let is_same_around =
                wanted[..start] == sibling[..start] && wanted[new..] == sibling[old..];
            let (new, old) = (start..new, start..old);
            if is_same_around && rows(&wanted[new.clone()]) == rows(&sibling[old.clone()]) {
                found.push((new, old));
            }
        }
    }
    let cost = |way: &(Range<usize>, Range<usize>)| way.0.len() + way.1.len();
    let least = found.iter().map(cost).min().unwrap_or(0);
    found.retain(|way| cost(way) == least);
    found
}

/// A difference that leaves less than this share of what it started with is mostly error.
const LEAST_LEFT: f64 = 0.2;

/// The fused and unfused times that a chain could be composed of at its size in the fewest ops, of
/// parts that were measured.
fn composed(problem: &Problem, others: &[&FusionRecord]) -> Vec<[f64; 2]> {
    let times = |part: Option<Problem>| {
        let record = others.iter().find(|record| Some(record.problem) == part)?;
        Some([record.fused_latency_ms, record.fused_latency_ms * record.speedup_factor])
    };
    let mut ways = Vec::new();
    for sibling in others {
        let (own, other) = (problem, &sibling.problem);
        let is_at_size = (own.sizes(), own.dtype()) == (other.sizes(), other.dtype());
        if !is_at_size || own.chain()[0] != other.chain()[0] || own.chain() == other.chain() {
            continue;
        }
        for (new, old) in exchanges(own.chain(), other.chain()) {
            let ops = new.len() + old.len();
            let parts = (times(Some(*other)), times(own.slice(new)), times(other.slice(old)));
            let (Some(known), Some(new), Some(old)) = parts else { continue };
            let sum = [0, 1].map(|variant| known[variant] + new[variant] - old[variant]);
            if (0..2).all(|variant| sum[variant] > LEAST_LEFT * known[variant]) {
                ways.push((ops, sum));
            }
        }
    }
    let least = ways.iter().map(|(ops, _)| *ops).min();
    ways.retain(|(ops, _)| Some(*ops) == least);
    ways.into_iter().map(|(_, sum)| sum).collect()
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
        assert_eq!(estimate.evidence(), Evidence::ComposedAtSize, "{wanted} of {sums:?}");
        let [fused, unfused] =
            [estimate.fused_ms(), estimate.unfused_ms()].map(|time| time.unwrap().value);
        let is_it = |sum: &[f64; 2]| {
            (fused / sum[0] - 1.0).abs() < 1e-9 && (unfused / sum[1] - 1.0).abs() < 1e-9
        };
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
                    && !exchanges(problem.chain(), other.problem.chain()).is_empty()
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
            if !sums.is_empty() {
                assert!(is_composed, "{file}: {problem}: {:?}", estimate.evidence());
                let found = estimate.fused_ms().unwrap().value;
                let is_it = |sum: &[f64; 2]| (found / sum[0] - 1.0).abs() < 1e-9;
                assert!(sums.iter().any(is_it), "{file}: {problem}: {found} of {sums:?}");
                equal += 1;
            }
        }
        assert!(equal >= 2 && none >= 20, "{file}: {equal} sums, {none} without a way");
    }
}
