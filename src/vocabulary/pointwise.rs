//! The table of pointwise ops: one entry per op, and everything else follows from it.
//!
//! An entry gives the name, the extra operands and the formula. The kernels of every backend,
//! fused and unfused, the f64 reference and the flop count are readings of that one formula
//! (see [`Value`]). To add an op, add an entry here, its framework names in `aliases.rs`, its flops
//! to the test below, and hand-computed values to the test of the reference in `fused-kernels`.

use super::value::{FlopCounter, Value};

/// Added to the variance in batch and layer normalisation (PyTorch's default).
pub const NORM_EPSILON: f64 = 1e-5;

/// Added to the mean square in RMS normalisation: PyTorch's default, the distance from 1 to the next
/// f32.
pub const RMS_EPSILON: f64 = f32::EPSILON as f64;

/// Probability that dropout zeroes an element. PyTorch's default for `nn.Dropout` is 0.5; 0.1 is
/// what transformers train with.
pub const DROPOUT_PROBABILITY: f64 = 0.1;

/// The slope of leaky ReLU below zero (PyTorch's default).
pub const LEAKY_SLOPE: f64 = 0.01;

/// How an extra operand of an op lies against the `rows x cols` matrix that the op transforms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperandKind {
    /// A matrix or filter with a shape of its own (weights, K, V).
    Matrix,
    /// One value per column (per channel in NHWC, per output feature in a linear layer).
    PerChannel,
    /// One value per element: a second tensor of the same shape.
    PerElement,
    /// One value for the whole tensor.
    Scalar,
    /// A uniform number in [0, 1), computed from the element's index; nothing is read.
    Random,
}

/// An extra operand of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// Its name, as a reader of a formula would write it.
    pub name: &'static str,
    /// How it lies against the tensor.
    pub kind: OperandKind,
}

/// Where a formula gets its operands from: `get(i)` is operand `i` at the element at hand.
///
/// A trait and not only a closure, because a vector kernel must have everything inlined, which
/// cannot be asked of a closure.
pub trait Operands<V> {
    /// The value of an operand.
    fn get(&mut self, index: usize) -> V;
}

impl<V, F: FnMut(usize) -> V> Operands<V> for F {
    fn get(&mut self, index: usize) -> V {
        self(index)
    }
}

/// Folded values per channel of the ops that have some.
pub const MAX_FOLDED: usize = 2;

