//! The sizes of a problem, and their text form `m512.k512.n512`.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::form::Form;
use super::size_keys::{Default, MAX_KEYS, SizeKey};
use super::typed_sizes::{
    AttentionSizes, ConvSizes, ImageSizes, LinearSizes, PoolSizes, RowsSizes,
};
use crate::error::{Error, ErrorKind};

/// Where attention has its causal mask among its sizes.
const CAUSAL: usize = 6;

/// The sizes of a problem; which ones there are depends on the chain's [`Form`].
///
/// Every size is at least 1 (a padding may be 0, and `causal` is 0 or 1), and small enough that the
/// element count of every tensor fits into 63 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    form: Form,
    values: [u64; MAX_KEYS],
}

impl Sizes {
    /// Reads `m512.k512.n512`, with the keys of `form` in any order.
    ///
    /// # Errors
    ///
    /// An error that names the size and what it should be.
    pub fn parse(form: Form, text: &str) -> Result<Self, Error> {
        let keys = form.size_keys();
        let fail =
            |reason: String| Error::from(ErrorKind::Sizes { sizes: text.to_owned(), reason });
        let mut given = [None; MAX_KEYS];
        for part in text.split('.').map(str::trim) {
            let digits = part.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(part.len());
            let (key, number) = part.split_at(digits);
            let Some(index) = keys.iter().position(|one| one.key.eq_ignore_ascii_case(key)) else {
                let what =
                    if key.is_empty() { "has no key" } else { "is not a size of this chain" };
                return Err(fail(format!("`{part}` {what}; expected {}", form.size_syntax())));
            };
            let (meaning, least) = (keys[index].meaning, keys[index].least);
            let wrong = |what: String| fail(format!("`{part}`: {meaning} {what}"));
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                let example = if least == 0 { 1 } else { 64 };
                return Err(wrong(format!("must be a whole number, such as {key}{example}")));
            }
            let too_large = |_| wrong(format!("must be at most {}", u32::MAX));
            let value = number.parse::<u64>().map_err(too_large)?;
            if given[index].replace(value).is_some() {
                return Err(fail(format!("{key} ({meaning}) is given twice")));
            }
        }
        let mut values = [0; MAX_KEYS];
        for (index, key) in keys.iter().enumerate() {
            values[index] = match (given[index], key.default) {
                (Some(value), _) | (None, Default::Value(value)) => value,
                (None, Default::SameAs(other)) => values[other],
                (None, Default::Required) => {
                    return Err(fail(format!(
                        "{} ({}) is missing; expected {}",
                        key.key,
                        key.meaning,
                        form.size_syntax()
                    )));
                }
            };
        }
        let sizes = Self { form, values };
        sizes.check().map_err(fail)?;
        Ok(sizes.canonical())
    }

    /// The sizes of a form by number, in the order of its keys.
    ///
    /// Errors are those of the text form.
    pub(super) fn of<const N: usize>(form: Form, given: [u64; N]) -> Result<Self, Error> {
        let mut values = [0; MAX_KEYS];
        values[..N].copy_from_slice(&given);
        let sizes = Self { form, values };
        sizes.check().map_err(|reason| sizes.error(reason))?;
        Ok(sizes.canonical())
    }

    /// The one form of equal sizes: a single query sees all keys, with and without a causal mask.
    fn canonical(self) -> Self {
        match self.attention() {
            Some(AttentionSizes { q: 1, .. }) => self.with_causal(false),
            _ => self,
        }
    }

    /// The same with a causal mask, or without; sizes without attention as they are.
    pub(super) fn with_causal(mut self, causal: bool) -> Self {
        if self.attention().is_some() {
            self.values[CAUSAL] = causal.into();
        }
        self
    }

    /// What is wrong with these sizes.
    pub(super) fn error(&self, reason: String) -> Error {
        ErrorKind::Sizes { sizes: self.in_full(), reason }.into()
    }

    /// Why these are not the sizes of `form`.
    pub(super) fn mismatch(&self, form: Form) -> Error {
        let sizes = self.in_full();
        match Self::parse(form, &sizes) {
            Err(error) => error,
            // The text form has a default for all that is missing.
            Ok(_) => {
                let reason = format!("the chain has more sizes; expected {}", form.size_syntax());
                ErrorKind::Sizes { sizes, reason }.into()
            }
        }
    }

    /// The text form with all sizes, even those that have their default.
    fn in_full(&self) -> String {
        let parts: Vec<String> =
            self.iter().map(|(key, value)| format!("{}{value}", key.key)).collect();
        parts.join(".")
    }

    /// The form whose sizes these are.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.form
    }

    /// Every key with its value, defaults included.
    pub fn iter(&self) -> impl Iterator<Item = (&'static SizeKey, u64)> {
        self.form.size_keys().iter().zip(self.values)
    }

    fn check(&self) -> Result<(), String> {
        for (key, value) in self.iter() {
            if value < key.least {
                return Err(format!(
                    "{} ({}) is {value}; it must be at least {}",
                    key.key, key.meaning, key.least
                ));
            }
            // The sizes are multiplied only after this bound holds for each, see below.
            if value > u64::from(u32::MAX) {
                return Err(format!(
                    "{} ({}) is {value}; no size may exceed {}",
                    key.key,
                    key.meaning,
                    u32::MAX
                ));
            }
        }
        if let Some(conv) = self.conv() {
            Self::check_conv(&conv)?;
        }
        if let Some(pool) = self.pool() {
            Self::check_pool(&pool)?;
        }
        self.check_attention()?;
        // The product of all sizes, images with their padding, bounds the element count of every
        // tensor and, with the factor for the flops of an element, all flops.
        let pad = self.conv().map_or(0, |conv| 2 * conv.pad);
        let product = self
            .iter()
            // Heads of keys and values are among the heads.
            .filter(|(key, _)| key.least > 0 && key.key != "kvh")
            .map(|(key, value)| if matches!(key.key, "h" | "w") { value + pad } else { value })
            .try_fold(64_u64, |product, value| product.checked_mul(value));
        match product {
            Some(product) if i64::try_from(product).is_ok() => Ok(()),
            _ => Err("they multiply to more operations than 63 bits can count".to_owned()),
        }
    }

    fn check_attention(&self) -> Result<(), String> {
        let Some(AttentionSizes { h, q, kv, kvh, causal, .. }) = self.attention() else {
            return Ok(());
        };
        if self.values[CAUSAL] > 1 {
            return Err(format!("causal is {}; it must be 0 or 1", self.values[CAUSAL]));
        }
        if h % kvh != 0 {
            return Err(format!("kvh{kvh} does not divide h{h}"));
        }
        if causal && q > kv {
            return Err(format!(
                "causal1 puts the last query at the last key, so of q{q} with kv{kv} the first {} \
                 would see no key",
                q - kv
            ));
        }
        Ok(())
    }

    fn check_conv(conv: &ConvSizes) -> Result<(), String> {
        for (key, size, filter) in [("h", conv.h, conv.r), ("w", conv.w, conv.s)] {
            if filter > size + 2 * conv.pad {
                return Err(format!(
                    "the filter ({filter}) is larger than the padded input {key}{size} with pad{}",
                    conv.pad
                ));
            }
            if conv.pad >= filter {
                return Err(format!(
                    "pad{} must be smaller than the filter ({filter}), or some outputs would see \
                     only padding",
                    conv.pad
                ));
            }
        }
        for (key, channels) in [("c", conv.c), ("k", conv.k)] {
            if channels % conv.groups != 0 {
                return Err(format!("groups{} does not divide {key}{channels}", conv.groups));
            }
        }
        Ok(())
    }

    fn check_pool(pool: &PoolSizes) -> Result<(), String> {
        for (key, size) in [("height", pool.h), ("width", pool.w)] {
            if pool.window > size + 2 * pool.pad {
                return Err(format!(
                    "the pool's window ({}) is larger than the {key} of its padded input ({size})",
                    pool.window
                ));
            }
        }
        if pool.pad * 2 > pool.window {
            return Err(format!(
                "ppad{} must be at most half of the pool's window ({})",
                pool.pad, pool.window
            ));
        }
        Ok(())
    }

    /// The matrix `[m, n]` of a chain without an anchor.
    #[must_use]
    pub fn rows(&self) -> Option<RowsSizes> {
        let [m, n, ..] = self.values;
        (self.form == Form::Rows).then_some(RowsSizes { m, n })
    }

    /// The first linear layer of a `Linear` or `Mlp` chain.
    #[must_use]
    pub fn linear(&self) -> Option<LinearSizes> {
        let [m, k, n, ..] = self.values;
        matches!(self.form, Form::Linear | Form::Mlp).then_some(LinearSizes { m, k, n })
    }

    /// The convolution.
    #[must_use]
    pub fn conv(&self) -> Option<ConvSizes> {
        let [n, c, h, w, k, r, s, stride, pad, groups, ..] = self.values;
        matches!(self.form, Form::Conv | Form::ConvPool).then_some(ConvSizes {
            n,
            c,
            h,
            w,
            k,
            r,
            s,
            stride,
            pad,
            groups,
        })
    }

    /// The images that a max-pool by itself reads.
    #[must_use]
    pub fn images(&self) -> Option<ImageSizes> {
        let [n, c, h, w, ..] = self.values;
        (self.form == Form::Pool).then_some(ImageSizes { n, c, h, w })
    }

    /// The max-pool, over the convolution's output where there is one.
    #[must_use]
    pub fn pool(&self) -> Option<PoolSizes> {
        if let Some(ImageSizes { h, w, .. }) = self.images() {
            let [_, _, _, _, window, stride, pad, ..] = self.values;
            return Some(PoolSizes { h, w, window, stride, pad });
        }
        let conv = self.conv().filter(|_| self.form == Form::ConvPool)?;
        let [.., window, stride, pad] = self.values;
        Some(PoolSizes { h: conv.out_h(), w: conv.out_w(), window, stride, pad })
    }

    /// The attention.
    #[must_use]
    pub fn attention(&self) -> Option<AttentionSizes> {
        let [b, h, q, kv, d, kvh, causal, ..] = self.values;
        matches!(self.form, Form::Attention | Form::MultiheadLinear).then_some(AttentionSizes {
            b,
            h,
            q,
            kv,
            d,
            kvh,
            causal: causal != 0,
        })
    }

    /// Output features of the last linear op, where it is not the first op of the chain.
    #[must_use]
    pub fn second_linear(&self) -> Option<u64> {
        match self.form {
            Form::Mlp => Some(self.values[3]),
            Form::MultiheadLinear => Some(self.values[7]),
            _ => None,
        }
    }
}

