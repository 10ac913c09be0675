//! What an operator was called with, and the problem that it solves.
//!
//! The profiler writes the sizes, types and values of the inputs of each operator. A kernel has
//! the shape of the operator that launched it.

mod convolution;
mod mask;
mod pages;
mod problem;

pub use convolution::ConvPass;
pub(crate) use mask::Mask;
pub(crate) use pages::{Packed, Pages, joined_queries};
pub use problem::Problem;
pub(crate) use problem::{base, has_unknown_groups, is_convolution, saturating_product};

/// What an operator was called with, one entry for each input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shape<'t> {
    /// The inputs, in their order.
    pub inputs: Vec<Input<'t>>,
}

/// An input of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Input<'t> {
    /// The sizes of a tensor; `None` for one that is not a number, as of a symbol. Empty for what is
    /// not a tensor, and for lists of tensors.
    pub dims: Vec<Option<u64>>,
    /// Its type in the words of the profiler: `c10::BFloat16`, `Scalar`; empty if it does not say.
    pub kind: &'t str,
    /// Its value, of a number, a truth or a short list of numbers.
    pub value: &'t str,
}

impl<'t> Shape<'t> {
    /// Reads the text of a shape, as [`Trace::shapes`](crate::Trace::shapes) has it.
    #[must_use]
    pub fn of(text: &'t str) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        Self { inputs: text.split(';').map(Input::of).collect() }
    }

    /// The sizes alone, as `[2x128, 128x64]`, of the inputs that have some.
    #[must_use]
    pub fn sizes(text: &str) -> String {
        let sizes = text.split(';').filter_map(|input| input.split(' ').next());
        let sizes: Vec<&str> = sizes.filter(|sizes| !sizes.is_empty()).collect();
        format!("[{}]", sizes.join(", "))
    }

    /// The whole numbers that are the sizes of an input; none if one is unknown.
    pub(crate) fn known(&self, input: usize) -> Option<Vec<u64>> {
        let dims = &self.inputs.get(input)?.dims;
        if dims.is_empty() { None } else { dims.iter().copied().collect() }
    }

    /// The number type of the operands: that of the first tensors, `bf16`, or both as `bf16 x fp8`.
    #[must_use]
    pub fn dtype(&self) -> Option<String> {
        let tensors = self.inputs.iter().filter(|input| input.dims.len() >= 2);
        let mut types: Vec<&str> = tensors.map(|input| dtype(input.kind)).take(2).collect();
        types.dedup();
        let is_known = !types.is_empty() && types.iter().all(|name| !name.is_empty());
        is_known.then(|| types.join(" x "))
    }
}

impl<'t> Input<'t> {
    fn of(text: &'t str) -> Self {
        let (sizes, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (kind, value) = rest.split_once('=').unwrap_or((rest, ""));
        let is_tensor = !sizes.is_empty() && !sizes.starts_with('(');
        let dims = if is_tensor {
            sizes.split('x').map(|dim| dim.parse().ok()).collect()
        } else {
            Vec::new()
        };
        Self { dims, kind, value }
    }

    /// Whether it is a list of values.
    fn is_list(&self) -> bool {
        self.value.starts_with('[')
    }

    /// The numbers in a value: `[2, 2]`, or `2`.
    fn numbers(&self) -> Vec<u64> {
        let words = self.value.split(|c: char| !c.is_ascii_digit());
        words.filter_map(|word| word.parse().ok()).collect()
    }

    /// The truths in a value: `[False, True]`.
    fn truths(&self) -> Option<Vec<bool>> {
        let list = self.value.strip_prefix('[')?.strip_suffix(']')?;
        list.split(',')
            .map(|word| match word.trim() {
                "True" => Some(true),
                "False" => Some(false),
                _ => None,
            })
            .collect()
    }
}

/// The short name of a number type.
fn dtype(kind: &str) -> &str {
    match kind {
        "c10::BFloat16" => "bf16",
        "c10::Half" => "f16",
        "float" => "f32",
        "double" => "f64",
        "signed char" => "int8",
        "unsigned char" => "uint8",
        _ if kind.starts_with("c10::Float8") => "fp8",
        _ if kind.starts_with("c10::Float4") => "fp4",
        _ => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_types() {
        assert_eq!(
            Shape::of("2x3 c10::BFloat16;3x4 c10::BFloat16").dtype().as_deref(),
            Some("bf16")
        );
        let mixed = Shape::of("2x3 c10::BFloat16;3x4 c10::Float8_e4m3fnuz; Scalar=1");
        assert_eq!(mixed.dtype().as_deref(), Some("bf16 x fp8"));
        assert_eq!(Shape::of("2x3;3x4").dtype(), None);
        assert_eq!(Shape::sizes("2x3 float; Scalar=1;3x4 float"), "[2x3, 3x4]");
    }
}
