//! Pointwise ops on a stretch of a row: the one piece of code behind every unfused pointwise
//! kernel and behind the tail of every fused one.
//!
//! A tile of a few vector registers is loaded, every op of the tail is applied to it, and it is
//! stored. What is read and what is written need not be stored in the same way: sums in f32 become
//! results in bf16 here. The ops are a list that is walked for each tile: their formulas are
//! compiled once, and any chain can be run without generating code. The walk costs a predicted jump
//! per op and tile.

mod tile;

use fusion_cost_model::Pointwise;
use fusion_cost_model::kernel::OperandKind;
use pulp::{Arch, Simd, WithSimd};

use super::element::Element;
use super::kernel::Located;
use super::lanes::{LaneMask, Lanes, first_lanes};
use super::tensors::{TensorId, Tensors};
pub(super) use tile::{Place, transform};

/// Operands of an op, at most.
pub(super) const MAX_OPERANDS: usize = 4;

/// Vector registers in the main tile.
const TILE: usize = 4;

/// A pointwise op with the tensors that it reads.
#[derive(Debug, Clone)]
pub(crate) struct TailOp<E = f32> {
    pub(crate) op: Pointwise,
    /// The op's operands as they are given; nowhere for a random one. An array, so that a tile finds
    /// them beside the op and need not ask how many there are.
    pub(crate) operands: [Located<E>; MAX_OPERANDS],
    /// Where the folded operands go, one row each, if the op has any.
    pub(crate) folded: Option<Located>,
    /// Columns of the matrix that the op transforms.
    pub(crate) cols: usize,
}

impl<E> TailOp<E> {
    pub(crate) fn new(
        op: Pointwise,
        given: &[TensorId],
        folded: Option<TensorId>,
        cols: usize,
    ) -> Self {
        let mut operands = [Located::NOWHERE; MAX_OPERANDS];
        assert!(op.operands().iter().all(|operand| operand.kind != OperandKind::Matrix));
        assert!(given.len() <= operands.len(), "{} has more operands", op.name());
        for (operand, &id) in operands.iter_mut().zip(given) {
            *operand = id.into();
        }
        Self { op, operands, folded: folded.map(Located::from), cols }
    }
}

/// Pointwise ops to be applied one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail<E = f32> {
    pub(crate) ops: Vec<TailOp<E>>,
}

/// A stretch of one row of the matrix that a tail transforms.
#[derive(Clone, Copy)]
pub(crate) struct Stretch {
    /// The column of its first element.
    pub(crate) col: usize,
    /// The index of its first element in the whole matrix.
    pub(crate) element: usize,
    /// How many elements it has.
    pub(crate) len: usize,
}

/// A block of a matrix that a tail transforms in place, wherever the block lies in memory.
#[derive(Clone, Copy)]
pub(crate) struct Block<E = f32> {
    /// Its first element in memory.
    pub(crate) data: *mut E,
    /// Numbers from one row to the next in memory.
    pub(crate) stride: usize,
    /// How many rows it has.
    pub(crate) rows: usize,
    /// Its first row as a stretch of the whole matrix.
    pub(crate) first: Stretch,
    /// Columns of the whole matrix.
    pub(crate) matrix_cols: usize,
}

impl<E> Block<E> {
    /// The same block of the matrix elsewhere in memory.
    pub(crate) fn at<O>(self, data: *mut O) -> Block<O> {
        let Self { stride, rows, first, matrix_cols, .. } = self;
        Block { data, stride, rows, first, matrix_cols }
    }

    /// Some of its columns.
    pub(crate) fn columns(self, first: usize, count: usize) -> Self {
        let Stretch { col, element, .. } = self.first;
        let columns = Stretch { col: col + first, element: element + first, len: count };
        Self { data: self.data.wrapping_add(first), first: columns, ..self }
    }
}

impl<E: Element> Tail<E> {
    pub(crate) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The ops' names joined with `+`.
    pub(crate) fn name(&self) -> String {
        names(&self.ops)
    }

    /// The first tensor of the shape of the matrix that an op reads, if there is one.
    pub(crate) fn operand(&self) -> Option<Located<E>> {
        let is_matrix = |kind| kind == OperandKind::PerElement;
        let of_op = |one: &TailOp<E>| {
            let mut operands = one.op.operands().iter().zip(&one.operands);
            operands.find(|(operand, _)| is_matrix(operand.kind)).map(|(_, located)| *located)
        };
        self.ops.iter().find_map(of_op)
    }

