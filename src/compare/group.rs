//! Families and patterns of a comparison.

use serde::Serialize;

use super::pair::{Choice, Pair, PairVerdict};
use super::side::Measured;
use crate::vocabulary::Family;

/// The pairs of a family, or of a pattern of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The second side, as an index of [`Comparison::sides`](super::Comparison::sides).
    pub side: usize,
    /// The family.
    pub family: Family,
    /// The pattern, or the ops joined with `+`; `None` for all of the family.
    pub pattern: Option<String>,
    /// How many pairs there are.
    pub pairs: usize,
    /// Problems of both sides that are INVALID on one of them, and no pair for that.
    pub invalid: usize,
    /// The geometric mean of the speedups on each side; `None` without pairs.
    pub speedups: Option<[f64; 2]>,
    /// The geometric mean of the ceilings on each side, of the pairs that have both.
    pub ceilings: Option<[f64; 2]>,
    /// The geometric mean of the second side's fused times over the first one's.
    pub fused_time: Option<f64>,
    /// How many are to be fused on each side.
    pub fuse: [usize; 2],
    /// How many are too close to the threshold on each side, or have no interval.
    pub open: [usize; 2],
    /// How many one side fuses and the other one keeps apart.
    pub flips: usize,
    /// How many have each verdict, in the order of [`PairVerdict::ALL`].
    pub verdicts: [usize; 4],
    /// What a partitioner should conclude; only of a family.
    pub conclusion: Option<String>,
}

impl Group {
    /// The second side's geometric mean over the first one's.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        self.speedups.map(|[first, second]| second / first)
    }

    /// How many pairs have a verdict.
    #[must_use]
    pub fn count(&self, verdict: PairVerdict) -> usize {
        self.verdicts[verdict as usize]
    }

    pub(super) fn of(
        side: usize,
        family: Family,
        pattern: Option<String>,
        pairs: &[&Pair],
        invalid: usize,
    ) -> Self {
        let means = |of: &dyn Fn(&Measured) -> Option<f64>| {
            let both = |pair: &&Pair| Some([of(&pair.first)?, of(&pair.second)?]);
            let values: Vec<[f64; 2]> = pairs.iter().filter_map(both).collect();
            let mean = |which: usize| geometric_mean(values.iter().map(|both| both[which]));
            Some([mean(0)?, mean(1)?])
        };
        let fused = means(&|one| Some(one.fused_ms.value));
        let count = |is: &dyn Fn(&Pair) -> bool| pairs.iter().filter(|pair| is(pair)).count();
        let of_choices =
            |is: fn(Choice) -> bool| [0, 1].map(|which| count(&|pair| is(pair.choices[which])));
        Self {
            side,
            family,
            pattern,
            pairs: pairs.len(),
            invalid,
            speedups: means(&|one| Some(one.speedup.value)),
            ceilings: means(&|one| one.ceiling_speedup),
            fused_time: fused.map(|[first, second]| second / first),
            fuse: of_choices(|choice| choice == Choice::Fuse),
            open: of_choices(|choice| !choice.is_decided()),
            flips: count(&Pair::flips),
            verdicts: PairVerdict::ALL.map(|verdict| count(&|pair| pair.verdict == verdict)),
            conclusion: None,
        }
    }
}

/// `None` without values.
pub(super) fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value.ln();
        count += 1.0;
    }
    (count > 0.0).then(|| (sum / count).exp())
}
