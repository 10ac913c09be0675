//! A chain that was not measured, from one that differs in some of its ops: `linear+bias+silu` takes
//! as long as `linear+bias+relu`, plus a `silu` by itself, minus a `relu` by itself.
//!
//! That holds of the unfused variant, which is a sum of kernels, and nearly so of the fused one: what
//! the two ops read and write by themselves is the same and cancels. What does not is [`super::hidden`].

use std::cmp::Ordering;
use std::ops::Range;

use super::prediction::{NEAREST, Prediction, Uncertain};
use super::shorter;
use crate::vocabulary::Op;

/// A part of a sum, once or minus once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) sign: f64,
    pub(super) prediction: Prediction,
    /// Whether the fused kernel takes longer by it, too.
    pub(super) is_fused: bool,
}

/// What a fused kernel takes beside its parts, in milliseconds, with a standard deviation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Beside {
    pub(super) ms: f64,
    pub(super) sd_ms: f64,
}

/// The times of a chain that was composed of others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum {
    pub(super) prediction: Prediction,
    /// How many ops differ from those of the chain that it was composed of.
    pub(super) ops: usize,
    /// The arithmetic that differs and is hidden where ops are by themselves, relative to the fused
    /// time.
    pub(super) hidden: f64,
}

impl Sum {
    /// The more certain one first: one within the measured range, then by what is asked about first,
    /// and by how many ops differ.
    pub(super) fn by_certainty(&self, other: &Self) -> Ordering {
        let is_beyond = |sum: &Self| !sum.prediction.is_within();
        let sds = |sum: &Self| {
            let Prediction { ln_fused, ln_speedup, .. } = sum.prediction;
            if ln_speedup.sd > 0.0 { ln_speedup.sd } else { ln_fused.sd }
        };
        let by_sd = sds(self).total_cmp(&sds(other));
        is_beyond(self).cmp(&is_beyond(other)).then(by_sd).then(self.ops.cmp(&other.ops))
    }
}

/// What a sum is off by even if its parts are right, in the logarithm: measured on chains that were
/// measured themselves, the fused time was off by 1.5 % in the median, and the parts explain about
/// half of that.
const SD_OF_A_SUM: f64 = 0.01;

/// A difference of times that leaves less than this share of what it started with is mostly error.
pub(super) const LEAST_LEFT: f64 = 0.2;

/// The ops that differ between a wanted chain and a known one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    /// Of the wanted chain.
    pub(super) new: Range<usize>,
    /// Of the known one.
    pub(super) old: Range<usize>,
}

impl Difference {
    /// How many ops the sum is about; fewer are better.
    pub(super) fn ops(&self) -> usize {
        self.new.len() + self.old.len()
    }

    /// The ways to get from a known chain to a wanted one. Both begin with the same op, which does most
    /// of the work and is in neither part.
    ///
    /// Ops that the wanted chain has more than the known one may be all that differs, where they are
    /// computed on what the fused kernel holds. Otherwise parts are chains, so they have an op at least:
    /// a neighbour is taken into both. A row op, which needs whole rows at once, is exchanged
    /// for another one alone: with pointwise ops in its place the fused kernel is of another form, and
    /// what they take by themselves says little about it (`add+relu` from `add+layer_norm` was off by
    /// 60 % on two machines).
    pub(super) fn between(wanted: &[Op], known: &[Op]) -> [Option<Self>; 3] {
        let ends = |count: usize| [wanted.len() - count, known.len() - count];
        let same = |(a, b): &(&Op, &Op)| a == b;
        let before = wanted.iter().zip(known).take_while(same).count();
        let [wanted_rest, known_rest] = [&wanted[before..], &known[before..]];
        let after = wanted_rest.iter().rev().zip(known_rest.iter().rev()).take_while(same).count();
        if before == 0 || wanted == known {
            return [None, None, None];
        }
        let rows = |ops: &[Op]| ops.iter().filter(|op| op.is_row()).count();
        let with = |start: usize, after: usize| {
            let [new, old] = ends(after).map(|end| start..end);
            Some(Self { new, old })
                .filter(|it| start > 0 && !it.new.is_empty() && !it.old.is_empty())
                .filter(|it| rows(&wanted[it.new.clone()]) == rows(&known[it.old.clone()]))
        };
        let exact = with(before, after);
        if exact.is_some() {
            return [exact, None, None];
        }
        let [new, old] = ends(after).map(|end| before..end);
        let is_inserted = shorter::has_a_tail(known)
            && old.is_empty()
            && wanted[new.clone()].iter().all(|op| shorter::reads_little(*op));
        let inserted = is_inserted.then_some(Self { new, old });
        let with_next = after.checked_sub(1).and_then(|fewer| with(before, fewer));
        [inserted, with_next, with(before - 1, after)]
    }
}

