//! Formulas of pointwise ops as C++: a [`Value`] that writes down what is done with it.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::ops::{Add, Div, Mul, Neg, Sub};

use fusion_cost_model::kernel::Value;

/// The statements that formulas have become so far, each of which defines one name.
#[derive(Debug)]
pub(super) struct Statements {
    text: RefCell<String>,
    names: Cell<u32>,
    indentation: &'static str,
}

impl Statements {
    /// None yet; every one of them will be a line with this before it.
    pub(super) fn new(indentation: &'static str) -> Self {
        Self { text: RefCell::default(), names: Cell::new(0), indentation }
    }

    /// Defines a number by an expression of the type `float`.
    pub(super) fn define(&self, expression: &str) -> Number<'_> {
        let name = self.names.replace(self.names.get() + 1);
        // Writing to a string does not fail.
        let _ = writeln!(
            self.text.borrow_mut(),
            "{}const float v{name} = {expression};",
            self.indentation
        );
        Number { statements: self, name }
    }

    /// The text of all of them.
    pub(super) fn text(&self) -> String {
        self.text.borrow().clone()
    }
}

/// A number that a statement defines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number<'s> {
    statements: &'s Statements,
    name: u32,
}

impl Number<'_> {
    /// How later statements call it.
    pub(super) fn name(self) -> String {
        format!("v{}", self.name)
    }

    fn becomes(self, expression: &str) -> Self {
        Self { name: self.statements.define(expression).name, ..self }
    }

    fn calls(self, function: &str) -> Self {
        self.becomes(&format!("port::{function}(v{})", self.name))
    }
}

/// A constant as f32, with enough digits to distinguish it from its neighbours.
#[expect(clippy::cast_possible_truncation, reason = "kernels compute in f32")]
pub(super) fn constant(value: f64) -> String {
    format!("{:?}f", value as f32)
}

macro_rules! written_operators {
    ($($operator:ident, $method:ident, $text:literal);*) => {$(
        impl $operator for Number<'_> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                self.becomes(&format!($text, self.name, other.name))
            }
        }
    )*};
}
written_operators!(
    Add, add, "v{} + v{}";
    Sub, sub, "v{} - v{}";
    Mul, mul, "v{} * v{}";
    Div, div, "port::divide(v{}, v{})"
);

impl Add<f64> for Number<'_> {
    type Output = Self;
    fn add(self, value: f64) -> Self {
        self.becomes(&format!("v{} + {}", self.name, constant(value)))
    }
}

impl Mul<f64> for Number<'_> {
    type Output = Self;
    fn mul(self, value: f64) -> Self {
        self.becomes(&format!("v{} * {}", self.name, constant(value)))
    }
}

impl Neg for Number<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.becomes(&format!("-v{}", self.name))
    }
}

impl Value for Number<'_> {
    fn clamp_min(self, limit: f64) -> Self {
        self.becomes(&format!("port::max(v{}, {})", self.name, constant(limit)))
    }
    fn clamp_max(self, limit: f64) -> Self {
        self.becomes(&format!("port::min(v{}, {})", self.name, constant(limit)))
    }
    fn exp(self) -> Self {
        self.calls("exp")
    }
    fn tanh(self) -> Self {
        self.calls("tanh")
    }
    fn erf(self) -> Self {
        self.calls("erf")
    }
    fn recip(self) -> Self {
        self.calls("recip")
    }
    fn rsqrt(self) -> Self {
        self.calls("rsqrt")
    }
    fn zero_where_less(self, chance: Self, limit: f64) -> Self {
        self.becomes(&format!(
            "port::zero_where_less(v{}, v{}, {})",
            self.name,
            chance.name,
            constant(limit)
        ))
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::Pointwise;

    use super::*;

    #[test]
    fn a_formula_is_written_in_order() {
        let statements = Statements::new("  ");
        let x = statements.define("x[i]");
        let y = Pointwise::Silu.apply(x, |_: usize| x);
        assert_eq!(y.name(), "v4");
        assert_eq!(
            statements.text(),
            "  const float v0 = x[i];\n  const float v1 = -v0;\n  const float v2 = port::exp(v1);\n  \
             const float v3 = v2 + 1.0f;\n  const float v4 = port::divide(v0, v3);\n"
        );
    }

    #[test]
    fn constants_read_back_as_the_same_f32() {
        for value in [0.0, 1.0, 6.0, 1e-5, 0.044_715, std::f64::consts::FRAC_1_SQRT_2, -1e30, 1e-30]
        {
            let text = constant(value);
            let digits = text.strip_suffix('f').unwrap();
            assert_eq!(digits.parse::<f32>().unwrap(), value as f32, "{text}");
            // Without a point or an exponent it would be no floating-point literal in C++.
            assert!(digits.contains(['.', 'e']), "{text}");
        }
    }
}
