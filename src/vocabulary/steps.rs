//! The steps of a problem: one per op, with the shapes of everything it reads and writes.

use super::dtype::DType;
use super::op::Op;
use super::pointwise::{Operand, OperandKind, Pointwise};
use super::problem::Problem;
use super::sizes::Sizes;

/// The shape of a row-major matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Matrix {
    /// Rows: batch, pixels, or heads times queries.
    pub rows: u64,
    /// Columns: features or channels.
    pub cols: u64,
}

impl Matrix {
    pub(crate) const fn new(rows: u64, cols: u64) -> Self {
        Self { rows, cols }
    }

    /// Number of elements.
    #[must_use]
    pub const fn elements(self) -> u64 {
        self.rows * self.cols
    }
}

/// One op of a problem with its shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The op.
    pub op: Op,
    /// The tensor that flows along the chain, before the op.
    pub input: Matrix,
    /// The same after the op.
    pub output: Matrix,
    /// The shape of the op's [`OperandKind::Matrix`] operand; no elements if it has none.
    pub matrix: Matrix,
    /// How many multiply-adds each output of a GEMM or convolution takes, masked or not.
    pub depth: u64,
    /// Of ops on the scores of a causal attention, and of its GEMMs: pairs of a query and a key that it
    /// sees.
    pub seen: Option<u64>,
    /// The dtype of the problem.
    pub dtype: DType,
}

/// Floating-point operations per element: subtract the maximum, `exp`, sum, multiply by the
/// reciprocal of the sum.
const SOFTMAX_FLOPS: u64 = 4;
/// Sum; subtract, square and sum; subtract, multiply, scale and shift.
const LAYER_NORM_FLOPS: u64 = 8;
/// Square and sum; multiply and scale.
const RMS_NORM_FLOPS: u64 = 4;

impl Step {
    /// Floating-point operations of the op as a kernel of its own; a multiply-add counts as two.
    ///
    /// Work per row or per channel (a mean's division, a folded coefficient) is not counted. What a
    /// causal mask hides, only the softmax leaves out.
    #[inline]
    #[must_use]
    pub fn flops(&self) -> u64 {
        let elements = self.output.elements();
        match self.op {
            Op::Linear | Op::Conv2d | Op::Qk | Op::Pv => 2 * elements * self.depth,
            Op::MaxPool => 0,
            Op::Softmax => SOFTMAX_FLOPS * self.seen.unwrap_or(elements),
            Op::LayerNorm => LAYER_NORM_FLOPS * elements,
            Op::RmsNorm => RMS_NORM_FLOPS * elements,
            Op::Pointwise(op) => op.flops_per_element() * elements,
        }
    }

    /// The same without all that a causal mask hides: what the result takes.
    #[inline]
    #[must_use]
    pub fn useful_flops(&self) -> u64 {
        match (self.op, self.seen) {
            // Each pair is a product of the features of a head.
            (Op::Qk | Op::Pv, Some(pairs)) => 2 * pairs * self.matrix.cols,
            (Op::Pointwise(op), Some(pairs)) => op.flops_per_element() * pairs,
            _ => self.flops(),
        }
    }

    /// Elements of the input that the op has to read: a softmax leaves out scores that a causal mask
    /// hides.
    #[inline]
    #[must_use]
    pub fn input_elements(&self) -> u64 {
        let seen = self.seen.filter(|_| self.op == Op::Softmax);
        seen.unwrap_or(self.input.elements())
    }

    /// Bytes of a number of the input. What products are made of has the dtype of the problem.
    #[inline]
    #[must_use]
    pub const fn input_element_bytes(&self) -> u64 {
        match self.op {
            Op::Linear | Op::Conv2d | Op::Qk | Op::Pv => self.dtype.bytes(),
            Op::MaxPool | Op::Softmax | Op::LayerNorm | Op::RmsNorm | Op::Pointwise(_) => {
                self.dtype.sum_bytes()
            }
        }
    }

    /// Bytes of a number of the output.
    #[inline]
    #[must_use]
    pub const fn output_element_bytes(&self) -> u64 {
        match self.op {
            Op::Pointwise(Pointwise::Requantize) => self.dtype.bytes(),
            _ => self.dtype.sum_bytes(),
        }
    }

    /// Bytes of the input that the op has to read.
    #[inline]
    #[must_use]
    pub fn input_bytes(&self) -> u64 {
        self.input_elements() * self.input_element_bytes()
    }

