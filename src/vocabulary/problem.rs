//! Problems: a chain, sizes and a dtype.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::chain::Chain;
use super::dtype::DType;
use super::form::Form;
use super::op::Op;
use super::pointwise::Pointwise;
use super::sizes::Sizes;
use super::typed_sizes::{
    AttentionSizes, ConvSizes, ImageSizes, LinearSizes, MlpSizes, PoolWindow, RowsSizes,
};
use crate::error::{Error, ErrorKind};

/// What is measured and asked for: a chain, its dtype and its sizes.
///
/// A program makes it from numbers, with the constructor for what the chain begins with:
/// [`linear`](Self::linear), [`conv`](Self::conv), [`attention`](Self::attention), or
/// [`rows`](Self::rows) where all ops are pointwise or work on rows. A chain with a second linear
/// op, or with a max-pool, has more sizes and a constructor of its own.
///
/// ```
/// use fusion_cost_model::{Chain, DType, LinearSizes, Problem};
///
/// let chain: Chain = "linear_bias_relu".parse()?;
/// let problem = Problem::linear(chain, DType::F32, LinearSizes { m: 128, k: 256, n: 512 })?;
/// assert_eq!(problem.to_string(), "linear_bias_relu/f32/m128.k256.n512");
/// # Ok::<(), fusion_cost_model::Error>(())
/// ```
///
/// The text form is at once the reproducer on the command line, the key in the journal and the key
/// in the calibration file. It parses back to an equal problem, and equal problems have equal text.
///
/// ```
/// use fusion_cost_model::Problem;
///
/// let problem: Problem = "Linear_Bias_ReLU/fp32/n512.k256.m128".parse()?;
/// assert_eq!(problem.to_string(), "linear_bias_relu/f32/m128.k256.n512");
/// # Ok::<(), fusion_cost_model::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Problem {
    chain: Chain,
    dtype: DType,
    sizes: Sizes,
}

/// Each fails when the chain has other sizes than these, when one of them is 0 (a padding may be),
/// or when they are so large that a tensor's elements or the flops could not be counted in 63 bits.
/// [`Error::is_invalid_sizes`] is true of all of that.
impl Problem {
    /// A problem from its parts.
    ///
    /// # Errors
    ///
    /// When these are the sizes of another form of chain, or have a causal mask and the chain has no
    /// softmax that could apply it; and when the chain requantises numbers that are no sums of
    /// eight-bit products, or goes on with them.
    pub fn new(chain: Chain, dtype: DType, sizes: Sizes) -> Result<Self, Error> {
        if sizes.form() != chain.form() {
            return Err(sizes.mismatch(chain.form()));
        }
        let is_causal = sizes.attention().is_some_and(|attention| attention.causal);
        if is_causal && !chain.contains(&Op::Softmax) {
            let reason = "causal1 masks what the softmax sees, and the chain has no softmax";
            return Err(sizes.error(reason.to_owned()));
        }
        if let Some(reason) = wrong_for_integers(&chain, dtype) {
            return Err(Error::not_one_kernel(format!("{}/{dtype}", chain.name()), reason));
        }
        Ok(Self { chain, dtype, sizes })
    }

    /// Pointwise and row ops (softmax, layer norm, RMS norm) on a matrix.
    ///
    /// # Errors
    ///
    /// When these cannot be the sizes of the chain.
    pub fn rows(chain: Chain, dtype: DType, sizes: RowsSizes) -> Result<Self, Error> {
        let RowsSizes { m, n } = sizes;
        Self::of(chain, dtype, Form::Rows, [m, n])
    }

    /// One linear op and what follows it.
    ///
    /// # Errors
    ///
    /// When these cannot be the sizes of the chain.
    pub fn linear(chain: Chain, dtype: DType, sizes: LinearSizes) -> Result<Self, Error> {
        let LinearSizes { m, k, n } = sizes;
        Self::of(chain, dtype, Form::Linear, [m, k, n])
    }

    /// Two linear ops and what follows each of them.
    ///
    /// # Errors
    ///
    /// When these cannot be the sizes of the chain.
    pub fn mlp(chain: Chain, dtype: DType, sizes: MlpSizes) -> Result<Self, Error> {
        let MlpSizes { m, k, n, o } = sizes;
        Self::of(chain, dtype, Form::Mlp, [m, k, n, o])
    }

