//! What is done with the keys and values of attention beside it: a cache that grows is copied to
//! become longer, and its heads are repeated, which takes time as attention does.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::side::Chosen;
use crate::NameId;
use crate::classify::Class;
use crate::launched::NONE;
use crate::segment::Phase;

/// The durations, by phase, of kernels other than attention whose operators have tensors of as many
/// tokens as attention has keys, or of one less, as a cache has that grows.
pub(super) fn carried(
    side: &Chosen<'_>,
    operators: &[u32],
    keys: &FxHashSet<u64>,
) -> FxHashMap<Option<Phase>, u64> {
    let mut found = FxHashMap::default();
    if keys.is_empty() {
        return found;
    }
    let trace = side.side.trace;
    let mut known: FxHashMap<u32, bool> = FxHashMap::default();
    for kernel in side.rows.iter().map(|row| *row as usize) {
        let op = operators.get(kernel).copied().unwrap_or(NONE) as usize;
        let Some(&shape) = trace.ops.shape.get(op) else { continue };
        let class = side.side.classes.get(kernel).main;
        if matches!(class, Class::Attn | Class::Softmax) {
            continue;
        }
        let text = || trace.shapes.text(NameId(shape));
        if *known.entry(shape).or_insert_with(|| has_keys(text(), keys)) {
            let total_ns: &mut u64 = found.entry(side.phase(kernel)).or_default();
            *total_ns = total_ns.saturating_add(trace.kernels.duration_ns[kernel]);
        }
    }
    found
}

/// Whether a tensor of the inputs, those in lists as well, is of heads or batches, and has as many
/// tokens.
fn has_keys(text: &str, keys: &FxHashSet<u64>) -> bool {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != 'x' && c != '?');
    words.filter(|word| word.matches('x').count() >= 2).any(|sizes| {
        let mut sizes = sizes.split('x').filter_map(|size| size.parse::<u64>().ok());
        sizes.any(|size| {
            keys.contains(&size) || size.checked_add(1).is_some_and(|size| keys.contains(&size))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_of_as_many_tokens() {
        let keys = FxHashSet::from_iter([500]);
        for (text, expected) in [
            ("8x4x4x500x128 c10::BFloat16;8x4x4x500x128 c10::BFloat16; Scalar=False", true),
            ("(8x4x499x128,8x4x1x128) TensorList; Scalar=2", true),
            ("128x1x64 c10::BFloat16;128x64x500 c10::BFloat16", true),
            ("500x64 c10::BFloat16;64x500 c10::BFloat16", false),
            ("8x1x2048 c10::BFloat16; Scalar=500", false),
            ("", false),
        ] {
            assert_eq!(has_keys(text, &keys), expected, "{text}");
        }
    }
}
