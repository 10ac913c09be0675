//! Absolute times of the same machine: what all records have in common, and what some do not.

use serde::Serialize;

use super::figure::{Figure, chance};
use super::holm::adjusted;
use super::side::Measured;
use crate::vocabulary::{CacheState, Problem};

/// What the times of all records changed by together, in both variants alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CommonChange {
    /// The side, as an index of [`Comparison::sides`](super::Comparison::sides).
    pub side: usize,
    /// The median of the second side's times over the first one's.
    pub ratio: f64,
    /// The first and the third quartile.
    pub quartiles: [f64; 2],
    /// How many records there are, single ops among them.
    pub records: usize,
}

/// A single op on two sides: there is nothing to fuse, and only its times are compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SingleOp {
    /// The problem.
    pub problem: Problem,
    /// What the caches held.
    pub cache_state: CacheState,
    /// The second side, as an index of [`Comparison::sides`](super::Comparison::sides).
    pub side: usize,
    /// The times of both sides, in milliseconds.
    pub ms: [Figure; 2],
    /// The second side's time over the first one's.
    pub ratio: Figure,
    /// What it changed by beyond what all records have in common, where that is more than noise.
    pub moved: Option<f64>,
}

/// Changes below this do not matter, however clear.
const LEAST_CHANGE: f64 = 0.05;

/// The geometric mean of the times of both variants, which does not depend on what fusion gains.
/// The variants are measured in turns, so a difference between processes affects both alike: the
/// mean is as uncertain as the wider of the two, and not less.
fn middle(measured: &Measured) -> Figure {
    let Measured { unfused_ms, fused_ms, .. } = measured;
    let value = (unfused_ms.value * fused_ms.value).sqrt();
    let interval = unfused_ms.interval.zip(fused_ms.interval).map(|(unfused, fused)| {
        let down = (unfused[0] / unfused_ms.value).min(fused[0] / fused_ms.value);
        let up = (unfused[1] / unfused_ms.value).max(fused[1] / fused_ms.value);
        [value * down, value * up]
    });
    Figure { value, interval }
}

/// What the machine may have changed a record's times by, as a ratio: what both variants changed by
/// alike. Where their speedup clearly changed, that is what the one that changed less did, and nothing
/// if one became faster and the other slower; else it is their geometric mean, the best estimate of
/// both.
fn change([first, second]: &[Measured; 2]) -> f64 {
    let of_speedups = second.speedup.over(&first.speedup);
    if of_speedups.interval.is_none_or(|[low, high]| low <= 1.0 && 1.0 <= high) {
        return middle(second).value / middle(first).value;
    }
    let unfused = (second.unfused_ms.value / first.unfused_ms.value).ln();
    let fused = (second.fused_ms.value / first.fused_ms.value).ln();
    let less = if unfused.abs() < fused.abs() { unfused } else { fused };
    if unfused * fused > 0.0 { less.exp() } else { 1.0 }
}

/// What all records have in common; `None` without records.
pub(super) fn common(side: usize, measured: &[[Measured; 2]]) -> Option<CommonChange> {
    let mut logs: Vec<f64> = measured.iter().map(|pair| change(pair).ln()).collect();
    logs.sort_unstable_by(f64::total_cmp);
    // Between two records, their mean: with the sides exchanged it must be the inverse.
    let quartile = |quarters: usize| {
        let quarters_of_a_place = logs.len().checked_sub(1)? * quarters;
        let (place, part) = (quarters_of_a_place / 4, quarters_of_a_place % 4);
        let (below, above) = (logs[place], logs[(place + 1).min(logs.len() - 1)]);
        #[expect(clippy::cast_precision_loss, reason = "at most 3")]
        let part = part as f64 / 4.0;
        Some((below + part * (above - below)).exp())
    };
    let (ratio, quartiles) = (quartile(2)?, [quartile(1)?, quartile(3)?]);
    Some(CommonChange { side, ratio, quartiles, records: logs.len() })
}

