//! What an operator was called with, and the problem that it solves.
//!
//! The profiler writes the sizes, types and values of the inputs of each operator. A kernel has
//! the shape of the operator that launched it.

use crate::classify::{Class, class_of_op};

/// What an operator was called with, one entry for each input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shape<'t> {
    /// The inputs, in their order.
    pub inputs: Vec<Input<'t>>,
}

/// An input of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Input<'t> {
    /// The sizes of a tensor; `None` for one that is no number, as of a symbol. Empty for what is
    /// no tensor, and for lists of tensors.
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
    fn known(&self, input: usize) -> Option<Vec<u64>> {
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

    /// The numbers in a value: `[2, 2]`, or `2`.
    fn numbers(&self) -> Vec<u64> {
        let words = self.value.split(|c: char| !c.is_ascii_digit());
        words.filter_map(|word| word.parse().ok()).collect()
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

/// A problem whose arithmetic is known from its shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Problem {
    /// A matrix multiplication.
    Gemm {
        /// Multiplications at once.
        batch: u64,
        /// Rows of the first matrix.
        m: u64,
        /// Columns of the second one.
        n: u64,
        /// What is summed over.
        k: u64,
    },
    /// A convolution.
    Conv {
        /// Images.
        batch: u64,
        /// The sizes of the weights: outputs, inputs of a group, and the window.
        weights: Vec<u64>,
        /// The size of an image that comes in.
        image: Vec<u64>,
        /// The channels that come in.
        channels: u64,
        /// The stride and the padding, if they are known and the same in all directions.
        window: Option<[u64; 2]>,
        /// Points of an image that goes out.
        points: u64,
        /// How many times the arithmetic of the forward pass it does: 2 for both gradients.
        times: u64,
    },
    /// Attention in one operator.
    Attention {
        /// Sequences.
        batch: u64,
        /// Query tokens of a sequence.
        queries: u64,
        /// Keys of a sequence.
        keys: u64,
        /// Heads times the size of a head.
        width: u64,
        /// Heads.
        heads: u64,
        /// Whether it computes gradients.
        is_backward: bool,
    },
    /// Looking up tokens.
    Embedding {
        /// Rows of the table.
        vocabulary: u64,
        /// Their length.
        width: u64,
        /// The sizes of what is looked up.
        tokens: Vec<u64>,
    },
}

impl Problem {
    /// What an operator computes, by its name and the text of its shape; none if that is unknown.
    #[must_use]
    pub fn of(op: &str, shape: &str) -> Option<Self> {
        let shape = Shape::of(shape);
        let base = base(op);
        match base {
            "embedding" => {
                let (table, tokens) = (shape.known(0)?, shape.known(1)?);
                let [vocabulary, width] = table[..] else { return None };
                Some(Self::Embedding { vocabulary, width, tokens })
            }
            "convolution" | "_convolution" | "conv1d" | "conv2d" | "conv3d" => {
                conv(&shape, is_of_library(op))
            }
            "convolution_backward" => conv_backward(&shape),
            _ if base.contains("attention") => attention(base, &shape),
            _ if class_of_op(op).is_some_and(|found| found.main == Class::Gemm) => {
                gemm(base, &shape)
            }
            _ => None,
        }
    }

    /// Multiplications and additions, each counted as one. Looking up has none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an amount of work")]
    pub fn flops(&self) -> f64 {
        let product =
            |factors: &[u64]| factors.iter().map(|factor| *factor as f64).product::<f64>();
        match self {
            Self::Gemm { batch, m, n, k } => 2.0 * product(&[*batch, *m, *n, *k]),
            Self::Conv { batch, weights, points, times, .. } => {
                2.0 * product(weights) * product(&[*batch, *points, *times])
            }
            Self::Attention { batch, queries, keys, width, is_backward, .. } => {
                // Two products forward, five backward.
                let products = if *is_backward { 5.0 } else { 2.0 };
                2.0 * products * product(&[*batch, *queries, *keys, *width])
            }
            Self::Embedding { .. } => 0.0,
        }
    }
}

/// The name of an operator without its library, and without that of the maker behind it.
pub(crate) fn base(op: &str) -> &str {
    let base = op.rsplit("::").next().unwrap_or(op);
    LIBRARIES.into_iter().find_map(|library| base.strip_prefix(library)).unwrap_or(base)
}

fn is_of_library(op: &str) -> bool {
    let base = op.rsplit("::").next().unwrap_or(op);
    LIBRARIES.into_iter().any(|library| base.starts_with(library))
}

/// What operators of makers' libraries begin with.
const LIBRARIES: [&str; 3] = ["cudnn_", "miopen_", "mkldnn_"];

/// The product of sizes, at most the largest number: a file may say any sizes.
pub(crate) fn saturating_product(sizes: impl IntoIterator<Item = u64>) -> u64 {
    sizes.into_iter().fold(1, u64::saturating_mul)
}

fn gemm(base: &str, shape: &Shape<'_>) -> Option<Problem> {
    // What is added comes first.
    let first = usize::from(matches!(base, "addmm" | "baddbmm" | "addbmm" | "addmv"));
    let matrices: Vec<Vec<u64>> = (first..shape.inputs.len())
        .filter_map(|input| shape.known(input))
        .filter(|dims| dims.len() >= 2)
        .collect();
    // Where the output is an input as well, it does not fit what follows it.
    let fits = |pair: &[Vec<u64>]| match pair {
        [a, b] => product_of(a, b, base == "linear"),
        _ => None,
    };
    matrices.windows(2).find_map(fits)
}

/// The product of two matrices, the second one perhaps transposed.
fn product_of(a: &[u64], b: &[u64], is_transposed: bool) -> Option<Problem> {
    let (&k, before) = a.split_last()?;
    let (&m, batches) = before.split_last()?;
    let [.., rows, columns] = b[..] else { return None };
    let n = match (rows == k, columns == k) {
        (true, true) => rows,
        (true, false) if !is_transposed => columns,
        (_, true) => rows,
        _ => return None,
    };
    let batches = saturating_product(batches.iter().copied());
    // One matrix for all rows is one multiplication.
    if b.len() == 2 {
        return Some(Problem::Gemm { batch: 1, m: m.saturating_mul(batches), n, k });
    }
    Some(Problem::Gemm { batch: batches, m, n, k })
}

fn conv(shape: &Shape<'_>, is_of_library: bool) -> Option<Problem> {
    let (image, weights) = (shape.known(0)?, shape.known(1)?);
    let [batch, channels, image @ ..] = &image[..] else { return None };
    let window = weights.get(2..)?;
    if image.len() != window.len() {
        return None;
    }
    // The framework's operator has the stride before the padding, those of libraries behind.
    let lists: Vec<Vec<u64>> = shape.inputs.iter().skip(2).map(Input::numbers).collect();
    let lists: Vec<&Vec<u64>> = lists.iter().filter(|list| list.len() == image.len()).collect();
    let (stride, padding) = match lists[..] {
        [padding, stride, ..] if is_of_library => (stride.clone(), padding.clone()),
        [stride, padding, ..] => (stride.clone(), padding.clone()),
        _ => (vec![1; image.len()], window.iter().map(|size| size / 2).collect()),
    };
    let all_alike = |list: &[u64]| list.iter().all(|one| Some(one) == list.first());
    let of_window = match (stride.first(), padding.first()) {
        (Some(&one), Some(&pad)) if all_alike(&stride) && all_alike(&padding) => Some([one, pad]),
        _ => None,
    };
    let points = image.iter().zip(window).zip(stride.iter().zip(&padding));
    let points = points.map(|((image, window), (stride, padding))| {
        let room = image.saturating_add(padding.saturating_mul(2)).saturating_sub(*window);
        (room / (*stride).max(1)).saturating_add(1)
    });
    let points = saturating_product(points);
    Some(Problem::Conv {
        batch: *batch,
        image: image.to_vec(),
        channels: *channels,
        window: of_window,
        points,
        times: 1,
        weights,
    })
}

/// Of the gradient of the output, the input, and the weights.
fn conv_backward(shape: &Shape<'_>) -> Option<Problem> {
    let (gradient, image, weights) = (shape.known(0)?, shape.known(1)?, shape.known(2)?);
    let points = saturating_product(gradient.get(2..)?.iter().copied());
    let (channels, image) = (*image.get(1)?, image.get(2..)?.to_vec());
    let batch = *gradient.first()?;
    Some(Problem::Conv { batch, weights, image, channels, window: None, points, times: 2 })
}

fn attention(base: &str, shape: &Shape<'_>) -> Option<Problem> {
    let is_backward = base.contains("backward");
    let first = usize::from(is_backward);
    let (queries, keys) = (shape.known(first)?, shape.known(first + 1)?);
    let (&[batch, a, b, size], &[_, key_a, key_b, _]) = (&queries[..], &keys[..]) else {
        return None;
    };
    // The operators of the framework have heads before tokens, those of libraries behind.
    let (queries, heads, keys) =
        if base.contains("scaled_dot_product") { (b, a, key_b) } else { (a, b, key_a) };
    Some(Problem::Attention {
        batch,
        queries,
        keys,
        width: heads.saturating_mul(size),
        heads,
        is_backward,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_operators() {
        let gemm = |batch, m, n, k| Some(Problem::Gemm { batch, m, n, k });
        let of = Problem::of;
        assert_eq!(of("aten::mm", "16x64 float;64x32 float"), gemm(1, 16, 32, 64));
        assert_eq!(of("aten::addmm", "32 float;16x64 float;64x32 float"), gemm(1, 16, 32, 64));
        assert_eq!(of("aten::linear", "4x4x64;64x64;64"), gemm(1, 16, 64, 64));
        assert_eq!(of("aten::linear", "4x4x64;32x64;"), gemm(1, 16, 32, 64));
        assert_eq!(of("aten::bmm", "8x5x64;8x64x7"), gemm(8, 5, 7, 64));
        // The output first, the weights transposed.
        assert_eq!(of("_C::cutlass_scaled_mm", "16x32;16x64;32x64"), gemm(1, 16, 32, 64));
        assert_eq!(of("aten::mm", "?x64;64x32"), None);
        assert_eq!(of("aten::mm", ""), None);
        assert_eq!(of("aten::add", "16x64;64x32"), None);
        assert_eq!(
            of("aten::embedding", "1000x64 float;2x7 long int; Scalar=-1"),
            Some(Problem::Embedding { vocabulary: 1000, width: 64, tokens: vec![2, 7] })
        );
    }

    #[test]
    fn convolutions_and_their_arithmetic() {
        let conv = Problem::of(
            "aten::cudnn_convolution",
            "2x3x224x224 float;64x3x7x7 float; ScalarList=[3, 3]; ScalarList=[2, 2]; \
             ScalarList=[1, 1]; Scalar=1",
        );
        let Some(Problem::Conv { batch, points, .. }) = &conv else { panic!("{conv:?}") };
        assert_eq!((*batch, *points), (2, 112 * 112));
        let flops = conv.unwrap().flops();
        assert_eq!(flops, 2.0 * (64 * 3 * 49) as f64 * (2 * 112 * 112) as f64);
        // The library's order: stride before padding.
        let other = Problem::of(
            "aten::convolution",
            "2x3x224x224;64x3x7x7; =; ScalarList=[2, 2]; ScalarList=[0, 0]",
        );
        assert!(matches!(other, Some(Problem::Conv { points: 11_881, .. })), "{other:?}");
    }

    #[test]
    fn attention_in_both_orders() {
        let library = Problem::of("aten::_flash_attention_forward", "2x7x16x64;2x9x16x64");
        let framework =
            Problem::of("aten::_scaled_dot_product_flash_attention", "2x16x7x64;2x16x9x64");
        assert_eq!(library, framework);
        assert_eq!(library.unwrap().flops(), (4 * 2 * 7 * 9 * 16 * 64) as f64);
    }

    #[test]
    fn no_size_is_too_large() {
        let all = u64::MAX;
        let gemm = Problem::of("aten::linear", &format!("{all}x{all}x64;64x64;64"));
        assert_eq!(gemm, Some(Problem::Gemm { batch: 1, m: all, n: 64, k: 64 }));
        let conv = |text: &str| Problem::of("aten::convolution", text);
        for image in [format!("1x1x{all}x{all}"), format!("{all}x{all}x{all}x{all}")] {
            let value = format!("[{all}, {all}]");
            for padding in ["[0, 0]", &value] {
                let text = format!("{image};1x1x1x1; =; ScalarList=[1, 1]; ScalarList={padding}");
                let found = conv(&text);
                assert!(matches!(found, Some(Problem::Conv { points, .. }) if points == all));
            }
        }
        let sizes = format!("{all}x{all}x{all}x{all}");
        let both = format!("{sizes};{sizes};{sizes}");
        for op in ["aten::convolution_backward", "aten::_flash_attention_forward"] {
            let flops = Problem::of(op, &both).unwrap().flops();
            assert!(flops > 1e50 && flops.is_finite(), "{op}: {flops}");
        }
    }

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