    /// A convolution and the pointwise ops that follow it.
    ///
    /// # Errors
    ///
    /// When these cannot be the sizes of the chain.
    pub fn conv(chain: Chain, dtype: DType, sizes: ConvSizes) -> Result<Self, Error> {
        let ConvSizes { n, c, h, w, k, r, s, stride, pad, groups } = sizes;
        Self::of(chain, dtype, Form::Conv, [n, c, h, w, k, r, s, stride, pad, groups])
    }

    /// A convolution with a max-pool among the ops that follow it.
    ///
    /// # Errors
    ///
    /// When these cannot be the sizes of the chain.
    pub fn conv_pool(
        chain: Chain,
        dtype: DType,
        sizes: ConvSizes,
        pool: PoolWindow,
    ) -> Result<Self, Error> {
        let ConvSizes { n, c, h, w, k, r, s, stride, pad, groups } = sizes;
        let PoolWindow { size: pool, stride: pool_stride, pad: pool_pad } = pool;
        let values = [n, c, h, w, k, r, s, stride, pad, groups, pool, pool_stride, pool_pad];
        Self::of(chain, dtype, Form::ConvPool, values)
    }

    /// A max-pool by itself.
    ///
    /// # Errors
    ///
    /// When these cannot be the sizes of the chain.
    pub fn pool(
        chain: Chain,
        dtype: DType,
        images: ImageSizes,
        pool: PoolWindow,
    ) -> Result<Self, Error> {
        let ImageSizes { n, c, h, w } = images;
        let PoolWindow { size, stride, pad } = pool;
        Self::of(chain, dtype, Form::Pool, [n, c, h, w, size, stride, pad])
    }

    /// Scaled dot-product attention, or its part before or after the softmax.
    ///
    /// # Errors
    ///
    /// When these cannot be the sizes of the chain.
    pub fn attention(chain: Chain, dtype: DType, sizes: AttentionSizes) -> Result<Self, Error> {
        let AttentionSizes { b, h, q, kv, d, kvh, causal } = sizes;
        Self::of(chain, dtype, Form::Attention, [b, h, q, kv, d, kvh, causal.into()])
    }

    /// Attention and a linear op with `features` outputs on the joined heads.
    ///
    /// # Errors
    ///
    /// When these cannot be the sizes of the chain.
    pub fn multihead_linear(
        chain: Chain,
        dtype: DType,
        sizes: AttentionSizes,
        features: u64,
    ) -> Result<Self, Error> {
        let AttentionSizes { b, h, q, kv, d, kvh, causal } = sizes;
        let sizes = [b, h, q, kv, d, kvh, causal.into(), features];
        Self::of(chain, dtype, Form::MultiheadLinear, sizes)
    }

    fn of<const N: usize>(
        chain: Chain,
        dtype: DType,
        form: Form,
        sizes: [u64; N],
    ) -> Result<Self, Error> {
        Self::new(chain, dtype, Sizes::of(form, sizes)?)
    }

    /// The ops.
    #[must_use]
    pub const fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The dtype of every tensor.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes.
    #[must_use]
    pub const fn sizes(&self) -> &Sizes {
        &self.sizes
    }
}

/// Why a chain is none of 8-bit integers, or requantises numbers where it cannot.
fn wrong_for_integers(chain: &Chain, dtype: DType) -> Option<&'static str> {
    let requantizes = |op: &Op| *op == Op::Pointwise(Pointwise::Requantize);
    let at = chain.iter().position(requantizes);
    if dtype != DType::I8 {
        return at.map(|_| "only sums of a problem of i8 are requantised");
    }
    let mut ops = chain.iter().enumerate();
    let is_product = |op: &Op| matches!(op, Op::Linear | Op::Conv2d);
    if ops.any(|(index, op)| !op.is_pointwise() && (index > 0 || !is_product(op))) {
        return Some(
            "in i8 there are products of linear and conv2d, and pointwise ops behind them",
        );
    }
    at.filter(|at| at + 1 < chain.len()).map(|_| "requantize is the last op of a chain")
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}/{}", self.chain.name(), self.dtype, self.sizes))
    }
}