/// Sizes are half of each question to a cost model, and have 32 bits: two of them are one word.
impl Hash for Sizes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(self.form as u8);
        for pair in self.values[..self.form.size_keys().len()].chunks(2) {
            let [first, second] =
                [pair.first(), pair.get(1)].map(|size| size.map_or(0, |size| *size));
            state.write_u64(first ^ second.rotate_left(32));
        }
    }
}

/// The keys in their order; sizes that have their default are left out.
impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for (SizeKey { key, default, .. }, value) in self.iter() {
            let is_default = match *default {
                Default::Required => false,
                Default::Value(default) => value == default,
                Default::SameAs(index) => value == self.values[index],
            };
            if !is_default {
                let dot = if text.is_empty() { "" } else { "." };
                text.push_str(&format!("{dot}{key}{value}"));
            }
        }
        f.pad(&text)
    }
}

impl fmt::Debug for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sizes({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(form: Form, text: &str) -> Sizes {
        Sizes::parse(form, text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn keys_come_in_any_order_and_defaults_are_left_out() {
        let conv = sizes(Form::Conv, "k64.n1.c3.h224.w224.r7.s7.stride2.pad3.groups1");
        assert_eq!(conv.to_string(), "n1.c3.h224.w224.k64.r7.s7.stride2.pad3");
        assert_eq!((conv.conv().unwrap().out_h(), conv.conv().unwrap().out_w()), (112, 112));
        let attention = sizes(Form::Attention, "b1.h8.q512.kv512.d64");
        assert_eq!(attention.to_string(), "b1.h8.q512.d64");
        let grouped = sizes(Form::MultiheadLinear, "n9.causal1.kvh2.b1.h8.q512.kv512.d64");
        assert_eq!(grouped.to_string(), "b1.h8.q512.d64.kvh2.causal1.n9");
        assert_eq!((grouped.attention().unwrap().group(), grouped.second_linear()), (4, Some(9)));
        let pool = sizes(Form::ConvPool, "n1.c3.h8.w8.k4.r3.s3.pool3.pstride2.ppad1.pad1");
        assert_eq!(pool.pool().unwrap().out_h(), 4);
        assert_eq!(pool.to_string(), "n1.c3.h8.w8.k4.r3.s3.pad1.pool3.pstride2.ppad1");
    }

    #[test]
    fn a_pool_strides_by_its_window_by_default() {
        let pool = sizes(Form::ConvPool, "n1.c1.h9.w9.k1.r1.s1.pool3").pool().unwrap();
        assert_eq!((pool.window, pool.stride, pool.out_h()), (3, 3, 3));
    }

    #[test]
    fn bad_sizes_say_what_is_wrong() {
        for (form, text, reason) in [
            (Form::Linear, "m512.k512", "n (output features) is missing"),
            (Form::Linear, "m512.k512.n512.z3", "`z3` is not a size of this chain"),
            (Form::Linear, "m512.k0.n512", "k (input features) is 0; it must be at least 1"),
            (Form::Linear, "m-3.k1.n512", "must be a whole number"),
            (Form::Linear, "m3.m4.k1.n1", "m (rows) is given twice"),
            (Form::Linear, "m1.5.k1.n1", "`5` has no key"),
            (Form::Linear, "", "`` has no key"),
            (Form::Linear, "m+3.k1.n512", "must be a whole number"),
            (Form::Linear, "m99999999999999999999.k1.n1", "rows must be at most 4294967295"),
            (Form::Linear, "m9999999999.k1.n1", "no size may exceed"),
            (Form::Linear, "m4000000000.k4000000000.n4000000000", "63 bits"),
            (Form::Conv, "n1.c1024.h1.w1.k1024.r16384.s16384.pad16383", "63 bits"),
            (Form::Conv, "n1.c3.h2.w8.k4.r3.s3", "filter (3) is larger"),
            (Form::Conv, "n1.c3.h8.w8.k4.r3.s3.pad3", "pad3 must be smaller"),
            (Form::Conv, "n1.c4.h8.w8.k6.r3.s3.groups4", "groups4 does not divide k6"),
            (Form::ConvPool, "n1.c4.h3.w3.k4.r3.s3", "window (2) is larger"),
            (Form::ConvPool, "n1.c4.h9.w9.k4.r3.s3.pool3.ppad2", "at most half"),
            (Form::Attention, "b1.h6.q3.d4.kvh4", "kvh4 does not divide h6"),
            (Form::Attention, "b1.h6.q3.d4.kvh12", "kvh12 does not divide h6"),
            (Form::Attention, "b1.h6.q3.d4.kvh0", "kvh (heads of keys and values) is 0"),
            (Form::Attention, "b1.h6.q3.d4.causal2", "causal is 2; it must be 0 or 1"),
            (Form::Attention, "b1.h6.q3.d4.causal", "must be a whole number, such as causal1"),
            (
                Form::MultiheadLinear,
                "b1.h6.q5.kv3.d4.causal1.n7",
                "of q5 with kv3 the first 2 would see no key",
            ),
            (Form::Pool, "n1.c4.h1.w9", "window (2) is larger than the height"),
            (Form::Pool, "n1.c4.h9.w9.pool3.ppad2", "at most half"),
        ] {
            let message = Sizes::parse(form, text).unwrap_err().to_string();
            assert!(message.contains(reason), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn what_parses_prints_and_parses_back(
            form in proptest::sample::select(vec![
                Form::Rows, Form::Linear, Form::Mlp, Form::Conv, Form::ConvPool, Form::Pool,
                Form::Attention, Form::MultiheadLinear,
            ]),
            values in proptest::collection::vec(1_u64..40, MAX_KEYS),
        ) {
            let text: Vec<String> = form
                .size_keys()
                .iter()
                .zip(values)
                .map(|(key, value)| (key.key, if key.key == "causal" { value % 2 } else { value }))
                .map(|(key, value)| format!("{key}{value}"))
                .collect();
            if let Ok(sizes) = Sizes::parse(form, &text.join(".")) {
                prop_assert_eq!(Sizes::parse(form, &sizes.to_string()).unwrap(), sizes);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}") {
            let _ = Sizes::parse(Form::ConvPool, &text);
        }
    }
}
