//! What the sizes of attention say: one token of each sequence, or prompts.

use crate::shapes::{Mask, Pages, Problem, Shape, joined_queries};

/// Who verifies what a smaller model drafted reads a few tokens of a sequence, or a tree of them. A
/// sequence with more is a prompt.
pub(super) const MOST_DRAFTED: u64 = 256;

/// What attention was called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// One query token of each sequence, and more keys.
    OneToken { sequences: u64 },
    /// Whole prompts: each token attends to those before it.
    Prompts,
    /// A prompt, and one token of other sequences.
    Mixed,
    /// None of these: several tokens of a sequence, which may be anything.
    Several,
}

/// What an operator was called for. It is asked for its attention only if it launched some.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Statement {
    pub(super) attention: Option<Seen>,
    /// The tokens that each query may attend to, where a sequence has no pages of a cache.
    pub(super) keys: Option<u64>,
    /// The queries of all sequences, where they are not told apart.
    pub(super) queries: Option<u64>,
    /// Rows of a GEMM with weights.
    pub(super) rows: u64,
}

impl Statement {
    pub(super) fn of(op: &str, text: &str) -> Self {
        if text.is_empty() || text.contains('?') {
            return Self::default();
        }
        match Problem::of(op, text) {
            Some(Problem::Gemm { batch: 1, m, .. }) => Self { rows: m, ..Self::default() },
            Some(Problem::Attention { batch, queries, keys, is_backward: false, .. }) => {
                let seen = match (queries, keys) {
                    (1, 2..) => Seen::OneToken { sequences: batch },
                    (2.., _) if queries == keys && Mask::of(op, text) == Some(Mask::Causal) => {
                        Seen::Prompts
                    }
                    _ => Seen::Several,
                };
                Self { attention: Some(seen), keys: Some(keys), ..Self::default() }
            }
            _ => {
                let shape = Shape::of(text);
                let attention = Pages::of(op, &shape).and_then(|pages| of_pages(&pages));
                Self { attention, queries: joined_queries(&shape), ..Self::default() }
            }
        }
    }
}

/// What sequences are for whose keys and values are in the pages of a cache.
fn of_pages(pages: &Pages) -> Option<Seen> {
    let Pages { tokens, sequences, longest_query, .. } = *pages;
    Some(match tokens.checked_div(sequences)? {
        1 if tokens == sequences => Seen::OneToken { sequences },
        MOST_DRAFTED.. if sequences == 1 => Seen::Prompts,
        each => longest_query
            .map_or(Seen::Several, |longest| of_lengths(tokens, sequences, each, longest)),
    })
}