    pub(crate) fn locate(&mut self, tensors: &Tensors) {
        for op in &mut self.ops {
            op.operands.iter_mut().for_each(|operand| operand.locate(tensors));
            op.folded.iter_mut().for_each(|folded| folded.locate(tensors));
        }
    }

    /// Applies every op to a block in place.
    ///
    /// # Safety
    ///
    /// The block must be valid memory, the operands must cover it, and no other thread may access
    /// it or write the operands meanwhile.
    pub(crate) unsafe fn apply_to_block(&self, arch: Arch, block: &Block) {
        // SAFETY: the caller's guarantee.
        unsafe { self.apply_from(0, arch, block) };
    }

    /// The same from the op with this index on.
    ///
    /// # Safety
    ///
    /// As for [`Self::apply_to_block`].
    pub(crate) unsafe fn apply_from(&self, first: usize, arch: Arch, block: &Block) {
        let ops = &self.ops[first..];
        if !ops.is_empty() {
            let rows = Rows { data: block.data.cast_const(), stride: block.stride };
            // SAFETY: the caller's guarantee.
            unsafe { apply(ops, arch, rows, *block, false) };
        }
    }

    /// Reads the rows of a block elsewhere, applies every op, and writes them to the block.
    ///
    /// # Safety
    ///
    /// As for [`Self::apply_to_block`]; the rows must be valid for reads, and no other thread may write
    /// them.
    pub(crate) unsafe fn apply_into<I: Element, O: Element>(
        &self,
        arch: Arch,
        source: Rows<I>,
        block: &Block<O>,
    ) {
        // SAFETY: the caller's guarantee.
        unsafe { apply(&self.ops, arch, source, *block, false) };
    }

    /// Reads whole rows that lie one after the other, applies every op, and writes them to
    /// `target` in the same way. `source` and `target` may be the same. `first` is the first row
    /// as a stretch of the whole matrix. With `stream` whole vectors of the target are written around
    /// the caches.
    ///
    /// # Safety
    ///
    /// `source` must be valid for reads and `target` for writes of the rows, the operands must
    /// cover them, and no other thread may write any of them meanwhile. With `stream` every row of
    /// the target must begin at a cache line.
    pub(crate) unsafe fn apply<I: Element, O: Element>(
        &self,
        arch: Arch,
        source: *const I,
        target: *mut O,
        first: Stretch,
        rows: usize,
        stream: bool,
    ) {
        let cols = first.len;
        let source = Rows { data: source, stride: cols };
        let block = Block { data: target, stride: cols, rows, first, matrix_cols: cols };
        // SAFETY: the caller's guarantee.
        unsafe { apply(&self.ops, arch, source, block, stream) };
    }
}

/// Rows in memory.
#[derive(Clone, Copy)]
pub(crate) struct Rows<E> {
    /// The first one.
    pub(crate) data: *const E,
    /// Numbers from one to the next.
    pub(crate) stride: usize,
}

/// Reads the rows of a block, applies the ops, and writes them to the block.
///
/// # Safety
///
/// As for the functions above.
unsafe fn apply<I: Element, O: Element, E: Element>(
    ops: &[TailOp<E>],
    arch: Arch,
    source: Rows<I>,
    block: Block<O>,
    stream: bool,
) {
    let (source, block) = flat(ops, source, block);
    arch.dispatch(Apply { ops, source, block: &block, stream });
}

/// The names joined with `+`.
pub(super) fn names<E>(ops: &[TailOp<E>]) -> String {
    let names: Vec<&str> = ops.iter().map(|op| op.op.name()).collect();
    names.join("+")
}

/// The block as a single row, where its rows lie one after the other and no op asks for the column:
/// what is left after whole vectors is then met once, and not in each row.
fn flat<I, O, E>(ops: &[TailOp<E>], source: Rows<I>, block: Block<O>) -> (Rows<I>, Block<O>) {
    let Block { rows, stride, first, matrix_cols, .. } = block;
    let is_whole = [source.stride, stride, matrix_cols] == [first.len; 3];
    if !is_whole || ops.iter().any(|one| one.op.is_per_channel()) {
        return (source, block);
    }
    let len = rows * first.len;
    let first = Stretch { len, ..first };
    let source = Rows { stride: len, ..source };
    (source, Block { rows: 1, stride: len, matrix_cols: len, first, ..block })
}

