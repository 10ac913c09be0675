//! Parts of a problem: a run of its ops by themselves, and two neighbours as one.

use std::ops::Range;

use super::chain::Chain;
use super::form::Form;
use super::op::Op;
use super::problem::Problem;
use super::sizes::Sizes;
use super::steps::{Matrix, Step};
use super::typed_sizes::{
    AttentionSizes, ImageSizes, LinearSizes, PoolSizes, PoolWindow, RowsSizes,
};
use crate::error::Error;

impl Problem {
    /// Some of the ops by themselves, on the tensors that they have in this problem: what a kernel
    /// would compute that fused only them.
    ///
    /// `None` when there are no such ops, or they are not a chain of their own, such as a
    /// `max_pool` without its convolution and with what follows it, or the softmax of causal attention
    /// without a GEMM that says which row is which query. A `qk` by itself applies `1 / sqrt(d)` (see
    /// [`Op::Qk`](crate::Op::Qk)), whatever its own chain does, which costs the same.
    ///
    /// ```
    /// use fusion_cost_model::Problem;
    ///
    /// let mlp: Problem = "mlp/f32/m64.k256.n1024.o128".parse()?;
    /// let text = |ops| mlp.slice(ops).map(|part| part.to_string());
    /// assert_eq!(text(0..2).as_deref(), Some("linear_bias/f32/m64.k256.n1024"));
    /// assert_eq!(text(2..3).as_deref(), Some("relu/f32/m64.n1024"));
    /// assert_eq!(text(3..5).as_deref(), Some("linear_bias/f32/m64.k1024.n128"));
    /// assert_eq!(text(2..4), None);
    /// # Ok::<(), fusion_cost_model::Error>(())
    /// ```
    #[must_use]
    pub fn slice(&self, ops: Range<usize>) -> Option<Self> {
        let chain = Chain::new(self.chain().get(ops.clone())?).ok()?;
        let first = self.steps().nth(ops.start)?;
        let dtype = self.dtype();
        let has_softmax = chain.contains(&Op::Softmax);
        let attention = self.sizes().attention();
        let is_causal = attention.is_some_and(|sizes| sizes.causal) && has_softmax;
        // What the softmax does not see, the other ops compute nonetheless.
        let sizes = self.sizes().with_causal(is_causal);
        match chain.form() {
            Form::Rows if is_causal => return None,
            Form::Rows => {
                let Matrix { rows: m, cols: n } = first.input;
                Self::rows(chain, dtype, RowsSizes { m, n })
            }
            Form::Linear => {
                let (m, k, n) = (first.input.rows, first.input.cols, first.output.cols);
                Self::linear(chain, dtype, LinearSizes { m, k, n })
            }
            // With both linear ops, or the convolution and its pool, or all of attention, the
            // sizes are the same.
            form if form == sizes.form() => Self::new(chain, dtype, sizes),
            Form::Conv => Self::conv(chain, dtype, self.sizes().conv()?),
            Form::Pool => {
                let PoolSizes { h, w, window: size, stride, pad } = self.sizes().pool()?;
                let Matrix { rows, cols: c } = first.input;
                let images = ImageSizes { n: rows / (h * w), c, h, w };
                Self::pool(chain, dtype, images, PoolWindow { size, stride, pad })
            }
            Form::Attention => Self::attention(chain, dtype, sizes.attention()?),
            Form::Mlp | Form::ConvPool | Form::MultiheadLinear => return None,
        }
        .ok()
    }