macro_rules! pointwise_ops {
    ($(
        $(#[$doc:meta])*
        $variant:ident $name:literal [$($operand:ident: $kind:ident),*]
        $(fold [$($folded:ident = $fold:expr),+])?
        => |$x:ident| $body:expr;
    )+) => {
        /// An op that transforms every element by itself.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Pointwise {
            $($(#[$doc])* $variant,)+
        }

        impl Pointwise {
            /// Every pointwise op, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The canonical name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The operands other than the tensor itself, in the order of the formula.
            #[must_use]
            pub const fn operands(self) -> &'static [Operand] {
                match self {
                    $(Self::$variant => &[$(Operand {
                        name: stringify!($operand),
                        kind: OperandKind::$kind,
                    }),*],)+
                }
            }

            /// Whether a kernel computes [`MAX_FOLDED`] values per channel once per call, which
            /// the formula then reads instead of the operands.
            #[must_use]
            pub const fn has_folded(self) -> bool {
                match self {
                    $(Self::$variant => pointwise_ops!(@has $($($folded)+)?),)+
                }
            }

            /// The folded per-channel values of one channel, from its operands; `None` for an op
            /// without folded operands.
            #[inline(always)]
            #[allow(unused_variables, unused_assignments, unused_mut)]
            pub fn fold<V: Value>(self, mut operands: impl Operands<V>) -> Option<[V; MAX_FOLDED]> {
                match self {
                    $(Self::$variant => {
                        pointwise_ops!(@fold operands, [$($operand),*] $([$($folded = $fold),+])?)
                    })+
                }
            }

            /// The formula: the new value of element `x`.
            ///
            /// The operands are what the formula reads at this element: the folded ones where the
            /// op has some.
            #[inline(always)]
            #[allow(unused_variables, unused_assignments, unused_mut)]
            pub fn apply<V: Value>(self, x: V, mut operands: impl Operands<V>) -> V {
                match self {
                    $(Self::$variant => {
                        let mut index = 0;
                        pointwise_ops!(@bind operands, index, [$($operand),*] $([$($folded),+])?);
                        let $x = x;
                        $body
                    })+
                }
            }
        }
    };
    (@has) => { false };
    (@has $($folded:ident)+) => { true };
    (@fold $operands:ident, [$($operand:ident),*]) => { None };
    (@fold $operands:ident, [$($operand:ident),*] [$($folded:ident = $fold:expr),+]) => {{
        let mut index = 0;
        $(
            let $operand = $operands.get(index);
            index += 1;
        )*
        $(let $folded = $fold;)+
        Some([$($folded),+])
    }};
    (@bind $operands:ident, $index:ident, [$($operand:ident),*]) => {
        $(
            let $operand = $operands.get($index);
            $index += 1;
        )*
    };
    (@bind $operands:ident, $index:ident, [$($operand:ident),*] [$($folded:ident),+]) => {
        $(
            let $folded = $operands.get($index);
            $index += 1;
        )+
    };
}

pointwise_ops! {
    /// Adds one value per channel.
    Bias "bias" [bias: PerChannel]
        => |x| x + bias;

    /// Batch normalisation with running statistics (inference).
    BatchNorm "batch_norm"
        [mean: PerChannel, variance: PerChannel, weight: PerChannel, shift: PerChannel]
        fold [gain = weight * (variance + NORM_EPSILON).rsqrt(), offset = shift - mean * gain]
        => |x| x * gain + offset;

    /// `max(x, 0)`.
    Relu "relu" []
        => |x| x.clamp_min(0.0);

    /// `min(max(x, 0), 6)`.
    Relu6 "relu6" []
        => |x| x.clamp_min(0.0).clamp_max(6.0);

    /// `x` above zero, [`LEAKY_SLOPE`] times `x` below.
    LeakyRelu "leaky_relu" []
        => |x| x.clamp_min(0.0) + x.clamp_max(0.0) * LEAKY_SLOPE;

    /// `x / 2 (1 + erf(x / sqrt 2))`, the exact GELU.
    Gelu "gelu" []
        => |x| x * 0.5 * ((x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0);

    /// The tanh approximation of GELU (`sqrt(2 / pi)` and 0.044715 of Hendrycks and Gimpel,
    /// arXiv:1606.08415).
    GeluTanh "gelu_tanh" []
        => |x| x * 0.5 * (((x * x * x * 0.044_715 + x) * 0.797_884_560_802_865_4).tanh() + 1.0);

    /// `1 / (1 + exp(-x))`.
    Sigmoid "sigmoid" []
        => |x| ((-x).exp() + 1.0).recip();

    /// `x / (1 + exp(-x))`, also called swish.
    Silu "silu" []
        => |x| x / ((-x).exp() + 1.0);

    /// `min(max(x + 3, 0), 6) / 6`.
    HardSigmoid "hardsigmoid" []
        => |x| (x + 3.0).clamp_min(0.0).clamp_max(6.0) * (1.0 / 6.0);

    /// `x min(max(x + 3, 0), 6) / 6`.
    HardSwish "hardswish" []
        => |x| x * (x + 3.0).clamp_min(0.0).clamp_max(6.0) * (1.0 / 6.0);

    /// Hyperbolic tangent.
    Tanh "tanh" []
        => |x| x.tanh();

    /// Adds a second tensor (a residual connection, an attention mask).
    Add "add" [other: PerElement]
        => |x| x + other;

    /// Multiplies by a second tensor (a gate).
    Mul "mul" [other: PerElement]
        => |x| x * other;

    /// Multiplies by one number; in attention that is `1 / sqrt(d)`.
    Scale "scale" [factor: Scalar]
        => |x| x * factor;

    /// Dropout in training mode: zeroes each element with [`DROPOUT_PROBABILITY`] and scales the
    /// others up. The random number comes from the element's index, so both variants drop the
    /// same elements.
    Dropout "dropout" [chance: Random]
        => |x| (x * (1.0 / (1.0 - DROPOUT_PROBABILITY))).zero_where_less(chance, DROPOUT_PROBABILITY);

    /// `min(max(0.2 x + 0.5, 0), 1)`: hard sigmoid with the slope that ONNX has by default.
    OnnxHardSigmoid "onnx_hardsigmoid" []
        => |x| (x * 0.2 + 0.5).clamp_min(0.0).clamp_max(1.0);

    /// `min(max(x scale, 0), 255)`, which is rounded to an unsigned 8-bit number where it is written:
    /// the last op of a chain of eight-bit integers.
    Requantize "requantize" [scale: PerChannel]
        => |x| (x * scale).clamp_min(0.0).clamp_max(255.0);
}

impl Pointwise {
    /// Floating-point operations per element.
    ///
    /// An addition, subtraction, multiplication, division or reciprocal counts one, and so does an
    /// `exp`, `tanh`, `erf` or `rsqrt`. Comparisons, selections and sign changes count nothing,
    /// which is why ReLU is free of flops here as in most published counts. Folding (a few
    /// operations per channel and call) is not counted.
    #[must_use]
    pub fn flops_per_element(self) -> u64 {
        let count = std::cell::Cell::new(0);
        let value = FlopCounter(&count);
        let _ = self.apply(value, |_: usize| value);
        count.get()
    }

    /// Whether the op reads per-channel values, so that a channel must be one column.
    #[must_use]
    pub fn is_per_channel(self) -> bool {
        self.operands().iter().any(|operand| operand.kind == OperandKind::PerChannel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flops_of_every_op_by_hand() {
        let expected = [
            (Pointwise::Bias, 1),
            (Pointwise::BatchNorm, 2),
            (Pointwise::Relu, 0),
            (Pointwise::Relu6, 0),
            (Pointwise::LeakyRelu, 2),
            (Pointwise::Gelu, 5),     // x*0.5, x/sqrt2, erf, +1, *
            (Pointwise::GeluTanh, 9), // x*0.5, x*x*x*c (3), +x, *c, tanh, +1, *
            (Pointwise::Sigmoid, 3),  // exp, +1, reciprocal
            (Pointwise::Silu, 3),     // exp, +1, division
            (Pointwise::HardSigmoid, 2),
            (Pointwise::HardSwish, 3),
            (Pointwise::Tanh, 1),
            (Pointwise::Add, 1),
            (Pointwise::Mul, 1),
            (Pointwise::Scale, 1),
            (Pointwise::Dropout, 1),
            (Pointwise::OnnxHardSigmoid, 2),
            (Pointwise::Requantize, 1),
        ];
        assert_eq!(expected.len(), Pointwise::ALL.len());
        for (op, flops) in expected {
            assert_eq!(op.flops_per_element(), flops, "{}", op.name());
        }
    }

    #[test]
    fn only_batch_norm_folds() {
        for &op in Pointwise::ALL {
            assert_eq!(op.has_folded(), op == Pointwise::BatchNorm, "{}", op.name());
        }
    }
}
