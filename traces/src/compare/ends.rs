//! What of a fusion lies at the ends of passes.
//!
//! A layer ends with the beginning of the next one, so the last layer of a pass lacks some of the
//! kernels that the others have, and what runs before the first layer has them. There the fused
//! kernel stands alone in the last layer, and the separate ones alone before the first: the same
//! fusion once more, if there are as many of the one as of the others.

use super::basis::Steps;
use super::fusion::Found;
use super::kinds::Kind;
use super::places::Place;
use super::variants::Key;
use super::work::Work;
use crate::classify::ClassSet;

/// The kind and the place of something that belongs to a fusion.
pub(super) type At = (usize, usize);

/// As many kernels, up to this share of them: a recording may begin or end inside of a pass.
const SAME_COUNT: f64 = 0.1;

/// The places that belong to a fusion found in layers of a kind, in addition to those of the
/// finding itself. `is_free` says which places belong to no other fusion.
pub(super) fn at_ends(
    kinds: &[Kind],
    all: &[Vec<Place<'_>>],
    steps: &Steps,
    (kind, found): (usize, &Found),
    is_free: impl Fn(At) -> bool,
) -> Vec<At> {
    let (side, other) = (found.side, 1 - found.side);
    let (Some(places), Some(key)) = (all.get(kind), kinds.get(kind).map(|kind| kind.key)) else {
        return Vec::new();
    };
    let Some(fused) = places.get(found.fused) else { return Vec::new() };
    let lacking: Vec<&Place<'_>> = found
        .separate
        .iter()
        .filter_map(|at| places.get(*at))
        .filter(|place| place.is_only_of(other))
        .collect();
    let of_phase = |is_outside: bool| {
        let kinds = kinds.iter().zip(all).enumerate();
        kinds.filter(move |(_, (kind, _))| {
            kind.key == Key { is_outside, ..key }
                && kind.variants.iter().all(|side| !side.is_empty())
        })
    };
    let mut taken: Vec<At> = Vec::new();
    let mut fused_count = 0;
    let mut rests: Vec<Vec<Work>> = Vec::new();
    for (number, (_, places)) in of_phase(false) {
        let is_here = |at: usize| is_free((number, at));
        for (at, place) in places.iter().enumerate() {
            let is_alone = is_here(at) && place.works == fused.works && place.role == fused.role;
            if !is_alone {
                continue;
            }
            let mut rest = lacking.clone();
            for (at, place) in places.iter().enumerate().filter(|(at, _)| is_here(*at)) {
                let is_same = |lack: &&Place<'_>| {
                    lack.works[other] == place.works[other] && lack.role == place.role
                };
                if place.is_only_of(other)
                    && let Some(index) = rest.iter().position(is_same)
                {
                    rest.remove(index);
                    taken.push((number, at));
                }
            }
            taken.push((number, at));
            fused_count += place.sums.both.0[side].count;
            rests.push(rest.into_iter().filter_map(|place| place.works[other]).collect());
        }
    }
    let Some((rest, others)) = rests.split_first() else { return Vec::new() };
    if rest.is_empty() || others.iter().any(|other| other != rest) {
        return Vec::new();
    }
    let phase = steps.place(key.phase);
    let per_step = |side: usize, count: u64| count as f64 * steps.weight(side, phase);
    let expected = per_step(side, fused_count);
    for work in rest {
        let mut count = 0;
        for (number, (_, places)) in of_phase(true) {
            for (at, place) in places.iter().enumerate().filter(|(at, _)| is_free((number, *at))) {
                if place.is_only_of(other)
                    && place.works[other] == Some(*work)
                    && !taken.contains(&(number, at))
                {
                    taken.push((number, at));
                    count += place.sums.both.0[other].count;
                }
            }
        }
        if (per_step(other, count) - expected).abs() > SAME_COUNT * expected {
            return Vec::new();
        }
    }
    taken
}

/// The places of a fusion that was found in layers, where its separate kernels lie on both sides of
/// the end of a pass: one paired with the fused kernel, and the other behind everything that both
/// sides have in the last layer, or before what both have behind it. `fused` are all places that
/// pair the fused kernel with the same one, in kinds with one key, and `lacking` is what that one
/// lacks. Returns the places of the others.
pub(super) fn across_ends(
    kinds: &[Kind],
    all: &[Vec<Place<'_>>],
    steps: &Steps,
    (key, fused): (Key, &[At]),
    (side, lacking): (usize, ClassSet),
    is_free: impl Fn(At) -> bool,
) -> Vec<At> {
    let other = 1 - side;
    let phase = steps.place(key.phase);
    let per_step = |side: usize, place: &Place<'_>| {
        place.sums.both.0[side].count as f64 * steps.weight(side, phase)
    };
    let expected: f64 = fused.iter().map(|(kind, at)| per_step(side, &all[*kind][*at])).sum();
    let mut found = Vec::new();
    let mut count = 0.0;
    for (number, (of, places)) in kinds.iter().zip(all).enumerate() {
        if of.key != (Key { is_outside: !key.is_outside, ..key }) {
            continue;
        }
        let mut order: Vec<usize> = (0..places.len()).collect();
        if key.is_outside {
            order.reverse();
        }
        for at in order.into_iter().take_while(|at| !places[*at].is_paired()) {
            let place = &places[at];
            let is_part = place.works[other].is_some_and(|work| lacking.contains(work.main));
            if place.is_only_of(other) && is_part && is_free((number, at)) {
                found.push((number, at));
                count += per_step(other, place);
            }
        }
    }
    if (count - expected).abs() > SAME_COUNT * expected {
        return Vec::new();
    }
    found
}

/// Whether a place is outside of layers, or the last one of a layer that both sides have.
pub(super) fn is_at_end(kind: &Kind, places: &[Place<'_>], at: usize) -> bool {
    kind.key.is_outside || places.iter().skip(at + 1).all(|place| !place.is_paired())
}