/// For each record what its times changed by beyond what all have in common, where that is more than
/// noise.
pub(super) fn moved(measured: &[[Measured; 2]], common: f64) -> Vec<Option<f64>> {
    let changes: Vec<(f64, f64)> = measured
        .iter()
        .map(|pair| {
            let [first, second] = pair;
            let processes = |one: &Measured| one.processes.unwrap_or_default();
            let (before, its) = (middle(first), middle(second));
            let own = before.value * change(pair) / (common * its.value);
            let after = its.over(&Figure::new(1.0 / own, 1.0 / own, 1.0 / own));
            let p = chance((&after, processes(second)), (&before, processes(first)));
            (after.value / before.value, p.unwrap_or(1.0))
        })
        .collect();
    let chances = adjusted(&changes.iter().map(|(_, p)| *p).collect::<Vec<_>>());
    let is_clear = |((ratio, _), p): (&(f64, f64), &f64)| {
        (*p < 0.05 && ratio.ln().abs() > LEAST_CHANGE.ln_1p()).then_some(*ratio)
    };
    changes.iter().zip(&chances).map(is_clear).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(ms: f64, speedup: f64) -> Measured {
        let time = |ms: f64| Figure::new(ms, ms * 0.98, ms * 1.02);
        Measured {
            speedup: Figure::new(speedup, speedup * 0.99, speedup * 1.01),
            processes: Some(10),
            verdict: None,
            ceiling_speedup: None,
            unfused_ms: time(ms * speedup),
            fused_ms: time(ms),
        }
    }

    #[test]
    fn a_common_slowdown_is_nobodys_own() {
        let mut all: Vec<[Measured; 2]> = (1..=21)
            .map(|index| {
                let ms = f64::from(index);
                [measured(ms, 1.2), measured(1.08 * ms, 1.2)]
            })
            .collect();
        let change = common(1, &all).unwrap();
        assert!((change.ratio - 1.08).abs() < 1e-12 && change.records == 21);
        assert!(moved(&all, change.ratio).iter().all(Option::is_none));
        // One of them is slower by itself, in both variants.
        all[4][1] = measured(1.3 * all[4][0].fused_ms.value, 1.2);
        let moved = moved(&all, common(1, &all).unwrap().ratio);
        let own: Vec<usize> = (0..21).filter(|index| moved[*index].is_some()).collect();
        assert_eq!(own, [4]);
        assert!((moved[4].unwrap() - 1.3 / 1.08).abs() < 1e-9);
    }

    /// The machine is what both variants, and the single ops, had to run on.
    #[test]
    fn what_one_variant_lost_is_not_the_machine() {
        let before = measured(1.0, 1.2);
        let fused_lost = measured(1.25, 1.2 / 1.25);
        let both_lost_unlike = measured(1.35, 1.2 * 1.08 / 1.35);
        for (after, expected) in [(fused_lost, 1.0), (both_lost_unlike, 1.08)] {
            let all = [[before, after]; 5];
            let change = common(1, &all).unwrap();
            assert!((change.ratio - expected).abs() < 1e-12, "{change:?}");
            assert!(moved(&all, change.ratio).iter().all(Option::is_none));
            // Single ops changed by as much as the machine did.
            let single =
                |ms: f64| Measured { speedup: Figure::new(1.0, 1.0, 1.0), ..measured(ms, 1.0) };
            let singles = [[single(1.0), single(expected)]; 3];
            let change = common(1, &[&all[..], &singles].concat()).unwrap();
            assert!((change.ratio - expected).abs() < 1e-12, "{change:?}");
            assert!(moved(&singles, change.ratio).iter().all(Option::is_none));
        }
        // One variant faster, the other slower.
        let exchanged = measured(1.25, 1.2 / 1.25 / 1.1);
        assert_eq!(common(1, &[[before, exchanged]]).unwrap().ratio, 1.0);
    }

    #[test]
    fn exchanged_sides_have_the_inverse_in_common() {
        for count in 1..=9 {
            let all: Vec<[Measured; 2]> = (1..=count)
                .map(|index| [measured(1.0, 1.2), measured(f64::from(index * index), 1.2)])
                .collect();
            let exchanged: Vec<[Measured; 2]> = all.iter().map(|[a, b]| [*b, *a]).collect();
            let [one, other] = [&all, &exchanged].map(|all| common(1, all).unwrap());
            assert!((one.ratio * other.ratio - 1.0).abs() < 1e-12, "{count}");
            assert!((one.quartiles[0] * other.quartiles[1] - 1.0).abs() < 1e-12, "{count}");
        }
        let two = [1.0, 4.0].map(|ms| [measured(1.0, 1.2), measured(ms, 1.2)]);
        assert!((common(1, &two).unwrap().ratio - 2.0).abs() < 1e-12);
    }

    #[test]
    fn without_records_nothing_is_common() {
        assert_eq!(common(1, &[]), None);
        assert!(moved(&[], 1.0).is_empty());
    }
}