/// The times of a chain from signed parts: the known chain first. `None` where little is left of the
/// time.
pub(super) fn sum(parts: &[Part], beside: Beside) -> Option<Prediction> {
    let known = &parts.first()?.prediction;
    let times = |part: &Part| {
        let fused = part.sign * part.prediction.ln_fused.value.exp();
        let unfused = fused * part.prediction.ln_speedup.value.exp();
        [if part.is_fused { fused } else { 0.0 }, unfused]
    };
    let [mut fused, mut unfused] = [beside.ms, 0.0];
    for part in parts {
        let [of_fused, of_unfused] = times(part);
        fused += of_fused;
        unfused += of_unfused;
    }
    let [of_known, of_known_unfused] = times(&parts[0]);
    if !(fused > LEAST_LEFT * of_known && unfused > LEAST_LEFT * of_known_unfused) {
        return None;
    }
    // How the two logarithms change with the logarithms of each part, which are independent.
    let own = SD_OF_A_SUM * SD_OF_A_SUM + (beside.sd_ms / fused).powi(2);
    let (mut of_time, mut of_speedup) = (own, own);
    let mut octaves = known.octaves;
    for part in parts {
        let Prediction { ln_fused, ln_speedup, .. } = part.prediction;
        let [of_fused, of_unfused] = times(part);
        let with_time = of_fused / fused;
        of_time += (with_time * ln_fused.sd).powi(2);
        of_speedup += ((of_unfused / unfused - with_time) * ln_fused.sd).powi(2);
        of_speedup += (of_unfused / unfused * ln_speedup.sd).powi(2);
        octaves = octaves.max(octaves_beyond(&part.prediction, of_unfused / unfused));
    }
    Some(Prediction {
        ln_fused: Uncertain { value: fused.ln(), sd: of_time.sqrt() },
        ln_speedup: Uncertain { value: (unfused / fused).ln(), sd: of_speedup.sqrt() },
        octaves,
        nearest: nearest(parts.iter().map(|part| &part.prediction)),
    })
}

/// So far beyond its measured range, the time of an op by itself is still known well enough, since it
/// follows the bandwidth. Beyond that, octaves count as much as the part does in the sum.
const OCTAVES_OF_A_PART: f64 = 2.0;

/// How far a sum lies beyond the measured range for a part that makes up this share of it.
fn octaves_beyond(part: &Prediction, share: f64) -> f64 {
    (part.octaves - OCTAVES_OF_A_PART).max(0.0) * share.abs().min(1.0)
}

/// The first op of a known chain by itself: what is left of the unfused variant without the others.
/// It has no other variant.
pub(super) fn rest(known: &Prediction, others: &Prediction) -> Option<Prediction> {
    let unfused = |of: &Prediction| of.ln_fused.value + of.ln_speedup.value;
    let sd = |of: &Prediction| of.ln_fused.sd.hypot(of.ln_speedup.sd);
    let (whole, others_ms) = (unfused(known).exp(), unfused(others).exp());
    let left = Some(whole - others_ms).filter(|left| *left > LEAST_LEFT * whole)?;
    let sd = (whole / left * sd(known)).hypot(others_ms / left * sd(others)).hypot(SD_OF_A_SUM);
    let parts = [known, others];
    Some(Prediction {
        ln_fused: Uncertain { value: left.ln(), sd },
        ln_speedup: Uncertain::NOTHING,
        octaves: known.octaves.max(octaves_beyond(others, others_ms / left)),
        nearest: nearest(parts.into_iter()),
    })
}

