//! Which distinct layers of the two sides are the same layers of the model, and which of their
//! kernels are paired.
//!
//! A layer of one side is compared with that of the other which has the same number in the model
//! and looks most like it. Layers that are tied together in this way are of one kind. The kernels
//! of a kind stand in columns: the most frequent layers of both sides are aligned with each other,
//! and the others of the kind with these.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::align::{Item, align, score};
use super::variants::{Key, Variant, Variants};
use crate::classify::Class;

/// Layers of both sides that are the same layers of the model.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) key: Key,
    /// The variants of each side.
    pub(super) variants: [Vec<usize>; 2],
    pub(super) columns: Vec<Column>,
}

/// Kernels that are paired.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// What they do on each side, in the most frequent layer that has it.
    pub(super) items: [Option<Item>; 2],
    /// Whether the sides have them at different places of their order.
    pub(super) is_moved: bool,
    /// Never changes, while columns are put between others.
    id: usize,
}

/// The kinds, and where the kernels of each variant stand.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    pub(super) list: Vec<Kind>,
    /// For each side and variant the kind, and the column of each kernel.
    pub(super) places: [Vec<(usize, Vec<usize>)>; 2],
}

impl Kinds {
    pub(super) fn of(variants: &[Variants; 2]) -> Self {
        let group_of = groups(variants);
        let number = group_of.iter().flatten().max().map_or(0, |last| last + 1);
        let places = variants.each_ref().map(|side| vec![(0, Vec::new()); side.list.len()]);
        let mut kinds = Self { list: Vec::new(), places };
        for group in 0..number {
            let members = [0, 1].map(|side: usize| {
                let of = group_of[side].iter().enumerate();
                let mut members: Vec<usize> =
                    of.filter(|(_, of)| **of == group).map(|(variant, _)| variant).collect();
                // The most frequent first.
                members.sort_by_key(|variant| Reverse(variants[side].list[*variant].count));
                members
            });
            if members.iter().all(Vec::is_empty) {
                continue;
            }
            kinds.add(variants, members);
        }
        kinds
    }

    fn add(&mut self, variants: &[Variants; 2], members: [Vec<usize>; 2]) {
        let get = |side: usize, variant: usize| &variants[side].list[variant];
        let mains = [0, 1].map(|side: usize| members[side].first().map(|main| get(side, *main)));
        // The order in which the sides are taken does not depend on which is the first, so that
        // exchanging them mirrors the result.
        let keys = [0, 1].map(|side: usize| {
            let items = members[side].iter().map(|variant| order_key(&get(side, *variant).items));
            items.collect::<Vec<_>>()
        });
        let order = if keys[0] <= keys[1] { [0, 1] } else { [1, 0] };
        let mut columns = Columns::default();
        let mut ids: Vec<(usize, usize, Vec<usize>)> = Vec::new();
        let most = members.iter().map(Vec::len).max().unwrap_or(0);
        for rank in 0..most {
            for side in order {
                if let Some(&variant) = members[side].get(rank) {
                    ids.push((side, variant, columns.take(side, &get(side, variant).items)));
                }
            }
        }
        let merged_into = columns.pair_moved();
        let at: Vec<usize> = {
            let mut at = vec![0; columns.next];
            for (place, column) in columns.list.iter().enumerate() {
                at[column.id] = place;
            }
            at
        };
        let kind = self.list.len();
        for (side, variant, ids) in ids {
            let place = |id: usize| at[merged_into.get(&id).copied().unwrap_or(id)];
            self.places[side][variant] = (kind, ids.into_iter().map(place).collect());
        }
        let Some(main) = mains[order[0]].or(mains[order[1]]) else { return };
        self.list.push(Kind { key: main.key, variants: members, columns: columns.list });
    }
}

/// Something to order sequences of kernels by.
fn order_key(items: &[Item]) -> impl PartialOrd + use<'_> {
    let keys = items.iter().map(|item| (item.work, item.role, item.words.as_slice(), item.is_bias));
    (items.len(), keys.collect::<Vec<_>>())
}

/// The columns of a kind while they are made.
#[derive(Default)]
struct Columns {
    list: Vec<Column>,
    next: usize,
}

impl Columns {
    /// Puts a layer of a side into the columns. Returns the ids of its kernels' columns.
    fn take(&mut self, side: usize, layer: &[Item]) -> Vec<usize> {
        // What this side already has in a column says better what belongs in it.
        let present: Vec<Item> = self
            .list
            .iter()
            .filter_map(|column| column.items[side].as_ref().or(column.items[1 - side].as_ref()))
            .cloned()
            .collect();
        let partners = align(layer, &present);
        let mut ids = Vec::with_capacity(layer.len());
        // Partners are in order: the columns before one stay there, and new ones come behind the last.
        let mut before = std::mem::take(&mut self.list).into_iter().enumerate().peekable();
        for (item, partner) in layer.iter().zip(partners) {
            let is_before =
                |(at, _): &(usize, Column)| partner.is_some_and(|partner| *at < partner);
            while let Some((_, column)) = before.next_if(is_before) {
                self.list.push(column);
            }
            let column = match partner.and_then(|_| before.next()) {
                Some((_, mut column)) => {
                    column.items[side].get_or_insert_with(|| item.clone());
                    column
                }
                None => {
                    let mut items = [None, None];
                    items[side] = Some(item.clone());
                    self.next += 1;
                    Column { items, is_moved: false, id: self.next - 1 }
                }
            };
            ids.push(column.id);
            self.list.push(column);
        }
        self.list.extend(before.map(|(_, column)| column));
        ids
    }

