//! Units: nodes that are one op of the vocabulary, or several that belong together.

use fusion_cost_model::kernel::Matrix;
use fusion_cost_model::{AttentionSizes, ConvSizes, DType, ImageSizes, Op, Pointwise, PoolWindow};

use super::assumption::Assumption;
use super::flow::Flow;
use crate::shapes::elements;
use crate::tensor::TensorId;

/// Why a node is none of the vocabulary's ops.
pub(crate) type Reason = String;

/// One op with what it works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnitOp {
    pub(crate) op: Op,
    /// The matrix that flows along the chain, before and after the op.
    pub(crate) input: Layout,
    pub(crate) output: Layout,
    pub(crate) sizes: OpSizes,
    /// The nodes that compute it. One of them may compute its neighbour too.
    pub(crate) nodes: Vec<usize>,
}

/// A matrix, and where its columns are in the tensor that it is. Views keep the order of elements, so
/// two matrices of one tensor are the same where both have the same columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) matrix: Matrix,
    /// How many elements of the tensor one column is before the next: 1 for a last dimension, and the
    /// pixels of an image for its channels. `None` where that differs from column to column.
    stride: Option<u64>,
}

impl Layout {
    /// A matrix whose rows lie one after the other.
    pub(crate) const fn rows(rows: u64, cols: u64) -> Self {
        Self { matrix: Matrix { rows, cols }, stride: Some(1) }
    }

    /// Images `[n, c, h, w]`, whose columns are their channels.
    pub(crate) fn images([n, c, h, w]: [u64; 4]) -> Self {
        with_columns(&[n, c, h, w], 1)
    }

    /// The same, of a tensor that has its columns elsewhere.
    pub(crate) fn scattered(self) -> Self {
        Self { stride: None, ..self }
    }

    /// Whether an op that reads `next` can go on with this, as far as matrices say.
    pub(crate) fn is_same(self, next: Self) -> bool {
        let has_one = self.matrix.cols == 1;
        let same_columns = self.stride.is_some() && self.stride == next.stride;
        self.matrix == next.matrix && (has_one || same_columns)
    }
}

/// Sizes of an op that its matrices do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpSizes {
    Matrices,
    Conv(ConvSizes),
    Pool(ImageSizes, PoolWindow),
    Attention(AttentionSizes),
}

/// Nodes that are ops of the vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) ops: Vec<UnitOp>,
    pub(crate) dtype: DType,
    /// All nodes of it.
    pub(crate) nodes: Vec<usize>,
    /// What may be the tensor that flows along the chain; any of them, where an op treats two alike.
    pub(crate) inputs: Vec<TensorId>,
    /// What else it reads, without constants.
    pub(crate) operands: Vec<Operand>,
    pub(crate) output: TensorId,
    /// Whether it takes a matrix of any shape with as many elements.
    pub(crate) adapts: bool,
    pub(crate) assumptions: Vec<Assumption>,
}

/// A tensor that an op reads beside the one that flows along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operand {
    pub(crate) tensor: TensorId,
    /// Which op of the unit reads it: what another kernel may be.
    pub(crate) op: usize,
}

impl UnitOp {
    /// An op that keeps the shape of its matrix.
    pub(crate) fn same(op: impl Into<Op>, layout: Layout, nodes: &[usize]) -> Self {
        let (op, sizes) = (op.into(), OpSizes::Matrices);
        Self { op, input: layout, output: layout, sizes, nodes: nodes.to_vec() }
    }
}

impl Unit {
    /// Some ops that keep the shape of their matrix, with one tensor that flows through them.
    pub(crate) fn on_rows(
        flow: &Flow,
        ops: &[Op],
        input: TensorId,
        layout: Layout,
        nodes: Vec<usize>,
        output: TensorId,
    ) -> Result<Self, Reason> {
        Ok(Self {
            ops: ops.iter().map(|&op| UnitOp::same(op, layout, &nodes)).collect(),
            dtype: dtype(flow, input)?,
            nodes,
            inputs: vec![input],
            operands: Vec::new(),
            output,
            adapts: false,
            assumptions: Vec::new(),
        })
    }

