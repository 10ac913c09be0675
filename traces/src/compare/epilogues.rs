//! What the operator that launched a GEMM, or a convolution, says that it does with the result, where
//! the other side does it by kernels right behind its own.
//!
//! The layers may have more of such kernels: it is the operators at this place that differ. What
//! the side with the epilogue does by a kernel at another place, where the other side has none,
//! shows that something is in another order.

use super::fusion::{Around, Found};
use super::places::Place;
use super::proofs::Proofs;
use super::result::FusionEvidence;
use crate::classify::{Class, ClassSet};

/// An epilogue of the kernel before a place that only the other side has.
pub(super) fn by_operator(
    around: &Around<'_>,
    side: usize,
    at: usize,
    proofs: &Proofs<'_>,
    taken: &[bool],
) -> Option<Found> {
    let places = around.places;
    let other = 1 - side;
    if taken[at] || !places[at].is_only_of(other) {
        return None;
    }
    let fused = around.before(at).find(|before| places[*before].is_paired())?;
    let own = places[fused].works[side]?;
    if taken[fused] || !matches!(own.main, Class::Gemm | Class::MoeGemm | Class::Conv) {
        return None;
    }
    let is_proven = |of: &usize| {
        !taken[*of]
            && proofs.operator_proves(places, side, fused, *of)
            && !is_elsewhere(places, side, *of, proofs, taken)
    };
    let behind = around.after(fused).take_while(|behind| !places[*behind].is_paired());
    let behind = behind.filter(|behind| places[*behind].is_only_of(other));
    let mut done = ClassSet::EMPTY;
    // The operator computes one activation, and adds one bias.
    let is_next = |of: &usize| {
        let class = proofs.work(other, &places[*of]).map(|work| work.main);
        let is_first = class.is_some_and(|class| !done.contains(class));
        done = class.map_or(done, |class| done.with(class));
        is_first && is_proven(of)
    };
    let epilogue: Vec<usize> = behind.take_while(is_next).collect();
    if !epilogue.contains(&at) {
        return None;
    }
    let mut parts = own.parts();
    for work in epilogue.iter().filter_map(|of| proofs.work(other, &places[*of])) {
        // The gate of an activation is no addition to what does it on the way.
        parts = parts.with(work.main);
    }
    let separate = [&[fused], &epilogue[..]].concat();
    Some(Found {
        side,
        fused,
        separate,
        parts,
        by: FusionEvidence::Name,
        confidence: 0.9,
        is_partial: false,
        excess: None,
    })
}

/// Whether a side does what the other side's kernel does at a place that only this side has.
fn is_elsewhere(
    places: &[Place<'_>],
    side: usize,
    of: usize,
    proofs: &Proofs<'_>,
    taken: &[bool],
) -> bool {
    let Some(work) = proofs.work(1 - side, &places[of]) else { return false };
    let activations = proofs.activations(1 - side, &places[of]);
    places.iter().zip(taken).any(|(place, is_taken)| {
        let is_here = place.is_only_of(side) && !is_taken;
        let is_same = |own: super::work::Work| {
            own.main == work.main
                && (own.main != Class::Act || proofs.activations(side, place).meet(activations))
        };
        is_here && proofs.work(side, place).is_some_and(is_same)
    })
}
