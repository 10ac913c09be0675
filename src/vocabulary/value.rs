//! The arithmetic that the formulas of pointwise ops are written in.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number, seen by the formula of a pointwise op.
///
/// Every formula in the table of [`Pointwise`](super::Pointwise) ops is generic over this trait, so
/// that one text of it serves several readers: a vector register of a CPU kernel, an `f64` of the
/// reference, a counter of floating-point operations.
///
/// NaN goes through every operation, as in PyTorch: `clamp_min` of NaN is NaN.
pub trait Value:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Add<f64, Output = Self>
    + Mul<f64, Output = Self>
{
    /// The larger of `self` and a constant; NaN stays NaN.
    #[must_use]
    fn clamp_min(self, limit: f64) -> Self;
    /// The smaller of `self` and a constant; NaN stays NaN.
    #[must_use]
    fn clamp_max(self, limit: f64) -> Self;
    /// e to the power of `self`.
    #[must_use]
    fn exp(self) -> Self;
    /// Hyperbolic tangent.
    #[must_use]
    fn tanh(self) -> Self;
    /// The error function.
    #[must_use]
    fn erf(self) -> Self;
    /// `1 / self`.
    #[must_use]
    fn recip(self) -> Self;
    /// `1 / sqrt(self)`.
    #[must_use]
    fn rsqrt(self) -> Self;
    /// Zero where `chance < limit`, else `self`.
    #[must_use]
    fn zero_where_less(self, chance: Self, limit: f64) -> Self;
}

/// Counts the floating-point operations of a formula by evaluating it, by the convention that
/// `Pointwise::flops_per_element` states.
#[derive(Clone, Copy)]
pub(crate) struct FlopCounter<'a>(pub(crate) &'a std::cell::Cell<u64>);

impl FlopCounter<'_> {
    fn one(self) -> Self {
        self.0.set(self.0.get() + 1);
        self
    }
}

macro_rules! counted_operators {
    ($($operator:ident, $method:ident);*) => {$(
        impl $operator for FlopCounter<'_> {
            type Output = Self;
            fn $method(self, _: Self) -> Self {
                self.one()
            }
        }
    )*};
}
counted_operators!(Add, add; Sub, sub; Mul, mul; Div, div);

impl Add<f64> for FlopCounter<'_> {
    type Output = Self;
    fn add(self, _: f64) -> Self {
        self.one()
    }
}

impl Mul<f64> for FlopCounter<'_> {
    type Output = Self;
    fn mul(self, _: f64) -> Self {
        self.one()
    }
}

impl Neg for FlopCounter<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self
    }
}

impl Value for FlopCounter<'_> {
    fn clamp_min(self, _: f64) -> Self {
        self
    }
    fn clamp_max(self, _: f64) -> Self {
        self
    }
    fn exp(self) -> Self {
        self.one()
    }
    fn tanh(self) -> Self {
        self.one()
    }
    fn erf(self) -> Self {
        self.one()
    }
    fn recip(self) -> Self {
        self.one()
    }
    fn rsqrt(self) -> Self {
        self.one()
    }
    fn zero_where_less(self, _: Self, _: f64) -> Self {
        self
    }
}
