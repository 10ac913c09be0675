//! What is found in the layers of both sides, and what the gap comes from: first the `findings`,
//! then the `causes`, which they are some of.

use rustc_hash::FxHashMap;

use super::basis::Steps;
use super::kinds::{Kind, Kinds};
use super::ledger::Ledger;
use super::missing::Missing;
use super::places::{Place, places};
use super::proofs::Proofs;
use super::result::{Cause, Fusion, ImplementationDifference};
use super::side::Chosen;
use crate::classify::{Activations, Class, ClassSet};

/// Something is done as often on both sides if the numbers differ by no more than this share.
const SAME_OFTEN: f64 = 0.05;

/// What a place of a layer is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Explained {
    pub(super) fusion: Option<usize>,
    pub(super) implementation: Option<usize>,
}

/// What was found.
pub(super) struct Explanation {
    pub(super) causes: Vec<Cause>,
    pub(super) fusions: Vec<Fusion>,
    pub(super) implementation: Vec<ImplementationDifference>,
    /// For each kind and column what it is a part of.
    pub(super) slots: Vec<Vec<Explained>>,
}

/// What the explanation is made from.
pub(super) struct Evidence<'e, 't> {
    pub(super) sides: &'e [Chosen<'t>; 2],
    pub(super) labels: &'e [String; 2],
    pub(super) steps: &'e Steps,
    pub(super) kinds: &'e Kinds,
    pub(super) ledger: &'e Ledger,
    /// First less second, for one step.
    pub(super) gap_ns: f64,
}

impl Evidence<'_, '_> {
    pub(super) fn explain(&self) -> Explanation {
        let all: Vec<Vec<Place<'_>>> = self
            .kinds
            .list
            .iter()
            .zip(&self.ledger.slots)
            .map(|(kind, slots)| places(kind, slots))
            .collect();
        let proofs = Proofs::of(self.sides);
        let missing = self.missing(&all, &proofs);
        let mut explanation = Explanation {
            causes: Vec::new(),
            fusions: Vec::new(),
            implementation: Vec::new(),
            slots: all.iter().map(|places| vec![Explained::default(); places.len()]).collect(),
        };
        self.add_fusions(&mut explanation, &all, &missing, &proofs);
        let mut known = FxHashMap::default();
        for (kind, places) in all.iter().enumerate() {
            if self.kinds.list[kind].variants.iter().any(Vec::is_empty) {
                continue;
            }
            for at in 0..places.len() {
                if explanation.slots[kind][at].fusion.is_none() {
                    self.add_implementation(&mut explanation, &mut known, kind, places, at);
                }
            }
            self.add_partners(&mut explanation, kind, places);
        }
        self.sort_findings(&mut explanation);
        self.describe(&mut explanation);
        explanation.causes = self.causes(&explanation, &all);
        explanation
    }

    /// For the layers of each kind what no layer of each side does. Of the calls of an operator it
    /// is the classes that none of them has, if each side does as much of them elsewhere: otherwise
    /// one side only does it at another place.
    fn missing(&self, all: &[Vec<Place<'_>>], proofs: &Proofs<'_>) -> Vec<[Missing; 2]> {
        let kinds = &self.kinds.list;
        let of_layers = kinds.iter().zip(all).filter(|(kind, _)| kind.key.operator.is_none());
        let of_layers = Missing::of(proofs, of_layers.flat_map(|(_, places)| places));
        let of_kind = |(kind, places): (&Kind, &Vec<Place<'_>>)| {
            if kind.key.operator.is_none() {
                return of_layers;
            }
            Missing::of(proofs, places.iter()).map(|missing| {
                let elsewhere = missing
                    .classes
                    .iter()
                    .filter(|class| self.is_as_often_elsewhere(*class, places));
                let classes = elsewhere.fold(ClassSet::EMPTY, ClassSet::with);
                Missing { classes, activations: Activations::ANY, adds_elsewhere: true }
            })
        };
        kinds.iter().zip(all).map(of_kind).collect()
    }

    /// Whether both sides run kernels of a class as often, but for those at some places.
    #[expect(clippy::cast_precision_loss, reason = "counts of kernels")]
    fn is_as_often_elsewhere(&self, class: Class, places: &[Place<'_>]) -> bool {
        let [first, second] = [0, 1].map(|side: usize| {
            let works = self.ledger.works.iter().filter(|((work, _), _)| work.main == class);
            let all: u64 = works.map(|(_, both)| both.0[side].count).sum();
            let here = places
                .iter()
                .filter(|place| place.works[side].is_some_and(|work| work.main == class));
            let here: u64 = here.map(|place| place.sums.both.0[side].count).sum();
            all.saturating_sub(here) as f64 / self.steps.counts[side].max(f64::MIN_POSITIVE)
        });
        (first - second).abs() <= SAME_OFTEN * first.max(second)
    }

    /// The largest gaps first.
    fn sort_findings(&self, explanation: &mut Explanation) {
        let order = |gaps: Vec<f64>| {
            let mut order: Vec<usize> = (0..gaps.len()).collect();
            order.sort_by(|a, b| gaps[*b].abs().total_cmp(&gaps[*a].abs()));
            let mut new = vec![0; order.len()];
            for (to, from) in order.iter().enumerate() {
                new[*from] = to;
            }
            (order, new)
        };
        let Explanation { fusions, implementation, slots, .. } = explanation;
        let (fusion_order, new_fusion) =
            order(fusions.iter().map(|fusion| fusion.part.gap_ns).collect());
        *fusions = fusion_order.iter().map(|from| fusions[*from].clone()).collect();
        let (order, new) = order(implementation.iter().map(|one| one.part.gap_ns).collect());
        *implementation = order.iter().map(|from| implementation[*from].clone()).collect();
        for slot in slots.iter_mut().flatten() {
            slot.fusion = slot.fusion.map(|old| new_fusion[old]);
            slot.implementation = slot.implementation.map(|old| new[old]);
        }
    }
}
