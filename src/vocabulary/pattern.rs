//! Patterns: chains with a name.

use std::fmt;

use serde::Serialize;

use super::form::Form;
use super::op::Op::{self, Conv2d, LayerNorm, Linear, MaxPool, Pv, Qk, Softmax};
use super::pointwise::Pointwise;

/// A group of patterns that share an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Starts with a GEMM with weights.
    Linear,
    /// Starts with a convolution, or is the pool after one.
    Conv,
    /// Scaled dot-product attention and its parts.
    Attention,
    /// Pointwise and row ops, without an anchor.
    Elementwise,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 4] = [Self::Linear, Self::Conv, Self::Attention, Self::Elementwise];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Conv => "conv",
            Self::Attention => "attention",
            Self::Elementwise => "elementwise",
        }
    }

    /// The family of the chains of a form.
    #[must_use]
    pub const fn of(form: Form) -> Self {
        match form {
            Form::Linear | Form::Mlp => Self::Linear,
            Form::Conv | Form::ConvPool | Form::Pool => Self::Conv,
            Form::Attention | Form::MultiheadLinear => Self::Attention,
            Form::Rows => Self::Elementwise,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A chain with a name.
#[derive(Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The canonical name.
    pub name: &'static str,
    /// The family it is listed in.
    pub family: Family,
    /// Its ops in order.
    pub ops: &'static [Op],
    /// Names that other tools use for it, in lower case.
    pub aliases: &'static [&'static str],
}

impl Pattern {
    /// The pattern with this name or alias, in upper or lower case.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        let wanted = name.trim().to_ascii_lowercase();
        PATTERNS
            .iter()
            .find(|pattern| pattern.name == wanted || pattern.aliases.contains(&wanted.as_str()))
    }
}

const BIAS: Op = Op::Pointwise(Pointwise::Bias);
const RELU: Op = Op::Pointwise(Pointwise::Relu);
const BATCH_NORM: Op = Op::Pointwise(Pointwise::BatchNorm);
const ADD: Op = Op::Pointwise(Pointwise::Add);
const MUL: Op = Op::Pointwise(Pointwise::Mul);
const SIGMOID: Op = Op::Pointwise(Pointwise::Sigmoid);
const SCALE: Op = Op::Pointwise(Pointwise::Scale);
const GELU: Op = Op::Pointwise(Pointwise::Gelu);
const DROPOUT: Op = Op::Pointwise(Pointwise::Dropout);

const fn pattern(
    family: Family,
    name: &'static str,
    ops: &'static [Op],
    aliases: &'static [&'static str],
) -> Pattern {
    Pattern { name, family, ops, aliases }
}

/// The 18 patterns, in the order in which they are listed and measured.
pub const PATTERNS: &[Pattern] = &[
    pattern(Family::Linear, "linear_bias", &[Linear, BIAS], &[]),
    pattern(Family::Linear, "linear_bias_relu", &[Linear, BIAS, RELU], &[]),
    pattern(Family::Linear, "linear_bias_relu_dropout", &[Linear, BIAS, RELU, DROPOUT], &[]),
    pattern(Family::Linear, "linear_bias_gelu", &[Linear, BIAS, GELU], &["ffn", "transformer_ffn"]),
    pattern(
        Family::Linear,
        "mlp",
        &[Linear, BIAS, RELU, Linear, BIAS],
        &["mlp_2layer", "two_layer_mlp"],
    ),
    pattern(Family::Conv, "conv_bias", &[Conv2d, BIAS], &[]),
    pattern(Family::Conv, "conv_bn", &[Conv2d, BATCH_NORM], &[]),
    pattern(Family::Conv, "conv_bn_relu", &[Conv2d, BATCH_NORM, RELU], &["resnet_block"]),
    pattern(Family::Conv, "conv_relu", &[Conv2d, RELU], &[]),
    pattern(
        Family::Conv,
        "conv_bn_relu_maxpool",
        &[Conv2d, BATCH_NORM, RELU, MaxPool],
        &["vgg_block"],
    ),
    pattern(
        Family::Attention,
        "attention_scores",
        &[Qk, SCALE, Softmax],
        &["qk_softmax", "q_kt_softmax"],
    ),
    pattern(Family::Attention, "attention_output", &[Softmax, Pv], &["softmax_v"]),
    pattern(
        Family::Attention,
        "attention_head",
        &[Qk, Softmax, Pv],
        &["attention_qkv", "qk_softmax_v", "full_attention"],
    ),
    pattern(
        Family::Attention,
        "multihead_linear",
        &[Qk, Softmax, Pv, Linear],
        &["multihead_attention_linear", "multi_head_linear"],
    ),
    pattern(Family::Elementwise, "add_relu", &[ADD, RELU], &[]),
    pattern(Family::Elementwise, "add_layernorm", &[ADD, LayerNorm], &["add_layer_norm"]),
    pattern(
        Family::Elementwise,
        "mul_add_relu",
        &[MUL, ADD, RELU],
        &["fused_mul_add", "fusedmuladd"],
    ),
    pattern(Family::Elementwise, "sigmoid_mul", &[SIGMOID, MUL], &[]),
];

#[cfg(test)]
mod tests {
    use super::super::chain::Chain;
    use super::*;

    #[test]
    fn eighteen_patterns_with_unique_names() {
        assert_eq!(PATTERNS.len(), 18);
        let mut names: Vec<&str> = PATTERNS
            .iter()
            .flat_map(|pattern| {
                std::iter::once(pattern.name).chain(pattern.aliases.iter().copied())
            })
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_pattern_is_a_chain_of_its_family() {
        for pattern in PATTERNS {
            let chain = Chain::new(pattern.ops).unwrap();
            assert_eq!(chain.pattern(), Some(pattern));
            assert_eq!(chain.name(), pattern.name);
            assert_eq!(Family::of(chain.form()), pattern.family);
        }
    }

    #[test]
    fn the_design_documents_names_are_aliases() {
        for name in ["attention_qkv", "Linear_Bias_ReLU", "Conv_BN_ReLU", "Add_ReLU"] {
            assert!(Pattern::find(name).is_some(), "{name}");
        }
    }
}
