//! The problem that an operator solves, whose arithmetic is known from its shape.

use super::Shape;
use super::convolution::{self, ConvPass};
use super::pages;
use crate::classify::{Class, class_of_op};

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
        /// Whether the points of the window are apart, if it is the forward pass.
        is_dilated: bool,
        /// Points of an image that goes out.
        points: u64,
        /// What it computes.
        pass: ConvPass,
    },
    /// Attention in one operator.
    Attention {
        /// Sequences.
        batch: u64,
        /// Query tokens of a sequence.
        queries: u64,
        /// Keys of a sequence.
        keys: u64,
        /// Heads times the size of a query or a key.
        width: u64,
        /// Heads times the size of a value.
        values: u64,
        /// Heads.
        heads: u64,
        /// Heads of keys and values.
        key_heads: u64,
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
        if has_unknown_groups(op, shape) {
            return None;
        }
        let shape = Shape::of(shape);
        let base = base(op);
        match base {
            "embedding" => {
                let (table, tokens) = (shape.known(0)?, shape.known(1)?);
                let [vocabulary, width] = table[..] else { return None };
                Some(Self::Embedding { vocabulary, width, tokens })
            }
            "convolution_backward" => convolution::backward(&shape),
            _ if is_convolution(base) => convolution::forward(op, &shape),
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
            Self::Conv { batch, weights, points, pass, .. } => {
                2.0 * product(weights) * product(&[*batch, *points, pass.times()])
            }
            Self::Attention { batch, queries, keys, width, values, is_backward, .. } => {
                // With keys: the scores, again in the backward pass, and the gradients of queries
                // and of keys. With values: the output, or the gradients of scores and of values.
                let [of_keys, of_values] = if *is_backward { [3.0, 2.0] } else { [1.0, 1.0] };
                let lengths = product(&[*batch, *queries, *keys]);
                2.0 * lengths * (of_keys * *width as f64 + of_values * *values as f64)
            }
            Self::Embedding { .. } => 0.0,
        }
    }
}

/// Whether an operator without its library convolves going forward.
pub(crate) fn is_convolution(base: &str) -> bool {
    let of_framework = ["convolution", "_convolution", "conv1d", "conv2d", "conv3d"];
    let depthwise = ["_conv_depthwise2d", "conv_depthwise3d", "depthwise_convolution"];
    let with_activation = ["convolution_relu", "convolution_add_relu"];
    [&of_framework[..], &depthwise, &with_activation].iter().any(|names| names.contains(&base))
}

/// The name of an operator without its library, and without that of the maker behind it.
pub(crate) fn base(op: &str) -> &str {
    let base = op.rsplit("::").next().unwrap_or(op);
    LIBRARIES.into_iter().find_map(|library| base.strip_prefix(library)).unwrap_or(base)
}

pub(super) fn is_of_library(op: &str) -> bool {
    let base = op.rsplit("::").next().unwrap_or(op);
    LIBRARIES.into_iter().any(|library| base.starts_with(library))
}

/// What operators of makers' libraries begin with.
const LIBRARIES: [&str; 3] = ["cudnn_", "miopen_", "mkldnn_"];

/// The product of sizes, at most the largest number: a file may say any sizes.
pub(crate) fn saturating_product(sizes: impl IntoIterator<Item = u64>) -> u64 {
    sizes.into_iter().fold(1, u64::saturating_mul)
}

/// Whether an operator multiplies groups of rows or columns, whose sizes are in a tensor that the
/// profiler does not write.
pub(crate) fn has_unknown_groups(op: &str, text: &str) -> bool {
    let is_grouped = matches!(base(op), "_grouped_mm" | "_scaled_grouped_mm");
    // Without groups in a tensor, each pair of matrices is one.
    let rank = |input: usize| Shape::of(text).inputs.get(input).map(|input| input.dims.len());
    is_grouped && !(rank(0) == Some(3) && rank(1) == Some(3))
}