/// What sequences are for, by the longest of them: prompts if all are as long, and if so few tokens
/// are left for the others that one has a single token, that one is decoded.
fn of_lengths(tokens: u64, sequences: u64, each: u64, longest: u64) -> Seen {
    let Some(others) = tokens.checked_sub(longest).filter(|_| longest > MOST_DRAFTED) else {
        return Seen::Several;
    };
    if longest == each && each.checked_mul(sequences) == Some(tokens) {
        return Seen::Prompts;
    }
    let has_single = others >= sequences - 1 && others < 2 * (sequences - 1);
    if has_single { Seen::Mixed } else { Seen::Several }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(op: &str, text: &str) -> Option<Seen> {
        Statement::of(op, text).attention
    }

    #[test]
    fn sizes_of_attention() {
        let op = "aten::_scaled_dot_product_flash_attention";
        let call = |queries: u64, keys: u64, causal: &str| {
            let one = |tokens: u64| format!("4x16x{tokens}x64 c10::BFloat16");
            format!("{};{};{}; Scalar=0.; Scalar={causal}", one(queries), one(keys), one(keys))
        };
        assert_eq!(seen(op, &call(559, 559, "True")), Some(Seen::Prompts));
        assert_eq!(seen(op, &call(1, 560, "False")), Some(Seen::OneToken { sequences: 4 }));
        // An encoder; a part of a prompt, or what was drafted; a single token of nothing.
        for (queries, keys, causal) in [(559, 559, "False"), (8, 560, "True"), (1, 1, "True")] {
            assert_eq!(seen(op, &call(queries, keys, causal)), Some(Seen::Several));
        }
        assert_eq!(seen(op, &call(559, 559, "")), Some(Seen::Several));
        let gradient = "aten::_flash_attention_backward";
        assert_eq!(seen(gradient, "1x1x1x1;1x1x2x1;1x1x2x1"), None);
        assert_eq!(seen(op, "?x16x1x64;?x16x9x64"), None);
        assert_eq!(Statement::of("aten::mm", "7x64 float;64x32 float").rows, 7);
        assert_eq!(Statement::of("aten::bmm", "8x7x64 float;8x64x32 float").rows, 0);
    }

    #[test]
    fn causal_attention_of_other_libraries() {
        let one = |sizes: &str| [sizes; 3].map(|sizes| format!("{sizes} c10::BFloat16")).join(";");
        let efficient = |mask: &str| {
            let rest =
                format!(";;;; Scalar=559; Scalar=559; Scalar=0.; Scalar={mask}; Scalar=True");
            format!("{}{rest}", one("4x559x16x64"))
        };
        for (mask, expected) in [("0", Seen::Several), ("1", Seen::Prompts), ("2", Seen::Prompts)] {
            let found = seen("aten::_efficient_attention_forward", &efficient(mask));
            assert_eq!(found, Some(expected), "{mask}");
        }
        let cudnn = |causal: &str| {
            let rest = " Scalar=559; Scalar=559; Scalar=True; Scalar=0.";
            format!("{};;;;{rest}; Scalar={causal}; Scalar=False", one("4x16x559x64"))
        };
        for (causal, expected) in [("False", Seen::Several), ("True", Seen::Prompts)] {
            let found = seen("aten::_cudnn_attention_forward", &cudnn(causal));
            assert_eq!(found, Some(expected), "{causal}");
        }
    }

    #[test]
    fn pages_of_a_cache() {
        let op = "_vllm_fa3_C::fwd";
        let call = |tokens: u64, sequences: u64| {
            format!(
                "{tokens}x32x128 c10::BFloat16;900x16x8x128 c10::BFloat16;{} int;{sequences}x64 int",
                sequences + 1
            )
        };
        assert_eq!(seen(op, &call(32, 32)), Some(Seen::OneToken { sequences: 32 }));
        assert_eq!(seen(op, &call(2048, 1)), Some(Seen::Prompts));
        // Several prompts, or prompts with others; what was drafted; none.
        for (tokens, sequences) in [(2048, 9), (64, 1), (33, 32), (96, 32)] {
            assert_eq!(seen(op, &call(tokens, sequences)), Some(Seen::Several));
        }
        assert_eq!(seen(op, &call(5, 0)), None);
        assert_eq!(Statement::of(op, &call(33, 32)).queries, Some(33));
        assert_eq!(seen(op, "32x32x128 c10::BFloat16;33 int"), None);
        assert_eq!(seen(op, "32x32x128 c10::BFloat16;32x64 int;32x2 int"), None);
    }

    /// The longest sequence tells prompts of one length, and a prompt among tokens that are decoded.
    #[test]
    fn lengths_of_sequences() {
        for (op, inputs) in [("_vllm_fa3_C::fwd", 12), ("_vllm_fa2_C::varlen_fwd", 10)] {
            let call = |tokens: u64, sequences: u64, longest: u64| {
                let mut all = vec![String::new(); inputs];
                all[0] = format!("{tokens}x32x128 c10::BFloat16");
                all[1] = "900x16x8x128 c10::BFloat16".to_owned();
                all[8] = format!("{sequences}x64 int");
                all.push(format!(" Scalar={longest}"));
                all.join(";")
            };
            for (tokens, sequences, longest, expected) in [
                (2048, 2, 1024, Seen::Prompts),
                (600, 1, 600, Seen::Prompts),
                // A prompt of 569 tokens, 31 others of one; and one others of two.
                (600, 32, 569, Seen::Mixed),
                (600, 31, 541, Seen::Mixed),
                // 30 others of two tokens may all be prompts, or drafts.
                (600, 31, 540, Seen::Several),
                (2048, 3, 1024, Seen::Several),
                (96, 32, 3, Seen::Several),
                (40, 32, 9, Seen::Several),
                // As graphs are captured: the longest that there may be.
                (96, 32, 8192, Seen::Several),
                (32, 32, 8192, Seen::OneToken { sequences: 32 }),
                (600, 700, 569, Seen::Several),
            ] {
                let found = seen(op, &call(tokens, sequences, longest));
                assert_eq!(found, Some(expected), "{tokens} {sequences} {longest}");
            }
        }
    }
}