/// Applies a tail to a block. Made only by [`apply`], whose callers guarantee what the code below
/// relies on.
///
/// One type for all of them, so that the formulas are compiled once for each instruction set and way to
/// store numbers.
struct Apply<'a, I, O, E> {
    ops: &'a [TailOp<E>],
    /// Where the block's rows are read; they are written to the block itself.
    source: Rows<I>,
    block: &'a Block<O>,
    /// Whether the block is written around the caches.
    stream: bool,
}

impl<I: Element, O: Element, E: Element> WithSimd for Apply<'_, I, O, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Block { rows, first: Stretch { len, .. }, .. } = *self.block;
        let large = len / Lanes::<S, TILE>::COUNT * Lanes::<S, TILE>::COUNT;
        let whole = len / S::F32_LANES * S::F32_LANES;
        // What is left of a row after its whole vectors is a part of one.
        let rest = first_lanes(simd, len - whole);
        let mut row = 0;
        while row < rows {
            // What is left of a few rows goes through the ops together: a narrow matrix would
            // otherwise walk them for every register.
            let tall = len > large && rows - row >= TILE;
            let count = if tall { TILE } else { 1 };
            // SAFETY: every tile lies within the rows, which the callers guarantee to be valid.
            unsafe {
                for row in row..row + count {
                    let row = self.row(row);
                    let mut col = 0;
                    while col < large {
                        self.tile::<S, TILE, false, false>(simd, row, col, rest);
                        col += Lanes::<S, TILE>::COUNT;
                    }
                    while !tall && col < whole {
                        self.tile::<S, 1, false, false>(simd, row, col, rest);
                        col += S::F32_LANES;
                    }
                    if !tall && whole < len {
                        self.tile::<S, 1, false, true>(simd, row, whole, rest);
                    }
                }
                if tall {
                    let row = self.row(row);
                    let mut col = large;
                    while col < whole {
                        self.tile::<S, TILE, true, false>(simd, row, col, rest);
                        col += S::F32_LANES;
                    }
                    if whole < len {
                        self.tile::<S, TILE, true, true>(simd, row, whole, rest);
                    }
                }
            }
            row += count;
        }
    }
}

/// A row of a block: where it is read and written, and the index of its first number in the whole
/// matrix.
#[derive(Clone, Copy)]
struct Row<I, O> {
    source: *const I,
    target: *mut O,
    element: usize,
}

impl<I: Element, O: Element, E: Element> Apply<'_, I, O, E> {
    #[inline(always)]
    fn row(&self, row: usize) -> Row<I, O> {
        let Block { data, stride, first, matrix_cols, .. } = *self.block;
        Row {
            source: self.source.data.wrapping_add(row * self.source.stride),
            target: data.wrapping_add(row * stride),
            element: first.element + row * matrix_cols,
        }
    }

    /// Takes a tile through the ops: `U` registers side by side, or below each other from the row
    /// on; with `REST` the lanes of them that are given. Which of them is known to the compiler: a step
    /// that it does not know costs 10 to 20 % in a cache.
    ///
    /// # Safety
    ///
    /// The tile must lie within the block.
    #[inline(always)]
    unsafe fn tile<S: Simd, const U: usize, const BELOW: bool, const REST: bool>(
        &self,
        simd: S,
        row: Row<I, O>,
        col: usize,
        lanes: LaneMask<S>,
    ) {
        let Self { ops, source, block, stream } = *self;
        let Block { stride, first, matrix_cols, .. } = *block;
        let source_step = if BELOW { source.stride } else { S::F32_LANES };
        let step = if BELOW { stride } else { S::F32_LANES };
        let place = Place {
            col: first.col + col,
            col_step: if BELOW { 0 } else { S::F32_LANES },
            element: row.element + col,
            element_step: if BELOW { matrix_cols } else { S::F32_LANES },
            lanes,
        };
        // SAFETY: the caller's guarantee; streamed rows begin at cache lines, so that their whole
        // vectors are aligned.
        unsafe {
            let source = row.source.add(col);
            let tile = if REST {
                Lanes::<S, U>::load_some(simd, source, source_step, lanes)
            } else {
                Lanes::<S, U>::load_apart(simd, source, source_step)
            };
            let tile = transform::<S, E, U, REST>(ops, tile, place);
            let target = row.target.add(col);
            if REST {
                tile.store_some(target, step, lanes);
            } else if stream {
                tile.stream_apart(target, step);
            } else {
                tile.store_apart(target, step);
            }
        }
    }
}
