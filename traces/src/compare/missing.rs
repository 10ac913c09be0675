//! What no layer of a side does.

use super::places::Place;
use super::proofs::Proofs;
use super::work::Work;
use crate::classify::{Activations, Class, ClassSet};

/// What no layer of a side does, of some layers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Missing {
    pub(super) classes: ClassSet,
    /// The activations that some layer may compute.
    pub(super) activations: Activations,
    /// Whether the side adds at a place where the other side does nothing.
    pub(super) adds_elsewhere: bool,
}

impl Missing {
    /// Of each side, in layers with these places.
    pub(super) fn of<'p>(
        proofs: &Proofs<'_>,
        places: impl Iterator<Item = &'p Place<'p>>,
    ) -> [Self; 2] {
        let mut present = [(ClassSet::EMPTY, Activations::NONE, false); 2];
        for place in places {
            for (side, (classes, activations, adds)) in present.iter_mut().enumerate() {
                for (work, _) in &place.sums.works[side] {
                    *classes = classes.union(work.parts());
                }
                if let Some(work) = proofs.work(side, place) {
                    *classes = classes.union(work.parts());
                    *activations = activations.with(proofs.activations(side, place));
                    *adds |= place.is_only_of(side) && work.main == Class::Elementwise;
                }
            }
        }
        present.map(|(present, activations, adds_elsewhere)| {
            let absent = Class::ALL.into_iter().filter(|class| !present.contains(*class));
            let classes = absent.fold(ClassSet::EMPTY, ClassSet::with);
            Self { classes, activations, adds_elsewhere }
        })
    }

    /// Whether nothing is there that does what a kernel does, one of these activations if it
    /// computes one.
    pub(super) fn lacks(&self, work: Work, activations: Activations) -> bool {
        let is_other = work.main == Class::Act && !self.activations.meet(activations);
        self.classes.contains(work.main) || is_other
    }
}
