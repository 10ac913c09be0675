//! A bias that Inductor adds in the kernel of an activation, as its name lists, where the other side
//! adds it by a kernel of its own between the GEMM and the activation.

use super::addends::Addend;
use super::fusion::{Around, Found};
use super::places::Place;
use super::proofs::Proofs;
use super::result::FusionEvidence;
use crate::classify::{Class, ClassSet};

/// The bias of the GEMM before a place, which a side adds in its activation there.
pub(super) fn by_listing(
    around: &Around<'_>,
    side: usize,
    at: usize,
    proofs: &Proofs<'_>,
    taken: &[bool],
) -> Option<Found> {
    let places = around.places;
    let other = 1 - side;
    let is_act = |side: usize, place: &Place<'_>| {
        proofs.work(side, place).is_some_and(|work| work.main == Class::Act)
    };
    if taken[at] || !is_act(side, &places[at]) || !proofs.lists_addition(side, &places[at]) {
        return None;
    }
    let gemm = around.before(at).find(|at| places[*at].is_paired())?;
    // The bias is added once: not by the operator of either GEMM.
    let is_plain = places[gemm].works.iter().flatten().all(|work| work.is_gemm())
        && [0, 1].into_iter().all(|side| proofs.is_known_not_to_add(side, &places[gemm]));
    if !is_plain {
        return None;
    }
    let behind: Vec<usize> = around
        .after(gemm)
        .take_while(|behind| *behind == at || !places[*behind].is_paired())
        .filter(|behind| places[*behind].works[other].is_some())
        .collect();
    let [bias, act, ..] = behind[..] else { return None };
    let computes = |side, place| proofs.activations(side, place);
    let is_alike = places[bias].is_only_of(other)
        && proofs.adds(other, &places[bias]) == Some(Addend::Row)
        && (act == at || places[act].is_only_of(other) && !places[at].is_paired())
        && is_act(other, &places[act])
        && computes(side, &places[at]).meet(computes(other, &places[act]))
        && !taken[bias]
        && !taken[act];
    is_alike.then(|| Found {
        side,
        fused: at,
        separate: vec![bias, act],
        parts: ClassSet::of(&[Class::Elementwise, Class::Act]),
        by: FusionEvidence::Name,
        confidence: 0.9,
        is_partial: false,
        excess: None,
    })
}
