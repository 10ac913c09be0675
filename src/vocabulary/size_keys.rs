//! Which sizes each form of chain has: their keys, meanings and defaults.

use super::form::Form;

/// One size of a form: its key in the text form, what it means, and its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeKey {
    /// The key in the text form.
    pub key: &'static str,
    /// What it counts.
    pub meaning: &'static str,
    pub(super) default: Default,
    /// The least that it can be.
    pub(super) least: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Default {
    Required,
    Value(u64),
    /// The value of the size at this index.
    SameAs(usize),
}

const fn required(key: &'static str, meaning: &'static str) -> SizeKey {
    SizeKey { key, meaning, default: Default::Required, least: 1 }
}

const fn optional(key: &'static str, meaning: &'static str, value: u64) -> SizeKey {
    SizeKey { key, meaning, default: Default::Value(value), least: 1 }
}

const fn same_as(key: &'static str, meaning: &'static str, index: usize) -> SizeKey {
    SizeKey { key, meaning, default: Default::SameAs(index), least: 1 }
}

const fn padding(key: &'static str, meaning: &'static str) -> SizeKey {
    SizeKey { key, meaning, default: Default::Value(0), least: 0 }
}

const fn flag(key: &'static str, meaning: &'static str) -> SizeKey {
    SizeKey { key, meaning, default: Default::Value(0), least: 0 }
}

const ROWS: &[SizeKey] = &[required("m", "rows"), required("n", "columns")];

const LINEAR: &[SizeKey] =
    &[required("m", "rows"), required("k", "input features"), required("n", "output features")];

const MLP: &[SizeKey] = &[
    required("m", "rows"),
    required("k", "input features"),
    required("n", "hidden features"),
    required("o", "output features"),
];

// N C H W K R S are the letters of cuDNN, MIOpen and CUTLASS.
const CONV_POOL: &[SizeKey] = &[
    required("n", "images"),
    required("c", "input channels"),
    required("h", "input height"),
    required("w", "input width"),
    required("k", "output channels"),
    required("r", "filter height"),
    required("s", "filter width"),
    optional("stride", "stride of the filter", 1),
    padding("pad", "zero padding on each side"),
    optional("groups", "groups of channels", 1),
    optional("pool", "window of the max-pool", 2),
    same_as("pstride", "stride of the max-pool", 10),
    padding("ppad", "padding of the max-pool"),
];

const POOL: &[SizeKey] = &[
    required("n", "images"),
    required("c", "channels"),
    required("h", "height"),
    required("w", "width"),
    optional("pool", "window of the max-pool", 2),
    same_as("pstride", "stride of the max-pool", 4),
    padding("ppad", "padding of the max-pool"),
];

/// The sizes of a convolution without a pool.
const CONV_KEYS: usize = 10;

const MULTIHEAD: &[SizeKey] = &[
    required("b", "batch"),
    required("h", "heads"),
    required("q", "queries"),
    same_as("kv", "keys and values", 2),
    required("d", "features of a head"),
    same_as("kvh", "heads of keys and values", 1),
    flag("causal", "1 where a query sees no key after its own"),
    required("n", "output features"),
];

/// The sizes of attention without the output projection.
const ATTENTION_KEYS: usize = 7;

/// The most sizes that a form has.
pub(super) const MAX_KEYS: usize = CONV_POOL.len();

impl Form {
    /// The sizes that a problem of this form has, in the order of the text form.
    #[must_use]
    pub fn size_keys(self) -> &'static [SizeKey] {
        match self {
            Self::Rows => ROWS,
            Self::Linear => LINEAR,
            Self::Mlp => MLP,
            Self::Conv => &CONV_POOL[..CONV_KEYS],
            Self::ConvPool => CONV_POOL,
            Self::Pool => POOL,
            Self::Attention => &MULTIHEAD[..ATTENTION_KEYS],
            Self::MultiheadLinear => MULTIHEAD,
        }
    }

    /// The text form's pattern, such as `m.k.n` or `n.c.h.w.k.r.s[.stride]...`, for messages.
    #[must_use]
    pub fn size_syntax(self) -> String {
        let mut text = String::new();
        for SizeKey { key, default, .. } in self.size_keys() {
            let dot = if text.is_empty() { "" } else { "." };
            match default {
                Default::Required => text.push_str(&format!("{dot}{key}#")),
                Default::Value(_) | Default::SameAs(_) => text.push_str(&format!("[{dot}{key}#]")),
            }
        }
        text
    }
}