    /// Bytes of the output.
    #[inline]
    #[must_use]
    pub const fn output_bytes(&self) -> u64 {
        self.output.elements() * self.output_element_bytes()
    }

    /// Bytes of all operands other than the input.
    #[inline]
    #[must_use]
    pub fn operand_bytes(&self) -> u64 {
        let matrix = self.matrix.elements();
        matrix * self.dtype.bytes() + (self.operand_elements() - matrix) * self.dtype.sum_bytes()
    }

    /// The shape of an operand of the op; no elements for a random one, which is computed.
    #[inline]
    #[must_use]
    pub const fn operand_shape(&self, operand: &Operand) -> Matrix {
        match operand.kind {
            OperandKind::Matrix => self.matrix,
            OperandKind::PerChannel => Matrix::new(1, self.output.cols),
            OperandKind::PerElement => self.output,
            OperandKind::Scalar => Matrix::new(1, 1),
            OperandKind::Random => Matrix::new(0, 0),
        }
    }

    /// Elements of all operands other than the input.
    #[inline]
    #[must_use]
    pub fn operand_elements(&self) -> u64 {
        self.op.operands().iter().map(|operand| self.operand_shape(operand).elements()).sum()
    }
}

impl Problem {
    /// The shape of the first input as frameworks write it: NCHW for an image, one axis per batch,
    /// head, query and feature for attention, rows and columns for everything else.
    ///
    /// ```
    /// let problem: fusion_cost_model::Problem = "attention_output/f32/b1.h2.q3.kv4.d5".parse()?;
    /// assert_eq!(problem.input_shape(), [1, 2, 3, 4]);
    /// # Ok::<(), fusion_cost_model::Error>(())
    /// ```
    #[must_use]
    pub fn input_shape(&self) -> Vec<u64> {
        let Matrix { rows, cols } = first_input(self.chain().ops()[0], self.sizes());
        if let Some(conv) = self.sizes().conv() {
            vec![conv.n, conv.c, conv.h, conv.w]
        } else if let Some(images) = self.sizes().images() {
            vec![images.n, images.c, images.h, images.w]
        } else if let Some(attention) = self.sizes().attention() {
            vec![attention.b, attention.h, attention.q, cols]
        } else {
            vec![rows, cols]
        }
    }

    /// The steps of the chain in order, one per op.
    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        let mut shape = first_input(self.chain().ops()[0], self.sizes());
        let mut linears = 0;
        let causal = self.sizes().attention().filter(|attention| attention.causal);
        let mut seen = causal.map(|attention| attention.pairs());
        self.chain().ops().iter().map(move |&op| {
            let step = Step { seen, dtype: self.dtype(), ..step(op, shape, self.sizes(), linears) };
            linears += u32::from(op == Op::Linear);
            // What follows has no scores.
            seen = seen.filter(|_| op != Op::Pv);
            shape = step.output;
            step
        })
    }
}

/// The tensor that the first op transforms.
fn first_input(first: Op, sizes: &Sizes) -> Matrix {
    if let Some(conv) = sizes.conv() {
        return Matrix::new(conv.n * conv.h * conv.w, conv.c);
    }
    if let Some(images) = sizes.images() {
        return Matrix::new(images.n * images.h * images.w, images.c);
    }
    if let Some(attention) = sizes.attention() {
        // What begins with the softmax reads scores, and `pv` probabilities; the others queries.
        let cols = if matches!(first, Op::Softmax | Op::Pv) { attention.kv } else { attention.d };
        return Matrix::new(attention.b * attention.h * attention.q, cols);
    }
    if let Some(linear) = sizes.linear() {
        return Matrix::new(linear.m, linear.k);
    }
    sizes.rows().map_or(Matrix::new(0, 0), |rows| Matrix::new(rows.m, rows.n))
}

