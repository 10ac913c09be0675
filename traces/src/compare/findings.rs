//! Fusions and differences of the implementation, put together over all kinds of layers.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::ends::{At, across_ends, at_ends, is_at_end};
use super::explain::{Evidence, Explained, Explanation};
use super::fusion::{self, Found};
use super::implementation;
use super::missing::Missing;
use super::places::Place;
use super::proofs::Proofs;
use super::result::{
    Fusion, FusionEvidence, ImplementationDifference, ImplementationKind, Part, Which,
};
use super::roles::Role;
use super::text::{capitalised, list, number, percent, time};
use super::variants::Key;
use super::work::Work;
use crate::classify::{Class, ClassSet};

/// What makes findings one fusion: who fuses what, what the other side runs, and for what.
type FusionKey = (usize, String, Vec<String>, Role);

/// What makes differences one: what it is, who does it, the class, and for what.
pub(super) type DifferenceKey = (ImplementationKind, usize, String, Role);

/// Something is done as often in a step, except in parts of steps at the ends of the recordings.
const SAME_OFTEN: f64 = 0.5;

impl Evidence<'_, '_> {
    /// Adds the fusions of all kinds of layers.
    pub(super) fn add_fusions(
        &self,
        explanation: &mut Explanation,
        all: &[Vec<Place<'_>>],
        missing: &[[Missing; 2]],
        proofs: &Proofs<'_>,
    ) {
        let mut found: Vec<(usize, Found)> = Vec::new();
        for (number, (kind, places)) in self.kinds.list.iter().zip(all).enumerate() {
            // A fusion is between layers that both sides have.
            if kind.variants.iter().all(|side| !side.is_empty()) {
                let of_kind = fusion::find(places, &missing[number], kind.key, proofs);
                found.extend(of_kind.into_iter().map(|found| (number, found)));
            }
        }
        let (partial, whole): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(_, found)| found.is_partial);
        let mut known = FxHashMap::default();
        let mut whole: Vec<(usize, Found, usize)> = whole
            .into_iter()
            .map(|(kind, found)| {
                let of_kind = (kind, &all[kind][..]);
                let index = self.add_fusion(explanation, &mut known, of_kind, &found, proofs);
                (kind, found, index)
            })
            .collect();
        // What few layers show is believed if others show it.
        let (absent, partial): (Vec<_>, Vec<_>) =
            partial.into_iter().partition(|(_, found)| found.by == FusionEvidence::Absence);
        for (kind, found) in absent {
            // Without the missing kernel a role may be taken for another one.
            let (side, operation, separate, _) = self.key(&all[kind], &found);
            let same = known.iter().filter(|((of, what, parts, _), _)| {
                *of == side && *what == operation && *parts == separate
            });
            if let Some(index) = same.map(|(_, index)| *index).min() {
                for at in found.places() {
                    self.add_place(explanation, index, kind, &all[kind], at, side);
                }
                whole.push((kind, found, index));
            }
        }
        for (kind, found, index) in &whole {
            let is_free = |(kind, at): At| explanation.slots[kind][at].fusion.is_none();
            let more = at_ends(&self.kinds.list, all, self.steps, (*kind, found), is_free);
            for (kind, at) in more {
                self.add_place(explanation, *index, kind, &all[kind], at, found.side);
            }
        }
        self.add_across_ends(explanation, &known, all);
        for (kind, found) in partial {
            if explanation.slots[kind][found.fused].fusion.is_none() {
                let of_kind = (kind, &all[kind][..]);
                self.add_fusion(explanation, &mut known, of_kind, &found, proofs);
            }
        }
    }