fn gemm(base: &str, shape: &Shape<'_>) -> Option<Problem> {
    // What is added comes first.
    let is_added_to =
        matches!(base, "addmm" | "_addmm_activation" | "baddbmm" | "addbmm" | "addmv");
    let first = usize::from(is_added_to);
    if matches!(base, "mv" | "addmv") {
        // The matrix has the place of the weights, and the vector is a row.
        let (matrix, vector) = (shape.known(first)?, shape.known(first + 1)?);
        let (&[n, k], &[length]) = (&matrix[..], &vector[..]) else { return None };
        return (k == length).then_some(Problem::Gemm { batch: 1, m: 1, n, k });
    }
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

fn attention(base: &str, shape: &Shape<'_>) -> Option<Problem> {
    let is_backward = base.contains("backward");
    let first = usize::from(is_backward);
    let (queries, keys) = (shape.known(first)?, shape.known(first + 1)?);
    let (&[batch, a, b, size], &[_, key_a, key_b, _]) = (&queries[..], &keys[..]) else {
        return None;
    };
    // One batch of several sequences behind one another.
    if batch == 1 && pages::starts(shape).is_some_and(|starts| starts > 2) {
        return None;
    }
    // The operators of the framework have heads before tokens, those of libraries behind, except
    // cuDNN's.
    let has_heads_first = base.contains("scaled_dot_product") || base.contains("cudnn_attention");
    let ([heads, queries], [key_heads, keys]) =
        if has_heads_first { ([a, b], [key_a, key_b]) } else { ([b, a], [key_b, key_a]) };
    // Latent attention has shorter values than keys.
    let of_values = shape.known(first + 2).and_then(|dims| dims.get(3).copied());
    Some(Problem::Attention {
        batch,
        queries,
        keys,
        width: heads.saturating_mul(size),
        values: heads.saturating_mul(of_values.unwrap_or(size)),
        heads,
        key_heads,
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
        let with_activation = "32 float;16x64 float;64x32 float; Scalar=1; Scalar=1; Scalar=True";
        assert_eq!(of("aten::_addmm_activation", with_activation), gemm(1, 16, 32, 64));
        assert_eq!(of("aten::mv", "32x64 float;64 float"), gemm(1, 1, 32, 64));
        assert_eq!(of("aten::addmv", "32 float;32x64 float;64 float"), gemm(1, 1, 32, 64));
        assert_eq!(of("aten::mv", "32x64 float;63 float"), None);
        assert_eq!(of("aten::linear", "4x4x64;64x64;64"), gemm(1, 16, 64, 64));
        assert_eq!(of("aten::linear", "4x4x64;32x64;"), gemm(1, 16, 32, 64));
        assert_eq!(of("aten::bmm", "8x5x64;8x64x7"), gemm(8, 5, 7, 64));
        // The output first, the weights transposed.
        assert_eq!(of("_C::cutlass_scaled_mm", "16x32;16x64;32x64"), gemm(1, 16, 32, 64));
        // Of groups only the number is known, unless each has its matrices.
        assert_eq!(of("aten::_grouped_mm", "4096x64;8x64x32;8 int"), None);
        assert_eq!(of("aten::_scaled_grouped_mm", "64x4096;4096x32;;;8 int"), None);
        assert_eq!(of("aten::_grouped_mm", "8x16x64;8x64x32"), gemm(8, 16, 32, 64));
        assert_eq!(of("aten::mm", "?x64;64x32"), None);
        assert_eq!(of("aten::mm", ""), None);
        assert_eq!(of("aten::add", "16x64;64x32"), None);
        assert_eq!(
            of("aten::embedding", "1000x64 float;2x7 long int; Scalar=-1"),
            Some(Problem::Embedding { vocabulary: 1000, width: 64, tokens: vec![2, 7] })
        );
    }

    #[test]
    fn attention_in_both_orders() {
        let library = Problem::of("aten::_flash_attention_forward", "2x7x16x64;2x9x16x64");
        let framework =
            Problem::of("aten::_scaled_dot_product_flash_attention", "2x16x7x64;2x16x9x64");
        assert_eq!(library, framework);
        let cudnn = Problem::of("aten::_cudnn_attention_forward", "2x16x7x64;2x16x9x64");
        assert_eq!(cudnn, framework);
        let gradient = |op| Problem::of(op, "2x16x7x64;2x16x7x64;2x16x9x64;2x16x9x64");
        assert_eq!(
            gradient("aten::_cudnn_attention_backward"),
            gradient("aten::_scaled_dot_product_cudnn_attention_backward")
        );
        assert_eq!(library.unwrap().flops(), (4 * 2 * 7 * 9 * 16 * 64) as f64);
    }

    #[test]
    fn values_may_be_shorter_than_keys() {
        let of = |op, text| Problem::of(op, text).unwrap().flops();
        let text = "2x16x8x192;2x16x8x192;2x16x8x128";
        let products =
            |of_keys, of_values| (2 * 2 * 16 * 8 * 8 * (of_keys * 192 + of_values * 128)) as f64;
        let forward = "aten::_scaled_dot_product_efficient_attention";
        assert_eq!(of(forward, text), products(1, 1));
        let backward = "aten::_scaled_dot_product_efficient_attention_backward";
        assert_eq!(of(backward, &format!("2x16x8x128;{text}")), products(3, 2));
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
}