    /// A pointwise op that reads nothing but its tensor.
    pub(crate) fn pointwise(
        flow: &Flow,
        op: Pointwise,
        input: TensorId,
        nodes: Vec<usize>,
        output: TensorId,
    ) -> Result<Self, Reason> {
        let layout = layout(flow, input)?;
        let unit = Self::on_rows(flow, &[op.into()], input, layout, nodes, output)?;
        Ok(Self { adapts: true, ..unit })
    }

    /// The same, whose first op reads more tensors; constants are laid out ahead of time.
    pub(crate) fn reading(self, flow: &Flow, operands: impl IntoIterator<Item = TensorId>) -> Self {
        self.reading_at(0, flow, operands)
    }

    /// The same of another one of its ops.
    pub(crate) fn reading_at(
        mut self,
        op: usize,
        flow: &Flow,
        operands: impl IntoIterator<Item = TensorId>,
    ) -> Self {
        let operands = operands.into_iter().filter(|&id| !flow.is_constant(id));
        self.operands.extend(operands.map(|tensor| Operand { tensor, op }));
        self
    }

    /// The same, under one more assumption.
    pub(crate) fn assuming(mut self, assumption: Assumption) -> Self {
        self.assumptions.push(assumption);
        self
    }

    /// The same, with one op more after the others.
    pub(crate) fn then(mut self, op: Pointwise) -> Self {
        if let Some(last) = self.ops.last() {
            self.ops.push(UnitOp::same(op, last.output, &self.nodes));
        }
        self
    }
}

/// The dtype of a tensor, if problems can have it.
pub(crate) fn dtype(flow: &Flow, id: TensorId) -> Result<DType, Reason> {
    let element = flow.element(id).ok_or_else(|| "the dtype of its input is unknown".to_owned())?;
    element.dtype().ok_or_else(|| format!("its elements are {element}"))
}

/// The shape of a tensor.
pub(crate) fn shape<'a>(flow: &Flow<'a>, id: TensorId) -> Result<&'a [u64], Reason> {
    flow.shape(id).ok_or_else(|| {
        "the shape of its input is unknown; infer the shapes of the model".to_owned()
    })
}

/// A tensor as a matrix: its last dimension is the columns, or its channels if it is an image.
pub(crate) fn layout(flow: &Flow, id: TensorId) -> Result<Layout, Reason> {
    let shape = shape(flow, id)?;
    let axis = if flow.is_image(id) { 1 } else { shape.len().saturating_sub(1) };
    Ok(with_columns(shape, axis))
}

/// A tensor as a matrix whose columns are one of its dimensions, wherever that lies.
pub(crate) fn with_columns(shape: &[u64], axis: usize) -> Layout {
    let cols = shape.get(axis).copied().unwrap_or(1);
    let matrix = Matrix { rows: elements(shape).checked_div(cols).unwrap_or(0), cols };
    Layout { matrix, stride: Some(elements(shape.get(axis + 1..).unwrap_or_default())) }
}

/// A tensor as a matrix whose rows are the dimensions before an axis.
pub(crate) fn split_at(shape: &[u64], axis: usize) -> Layout {
    let (rows, cols) = shape.split_at(axis.min(shape.len()));
    Layout::rows(elements(rows), elements(cols))
}

/// Whether an axis, which may count from the end, is the last one.
pub(crate) fn is_last(axis: i64, shape: &[u64]) -> bool {
    let rank = i64::try_from(shape.len()).unwrap_or(i64::MAX);
    axis == -1 || axis == rank - 1
}

/// Whether a constant has one value for each of `cols` columns.
pub(crate) fn is_vector(flow: &Flow, id: TensorId, cols: u64) -> bool {
    flow.is_constant(id)
        && flow.shape(id).is_some_and(|shape| match shape.split_last() {
            Some((&last, rest)) => last == cols && rest.iter().all(|&size| size == 1),
            None => false,
        })
}