    /// Pairs what only one side has here with what only the other has elsewhere, if both do
    /// exactly the same for the same part of the layer: the order of kernels that do not need each
    /// other's results is a matter of chance. Returns into which columns others were merged.
    fn pair_moved(&mut self) -> FxHashMap<usize, usize> {
        let mut pairs = Vec::new();
        for (first, column) in self.list.iter().enumerate() {
            let Column { items: [Some(item), None], .. } = column else { continue };
            // A fill is for what comes next.
            if item.work.main == Class::Fill {
                continue;
            }
            for (second, column) in self.list.iter().enumerate() {
                let Column { items: [None, Some(other)], .. } = column else { continue };
                let is_same_place = other.role == item.role || item.work.main == Class::Comm;
                if other.work == item.work && is_same_place {
                    let likeness = Reverse(score(item, other));
                    let (low, high) = (first.min(second), first.max(second));
                    pairs.push((likeness, high - low, low, high));
                }
            }
        }
        // The same whichever side is the first.
        pairs.sort_unstable();
        let mut merged = FxHashMap::default();
        let mut is_paired = vec![false; self.list.len()];
        let mut is_gone = is_paired.clone();
        for (.., low, high) in pairs {
            if is_paired[low] || is_paired[high] {
                continue;
            }
            (is_paired[low], is_paired[high], is_gone[high]) = (true, true, true);
            let other = std::mem::take(&mut self.list[high].items);
            merged.insert(self.list[high].id, self.list[low].id);
            let column = &mut self.list[low];
            column.is_moved = true;
            for (item, other) in column.items.iter_mut().zip(other) {
                *item = item.take().or(other);
            }
        }
        let mut is_gone = is_gone.into_iter();
        self.list.retain(|_| !is_gone.next().unwrap_or_default());
        merged
    }
}

/// For each side and variant the group that it is in.
fn groups(variants: &[Variants; 2]) -> [Vec<usize>; 2] {
    let sizes = variants.each_ref().map(|side| side.list.len());
    let node = |side: usize, variant: usize| side * sizes[0] + variant;
    let mut parents: Vec<usize> = (0..sizes[0] + sizes[1]).collect();
    for side in [0, 1] {
        for (index, variant) in variants[side].list.iter().enumerate() {
            let others = variants[1 - side].list.iter().enumerate();
            let best = others
                .filter_map(|(other, candidate)| Some((likeness(variant, candidate)?, other)))
                .max_by_key(|(likeness, other)| (*likeness, Reverse(*other)));
            if let Some((_, other)) = best {
                join(&mut parents, node(side, index), node(1 - side, other));
            }
        }
    }
    let roots: Vec<usize> = (0..parents.len()).map(|node| root(&mut parents, node)).collect();
    let (first, second) = roots.split_at(sizes[0]);
    [first.to_vec(), second.to_vec()]
}

/// Stretches outside of layers have at least this share of their kernels in common, in thousandths.
const LEAST_LIKENESS: u32 = 300;

/// How much two layers look alike; none if they cannot be the same layer of the model: the share
/// of their kernels of the same class, in thousandths, then how many layers they have in common.
fn likeness(a: &Variant, b: &Variant) -> Option<(u32, usize, u64)> {
    if a.key != b.key {
        return None;
    }
    let in_common = a.numbers.iter().filter(|n| b.numbers.binary_search(n).is_ok()).count();
    if in_common == 0 && !a.key.is_outside {
        return None;
    }
    let shared: u32 = a.classes.iter().zip(&b.classes).map(|(a, b)| a.min(b)).sum();
    let longer = u32::try_from(a.items.len().max(b.items.len()).max(1)).unwrap_or(u32::MAX);
    let mut share = shared.saturating_mul(1000) / longer;
    if a.key.is_outside {
        // The beginning of a pass and the end of one have the same classes, in another order.
        share = (share + share_of_pairs(&a.pairs, &b.pairs)) / 2;
    }
    let can_be = !a.key.is_outside || share >= LEAST_LIKENESS;
    can_be.then_some((share, in_common, a.count.min(b.count)))
}

/// How many of the longer one's pairs both have, in thousandths. Both are in ascending order.
fn share_of_pairs(a: &[(Class, Class)], b: &[(Class, Class)]) -> u32 {
    let mut rest = b.iter().peekable();
    let is_shared = |pair: &&(Class, Class)| {
        while rest.next_if(|other| other < pair).is_some() {}
        rest.next_if_eq(pair).is_some()
    };
    let shared = a.iter().filter(is_shared).count();
    u32::try_from(shared * 1000 / a.len().max(b.len()).max(1)).unwrap_or(0)
}

fn root(parents: &mut [usize], mut node: usize) -> usize {
    while parents[node] != node {
        parents[node] = parents[parents[node]];
        node = parents[node];
    }
    node
}

fn join(parents: &mut [usize], a: usize, b: usize) {
    let (a, b) = (root(parents, a), root(parents, b));
    // The lower one, so that the order of variants decides that of kinds.
    let (low, high) = (a.min(b), a.max(b));
    parents[high] = low;
}

#[cfg(test)]
mod tests {
    use super::*;
    use Class::{Copy, Gemm, Norm, Rope};

    #[test]
    fn pairs_that_both_have() {
        let a = [(Copy, Copy), (Copy, Norm), (Norm, Gemm)];
        let mut a = a.to_vec();
        a.sort_unstable();
        assert_eq!(share_of_pairs(&a, &a), 1000);
        let mut b = vec![(Norm, Gemm), (Norm, Gemm), (Gemm, Rope), (Copy, Copy)];
        b.sort_unstable();
        // Each is shared once.
        assert_eq!(share_of_pairs(&a, &b), 500);
        assert_eq!(share_of_pairs(&b, &a), 500);
        assert_eq!(share_of_pairs(&[], &[]), 0);
    }
}
