//! What is found in the layers of both sides, and what the gap comes from: first the `findings`,
//! then the `causes`, which they are some of.

use rustc_hash::FxHashMap;

use super::basis::Steps;
use super::fusion;
use super::kinds::Kinds;
use super::ledger::Ledger;
use super::places::{Place, places};
use super::result::{Cause, Fusion, ImplementationDifference};
use super::side::Chosen;

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
        let missing = fusion::missing_classes(all.iter().flatten());
        let mut explanation = Explanation {
            causes: Vec::new(),
            fusions: Vec::new(),
            implementation: Vec::new(),
            slots: all.iter().map(|places| vec![Explained::default(); places.len()]).collect(),
        };
        self.add_fusions(&mut explanation, &all, missing);
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
