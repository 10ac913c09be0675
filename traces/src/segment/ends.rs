//! Where the last layer of a pass ends.
//!
//! Layers are cut at a marker in their middle, so what is between the last marker of a pass and
//! the first of the next has the end of the last layer, what follows the layers, what precedes
//! them, and the beginning of the first layer. How much of a layer comes before its marker is
//! seen at the beginning of a pass: it is what is there as before every other marker.

use crate::classify::Class;

/// How many classes two sequences have in common at their beginnings.
pub(super) fn common_prefix(a: &[Class], b: &[Class]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// How many classes two sequences have in common at their ends.
pub(super) fn common_suffix(a: &[Class], b: &[Class]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

/// Longer patterns are not aligned, but compared from their ends: an alignment takes the product
/// of the lengths.
const LONGEST: usize = 600;

/// How many kernels at the end of a pattern come before the marker of the first layer of a pass,
/// and how many kernels of `head` those are, which is what is between the end of the pass before
/// and that marker.
///
/// Both are aligned from their ends. Some kernels may be missing in the first layer, as the
/// addition of what the layer before it left.
pub(super) fn lead(pattern: &[Class], head: &[Class]) -> (usize, usize) {
    let reversed = |classes: &[Class]| classes.iter().rev().copied().collect::<Vec<_>>();
    let head = head.get(head.len().saturating_sub(pattern.len() * 2)..).unwrap_or_default();
    best_prefixes(&reversed(pattern), &reversed(head))
}

/// How many kernels behind the last marker of a pass belong to its layer: as many as match the
/// pattern without its `lead`.
pub(super) fn body(pattern: &[Class], lead: usize, rest: &[Class]) -> usize {
    let body = pattern.get(..pattern.len() - lead.min(pattern.len())).unwrap_or_default();
    let exact = common_prefix(body, rest);
    if exact == body.len() {
        return exact;
    }
    let rest = rest.get(..rest.len().min(body.len() * 2)).unwrap_or_default();
    best_prefixes(body, rest).1.max(exact)
}

/// The prefixes of two sequences that fit best together; of equals the shorter ones.
fn best_prefixes(a: &[Class], b: &[Class]) -> (usize, usize) {
    if a.len() > LONGEST || b.len() > 2 * LONGEST {
        let common = common_prefix(a, b);
        return (common, common);
    }
    let mut above = vec![0];
    let mut sum = 0;
    above.extend(b.iter().map(|class| {
        sum -= loss(*class);
        sum
    }));
    let mut best = (0, (0, 0));
    for (i, class) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(above.len());
        row.push(above.first().copied().unwrap_or_default() - loss(*class));
        for (j, (other, pair)) in b.iter().zip(above.windows(2)).enumerate() {
            let &[corner, over] = pair else { continue };
            let left = row.last().copied().unwrap_or_default();
            let skipped = (over - loss(*class)).max(left - loss(*other));
            let score = if class == other { skipped.max(corner + gain(*class)) } else { skipped };
            row.push(score);
            if score > best.0 {
                best = (score, (i + 1, j + 1));
            }
        }
        above = row;
    }
    best.1
}

/// What a kernel adds to a fit that both have. Arithmetic and copies are everywhere, and prove
/// little.
fn gain(class: Class) -> i32 {
    let is_common = matches!(
        class,
        Class::Elementwise | Class::Copy | Class::Fill | Class::Reduce | Class::Unclassified
    );
    if is_common { 1 } else { 3 }
}

/// What a kernel takes from a fit that only one has: more than it would add, so that a fit does not
/// go on by chance where the layer ends.
fn loss(class: Class) -> i32 {
    2 * gain(class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Class::{Attn, Copy, EmbedIndex, Gemm, KvCache, Norm, Reduce, Rope};

    #[test]
    fn the_beginning_of_a_layer_is_found_before_its_marker() {
        let pattern = [KvCache, Attn, Gemm, Norm, Gemm, Norm, Gemm, Copy, Rope];
        assert_eq!(lead(&pattern, &[EmbedIndex, Norm, Gemm, Copy, Rope]), (4, 4));
        // The first layer has no copy.
        assert_eq!(lead(&pattern, &[EmbedIndex, Norm, Gemm, Rope]), (4, 3));
        assert_eq!(lead(&pattern, &[]), (0, 0));
        assert_eq!(lead(&pattern, &[EmbedIndex]), (0, 0));
        assert_eq!(lead(&[], &[Norm]), (0, 0));
    }

    #[test]
    fn the_last_layer_ends_before_what_follows_the_layers() {
        let pattern = [KvCache, Attn, Gemm, Norm, Gemm, Norm, Gemm, Copy, Rope];
        let rest = [KvCache, Attn, Gemm, Norm, Gemm, Norm, Gemm, Reduce];
        assert_eq!(body(&pattern, 4, &rest), 5);
        // With one kernel more in the last layer.
        let rest = [KvCache, Attn, Gemm, Copy, Norm, Gemm, Norm, Gemm, Reduce];
        assert_eq!(body(&pattern, 4, &rest), 6);
        assert_eq!(body(&pattern, 4, &rest[..2]), 2);
        assert_eq!(body(&pattern, 40, &rest), 0);
    }
}
