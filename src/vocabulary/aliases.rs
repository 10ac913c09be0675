//! Names that frameworks, exporters and earlier calibrators give to the ops.
//!
//! A name is compared in lower case, without its namespace (`nn.`, `aten::`, `torch.`, ...) and
//! without underscores, so `aten::hardswish_`, `nn.Hardswish` and `HardSwish` are one name.
//! Some names stand for several ops: `addmm` multiplies and adds a bias.

use std::str::FromStr;

use super::op::Op;
use super::pointwise::Pointwise as P;
use crate::error::Error;

/// A name, in the reduced form of [`reduce`], and the ops it stands for.
type Alias = (&'static str, &'static [Op]);

const fn op(op: P) -> Op {
    Op::Pointwise(op)
}

/// Names of the canonical ops in other vocabularies: PyTorch modules and ATen ops, ONNX ops,
/// XLA/oneDNN words, and the short forms of the design that this project grew from.
const ALIASES: &[Alias] = &[
    // GEMMs
    ("mm", &[Op::Linear]),
    ("matmul", &[Op::Linear]),
    ("dense", &[Op::Linear]),
    ("fullyconnected", &[Op::Linear]),
    ("fc", &[Op::Linear]),
    ("addmm", &[Op::Linear, op(P::Bias)]),
    ("gemm", &[Op::Linear, op(P::Bias)]),
    // convolutions
    ("conv", &[Op::Conv2d]),
    ("convolution", &[Op::Conv2d]),
    ("conv2dbn", &[Op::Conv2d, op(P::BatchNorm)]),
    // attention
    ("qkt", &[Op::Qk]),
    ("qkmatmul", &[Op::Qk]),
    ("pvmatmul", &[Op::Pv]),
    ("softmaxv", &[Op::Softmax, Op::Pv]),
    ("attention", &[Op::Qk, Op::Softmax, Op::Pv]),
    ("scaleddotproductattention", &[Op::Qk, Op::Softmax, Op::Pv]),
    ("sdpa", &[Op::Qk, Op::Softmax, Op::Pv]),
    ("multihead", &[Op::Qk, Op::Softmax, Op::Pv]),
    // pooling and rows
    ("maxpool2d", &[Op::MaxPool]),
    ("ln", &[Op::LayerNorm]),
    ("nativelayernorm", &[Op::LayerNorm]),
    ("layernormalization", &[Op::LayerNorm]),
    ("rmsnormalization", &[Op::RmsNorm]),
    ("simplifiedlayernormalization", &[Op::RmsNorm]),
    ("skiplayernormalization", &[op(P::Add), Op::LayerNorm]),
    ("skipsimplifiedlayernormalization", &[op(P::Add), Op::RmsNorm]),
    // pointwise
    ("biasadd", &[op(P::Bias)]),
    ("addbias", &[op(P::Bias)]),
    ("bn", &[op(P::BatchNorm)]),
    ("batchnorm2d", &[op(P::BatchNorm)]),
    ("batchnormalization", &[op(P::BatchNorm)]),
    ("nativebatchnorm", &[op(P::BatchNorm)]),
    ("leaky", &[op(P::LeakyRelu)]),
    ("gelunone", &[op(P::Gelu)]),
    ("gelunew", &[op(P::GeluTanh)]),
    ("fastgelu", &[op(P::GeluTanh)]),
    ("logistic", &[op(P::Sigmoid)]),
    ("swish", &[op(P::Silu)]),
    ("swiglu", &[op(P::Silu), op(P::Mul)]),
    ("residual", &[op(P::Add)]),
    ("residualadd", &[op(P::Add)]),
    ("sum", &[op(P::Add)]),
    ("multiply", &[op(P::Mul)]),
    ("gate", &[op(P::Mul)]),
];

/// Names that mean something else where they come from ONNX, whose default slope of a hard sigmoid is
/// 0.2. PyTorch's is 1/6.
const ONNX_ALIASES: &[Alias] = &[("hardsigmoid", &[op(P::OnnxHardSigmoid)])];

/// The namespaces of ONNX.
const ONNX: &[&str] = &["onnx::", "ai.onnx."];

/// Prefixes that say where a name comes from and not what it is.
const NAMESPACES: &[&str] = &[
    "torch.nn.functional.",
    "torch.nn.modules.",
    "torch.ops.aten.",
    "torch.nn.",
    "torch.",
    "nn.functional.",
    "nn.",
    "f.",
    "aten::",
    "aten.",
    "prims::",
    "onnx::",
    "ai.onnx.",
    "com.microsoft.",
    "mhlo.",
    "stablehlo.",
];

