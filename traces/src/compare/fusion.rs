//! Where one side does in one kernel what the other does in several.
//!
//! A finding needs evidence, and the other side's separate kernels at the same place of a layer:
//!
//! - by name: what the name, or the launching operator, proves the kernel to do, and the kernel
//!   paired with it does not;
//! - by definition: attention in one kernel, against GEMMs around a softmax;
//! - by the operator that launched a GEMM: it has an epilogue (`epilogues`);
//! - by the name of an activation of Inductor, which lists the addition of a bias (`listed`);
//! - by absence: what no layer of one side does, while the neighbour that would do its work shows
//!   that it does (`absence`).
//!
//! More kernels of a class on one side are not evidence.

use super::absence::by_absence;
use super::epilogues::by_operator;
use super::listed::by_listing;
use super::missing::Missing;
use super::places::Place;
use super::proofs::Proofs;
use super::result::{FusionEvidence, Which};
use super::roles::Role;
use super::variants::Key;
use crate::classify::{Class, ClassSet};

/// A fusion in the layers of a kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// The side that fuses.
    pub(super) side: usize,
    /// The place of the fused kernel.
    pub(super) fused: usize,
    /// The places of the separate kernels, in their order; that of the fused kernel too, if the
    /// other side has one of them there.
    pub(super) separate: Vec<usize>,
    /// The classes that are known to be fused.
    pub(super) parts: ClassSet,
    pub(super) by: FusionEvidence,
    pub(super) confidence: f64,
    /// Whether something is missing: of attention the other part may be at the other end of the
    /// pass, and an absence may have too few kernels to show that one takes longer.
    pub(super) is_partial: bool,
    /// Of an absence, by how much longer the neighbour takes than expected, over what the missing
    /// kernel would take.
    pub(super) excess: Option<f64>,
}

/// The fusions in the layers of a kind. `missing` is what no layer of each side does. Where a layer is
/// followed by the beginning of another one, the first place is behind the last one.
pub(super) fn find(
    places: &[Place<'_>],
    missing: &[Missing; 2],
    key: Key,
    proofs: &Proofs<'_>,
) -> Vec<Found> {
    let around = Around { places, goes_on: key.goes_on(), is_outside: key.is_outside };
    let mut taken = vec![false; places.len()];
    let mut found: Vec<Found> = Vec::new();
    let mut take = |one: Option<Found>, taken: &mut [bool]| {
        if let Some(one) = one {
            one.places().for_each(|place| taken[place] = true);
            found.push(one);
        }
    };
    // Of both sides at a place the one that does more in its kernel, whichever is the first.
    let more = |found: [Option<Found>; 2]| {
        found.into_iter().flatten().max_by_key(|one| (one.parts.len(), one.parts))
    };
    for at in 0..places.len() {
        let on_side = |side| {
            by_name(&around, side, at, proofs, &taken)
                .or_else(|| by_definition(places, side, at, &taken))
        };
        take(more([0, 1].map(on_side)), &mut taken);
    }
    for at in 0..places.len() {
        let on_side = |side| by_operator(&around, side, at, proofs, &taken);
        take(more([0, 1].map(on_side)), &mut taken);
    }
    for at in 0..places.len() {
        let on_side = |side| by_listing(&around, side, at, proofs, &taken);
        take(more([0, 1].map(on_side)), &mut taken);
    }
    for at in 0..places.len() {
        let on_side = |side: usize| by_absence(&around, side, at, (&missing[side], proofs), &taken);
        take(more([0, 1].map(on_side)), &mut taken);
    }
    found
}

/// A fused kernel by its name.
fn by_name(
    around: &Around<'_>,
    side: usize,
    at: usize,
    proofs: &Proofs<'_>,
    taken: &[bool],
) -> Option<Found> {
    let places = around.places;
    let place = &places[at];
    let work = place.works[side].filter(|_| !taken[at])?;
    let partner = place.works[1 - side];
    let beside = partner.map_or(ClassSet::EMPTY, super::work::Work::parts);
    let mut left = work.parts();
    for class in beside.iter() {
        left = left.without(class);
    }
    if work.parts().len() < 2 || left.is_empty() {
        return None;
    }
    let mut separate: Vec<usize> = partner.is_some().then_some(at).into_iter().collect();
    let mut parts = beside;
    let mut nearest = around.between_anchors(at);
    // What is multiplied by a gate may be activated before the GEMM that the gate comes from.
    let before_gate = if work.is_gated() { around.before_gemm(at) } else { Vec::new() };
    let before_gate: Vec<usize> =
        before_gate.into_iter().filter(|other| !nearest.contains(other)).collect();
    nearest.splice(0..0, before_gate.iter().rev().copied());
    let mut position = vec![0; places.len()];
    nearest.iter().enumerate().for_each(|(index, other)| position[*other] = index);
    nearest.retain(|other| *other != at);
    // The nearest first: a layer has several additions.
    nearest.sort_by_key(|other| (position[*other].abs_diff(position[at]), position[*other]));
    let activations = proofs.activations(side, place);
    for other in nearest {
        let candidate = &places[other];
        let work = proofs.work(1 - side, candidate).filter(|_| !taken[other]);
        let Some(work) = work else { continue };
        let is_alike =
            work.main != Class::Act || activations.meet(proofs.activations(1 - side, candidate));
        let is_near = work.main == Class::Act || !before_gate.contains(&other);
        if candidate.is_only_of(1 - side) && left.contains(work.main) && is_alike && is_near {
            for class in work.parts().iter() {
                left = left.without(class);
            }
            parts = parts.union(work.parts());
            separate.push(other);
        }
    }
    separate.sort_by_key(|at| position[*at]);
    (separate.len() > 1).then_some(Found {
        side,
        fused: at,
        separate,
        parts: work.parts(),
        by: FusionEvidence::Name,
        // What is in the name and nowhere on the other side may be done for another reason.
        confidence: if left.is_empty() { 1.0 } else { 0.8 },
        is_partial: false,
        excess: None,
    })
}

/// Attention in one kernel, where the other side has GEMMs around a softmax.
fn by_definition(places: &[Place<'_>], side: usize, at: usize, taken: &[bool]) -> Option<Found> {
    let place = &places[at];
    let is_attention = place.works[side].is_some_and(|work| work.main == Class::Attn);
    if !is_attention || taken[at] || place.works[1 - side].is_some_and(|w| w.main == Class::Attn) {
        return None;
    }
    let other = |at: usize| places[at].works[1 - side].map(|work| work.main);
    let is_free = |at: usize| {
        !taken[at] && places[at].role == Role::Attention && places[at].works[side].is_none()
    };
    let softmax = (0..places.len()).find(|at| {
        other(*at) == Some(Class::Softmax)
            && (is_free(*at) || places[*at].works[side].is_some_and(|w| w.main == Class::Attn))
    })?;
    // Layers that begin at their softmax have the GEMM before it at their end.
    let inner = (0..places.len()).filter(|at| {
        let class = other(*at);
        *at == softmax
            || is_free(*at)
                && matches!(class, Some(Class::Gemm | Class::Elementwise | Class::GemmEpilogue))
    });
    let separate: Vec<usize> = inner.collect();
    let products = separate.iter().filter(|at| other(**at) == Some(Class::Gemm)).count();
    (products > 0).then_some(Found {
        side,
        fused: at,
        separate,
        parts: ClassSet::of(&[Class::Gemm, Class::Softmax]),
        by: FusionEvidence::Definition,
        confidence: if products == 2 { 0.95 } else { 0.8 },
        is_partial: products < 2,
        excess: None,
    })
}

/// The places of a kind with the order in which they run.
pub(super) struct Around<'p> {
    pub(super) places: &'p [Place<'p>],
    goes_on: bool,
    /// Whether they are outside of layers.
    pub(super) is_outside: bool,
}