/// The bytes that its text has at most: a chain, and thirteen sizes of twenty digits.
const MAX_TEXT: usize = 2000;

impl FromStr for Problem {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MAX_TEXT {
            let (what, bytes, most) = ("the text of a problem", text.len(), MAX_TEXT);
            return Err(ErrorKind::TooLong { what, bytes, most }.into());
        }
        let mut parts = text.trim().split('/');
        let (Some(chain), Some(dtype), Some(sizes), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(ErrorKind::ProblemText(text.to_owned()).into());
        };
        let (chain, dtype): (Chain, DType) = (chain.parse()?, dtype.parse()?);
        Self::new(chain, dtype, Sizes::parse(chain.form(), sizes)?)
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Problem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_is_canonical() {
        for (given, canonical) in [
            ("linear_bias_relu/f32/m512.k512.n512", "linear_bias_relu/f32/m512.k512.n512"),
            ("linear+bias+relu/float32/k512.m512.n512", "linear_bias_relu/f32/m512.k512.n512"),
            ("linear+bias+silu+mul/bf16/m1.k2.n3", "linear+bias+silu+mul/bf16/m1.k2.n3"),
            ("Conv2d_BN/f16/n1.c3.h8.w8.k4.r3.s3", "conv_bn/f16/n1.c3.h8.w8.k4.r3.s3"),
            (
                "attention_head/f32/causal1.kvh2.b1.h6.q5.kv9.d4",
                "attention_head/f32/b1.h6.q5.kv9.d4.kvh2.causal1",
            ),
            (
                "attention_head/f32/b1.h6.q5.kv9.d4.kvh6.causal0",
                "attention_head/f32/b1.h6.q5.kv9.d4",
            ),
            // A single query is at the last key.
            ("attention_head/f32/b1.h6.q1.kv9.d4.causal1", "attention_head/f32/b1.h6.q1.kv9.d4"),
        ] {
            let problem: Problem = given.parse().unwrap();
            assert_eq!(problem.to_string(), canonical);
            assert_eq!(canonical.parse::<Problem>().unwrap(), problem);
        }
    }

    #[test]
    fn only_a_softmax_has_a_causal_mask() {
        for chain in ["qk", "qk+scale", "pv", "pv+linear"] {
            let n = if chain.ends_with("linear") { ".n3" } else { "" };
            let text = format!("{chain}/f32/b1.h2.q3.kv4.d5.causal1{n}");
            let error = text.parse::<Problem>().unwrap_err();
            assert!(error.is_invalid_sizes());
            assert!(error.to_string().contains("the chain has no softmax"), "{error}");
        }
    }

    #[test]
    fn only_a_chain_of_i8_ends_with_requantize() {
        let parsed = |text: &str| text.parse::<Problem>().map_err(|error| error.to_string());
        let text = "linear+bias+relu+requantize/i8/m2.k3.n4";
        assert_eq!(parsed(text).unwrap().to_string(), text);
        assert!(parsed("requantize/i8/m2.n3").is_ok());
        for (text, reason) in [
            ("linear+requantize/f32/m2.k3.n4", "only sums of a problem of i8"),
            ("linear+requantize+relu/i8/m2.k3.n4", "requantize is the last op"),
            ("linear+softmax/i8/m2.k3.n4", "in i8 there are products"),
            ("mlp/i8/m2.k3.n4.o5", "in i8 there are products"),
            ("attention_head/i8/b1.h1.q2.kv3.d4", "in i8 there are products"),
            ("max_pool/i8/n1.c3.h5.w7", "in i8 there are products"),
            ("layer_norm+requantize/i8/m2.n3", "in i8 there are products"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_text_without_three_parts_shows_the_form() {
        for text in ["linear_bias_relu", "linear_bias_relu/f32", "a/b/c/d", ""] {
            let message = text.parse::<Problem>().unwrap_err().to_string();
            assert!(message.contains("expected chain/dtype/sizes"), "{message}");
        }
        let long = format!("relu/f32/m1.n{}", "1".repeat(1 << 20));
        assert!(long.parse::<Problem>().unwrap_err().to_string().contains("is too long"));
    }
}