/// The form in which names are compared.
fn reduce(name: &str) -> String {
    let lower = name.trim().to_ascii_lowercase();
    let mut rest = lower.as_str();
    while let Some(stripped) = NAMESPACES.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
        rest = stripped;
    }
    // The overload of an ATen op: `add.Tensor`, `addmm.default`, `_softmax.int`.
    let rest = rest.split_once('.').map_or(rest, |(name, _)| name);
    rest.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).collect()
}

/// The ops that a canonical or foreign name stands for.
pub(super) fn lookup(name: &str) -> Option<Vec<Op>> {
    let wanted = reduce(name);
    let lower = name.trim().to_ascii_lowercase();
    if ONNX.iter().any(|namespace| lower.starts_with(namespace)) {
        let alias = ONNX_ALIASES.iter().find(|(alias, _)| *alias == wanted);
        if let Some((_, ops)) = alias {
            return Some(ops.to_vec());
        }
    }
    if let Some(op) = Op::all().find(|op| reduce(op.name()) == wanted) {
        return Some(vec![op]);
    }
    ALIASES.iter().find(|(alias, _)| *alias == wanted).map(|(_, ops)| ops.to_vec())
}

/// The names to suggest from: the canonical ones.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    Op::all().map(Op::name)
}

impl Op {
    /// The names that frameworks have for this op alone, in lower case and without underscores.
    pub fn foreign_names(self) -> impl Iterator<Item = &'static str> {
        ALIASES.iter().filter(move |(_, ops)| *ops == [self]).map(|(name, _)| *name)
    }
}

impl FromStr for Op {
    type Err = Error;

    /// Reads a canonical name or a framework's name of a single op.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match lookup(text).as_deref() {
            Some([op]) => Ok(*op),
            Some(ops) => {
                let chain: Vec<_> = ops.iter().map(|op| op.name()).collect();
                let reason = format!("it is {} ops: {}", ops.len(), chain.join("+"));
                Err(Error::not_one_kernel(text, reason))
            }
            None => Err(Error::unknown_name("op", text, names())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_names_are_unique_and_reduced() {
        for (index, (name, _)) in ALIASES.iter().enumerate() {
            assert_eq!(&reduce(name), name);
            assert!(ALIASES[..index].iter().all(|(other, _)| other != name), "{name} twice");
            assert!(
                Op::all().all(|op| reduce(op.name()) != *name),
                "{name} hides the canonical op of that name"
            );
        }
    }

    #[test]
    fn frameworks_names_are_known() {
        for (name, canonical) in [
            ("nn.Linear", "linear"),
            ("torch.nn.modules.Linear", "linear"),
            ("MatMul", "linear"),
            ("nn.BatchNorm2d", "batch_norm"),
            ("BatchNormalization", "batch_norm"),
            ("aten::relu_", "relu"),
            ("F.silu", "silu"),
            ("nn.Hardswish", "hardswish"),
            ("torch.ops.aten.add.default", "add"),
            ("aten::mul.Tensor", "mul"),
            ("aten._softmax.int", "softmax"),
            ("LayerNormalization", "layer_norm"),
            ("MaxPool2d", "max_pool"),
        ] {
            let ops = lookup(name).unwrap_or_else(|| panic!("{name} is unknown"));
            assert_eq!(ops.iter().map(|op| op.name()).collect::<Vec<_>>(), [canonical]);
        }
        for (name, canonical) in [
            ("nn.Hardsigmoid", "hardsigmoid"),
            ("HardSigmoid", "hardsigmoid"),
            ("onnx::HardSigmoid", "onnx_hardsigmoid"),
            ("ai.onnx.HardSigmoid", "onnx_hardsigmoid"),
            ("onnx_hardsigmoid", "onnx_hardsigmoid"),
            ("onnx::Relu", "relu"),
        ] {
            let ops = lookup(name).unwrap_or_else(|| panic!("{name} is unknown"));
            assert_eq!(ops.iter().map(|op| op.name()).collect::<Vec<_>>(), [canonical]);
        }
        assert_eq!(lookup("aten::addmm"), Some(vec![Op::Linear, op(P::Bias)]));
        assert_eq!(lookup("Gemm"), Some(vec![Op::Linear, op(P::Bias)]));
        assert_eq!(lookup("Conv2d_BN"), Some(vec![Op::Conv2d, op(P::BatchNorm)]));
        assert_eq!(lookup("nonsense"), None);
    }
}