/// `linears` is how many linear ops came before.
#[inline]
fn step(op: Op, input: Matrix, sizes: &Sizes, linears: u32) -> Step {
    let (matrix, dtype) = (Matrix::new(0, 0), DType::F32);
    let unchanged = Step { op, input, output: input, matrix, depth: 0, seen: None, dtype };
    match op {
        Op::Linear => {
            let first = sizes.linear().filter(|_| linears == 0).map(|linear| linear.n);
            let features = first.or(sizes.second_linear()).unwrap_or(0);
            Step {
                output: Matrix::new(input.rows, features),
                matrix: Matrix::new(input.cols, features),
                depth: input.cols,
                ..unchanged
            }
        }
        Op::Conv2d => sizes.conv().map_or(unchanged, |conv| {
            let depth = conv.r * conv.s * (conv.c / conv.groups);
            Step {
                output: Matrix::new(conv.n * conv.out_h() * conv.out_w(), conv.k),
                matrix: Matrix::new(depth, conv.k),
                depth,
                ..unchanged
            }
        }),
        Op::MaxPool => sizes.pool().map_or(unchanged, |pool| {
            let images = input.rows / (pool.h * pool.w);
            Step {
                output: Matrix::new(images * pool.out_h() * pool.out_w(), input.cols),
                ..unchanged
            }
        }),
        Op::Qk => sizes.attention().map_or(unchanged, |attention| Step {
            output: Matrix::new(input.rows, attention.kv),
            matrix: Matrix::new(attention.b * attention.kvh * attention.kv, attention.d),
            depth: attention.d,
            ..unchanged
        }),
        Op::Pv => sizes.attention().map_or(unchanged, |attention| Step {
            output: Matrix::new(attention.b * attention.q, attention.h * attention.d),
            matrix: Matrix::new(attention.b * attention.kvh * attention.kv, attention.d),
            depth: attention.kv,
            ..unchanged
        }),
        Op::Softmax | Op::LayerNorm | Op::RmsNorm | Op::Pointwise(_) => unchanged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_input_has_the_axes_of_frameworks() {
        for (text, shape) in [
            ("linear_bias/f32/m2.k3.n4", vec![2, 3]),
            ("conv_bn/f32/n1.c3.h8.w9.k4.r3.s3", vec![1, 3, 8, 9]),
            ("attention_head/f32/b1.h2.q3.kv4.d5", vec![1, 2, 3, 5]),
            ("attention_output/f32/b1.h2.q3.kv4.d5", vec![1, 2, 3, 4]),
            ("max_pool/f32/n1.c3.h8.w9", vec![1, 3, 8, 9]),
            ("qk/f32/b1.h2.q3.kv4.d5", vec![1, 2, 3, 5]),
            ("pv/f32/b1.h2.q3.kv4.d5", vec![1, 2, 3, 4]),
            ("add_relu/f32/m6.n7", vec![6, 7]),
        ] {
            assert_eq!(text.parse::<Problem>().unwrap().input_shape(), shape, "{text}");
        }
    }

    /// Two heads, three queries and four keys: the first query sees two of them.
    #[test]
    fn a_causal_mask_hides_work_on_scores_and_nothing_else() {
        let [plain, causal] = ["", ".causal1"].map(|mask| {
            let text = format!("qk+scale+softmax+pv+scale+linear/f32/b1.h2.q3.kv4.d5{mask}.n7");
            text.parse::<Problem>().unwrap().steps().collect::<Vec<_>>()
        });
        let flops = |steps: &[Step]| steps.iter().map(Step::flops).collect::<Vec<_>>();
        let useful = |steps: &[Step]| steps.iter().map(Step::useful_flops).collect::<Vec<_>>();
        let (all, seen) = (2 * 3 * 4, 2 * (2 + 3 + 4));
        let of_all = [10 * all, all, 4 * all, 10 * all, 30, 2 * 21 * 10];
        assert_eq!([flops(&plain), useful(&plain)], [of_all; 2]);
        assert_eq!(flops(&causal), [10 * all, all, 4 * seen, 10 * all, 30, 2 * 21 * 10]);
        assert_eq!(useful(&causal), [10 * seen, seen, 4 * seen, 10 * seen, 30, 2 * 21 * 10]);
        let reads = |steps: &[Step]| steps.iter().map(Step::input_elements).collect::<Vec<_>>();
        assert_eq!(reads(&plain), [30, all, all, all, 30, 30]);
        assert_eq!(reads(&causal), [30, all, seen, all, 30, 30]);
    }

    #[test]
    fn the_halves_of_attention_have_the_shapes_of_the_whole() {
        let steps = |text: &str| text.parse::<Problem>().unwrap().steps().collect::<Vec<_>>();
        let sizes = "f32/b1.h2.q3.kv4.d5";
        let whole = steps(&format!("attention_head/{sizes}"));
        assert_eq!(steps(&format!("qk/{sizes}")), whole[..1]);
        assert_eq!(steps(&format!("pv/{sizes}")), whole[2..]);
    }
}
