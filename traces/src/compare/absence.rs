//! What no layer of a side does, a class or an activation, at a place where the other side runs it:
//! which neighbour does it on the way, and what shows that.
//!
//! An epilogue may cost nearly nothing, so the time that it adds is small. It shows in the share that
//! the kernel has of its layer: that share differs between the sides as those of other kernels do,
//! unless the kernel does more. Where the launching operator, or a word of its name that no other
//! kernel of the layer has, says so, the time need not. A kernel that an operator of the framework
//! launched does no more than that says, whatever the time.

use super::fusion::{Around, Found};
use super::missing::Missing;
use super::places::Place;
use super::proofs::Proofs;
use super::result::FusionEvidence;
use super::work::Work;
use crate::classify::{Class, ClassSet};

/// What a neighbour can do on the way: it reads or writes the same numbers.
const ABSORBED: ClassSet = ClassSet::of(&[
    Class::Elementwise,
    Class::Norm,
    Class::Act,
    Class::Rope,
    Class::Softmax,
    Class::Reduce,
]);

/// The neighbour takes longer by this part of what the missing kernel would take, at least and at
/// most: less does not show that it does more, and more shows something else.
const LEAST_EXCESS: f64 = 0.03;
const MOST_EXCESS: f64 = 2.0;

/// A share that is off by this many deviations from what is usual is not chance: one in a thousand
/// is, on one side of a normal distribution.
const DEVIATIONS: f64 = 3.1;

/// It must be off by this many times as much as the share of any other kernel of its class. On
/// devices of two vendors these differ by far more than chance, and then a little shows nothing.
const OFF_MORE: f64 = 1.5;

/// What no layer of a side does, at a place where the other side does it.
pub(super) fn by_absence(
    around: &Around<'_>,
    side: usize,
    at: usize,
    (missing, proofs): (&Missing, &Proofs<'_>),
    taken: &[bool],
) -> Option<Found> {
    let places = around.places;
    let place = &places[at];
    let work = proofs.work(1 - side, place).filter(|_| place.is_only_of(1 - side) && !taken[at])?;
    let activations = proofs.activations(1 - side, place);
    let is_missing = missing.lacks(work, activations);
    // A layer adds several times. One addition less, and none at another place, is missing as well.
    let is_one_less = work.main == Class::Elementwise && !missing.adds_elsewhere;
    if !(is_missing || is_one_less) || !ABSORBED.contains(work.main) {
        return None;
    }
    let is_neighbour = |other: &usize| places[*other].is_paired();
    let before = around.before(at).find(is_neighbour);
    let after = around.after(at).find(is_neighbour);
    let neighbours = || [before, after].into_iter().flatten().filter(|other| !taken[*other]);
    let found = |neighbour: usize, by, confidence, is_partial, excess| {
        let own = places[neighbour].works[side]?;
        let separate =
            if before == Some(neighbour) { vec![neighbour, at] } else { vec![at, neighbour] };
        // The gate of an activation is no addition to what does it on the way.
        let missing =
            if work.is_gated() { work.parts().without(Class::Elementwise) } else { work.parts() };
        let parts = own.parts().union(missing);
        Some(Found { side, fused: neighbour, separate, parts, by, confidence, is_partial, excess })
    };
    let is_proven = |one: &usize| proofs.prove(places, side, *one, (work.main, at));
    if is_missing && let Some(proven) = neighbours().find(is_proven) {
        return found(proven, FusionEvidence::Name, 0.9, false, None);
    }
    let mean = |at: usize| places[at].sums.both.0[1 - side].mean_ns();
    let may_do_more = |one: &usize| proofs.may_do_more(side, &places[*one]);
    let tried = neighbours().filter(may_do_more).filter_map(|neighbour| {
        let growth = growth(places, side, neighbour, taken).unwrap_or_default();
        // The speed of the device is in both, and so is how much there is to do.
        let excess = growth.part * mean(neighbour)? / mean(at)?;
        // Outside of layers there may be nothing that depends on the device in the same way.
        let is_compared = growth.is_of_class || !around.is_outside;
        let is_shown = growth.is_more && is_compared && excess >= LEAST_EXCESS;
        (excess <= MOST_EXCESS).then_some((neighbour, excess, is_shown))
    });
    // What the excess explains best.
    let off = |excess: f64| (excess - 1.0).abs();
    let by_fit = |a: &(usize, f64, bool), b: &(usize, f64, bool)| {
        b.2.cmp(&a.2).then_with(|| off(a.1).total_cmp(&off(b.1)))
    };
    let (neighbour, excess, is_shown) = tried.min_by(by_fit)?;
    let is_dense = |work: Work| matches!(work.main, Class::Gemm | Class::MoeGemm | Class::Conv);
    // Where the class is not missing, nothing but the time of such a kernel is evidence.
    let is_evident = is_shown && places[neighbour].works[side].is_some_and(is_dense);
    if !is_missing && !is_evident {
        return None;
    }
    found(neighbour, FusionEvidence::Absence, 0.6, !is_shown, Some(excess))
}

/// How much longer a kernel takes on a side than other kernels of the layer explain.
#[derive(Debug, Clone, Copy, Default)]
struct Growth {
    /// By which part of its time.
    part: f64,
    /// Whether chance does not explain it either.
    is_more: bool,
    /// Whether the other kernels are of its class, which depend on the device in the same way.
    is_of_class: bool,
}

fn growth(places: &[Place<'_>], side: usize, of: usize, taken: &[bool]) -> Option<Growth> {
    let ratio = |place: &Place<'_>| -> Option<(f64, f64)> {
        let (own, own_variance) = place.sums.shares[side].logarithm()?;
        let (other, other_variance) = place.sums.shares[1 - side].logarithm()?;
        Some((own - other, own_variance + other_variance))
    };
    let class = places[of].works[side]?.main;
    let others = |is_one: &dyn Fn(Class) -> bool| -> Vec<(f64, f64)> {
        let places = places.iter().enumerate().filter(|(at, place)| {
            *at != of && !taken[*at] && place.is_paired() && !place.sums.is_of_runtime()
        });
        let alike =
            places.filter(|(_, place)| place.works[side].is_some_and(|work| is_one(work.main)));
        alike.filter_map(|(_, place)| ratio(place)).collect()
    };
    let mut others_of = others(&|other| other == class);
    let is_of_class = others_of.len() >= 2;
    if !is_of_class {
        others_of = others(&|other| other != Class::Comm);
    }
    others_of.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (usual, _) = *others_of.get(others_of.len() / 2)?;
    let (own, variance) = ratio(&places[of])?;
    let off = own - usual;
    let count = others_of.len() as f64;
    let variance_of_others = others_of.iter().map(|(_, variance)| variance).sum::<f64>() / count;
    let most = others_of.iter().map(|(other, _)| (other - usual).abs()).fold(0.0, f64::max);
    let deviation = (variance + variance_of_others).sqrt();
    let is_more = off > DEVIATIONS * deviation && off > OFF_MORE * most;
    Some(Growth { part: off.exp_m1(), is_more, is_of_class })
}
