//! The alignment of two sequences of kernels: the best way to pair one with the other without
//! changing the order of either, where each gap costs something to open and less to extend.
//!
//! O. Gotoh, "An improved algorithm for matching biological sequences", J. Mol. Biol. 162 (1982).

use crate::classify::Class;

use super::roles::Role;
use super::work::Work;

/// A kernel of a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) work: Work,
    pub(super) role: Role,
    /// What distinguishes kernels of a class: parts of the name, sorted.
    pub(super) words: Vec<u64>,
    /// Whether it adds a row to every row.
    pub(super) is_bias: bool,
}

/// Kernels that both sides have and that do the same are worth so much; of a fused kernel and one
/// of its parts about half; kernels that do different things are never paired.
const SAME_WORK: i32 = 48;
const SAME_CLASS: i32 = 40;
const SHARED_PART: i32 = 20;
/// What the role adds or takes away.
const SAME_ROLE: i32 = 16;
const OTHER_ROLE: i32 = -8;
/// What it takes away that only one adds a bias, of additions with the same name.
const OTHER_ADDEND: i32 = -1;
/// What names with the same words add at most: it decides which of several kernels of a class in a
/// row has no partner.
const SAME_WORDS: i32 = 8;
/// What a gap costs. Two gaps cost less than the least pair is worth, so that kernels that can be
/// paired are.
const OPEN: i32 = 4;
const EXTEND: i32 = 1;

const NEVER: i32 = i32::MIN / 4;

/// The score of a pair of kernels; `None` if they have nothing in common.
pub(super) fn score(a: &Item, b: &Item) -> Option<i32> {
    let work = if a.work == b.work {
        SAME_WORK
    } else if a.work.main == b.work.main {
        SAME_CLASS
    } else if share_a_part(a.work, b.work) {
        SHARED_PART
    } else {
        return None;
    };
    let role = if a.role == b.role { SAME_ROLE } else { OTHER_ROLE };
    let addend = if a.is_bias == b.is_bias { 0 } else { OTHER_ADDEND };
    Some(work + role + addend + common(&a.words, &b.words))
}

/// Whether one is fused and does what the other does, too. Attention contains the softmax of an
/// attention of separate kernels.
fn share_a_part(a: Work, b: Work) -> bool {
    let parts = |work: Work| {
        let parts = work.parts();
        if work.main == Class::Attn { parts.with(Class::Softmax) } else { parts }
    };
    let (a, b) = (parts(a), parts(b));
    a.iter().any(|class| b.contains(class))
}

/// The share of the words that both have, of all their words.
fn common(a: &[u64], b: &[u64]) -> i32 {
    let both = a.iter().filter(|word| b.binary_search(word).is_ok()).count();
    let all = a.len() + b.len() - both;
    let scaled = (both * SAME_WORDS as usize).checked_div(all).unwrap_or(0);
    i32::try_from(scaled).unwrap_or(0)
}