/// The nearest record of each part.
fn nearest<'p>(parts: impl Iterator<Item = &'p Prediction>) -> [Option<usize>; NEAREST] {
    let mut nearest = [None; NEAREST];
    for (named, part) in nearest.iter_mut().zip(parts) {
        *named = part.nearest[0];
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::Chain;

    fn between(wanted: &str, known: &str) -> Vec<[String; 2]> {
        let [wanted, known] = [wanted, known].map(|text| text.parse::<Chain>().unwrap());
        let name = |chain: &Chain, ops: Range<usize>| {
            chain[ops].iter().map(|op| op.name()).collect::<Vec<_>>().join("+")
        };
        Difference::between(&wanted, &known)
            .into_iter()
            .flatten()
            .map(|Difference { new, old }| [name(&wanted, new), name(&known, old)])
            .collect()
    }

    #[test]
    fn the_ops_that_differ() {
        let pair = |new: &str, old: &str| [new.to_owned(), old.to_owned()];
        assert_eq!(between("linear+bias+silu", "linear+bias+relu"), [pair("silu", "relu")]);
        assert_eq!(
            between("linear+bias+gelu+linear+bias", "mlp"),
            [pair("gelu", "relu")],
            "what comes after both is in neither"
        );
        assert_eq!(
            between("conv2d+batch_norm+add+relu", "conv_bn_relu"),
            [pair("add+relu", "relu"), pair("batch_norm+add", "batch_norm")],
            "an add reads a tensor"
        );
        assert_eq!(
            between("linear+bias+relu", "linear+bias"),
            [pair("relu", ""), pair("bias+relu", "bias")]
        );
        assert_eq!(between("linear+bias", "linear+bias+relu"), [pair("bias", "bias+relu")]);
    }

    #[test]
    fn no_way_leads_by_the_wanted_chain_itself() {
        for (wanted, known) in [
            ("linear+bias", "linear+bias"),
            ("linear+bias", "conv2d+bias"),
            ("linear+bias", "linear"),
            ("linear", "linear+bias"),
        ] {
            assert!(between(wanted, known).is_empty(), "{wanted} from {known}");
        }
    }

    fn known(fused_ms: f64, speedup: f64, sd: f64) -> Prediction {
        Prediction {
            ln_fused: Uncertain { value: fused_ms.ln(), sd },
            ln_speedup: Uncertain { value: speedup.ln(), sd },
            octaves: 0.0,
            nearest: [Some(7), None, None],
        }
    }

    fn part(sign: f64, prediction: Prediction) -> Part {
        Part { sign, prediction, is_fused: true }
    }

    const NOTHING: Beside = Beside { ms: 0.0, sd_ms: 0.0 };

    #[test]
    fn a_sum_and_what_is_known_of_it() {
        let one_op = |ms: f64| Prediction { ln_speedup: Uncertain::NOTHING, ..known(ms, 1.0, 0.1) };
        let sibling = known(10.0, 1.2, 0.02);
        let parts = [part(1.0, sibling), part(1.0, one_op(2.0)), part(-1.0, one_op(1.0))];
        let found = sum(&parts, NOTHING).unwrap();
        assert!((found.ln_fused.value.exp() - 11.0).abs() < 1e-9);
        assert!((found.ln_speedup.value.exp() - 13.0 / 11.0).abs() < 1e-9);
        let expected =
            ((10.0 * 0.02_f64).powi(2) + 0.2_f64.powi(2) + 0.1_f64.powi(2)).sqrt() / 11.0;
        assert!((found.ln_fused.sd - expected.hypot(SD_OF_A_SUM)).abs() < 1e-9);
        // An error in the sibling's time is in both variants, and cancels almost wholly.
        assert!(found.ln_speedup.sd < 0.03, "{}", found.ln_speedup.sd);
        assert_eq!(found.nearest, [Some(7); 3]);
    }

    #[test]
    fn an_op_may_be_free_in_the_fused_kernel_but_for_something_beside() {
        let sibling = known(10.0, 1.2, 0.02);
        let free = Part { is_fused: false, ..part(1.0, known(2.0, 1.0, 0.1)) };
        let found = sum(&[part(1.0, sibling), free], Beside { ms: 0.5, sd_ms: 0.42 }).unwrap();
        assert!((found.ln_fused.value.exp() - 10.5).abs() < 1e-9);
        assert!((found.ln_speedup.value.exp() - 14.0 / 10.5).abs() < 1e-9);
        let expected = (0.2 / 10.5_f64).hypot(0.42 / 10.5).hypot(SD_OF_A_SUM);
        assert!((found.ln_fused.sd - expected).abs() < 1e-9);
    }

    #[test]
    fn the_more_certain_sum_is_first_and_of_equal_ones_that_of_fewer_ops() {
        let sum = |sd, ops| Sum { prediction: known(1.0, 1.1, sd), ops, hidden: 0.0 };
        assert_eq!(sum(0.1, 5).by_certainty(&sum(0.2, 1)), Ordering::Less);
        assert_eq!(sum(0.1, 5).by_certainty(&sum(0.1, 1)), Ordering::Greater);
        let single = |sd| Sum {
            prediction: Prediction { ln_speedup: Uncertain::NOTHING, ..known(1.0, 1.0, sd) },
            ..sum(sd, 1)
        };
        assert_eq!(single(0.1).by_certainty(&single(0.2)), Ordering::Less);
        let mut beyond = sum(0.1, 1);
        beyond.prediction.octaves = 1.0;
        assert_eq!(beyond.by_certainty(&sum(0.2, 5)), Ordering::Greater);
    }

    #[test]
    fn a_difference_that_leaves_nothing_is_no_answer() {
        let parts = [part(1.0, known(1.0, 1.5, 0.1)), part(-1.0, known(0.9, 1.0, 0.1))];
        assert_eq!(sum(&parts, NOTHING), None);
        assert_eq!(sum(&[], NOTHING), None);
        assert_eq!(rest(&known(1.0, 1.0, 0.1), &known(0.9, 1.0, 0.1)), None);
        let left = rest(&known(1.0, 1.5, 0.0), &known(0.5, 1.0, 0.0)).unwrap();
        assert!((left.ln_fused.value.exp() - 1.0).abs() < 1e-9);
        assert_eq!(left.ln_speedup, Uncertain::NOTHING);
    }

    #[test]
    fn a_part_may_lie_as_far_beyond_its_range_as_it_is_small() {
        let far = |octaves| Prediction { octaves, ..known(1.0, 1.0, 0.0) };
        let octaves = |of_known, octaves| {
            let parts = [part(1.0, known(of_known, 1.0, 0.0)), part(1.0, far(octaves))];
            sum(&parts, NOTHING).unwrap().octaves
        };
        assert_eq!(octaves(9.0, 1.5), 0.0);
        assert_eq!(octaves(9.0, 2.0), 0.0);
        assert!((octaves(9.0, 6.0) - 0.4).abs() < 1e-9);
        assert!((octaves(1.0, 6.0) - 2.0).abs() < 1e-9);
        // What is taken off may be larger than what is left.
        let less = [part(1.0, known(1.5, 1.0, 0.0)), part(-1.0, far(6.0))];
        assert_eq!(sum(&less, NOTHING).unwrap().octaves, 4.0);
        let octaves =
            |whole, octaves| rest(&known(whole, 1.0, 0.0), &far(octaves)).unwrap().octaves;
        assert_eq!(octaves(11.0, 2.0), 0.0);
        assert!((octaves(11.0, 6.0) - 0.4).abs() < 1e-9);
        assert_eq!(octaves(1.5, 6.0), 4.0);
    }
}
