//! Attention over a cache of keys and values in pages: a table of whole numbers says where the
//! pages of each sequence are. The lengths of sequences are in a tensor, which the profiler does
//! not write; some operators have the longest as an input.

use super::Shape;

/// What a call of such attention says of its sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pages {
    /// The queries of all sequences.
    pub(crate) tokens: u64,
    pub(crate) sequences: u64,
    /// The queries of the sequence that has most of them.
    pub(crate) longest_query: Option<u64>,
    /// The keys of the longest sequence: what it may attend to.
    pub(crate) longest_context: Option<u64>,
}

impl Pages {
    pub(crate) fn of(op: &str, shape: &Shape<'_>) -> Option<Self> {
        let tokens = joined_queries(shape)?;
        let is_table = |dims: &[Option<u64>], kind: &str| {
            dims.len() == 2 && matches!(kind, "int" | "long int" | "long")
        };
        let mut tables = shape.inputs.iter().filter(|input| is_table(&input.dims, input.kind));
        let sequences = tables.next()?.dims.first().copied()??;
        if tables.next().is_some() {
            return None;
        }
        let longest = |place: usize| shape.inputs.get(place)?.value.parse().ok();
        // The longest query, and behind it the longest context.
        let place = match op {
            "_vllm_fa2_C::varlen_fwd" => Some(10),
            "_vllm_fa3_C::fwd" => Some(12),
            _ => None,
        };
        let longest_query = place.and_then(longest);
        let longest_context = place.and_then(|place| longest(place + 1));
        Some(Self { tokens, sequences, longest_query, longest_context })
    }

    /// Whether all sequences are as long as the longest one: there is no other, or all are prompts
    /// of one length that are read from their beginning.
    pub(crate) fn are_as_long(&self) -> bool {
        let are_whole_prompts = || {
            let all = self.longest_query.and_then(|longest| longest.checked_mul(self.sequences));
            self.longest_query == self.longest_context && all == Some(self.tokens)
        };
        self.sequences == 1 || are_whole_prompts()
    }
}

/// Attention over sequences that lie behind one another, each with keys and values of its own. Their
/// lengths are differences of numbers in a tensor, which the profiler does not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Packed {
    /// The queries of all sequences.
    tokens: u64,
    /// Heads times the size of a query.
    width: u64,
    sequences: u64,
    is_backward: bool,
}

impl Packed {
    pub(crate) fn of(op: &str, shape: &Shape<'_>) -> Option<Self> {
        let queries = shape.inputs.iter().find(|input| !input.dims.is_empty())?;
        let (tokens, heads, size) = match *queries.dims.as_slice() {
            [Some(tokens), Some(heads), Some(size)]
            | [Some(1), Some(tokens), Some(heads), Some(size)] => (tokens, heads, size),
            _ => return None,
        };
        let sequences = starts(shape)?.checked_sub(1)?;
        let is_backward = op.contains("backward") || op.contains("bwd");
        Some(Self { tokens, width: heads.saturating_mul(size), sequences, is_backward })
    }
}

/// How many numbers say where sequences begin, the end of the last among them.
pub(super) fn starts(shape: &Shape<'_>) -> Option<u64> {
    let is_list = |dims: &[Option<u64>], kind: &str| dims.len() == 1 && kind == "int";
    let list = shape.inputs.iter().find(|input| is_list(&input.dims, input.kind))?;
    list.dims.first().copied()?
}

/// The queries of sequences of different lengths, behind one another: `[tokens, heads, size]`.
pub(crate) fn joined_queries(shape: &Shape<'_>) -> Option<u64> {
    let queries = shape.inputs.iter().find(|input| !input.dims.is_empty())?;
    let &[Some(tokens), Some(_), Some(_)] = queries.dims.as_slice() else { return None };
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whichever library it is of.
    #[test]
    fn sequences_behind_one_another() {
        let of = |op, text: &str| Packed::of(op, &Shape::of(text));
        let one = |sizes: &str| [sizes; 3].map(|sizes| format!("{sizes} c10::BFloat16")).join(";");
        let text = format!("{};5 int;5 int; Scalar=9", one("96x16x64"));
        let found = of("flash_attn::_flash_attn_varlen_forward", &text);
        assert_eq!(found.map(|packed| (packed.tokens, packed.sequences)), Some((96, 4)));
        assert_eq!(of("aten::_flash_attention_forward", &text), found);
        let with_batch = format!("{};5 int;5 int", one("1x96x16x64"));
        assert_eq!(of("xformers_flash::flash_fwd", &with_batch), found);
        assert_ne!(of("flash_attn::_flash_attn_varlen_backward", &text), found);
        assert_eq!(of("aten::_flash_attention_forward", &one("96x16x64")), None);
        // They are not one long sequence.
        assert_eq!(crate::shapes::Problem::of("aten::_flash_attention_forward", &with_batch), None);
    }

    #[test]
    fn the_longest_context_is_behind_the_longest_query() {
        for (op, inputs) in [("_vllm_fa3_C::fwd", 12), ("_vllm_fa2_C::varlen_fwd", 10)] {
            let call = |tokens: u64, sequences: u64, [query, context]: [u64; 2]| {
                let mut all = vec![String::new(); inputs];
                all[0] = format!("{tokens}x32x128 c10::BFloat16");
                all[8] = format!("{sequences}x64 int");
                all.push(format!(" Scalar={query}; Scalar={context}"));
                Pages::of(op, &Shape::of(&all.join(";"))).unwrap()
            };
            let decode = call(32, 32, [1, 703]);
            assert_eq!((decode.longest_query, decode.longest_context), (Some(1), Some(703)));
            assert!(!decode.are_as_long() && call(1, 1, [1, 703]).are_as_long());
            // Whole prompts, and others behind what was read before.
            assert!(call(1024, 2, [512, 512]).are_as_long());
            assert!(!call(1024, 2, [512, 900]).are_as_long());
            assert!(!call(1000, 2, [512, 512]).are_as_long());
        }
        let other = "32x32x128 c10::BFloat16;32x64 int; Scalar=1; Scalar=703";
        assert_eq!(Pages::of("_other::fwd", &Shape::of(other)).unwrap().longest_context, None);
    }
}