    /// Adds what of known fusions lies on both sides of the end of a pass.
    fn add_across_ends(
        &self,
        explanation: &mut Explanation,
        known: &FxHashMap<FusionKey, usize>,
        all: &[Vec<Place<'_>>],
    ) {
        let kinds = &self.kinds.list;
        let mut ends: BTreeMap<(usize, Work, Work, Key), Vec<At>> = BTreeMap::new();
        for (number, (kind, places)) in kinds.iter().zip(all).enumerate() {
            for (at, place) in places.iter().enumerate() {
                let [Some(first), Some(second)] = place.works else { continue };
                let more = [(0, first, second), (1, second, first)];
                let more = more.into_iter().find(|(_, own, other)| own.is_more_than(*other));
                let is_free = explanation.slots[number][at].fusion.is_none();
                if let Some((side, fused, beside)) = more
                    && is_free
                    && is_at_end(kind, places, at)
                {
                    ends.entry((side, fused, beside, kind.key)).or_default().push((number, at));
                }
            }
        }
        for ((side, fused, beside, key), places) in ends {
            let same = known.iter().filter(|((of, what, parts, _), _)| {
                *of == side && *what == fused.label() && parts.contains(&beside.label())
            });
            // What ends the last layer stands where others have the norm before attention.
            let nearest =
                same.min_by_key(|((.., role), index)| (*role != Role::AttentionNorm, **index));
            let Some(index) = nearest.map(|(_, index)| *index) else { continue };
            let lacking = beside.parts().iter().fold(fused.parts(), ClassSet::without);
            let is_free = |(kind, at): At| explanation.slots[kind][at].fusion.is_none();
            let (of, others) = ((key, &places[..]), (side, lacking));
            let more = across_ends(kinds, all, self.steps, of, others, is_free);
            if more.is_empty() {
                continue;
            }
            for (kind, at) in places.into_iter().chain(more) {
                self.add_place(explanation, index, kind, &all[kind], at, side);
            }
        }
    }

    /// Adds a fusion, or more of one that is known. Returns its place in the list.
    fn add_fusion(
        &self,
        explanation: &mut Explanation,
        known: &mut FxHashMap<FusionKey, usize>,
        (kind, places): (usize, &[Place<'_>]),
        found: &Found,
        proofs: &Proofs<'_>,
    ) -> usize {
        let fused = &places[found.fused];
        let key = self.key(places, found);
        let (_, operation, separate, _) = key.clone();
        let index = *known.entry(key).or_insert_with(|| {
            let names = found.separate.iter();
            let other = 1 - found.side;
            let trace = self.sides[other].side.trace;
            let mut kernels =
                names.clone().map(|at| (other, *at)).chain([(found.side, found.fused)]);
            let problem = kernels.find_map(|(side, at)| proofs.problem(side, &places[at]));
            explanation.fusions.push(Fusion {
                fused_by: found.which(),
                operation,
                fused_kernel: fused.name(found.side, self.sides[found.side].side.trace).to_owned(),
                separate,
                separate_kernels: names
                    .map(|at| places[*at].name(other, trace).to_owned())
                    .filter(|name| !name.is_empty())
                    .collect(),
                role: fused.role,
                per_step: 0.0,
                count: 0,
                part: Part::default(),
                confidence: found.confidence,
                by: found.by,
                excess: found.excess,
                problem: problem.map(|problem| problem.to_string()),
                evidence: String::new(),
            });
            explanation.fusions.len() - 1
        });
        for at in found.places() {
            self.add_place(explanation, index, kind, places, at, found.side);
        }
        index
    }

    /// What makes findings one: who fuses what, what the other side runs, and for what.
    fn key(&self, places: &[Place<'_>], found: &Found) -> FusionKey {
        let fused = &places[found.fused];
        let separate = found.separate.iter();
        let separate =
            separate.filter_map(|at| places[*at].works[1 - found.side].map(Work::label)).collect();
        (found.side, self.operation(found, fused), separate, fused.role)
    }

    /// Adds a place to a fusion.
    fn add_place(
        &self,
        explanation: &mut Explanation,
        index: usize,
        kind: usize,
        places: &[Place<'_>],
        at: usize,
        side: usize,
    ) {
        let phase = self.steps.place(self.kinds.list[kind].key.phase);
        explanation.slots[kind][at].fusion = Some(index);
        let sums = &places[at].sums.both;
        let fusion = &mut explanation.fusions[index];
        fusion.part.add(&sums.part(self.steps, phase));
        // On the side that fuses there is only the fused kernel.
        fusion.count += sums.0[side].count;
        fusion.per_step += ratio(sums.0[side].count, self.steps.counts[side]);
    }

    /// What the fused kernel does; of attention what the other side runs for it.
    fn operation(&self, found: &Found, fused: &Place<'_>) -> String {
        match found.by {
            FusionEvidence::Definition => "GEMM+SOFTMAX+GEMM".to_owned(),
            // What is added to an activation whose kernel multiplies by no gate is a bias.
            FusionEvidence::Name
                if fused.works[found.side]
                    .is_some_and(|work| work.main == Class::Act && !work.is_gated())
                    && found.parts.contains(Class::Elementwise) =>
            {
                "ADD+ACT".to_owned()
            }
            FusionEvidence::Name | FusionEvidence::Absence => {
                let main = fused.works[found.side].map_or(Class::Unclassified, |work| work.main);
                Work { main, also: found.parts.without(main) }.label()
            }
        }
    }

    /// Adds what is of the implementation at a place, if it is.
    pub(super) fn add_implementation(
        &self,
        explanation: &mut Explanation,
        known: &mut FxHashMap<DifferenceKey, usize>,
        kind: usize,
        places: &[Place<'_>],
        at: usize,
    ) {
        let place = &places[at];
        let Some((side, what)) = [0, 1]
            .into_iter()
            .find_map(|side| Some((side, implementation::kind(places, at, side)?)))
        else {
            return;
        };
        if place.sums.is_of_runtime()
            && place.works[side].is_some_and(|work| self.is_as_often(work))
        {
            return;
        }
        let phase = self.steps.place(self.kinds.list[kind].key.phase);
        let class = place.works[side].map(Work::label).unwrap_or_default();
        let key = (what, side, class.clone(), place.role);
        let index = *known.entry(key).or_insert_with(|| {
            explanation.implementation.push(ImplementationDifference {
                kind: what,
                run_by: Which::of(side),
                class,
                role: place.role,
                kernel: place.name(side, self.sides[side].side.trace).to_owned(),
                per_step: 0.0,
                part: Part::default(),
                sentence: String::new(),
            });
            explanation.implementation.len() - 1
        });
        let difference = &mut explanation.implementation[index];
        let own = &place.sums.both.0[side];
        difference.per_step += ratio(own.count, self.steps.counts[side]);
        difference.part.add(&place.sums.both.part(self.steps, phase));
        explanation.slots[kind][at].implementation = Some(index);
    }

    /// A GEMM that the other side computes in several is compared with all of them.
    pub(super) fn add_partners(
        &self,
        explanation: &mut Explanation,
        kind: usize,
        places: &[Place<'_>],
    ) {
        let phase = self.steps.place(self.kinds.list[kind].key.phase);
        for at in 0..places.len() {
            let place = &places[at];
            let is_gemm = place.works.iter().all(|work| work.is_some_and(Work::is_gemm));
            let is_free = explanation.slots[kind][at] == Explained::default();
            if !is_gemm || !is_free {
                continue;
            }
            let siblings = places.iter().zip(&explanation.slots[kind]);
            let mut siblings = siblings.filter(|(other, _)| other.role == place.role);
            let difference = siblings.find_map(|(_, explained)| {
                let index = explained.implementation?;
                let kind = explanation.implementation.get(index)?.kind;
                (kind == ImplementationKind::SeparateGemms).then_some(index)
            });
            if let Some(index) = difference {
                let part = place.sums.both.part(self.steps, phase);
                explanation.implementation[index].part.add(&part);
                explanation.slots[kind][at].implementation = Some(index);
            }
        }
    }

    /// Whether both sides do this as often in a step. What the runtime does on a stream of its own
    /// may then run alongside one layer on one side and alongside another on the other.
    fn is_as_often(&self, work: Work) -> bool {
        let [first, second] = [0, 1].map(|side: usize| {
            let of_work = self.ledger.works.iter().filter(|((other, _), _)| *other == work);
            let count: u64 = of_work.map(|(_, both)| both.0[side].count).sum();
            ratio(count, self.steps.counts[side])
        });
        (first - second).abs() < SAME_OFTEN
    }

    /// Puts the findings into words.
    pub(super) fn describe(&self, explanation: &mut Explanation) {
        for fusion in &mut explanation.fusions {
            let side = usize::from(fusion.fused_by == Which::Second);
            let (who, other) = (&self.labels[side], &self.labels[1 - side]);
            let separate = list(&fusion.separate);
            fusion.evidence = match fusion.by {
                FusionEvidence::Name => format!(
                    "the kernel of {who} does {} by its name, or by the operator that launched it, \
                     and {other} runs {separate} at this place",
                    fusion.operation
                ),
                FusionEvidence::Definition => format!(
                    "attention in one kernel multiplies, takes the softmax and multiplies again, \
                     and {other} runs {separate} at this place"
                ),
                FusionEvidence::Absence => {
                    format!(
                        "{who} has no such kernel as one of {separate} that {other} runs in every \
                         layer, and its neighbour takes longer by {} of what it would take",
                        percent(fusion.excess.unwrap_or_default())
                    )
                }
            };
        }
        for difference in &mut explanation.implementation {
            let side = usize::from(difference.run_by == Which::Second);
            let (who, other) = (&self.labels[side], &self.labels[1 - side]);
            let Part { first_ns, second_ns, .. } = difference.part;
            let (own, others) =
                if side == 0 { (first_ns, second_ns) } else { (second_ns, first_ns) };
            let (noun, plural) = what_it_is(difference.kind);
            let noun = if (difference.per_step - 1.0).abs() < 5e-3 { noun } else { plural };
            let runs = format!(
                "{who} runs {} {noun} a {} {}",
                number(difference.per_step),
                self.steps.basis.noun(),
                difference.role.place()
            );
            let own = time(own);
            difference.sentence = capitalised(match difference.kind {
                ImplementationKind::SeparateGemms => format!(
                    "{runs} than {other}: all of them there take {own}, and {} on {other}",
                    time(others)
                ),
                _ => format!("{runs} that {other} does not: {own}"),
            });
        }
    }
}

/// One of them, and several.
fn what_it_is(kind: ImplementationKind) -> (&'static str, &'static str) {
    match kind {
        ImplementationKind::SplitGemm => ("tail of a split GEMM", "tails of split GEMMs"),
        ImplementationKind::SplitAttention => {
            ("kernel more of one attention", "kernels more of one attention")
        }
        ImplementationKind::SeparateGemms => ("GEMM more", "GEMMs more"),
        ImplementationKind::Fill => ("fill", "fills"),
        ImplementationKind::Quantisation => ("conversion", "conversions"),
        ImplementationKind::Copy => ("copy or cast", "copies or casts"),
        ImplementationKind::Collective => ("collective", "collectives"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of kernels")]
fn ratio(count: u64, steps: f64) -> f64 {
    if steps == 0.0 { 0.0 } else { count as f64 / steps }
}
