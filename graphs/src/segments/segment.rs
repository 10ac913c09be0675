//! One segment.

use std::ops::Range;

use fusion_cost_model::kernel::{Form, Matrix};
use fusion_cost_model::{
    AttentionSizes, Chain, ConvSizes, DType, Error, ImageSizes, LinearSizes, MlpSizes, Op,
    PoolWindow, Problem, RowsSizes,
};

use crate::recognise::{OpSizes, UnitOp};

/// A run of ops in which each result has one reader: the next op.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub(super) ops: Vec<SegmentOp>,
    pub(super) dtype: DType,
    pub(super) output: String,
    /// Whether the graph has its result as an output.
    pub(super) is_output: bool,
}

/// One op of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentOp {
    pub(super) unit: UnitOp,
    pub(super) nodes: Vec<String>,
}

impl SegmentOp {
    /// The op.
    #[must_use]
    pub const fn op(&self) -> Op {
        self.unit.op
    }

    /// The nodes that compute it: their names in the file, or those of the tensors that they write.
    /// One node may compute several ops, as a Gemm does a `linear` and a `bias`.
    #[must_use]
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// The matrix that the op reads of the tensor that flows along.
    #[must_use]
    pub const fn input(&self) -> Matrix {
        self.unit.input.matrix
    }

    /// The matrix that it writes.
    #[must_use]
    pub const fn output(&self) -> Matrix {
        self.unit.output.matrix
    }
}

impl Segment {
    /// The ops in their order.
    #[must_use]
    pub fn ops(&self) -> &[SegmentOp] {
        &self.ops
    }

    /// The dtype of all of its tensors.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// The tensor that the last op writes, by its name in the file.
    #[must_use]
    pub fn output(&self) -> &str {
        &self.output
    }

    /// The problem of some of the ops, if they can be one kernel.
    #[must_use]
    pub fn problem(&self, ops: Range<usize>) -> Option<Problem> {
        let ops: Vec<UnitOp> = self.ops.get(ops)?.iter().map(|op| op.unit.clone()).collect();
        problem(&ops, self.dtype).ok()
    }

    /// The segment in as few kernels as can be, each as long as can be from the left: what a
    /// partitioner does that always fuses.
    #[must_use]
    pub fn largest_kernels(&self) -> Vec<Problem> {
        let mut kernels = Vec::new();
        let mut start = 0;
        while start < self.ops.len() {
            let last = self.ops.len().min(start + Chain::MAX_OPS);
            let longest =
                (start + 1..=last).rev().find_map(|end| Some((end, self.problem(start..end)?)));
            let Some((end, kernel)) = longest else { break };
            kernels.push(kernel);
            start = end;
        }
        kernels
    }
}

/// The problem of ops that follow each other, or why there is none.
pub(super) fn problem(ops: &[UnitOp], dtype: DType) -> Result<Problem, Error> {
    let names: Vec<Op> = ops.iter().map(|op| op.op).collect();
    let chain = Chain::new(&names)?;
    let mut linears = ops.iter().filter(|op| op.op == Op::Linear);
    let mut features = || linears.next().map_or(0, |op| op.output.matrix.cols);
    let Matrix { rows: m, cols: k } =
        ops.first().map_or(Matrix { rows: 0, cols: 0 }, |op| op.input.matrix);
    match chain.form() {
        // Fails: a softmax of rows has no mask.
        Form::Rows if attention(ops).causal => Problem::attention(chain, dtype, attention(ops)),
        Form::Rows => Problem::rows(chain, dtype, RowsSizes { m, n: k }),
        Form::Linear => Problem::linear(chain, dtype, LinearSizes { m, k, n: features() }),
        Form::Mlp => {
            let (n, o) = (features(), features());
            Problem::mlp(chain, dtype, MlpSizes { m, k, n, o })
        }
        Form::Conv => Problem::conv(chain, dtype, conv(ops)),
        Form::ConvPool => Problem::conv_pool(chain, dtype, conv(ops), pool(ops).1),
        Form::Pool => {
            let (images, window) = pool(ops);
            Problem::pool(chain, dtype, images, window)
        }
        Form::Attention => Problem::attention(chain, dtype, attention(ops)),
        Form::MultiheadLinear => {
            Problem::multihead_linear(chain, dtype, attention(ops), features())
        }
    }
}

// A chain of a form has an op with its sizes. If it had none, a size of 0 would be refused.

fn conv(ops: &[UnitOp]) -> ConvSizes {
    let found = ops.iter().find_map(|op| match op.sizes {
        OpSizes::Conv(sizes) => Some(sizes),
        _ => None,
    });
    found.unwrap_or(ConvSizes {
        n: 0,
        c: 0,
        h: 0,
        w: 0,
        k: 0,
        r: 0,
        s: 0,
        stride: 0,
        pad: 0,
        groups: 0,
    })
}

fn pool(ops: &[UnitOp]) -> (ImageSizes, PoolWindow) {
    let found = ops.iter().find_map(|op| match op.sizes {
        OpSizes::Pool(images, window) => Some((images, window)),
        _ => None,
    });
    let nothing = ImageSizes { n: 0, c: 0, h: 0, w: 0 };
    found.unwrap_or((nothing, PoolWindow { size: 0, stride: 0, pad: 0 }))
}

fn attention(ops: &[UnitOp]) -> AttentionSizes {
    let found = ops.iter().filter_map(|op| match op.sizes {
        OpSizes::Attention(sizes) => Some(sizes),
        _ => None,
    });
    let nothing = AttentionSizes { b: 0, h: 0, q: 0, kv: 0, d: 0, kvh: 0, causal: false };
    // The mask is that of the softmax.
    found
        .reduce(|one, next| AttentionSizes { causal: one.causal || next.causal, ..one })
        .unwrap_or(nothing)
}
