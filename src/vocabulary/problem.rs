//! Problems: a chain, sizes and a dtype.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::chain::Chain;
use super::dtype::DType;
use super::error::VocabularyError;
use super::sizes::Sizes;

/// What is measured and asked for: a chain, its dtype and its sizes.
///
/// The text form `linear_bias_relu/f32/m512.k512.n512` is at once the reproducer on the command
/// line, the key in the journal and the key in the calibration file. It parses back to an equal
/// problem, and equal problems have equal text.
///
/// ```
/// use fusion_cost_model::Problem;
///
/// let problem: Problem = "Linear_Bias_ReLU/fp32/n512.k256.m128".parse()?;
/// assert_eq!(problem.to_string(), "linear_bias_relu/f32/m128.k256.n512");
/// # Ok::<(), fusion_cost_model::VocabularyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Problem {
    chain: Chain,
    dtype: DType,
    sizes: Sizes,
}

impl Problem {
    /// A problem from its parts, the sizes as text (`m512.k512.n512`).
    ///
    /// # Errors
    ///
    /// [`VocabularyError::BadSizes`] when the sizes do not belong to the chain.
    pub fn new(chain: Chain, dtype: DType, sizes: &str) -> Result<Self, VocabularyError> {
        let sizes = Sizes::parse(chain.form(), sizes)?;
        Ok(Self { chain, dtype, sizes })
    }

    /// The ops.
    #[must_use]
    pub const fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The number format of every tensor.
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

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}/{}", self.chain.name(), self.dtype, self.sizes))
    }
}

impl FromStr for Problem {
    type Err = VocabularyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.trim().split('/');
        let (Some(chain), Some(dtype), Some(sizes), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(VocabularyError::BadProblem(text.to_owned()));
        };
        Self::new(chain.parse()?, dtype.parse()?, sizes)
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
        ] {
            let problem: Problem = given.parse().unwrap();
            assert_eq!(problem.to_string(), canonical);
            assert_eq!(canonical.parse::<Problem>().unwrap(), problem);
        }
    }

    #[test]
    fn a_text_without_three_parts_shows_the_form() {
        for text in ["linear_bias_relu", "linear_bias_relu/f32", "a/b/c/d", ""] {
            let message = text.parse::<Problem>().unwrap_err().to_string();
            assert!(message.contains("expected chain/dtype/sizes"), "{message}");
        }
    }
}
