//! Chains: ordered lists of ops that could be one kernel.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::str::FromStr;

use super::aliases;
use super::form::Form;
use super::op::Op;
use super::pattern::{self, Pattern};
use crate::error::{Error, ErrorKind};

/// An ordered list of ops that could be one kernel: `linear+bias+relu`.
///
/// A chain of a single op is one kernel in either variant. Its time is half of a question: whether to
/// fuse it with its neighbour.
///
/// A chain is small and `Copy`, so that it can be part of a lookup key. Its text form joins the
/// canonical names with `+`; [`FromStr`] also reads pattern names, their aliases, and
/// framework spellings such as `Conv2d_BatchNorm2d_ReLU`.
#[derive(Clone, Copy)]
pub struct Chain {
    ops: [Op; Self::MAX_OPS],
    len: u8,
    form: Form,
    /// The ops as numbers, a byte for each: what two chains are compared by.
    code: [u64; 2],
}

impl Chain {
    /// The most ops that a chain can have.
    pub const MAX_OPS: usize = 12;

    /// The bytes that its text has at most: twelve names of frameworks have half as many.
    const MAX_TEXT: usize = 1000;

    /// Checks that the ops can follow each other in one kernel.
    ///
    /// # Errors
    ///
    /// An error that [`Error::is_not_one_kernel`] is true of, with the reason.
    pub fn new(ops: &[Op]) -> Result<Self, Error> {
        if ops.len() > Self::MAX_OPS {
            let (ops, most) = (ops.len(), Self::MAX_OPS);
            return Err(ErrorKind::ChainTooLong { ops, most }.into());
        }
        let form = Form::of(ops).map_err(|reason| Error::not_one_kernel(join(ops), reason))?;
        let mut stored = [Op::Linear; Self::MAX_OPS];
        stored[..ops.len()].copy_from_slice(ops);
        #[expect(clippy::cast_possible_truncation, reason = "at most Self::MAX_OPS")]
        let len = ops.len() as u8;
        let mut code = [0; 2];
        for (index, op) in ops.iter().enumerate() {
            code[index / 8] |= u64::from(op.code()) << (8 * (index % 8));
        }
        Ok(Self { ops: stored, len, form, code })
    }

    /// The chain of these ops and those of `next` after them.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn join(&self, next: &Self) -> Result<Self, Error> {
        let (first, next) = (self.ops(), next.ops());
        let mut joined = [Op::Linear; 2 * Self::MAX_OPS];
        joined[..first.len()].copy_from_slice(first);
        joined[first.len()..][..next.len()].copy_from_slice(next);
        Self::new(&joined[..first.len() + next.len()])
    }

    /// Whether it has a single op, so that both variants are the same kernel.
    #[must_use]
    pub const fn is_single(&self) -> bool {
        self.len == 1
    }

    /// The ops in order.
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        &self.ops[..usize::from(self.len)]
    }

    /// What the chain computes on, which decides its sizes.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.form
    }

    /// The pattern that has these ops, if one has.
    #[must_use]
    pub fn pattern(&self) -> Option<&'static Pattern> {
        pattern::PATTERNS.iter().find(|pattern| pattern.ops == self.ops())
    }

    /// The name of the pattern that has these ops, else the ops joined with `+`.
    #[must_use]
    pub fn name(&self) -> String {
        self.pattern().map_or_else(|| self.to_string(), |pattern| pattern.name.to_owned())
    }
}

fn join(ops: &[Op]) -> String {
    ops.iter().map(|op| op.name()).collect::<Vec<_>>().join("+")
}

impl Deref for Chain {
    type Target = [Op];

    fn deref(&self) -> &[Op] {
        self.ops()
    }
}

impl PartialEq for Chain {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for Chain {}

impl Hash for Chain {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for word in self.code {
            state.write_u64(word);
        }
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({self})")
    }
}

/// The ops joined with `+`. [`Chain::name`] prefers the pattern's name.
impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&join(self.ops()))
    }
}

impl FromStr for Chain {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.len() > Self::MAX_TEXT {
            let (what, bytes, most) = ("the text of a chain", text.len(), Self::MAX_TEXT);
            return Err(ErrorKind::TooLong { what, bytes, most }.into());
        }
        let ops = if text.contains('+') {
            let mut ops = Vec::new();
            for token in text.split('+') {
                if token.trim().is_empty() {
                    let reason = "an op is missing before or behind a `+`".to_owned();
                    return Err(ErrorKind::NotOneKernel { chain: text.to_owned(), reason }.into());
                }
                ops.extend(
                    ops_of(token)
                        .ok_or_else(|| Error::unknown_name("op", token, aliases::names()))?,
                );
            }
            ops
        } else {
            ops_of(text).ok_or_else(|| {
                let patterns = pattern::PATTERNS.iter().map(|pattern| pattern.name);
                Error::unknown_name("fusion pattern", text, patterns.chain(aliases::names()))
            })?
        };
        Self::new(&ops)
    }
}

