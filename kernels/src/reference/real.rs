//! Formulas in f64.

use std::ops::{Add, Div, Mul, Neg, Sub};

use fusion_cost_model::kernel::Value;

/// An f64 that formulas can be evaluated on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Real(pub(crate) f64);

macro_rules! real_operators {
    ($($operator:ident, $method:ident);*) => {$(
        impl $operator for Real {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self(self.0.$method(other.0))
            }
        }
    )*};
}
real_operators!(Add, add; Sub, sub; Mul, mul; Div, div);

impl Add<f64> for Real {
    type Output = Self;
    fn add(self, constant: f64) -> Self {
        Self(self.0 + constant)
    }
}

impl Mul<f64> for Real {
    type Output = Self;
    fn mul(self, constant: f64) -> Self {
        Self(self.0 * constant)
    }
}

impl Neg for Real {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl Value for Real {
    fn clamp_min(self, limit: f64) -> Self {
        if self.0 < limit { Self(limit) } else { self }
    }
    fn clamp_max(self, limit: f64) -> Self {
        if self.0 > limit { Self(limit) } else { self }
    }
    fn exp(self) -> Self {
        Self(libm::exp(self.0))
    }
    fn tanh(self) -> Self {
        Self(libm::tanh(self.0))
    }
    fn erf(self) -> Self {
        Self(libm::erf(self.0))
    }
    fn recip(self) -> Self {
        Self(self.0.recip())
    }
    fn rsqrt(self) -> Self {
        Self(self.0.sqrt().recip())
    }
    fn zero_where_less(self, chance: Self, limit: f64) -> Self {
        if chance.0 < limit { Self(0.0) } else { self }
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::Pointwise;

    use super::*;

    fn apply(op: Pointwise, x: f64, operands: &[f64]) -> f64 {
        match op.fold(|index: usize| Real(operands[index])) {
            Some(folded) => op.apply(Real(x), |index: usize| folded[index]).0,
            None => op.apply(Real(x), |index: usize| Real(operands[index])).0,
        }
    }

    /// Values of PyTorch's definitions, computed by hand or with 12-digit tables.
    #[test]
    fn every_formula_by_hand() {
        let cases: &[(Pointwise, f64, &[f64], f64)] = &[
            (Pointwise::Bias, 1.5, &[0.25], 1.75),
            // (3 - 1) / sqrt(4 + 1e-5) * 0.5 + 0.1
            (Pointwise::BatchNorm, 3.0, &[1.0, 4.0, 0.5, 0.1], 0.599_999_375_001_17),
            (Pointwise::Relu, -2.0, &[], 0.0),
            (Pointwise::Relu, 2.0, &[], 2.0),
            (Pointwise::Relu6, 7.0, &[], 6.0),
            (Pointwise::Relu6, -7.0, &[], 0.0),
            (Pointwise::LeakyRelu, -2.0, &[], -0.02),
            (Pointwise::LeakyRelu, 3.0, &[], 3.0),
            (Pointwise::Gelu, 1.0, &[], 0.841_344_746_068_54),
            (Pointwise::Gelu, -1.0, &[], -0.158_655_253_931_46),
            (Pointwise::GeluTanh, 1.0, &[], 0.841_191_990_607_48),
            (Pointwise::Sigmoid, 1.0, &[], 0.731_058_578_630_00),
            (Pointwise::Silu, 1.0, &[], 0.731_058_578_630_00),
            (Pointwise::Silu, -2.0, &[], -0.238_405_844_044_24),
            (Pointwise::HardSigmoid, 1.5, &[], 0.75),
            (Pointwise::HardSigmoid, 4.0, &[], 1.0),
            (Pointwise::OnnxHardSigmoid, 1.5, &[], 0.8),
            (Pointwise::OnnxHardSigmoid, -2.6, &[], 0.0),
            (Pointwise::HardSwish, 1.0, &[], 2.0 / 3.0),
            (Pointwise::HardSwish, -4.0, &[], 0.0),
            (Pointwise::HardSwish, 5.0, &[], 5.0),
            (Pointwise::Tanh, 0.5, &[], 0.462_117_157_260_01),
            (Pointwise::Add, 1.0, &[2.5], 3.5),
            (Pointwise::Mul, 3.0, &[2.5], 7.5),
            (Pointwise::Scale, 3.0, &[0.125], 0.375),
            (Pointwise::Dropout, 0.9, &[0.5], 1.0),
            (Pointwise::Dropout, 0.9, &[0.05], 0.0),
            (Pointwise::Requantize, 1.5, &[50.0], 75.0),
            (Pointwise::Requantize, -0.1, &[50.0], 0.0),
            (Pointwise::Requantize, 9.0, &[50.0], 255.0),
        ];
        for &(op, x, operands, expected) in cases {
            let value = apply(op, x, operands);
            assert!((value - expected).abs() < 1e-12, "{}({x}) = {value}", op.name());
        }
        for &op in Pointwise::ALL {
            assert!(cases.iter().any(|(case, ..)| *case == op), "{} has no value", op.name());
        }
    }

    #[test]
    fn nan_goes_through_every_formula() {
        for &op in Pointwise::ALL {
            assert!(apply(op, f64::NAN, &[0.5, 0.5, 0.5, 0.5]).is_nan(), "{}", op.name());
        }
    }
}