impl Around<'_> {
    /// The places before one, the nearest first; those at the end too, if the layer before this one
    /// ends with them.
    pub(super) fn before(&self, at: usize) -> impl Iterator<Item = usize> + use<> {
        let from_end = if self.goes_on { at + 1..self.places.len() } else { 0..0 };
        (0..at).rev().chain(from_end.rev())
    }

    /// The places after one likewise.
    pub(super) fn after(&self, at: usize) -> impl Iterator<Item = usize> + use<> {
        let from_start = if self.goes_on { 0..at } else { 0..0 };
        (at + 1..self.places.len()).chain(from_start)
    }

    /// The places around one in their order, with itself, up to what a layer is built on: GEMMs,
    /// attention, scans.
    fn between_anchors(&self, at: usize) -> Vec<usize> {
        let mut order: Vec<usize> = self.before(at).take_while(|at| !self.is_anchor(*at)).collect();
        order.reverse();
        order.push(at);
        // Without anything to build on, one direction has all places.
        if order.len() < self.places.len() {
            order.extend(self.after(at).take_while(|at| !self.is_anchor(*at)));
        }
        order
    }

    /// The places before the GEMM that both sides have before one, the nearest first, up to the next
    /// that a layer is built on.
    fn before_gemm(&self, at: usize) -> Vec<usize> {
        let mut before = self.before(at).skip_while(|at| !self.is_anchor(*at));
        let is_gemm = |at: usize| self.places[at].works.iter().flatten().any(|work| work.is_gemm());
        match before.next() {
            Some(gemm) if is_gemm(gemm) => before.take_while(|at| !self.is_anchor(*at)).collect(),
            _ => Vec::new(),
        }
    }

    fn is_anchor(&self, at: usize) -> bool {
        let is_one = |work: &super::work::Work| {
            matches!(
                work.main,
                Class::Gemm | Class::MoeGemm | Class::Attn | Class::Ssm | Class::Conv
            )
        };
        let place = &self.places[at];
        place.is_paired() && place.works.iter().flatten().any(is_one)
    }
}

impl Found {
    /// All places that belong to it.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        let fused = Some(self.fused).filter(|fused| !self.separate.contains(fused));
        self.separate.iter().copied().chain(fused)
    }

    pub(super) fn which(&self) -> Which {
        Which::of(self.side)
    }
}