/// The ops of one name: a pattern, an op, or names joined with underscores
/// (`Conv2d_BN_ReLU`), read with the longest known name first.
fn ops_of(name: &str) -> Option<Vec<Op>> {
    if let Some(pattern) = Pattern::find(name) {
        return Some(pattern.ops.to_vec());
    }
    if let Some(ops) = aliases::lookup(name) {
        return Some(ops);
    }
    let words: Vec<&str> = name.split('_').filter(|word| !word.is_empty()).collect();
    let mut ops = Vec::new();
    let mut start = 0;
    while start < words.len() {
        let (end, found) = (start + 1..=words.len())
            .rev()
            .find_map(|end| Some((end, aliases::lookup(&words[start..end].join("_"))?)))?;
        ops.extend(found);
        start = end;
    }
    (!ops.is_empty()).then_some(ops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chain(text: &str) -> Chain {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn spellings_of_frameworks_are_one_chain() {
        let expected = chain("conv2d+batch_norm+relu");
        for text in [
            "conv_bn_relu",
            "Conv2d_BatchNorm2d_ReLU",
            "Conv2d_BN_ReLU",
            "nn.Conv2d+nn.BatchNorm2d+nn.ReLU",
            "Conv+BatchNormalization+Relu",
            "conv_bn+relu",
        ] {
            assert_eq!(chain(text), expected, "{text}");
        }
        assert_eq!(chain("aten::addmm+relu"), chain("linear_bias_relu"));
        assert_eq!(chain("Linear_Bias_ReLU_Linear_Bias"), chain("mlp"));
        assert_eq!(chain("attention_qkv"), chain("attention_head"));
        assert_eq!(chain("Sigmoid_Mul"), chain("sigmoid_mul"));
        assert_eq!(chain("SkipLayerNormalization"), chain("add_layernorm"));
        assert_eq!(chain("Linear_SwiGLU").to_string(), "linear+silu+mul");
    }

    #[test]
    fn unknown_names_suggest_the_nearest() {
        let message = "linear_bais_relu".parse::<Chain>().unwrap_err().to_string();
        assert!(message.contains("`linear_bias_relu`"), "{message}");
        let message = "linear+bais".parse::<Chain>().unwrap_err().to_string();
        assert!(message.contains("unknown op `bais`; did you mean `bias`"), "{message}");
    }

    #[test]
    fn an_op_that_is_missing_is_no_unknown_one() {
        for text in ["relu+", "+relu", "add++relu", "+"] {
            let error = text.parse::<Chain>().unwrap_err();
            assert!(error.is_not_one_kernel() && error.to_string().contains("an op is missing"));
        }
    }

    #[test]
    fn a_single_op_is_a_chain_too() {
        for single in ["linear", "relu", "softmax", "qk", "pv"] {
            assert!(chain(single).is_single(), "{single}");
        }
        assert!(!chain("linear+bias").is_single());
    }

    #[test]
    fn a_chain_has_a_limited_length() {
        let long = format!("add{}", "+relu".repeat(Chain::MAX_OPS));
        let error = long.parse::<Chain>().unwrap_err();
        assert!(error.is_not_one_kernel());
        assert!(error.to_string().starts_with("a chain of 13 ops is too long: at most 12"));
        // Not even its names are looked for.
        for name in ["+relu", "_relu", "relu"] {
            let error = name.repeat(1 << 20).parse::<Chain>().unwrap_err();
            assert!(error.is_not_one_kernel());
            assert!(error.to_string().ends_with("is too long: it has at most 1000"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_a_chain_prints_and_parses_back(
            indices in proptest::collection::vec(0..Op::all().count(), 1..=Chain::MAX_OPS),
        ) {
            let ops: Vec<Op> = indices.iter().filter_map(|&index| Op::all().nth(index)).collect();
            if let Ok(chain) = Chain::new(&ops) {
                prop_assert_eq!(chain.to_string().parse::<Chain>().unwrap(), chain);
                prop_assert_eq!(chain.name().parse::<Chain>().unwrap(), chain);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}") {
            let _ = text.parse::<Chain>();
        }
    }
}
