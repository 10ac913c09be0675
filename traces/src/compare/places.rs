//! The places of the layers of a kind with what is known of them: what the search for fusions and
//! other differences looks at.

use super::kinds::Kind;
use super::ledger::SlotSums;
use super::roles::Role;
use super::work::Work;
use crate::{NameId, Trace};

/// A place in the layers of a kind.
pub(super) struct Place<'s> {
    pub(super) role: Role,
    /// What most kernels of each side do there.
    pub(super) works: [Option<Work>; 2],
    pub(super) sums: &'s SlotSums,
}

/// The places of a kind, in their order.
pub(super) fn places<'s>(kind: &Kind, slots: &'s [SlotSums]) -> Vec<Place<'s>> {
    let place = |(column, sums): (&super::kinds::Column, &'s SlotSums)| {
        let works = [0, 1].map(|side: usize| most(&sums.works[side]));
        // Where the sides disagree, what both have elsewhere decides; of two the earlier role.
        let roles = column.items.iter().flatten().map(|item| item.role);
        Place { role: roles.min().unwrap_or(Role::Layer), works, sums }
    };
    kind.columns.iter().zip(slots).map(place).collect()
}

impl Place<'_> {
    /// Whether only this side has it.
    pub(super) fn is_only_of(&self, side: usize) -> bool {
        self.works[side].is_some() && self.works[1 - side].is_none()
    }

    /// Whether both sides have it.
    pub(super) fn is_paired(&self) -> bool {
        self.works.iter().all(Option::is_some)
    }

    /// The most frequent name of a side's kernels.
    pub(super) fn name<'t>(&self, side: usize, trace: &'t Trace) -> &'t str {
        most(&self.sums.names[side]).map_or("", |name: NameId| trace.names.text(name))
    }
}

/// What is counted most; of equals the first that was seen.
pub(super) fn most<T: Copy>(counts: &[(T, u64)]) -> Option<T> {
    let best = counts.iter().enumerate();
    let best = best.max_by_key(|(at, (_, count))| (*count, std::cmp::Reverse(*at)));
    best.map(|(_, (what, _))| *what)
}