/// The words of a kernel's name that say what it does, as hashes, sorted: those that a template
/// argument or an identifier consists of, without numbers and short ones.
pub(super) fn words(name: &str) -> Vec<u64> {
    use std::hash::{Hash, Hasher};
    let parts = name.split(|c: char| !c.is_ascii_alphabetic());
    let mut words: Vec<u64> = parts
        .filter(|word| word.len() >= 4)
        .map(|word| {
            let mut hasher = rustc_hash::FxHasher::default();
            word.to_ascii_lowercase().hash(&mut hasher);
            hasher.finish()
        })
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Sequences whose lengths multiply to more are not aligned in full, but in the order of their
/// classes: the table would take too much memory.
const MOST_CELLS: usize = 16 << 20;

/// For each kernel of `a` the one of `b` that it is paired with, if any.
pub(super) fn align(a: &[Item], b: &[Item]) -> Vec<Option<usize>> {
    if a.len().saturating_mul(b.len()) > MOST_CELLS {
        return in_order_of_classes(a, b);
    }
    let width = b.len() + 1;
    let cell = |i: usize, j: usize| i * width + j;
    // The best score of all that ends with a pair, with a gap in `b`, with a gap in `a`; and for
    // each, which of the three came before.
    let mut from = vec![[0_u8; 3]; (a.len() + 1) * width];
    let gap = |length: usize| -(OPEN + EXTEND * i32::try_from(length).unwrap_or(i32::MAX / 4));
    let mut before: Vec<[i32; 3]> = (0..width)
        .map(|j| if j == 0 { [0, NEVER, NEVER] } else { [NEVER, NEVER, gap(j)] })
        .collect();
    for j in 1..width {
        from[cell(0, j)] = [0, 0, if j == 1 { PAIR } else { IN_A }];
    }
    let mut row = before.clone();
    for (i, item) in a.iter().enumerate() {
        let i = i + 1;
        row[0] = [NEVER, gap(i), NEVER];
        from[cell(i, 0)] = [0, if i == 1 { PAIR } else { IN_B }, 0];
        for (j, other) in b.iter().enumerate() {
            let j = j + 1;
            let (pair, pair_from) = best(before[j - 1]);
            let pair = score(item, other).map_or(NEVER, |score| pair.saturating_add(score));
            let extend = |scores: [i32; 3], own: u8| {
                let mut scores = scores.map(|score| score - OPEN - EXTEND);
                scores[own as usize] += OPEN;
                best(scores)
            };
            let (in_b, in_b_from) = extend(before[j], IN_B);
            let (in_a, in_a_from) = extend(row[j - 1], IN_A);
            row[j] = [pair.max(NEVER), in_b.max(NEVER), in_a.max(NEVER)];
            from[cell(i, j)] = [pair_from, in_b_from, in_a_from];
        }
        std::mem::swap(&mut before, &mut row);
    }
    let mut partners = vec![None; a.len()];
    let (mut i, mut j) = (a.len(), b.len());
    let (_, mut state) = best(before[j]);
    while i > 0 || j > 0 {
        let next = from[cell(i, j)][state as usize];
        match state {
            PAIR if i > 0 && j > 0 => {
                partners[i - 1] = Some(j - 1);
                (i, j) = (i - 1, j - 1);
            }
            IN_B if i > 0 => i -= 1,
            IN_A if j > 0 => j -= 1,
            _ => break,
        }
        state = next;
    }
    partners
}

/// A pair, a kernel of `a` against a gap in `b`, and a kernel of `b` against a gap in `a`.
const PAIR: u8 = 0;
const IN_B: u8 = 1;
const IN_A: u8 = 2;

/// The best of three, of equals a pair.
fn best(scores: [i32; 3]) -> (i32, u8) {
    let [pair, in_b, in_a] = scores;
    if pair >= in_b && pair >= in_a {
        (pair, PAIR)
    } else if in_b >= in_a {
        (in_b, IN_B)
    } else {
        (in_a, IN_A)
    }
}

/// Pairs the n-th kernel of a class of `a` with the n-th of `b`, as far as that keeps the order.
fn in_order_of_classes(a: &[Item], b: &[Item]) -> Vec<Option<usize>> {
    let mut from = 0;
    let next = |item: &Item, from: usize| {
        let rest = b.get(from..).unwrap_or_default().iter().take(NEAR);
        rest.clone().position(|other| other.work == item.work).map(|at| from + at)
    };
    a.iter()
        .map(|item| {
            let found = next(item, from)?;
            from = found + 1;
            Some(found)
        })
        .collect()
}

/// So far ahead is a partner looked for where sequences are not aligned in full.
const NEAR: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::classify::ClassSet;

    const CLASSES: [Class; 4] = [Class::Gemm, Class::Norm, Class::Elementwise, Class::Act];

    fn item(main: Class, also: &[Class], role: Role) -> Item {
        let work = Work { main, also: ClassSet::of(also) };
        Item { work, role, words: Vec::new(), is_bias: false }
    }

    fn plain(classes: &[Class]) -> Vec<Item> {
        classes.iter().map(|class| item(*class, &[], Role::Layer)).collect()
    }

    #[test]
    fn what_only_one_side_has_is_left_alone() {
        use Class::{Act, Elementwise, Gemm, Norm};
        let a = plain(&[Gemm, Elementwise, Norm, Gemm, Act, Gemm]);
        let b = plain(&[Gemm, Norm, Gemm, Gemm]);
        assert_eq!(align(&a, &b), [Some(0), None, Some(1), Some(2), None, Some(3)]);
        let back = align(&b, &a);
        assert_eq!(back, [Some(0), Some(2), Some(3), Some(5)]);
        assert_eq!(align(&a, &[]), [None; 6]);
        assert_eq!(align(&[], &a), []);
    }

    #[test]
    fn a_fused_kernel_stands_beside_its_main_part() {
        let fused = item(Class::Norm, &[Class::Elementwise], Role::FeedForwardNorm);
        let role = Role::FeedForwardNorm;
        let separate = [item(Class::Elementwise, &[], role), item(Class::Norm, &[], role)];
        assert_eq!(align(&[fused], &separate), [Some(1)]);
    }

    #[test]
    fn roles_decide_between_kernels_of_a_class() {
        let one = [item(Class::Gemm, &[], Role::Down)];
        let two = [item(Class::Gemm, &[], Role::GateUp), item(Class::Gemm, &[], Role::Down)];
        assert_eq!(align(&one, &two), [Some(1)]);
    }

    #[test]
    fn names_decide_between_kernels_of_a_class_and_a_role() {
        let named = |name: &str| Item {
            words: words(name),
            ..item(Class::Elementwise, &[], Role::AttentionNorm)
        };
        let a = ["elementwise_kernel<MulFunctor>", "elementwise_kernel<CUDAFunctor_add>"];
        let b = ["elementwise<MulFunctor>", "elementwise<rsqrt>", "elementwise<CUDAFunctor_add>"];
        let partners = align(&a.map(named), &b.map(named));
        assert_eq!(partners, [Some(0), Some(2)]);
    }

    #[test]
    fn what_is_added_decides_between_additions_of_one_name() {
        let residual = item(Class::Elementwise, &[], Role::Out);
        let bias = Item { is_bias: true, ..residual.clone() };
        let one = std::slice::from_ref(&residual);
        assert_eq!(align(one, &[bias.clone(), residual.clone()]), [Some(1)]);
        assert_eq!(align(one, &[residual.clone(), bias]), [Some(0)]);
    }

    /// The best score of all alignments, by trying them all.
    fn best_score(a: &[Item], b: &[Item], last: u8) -> i32 {
        let gap = |state: u8| if last == state { EXTEND } else { OPEN + EXTEND };
        let mut scores = vec![];
        if let ([x, a @ ..], [y, b @ ..]) = (a, b)
            && let Some(score) = score(x, y)
        {
            scores.push(score + best_score(a, b, PAIR));
        }
        if let [_, a @ ..] = a {
            scores.push(best_score(a, b, IN_B) - gap(IN_B));
        }
        if let [_, b @ ..] = b {
            scores.push(best_score(a, b, IN_A) - gap(IN_A));
        }
        scores.into_iter().max().unwrap_or(0)
    }

    /// The score of an alignment.
    fn score_of(a: &[Item], b: &[Item], partners: &[Option<usize>]) -> i32 {
        // Gaps may come in either order between two pairs, which costs the same.
        let mut total = 0;
        let mut next = 0;
        let (mut in_b, gap) =
            (0, |length: i32| if length > 0 { OPEN + EXTEND * length } else { 0 });
        for (item, partner) in a.iter().zip(partners) {
            let Some(partner) = *partner else {
                in_b += 1;
                continue;
            };
            assert!(partner >= next, "out of order");
            total += score(item, &b[partner]).expect("a pair that is allowed");
            total -= gap(in_b) + gap((partner - next) as i32);
            (in_b, next) = (0, partner + 1);
        }
        total - gap(in_b) - gap((b.len() - next) as i32)
    }

    fn items() -> impl Strategy<Value = Vec<Item>> {
        let fused = prop_oneof![3 => Just(None), 1 => (0..4_usize).prop_map(Some)];
        let role = prop_oneof![Just(Role::Qkv), Just(Role::Down)];
        let one = (0..4_usize, fused, role).prop_map(|(main, also, role)| {
            let also = also.filter(|also| *also != main).map(|also| CLASSES[also]);
            item(CLASSES[main], also.as_slice(), role)
        });
        prop::collection::vec(one, 0..6)
    }

    proptest! {
        #[test]
        fn no_alignment_is_better(a in items(), b in items()) {
            let partners = align(&a, &b);
            prop_assert_eq!(score_of(&a, &b, &partners), best_score(&a, &b, PAIR));
        }

        #[test]
        fn long_sequences_keep_their_order(a in items(), b in items()) {
            let partners = in_order_of_classes(&a, &b);
            let found: Vec<usize> = partners.iter().flatten().copied().collect();
            prop_assert!(found.is_sorted_by(|a, b| a < b));
        }
    }
}