    /// The problem of these ops and, in the same kernel, those of `next`, which reads what this one
    /// writes.
    ///
    /// # Errors
    ///
    /// An error that [`Error::is_not_one_kernel`] is true of when the ops cannot follow each other,
    /// the dtypes differ, or `next` reads a matrix of another shape than this one writes.
    ///
    /// ```
    /// use fusion_cost_model::Problem;
    ///
    /// let linear: Problem = "linear_bias/f32/m64.k256.n1024".parse()?;
    /// let relu: Problem = "relu/f32/m64.n1024".parse()?;
    /// assert_eq!(linear.join(&relu)?.to_string(), "linear_bias_relu/f32/m64.k256.n1024");
    /// assert!(relu.join(&linear).unwrap_err().is_not_one_kernel());
    /// # Ok::<(), fusion_cost_model::Error>(())
    /// ```
    pub fn join(&self, next: &Self) -> Result<Self, Error> {
        let fail = |reason: String| Error::not_one_kernel(format!("{self} and {next}"), reason);
        if self.dtype() != next.dtype() {
            return Err(fail(format!("one is {} and the other {}", self.dtype(), next.dtype())));
        }
        let chain = self.chain().join(next.chain())?;
        let (written, read) = (self.output(), next.input());
        if written != read {
            return Err(fail(format!(
                "the first writes {} x {} elements, and the second reads {} x {}",
                written.rows, written.cols, read.rows, read.cols
            )));
        }
        let [first, second] = [self, next].map(|problem| problem.sizes().attention());
        // Only the one with the softmax has the mask.
        let is_causal = [first, second].into_iter().flatten().any(|sizes| sizes.causal);
        if let (Some(first), Some(second)) = (first, second) {
            if (AttentionSizes { causal: second.causal, ..first }) != second {
                return Err(fail("their heads have other sizes".to_owned()));
            }
        }
        let sizes = match (chain.form(), self.sizes().linear(), next.sizes().linear()) {
            (form, ..) if form == self.sizes().form() => *self.sizes(),
            (Form::Mlp, Some(LinearSizes { m, k, n }), Some(second)) => {
                Sizes::of(Form::Mlp, [m, k, n, second.n])?
            }
            // Scores or a softmax on them, before what has the values.
            (Form::Attention | Form::MultiheadLinear, ..)
                if chain.form() == next.sizes().form() =>
            {
                *next.sizes()
            }
            (Form::ConvPool, ..) => {
                let (conv, pool) = (self.sizes().conv(), next.sizes().pool());
                let (Some(conv), Some(pool)) = (conv, pool) else {
                    return Err(fail("only one has sizes".to_owned()));
                };
                if (conv.out_h(), conv.out_w()) != (pool.h, pool.w) {
                    return Err(fail("their images have other sizes".to_owned()));
                }
                let PoolSizes { window: size, stride, pad, .. } = pool;
                let window = PoolWindow { size, stride, pad };
                return Self::conv_pool(chain, self.dtype(), conv, window);
            }
            (Form::MultiheadLinear, None, Some(linear)) => {
                let attention = first.ok_or_else(|| fail("only one has sizes".to_owned()))?;
                return Self::multihead_linear(chain, self.dtype(), attention, linear.n);
            }
            _ => return Err(fail("their sizes do not go together".to_owned())),
        };
        Self::new(chain, self.dtype(), sizes.with_causal(is_causal))
    }

    /// The matrix that the first op reads.
    fn input(&self) -> Matrix {
        self.steps().next().map_or(Matrix::new(0, 0), |step| step.input)
    }

    /// The matrix that the last op writes.
    fn output(&self) -> Matrix {
        self.steps().last().map_or(Matrix::new(0, 0), |step: Step| step.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> Problem {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The GEMMs of causal attention compute all pairs, and its softmax is not one over whole rows.
    #[test]
    fn the_mask_of_causal_attention_stays_with_its_softmax() {
        let whole = problem("multihead_linear/f32/b1.h4.q3.kv5.d2.kvh2.causal1.n7");
        let text = |ops| whole.slice(ops).map(|part| part.to_string());
        assert_eq!(text(0..1).as_deref(), Some("qk/f32/b1.h4.q3.kv5.d2.kvh2"));
        assert_eq!(text(1..2), None);
        assert_eq!(text(2..3).as_deref(), Some("pv/f32/b1.h4.q3.kv5.d2.kvh2"));
        assert_eq!(text(2..4).as_deref(), Some("pv+linear/f32/b1.h4.q3.kv5.d2.kvh2.n7"));
        let causal = "b1.h4.q3.kv5.d2.kvh2.causal1";
        assert_eq!(text(0..2), Some(format!("qk+softmax/f32/{causal}")));
        assert_eq!(text(1..3), Some(format!("attention_output/f32/{causal}")));
        for cut in [1, 2, 3] {
            let joined = match (whole.slice(0..cut), whole.slice(cut..4)) {
                (Some(first), Some(second)) => first.join(&second).unwrap(),
                parts => panic!("{parts:?}"),
            };
            assert_eq!(joined, whole, "{cut}");
        }
    }

    #[test]
    fn neighbours_of_other_shapes_are_refused() {
        for (first, second, reason) in [
            (
                "linear/f32/m2.k3.n4",
                "relu/f32/m2.n5",
                "writes 2 x 4 elements, and the second reads",
            ),
            ("linear/f32/m2.k3.n4", "relu/f16/m2.n4", "one is f32 and the other f16"),
            ("relu/f32/m2.n4", "linear/f32/m2.k4.n5", "linear must be the first op"),
            ("mlp/f32/m2.k3.n4.o5", "linear/f32/m2.k5.n6", "at most two"),
            ("conv2d/f32/n1.c3.h8.w8.k4.r3.s3", "relu/f32/m64.n4", "writes 36 x 4"),
            (
                "qk/f32/b1.h2.q3.kv4.d5",
                "attention_output/f32/b1.h2.q3.kv4.d6",
                "their heads have other sizes",
            ),
            (
                "qk/f32/b1.h2.q3.kv4.d5.kvh1",
                "attention_output/f32/b1.h2.q3.kv4.d5",
                "their heads have other sizes",
            ),
            (
                "conv2d/f32/n1.c3.h8.w8.k4.r3.s3",
                "max_pool/f32/n1.c4.h4.w9",
                "their images have other sizes",
            ),
            ("softmax/f32/m6.n5", "pv/f32/b1.h2.q3.kv4.d5", "the second reads 6 x 4"),
        ] {
            let error = problem(first).join(&problem(second)).unwrap_err();
            assert!(error.is_not_one_kernel(), "{error}");
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
