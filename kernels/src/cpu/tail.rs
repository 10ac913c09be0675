//! Pointwise ops on a stretch of a row: the one piece of code behind every unfused pointwise
//! kernel and behind the tail of every fused one.
//!
//! A tile of a few vector registers is loaded, every op of the tail is applied to it, and it is
//! stored. What is read and what is written need not be stored in the same way: sums in f32 become
//! results in bf16 here. The ops are a list that is walked for each tile: their formulas are compiled once, and
//! any chain can be run without generating code. The walk costs a predicted jump per op and tile.

use fusion_cost_model::Pointwise;
use fusion_cost_model::kernel::{OperandKind, Operands};
use pulp::{Arch, Simd, WithSimd};

use super::element::Element;
use super::kernel::Located;
use super::lanes::{LaneMask, Lanes, first_lanes};
use super::tensors::Tensors;

/// Vector registers in the main tile.
const TILE: usize = 4;

/// A pointwise op with the tensors that it reads.
#[derive(Debug, Clone)]
pub(crate) struct TailOp<E = f32> {
    pub(crate) op: Pointwise,
    /// The op's operands as they are given; nothing for a random one.
    pub(crate) operands: Vec<Located<E>>,
    /// Where the folded operands go, one row each, if the op has any.
    pub(crate) folded: Option<Located>,
    /// Columns of the matrix that the op transforms.
    pub(crate) cols: usize,
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

/// # Safety
///
/// The operands must cover the tile at this place, with `REST` the lanes of the place.
#[inline(always)]
unsafe fn transform<S: Simd, E: Element, const U: usize, const REST: bool>(
    ops: &[TailOp<E>],
    mut tile: Lanes<S, U>,
    place: Place<S>,
) -> Lanes<S, U> {
    let simd = tile.simd;
    for tail_op in ops {
        tile = tail_op.op.apply(tile, AtTile::<S, E, REST> { simd, tail_op, place });
    }
    tile
}

/// Where the registers of a tile stand in the matrix: side by side in one row, or below each other
/// in as many rows.
#[derive(Clone, Copy)]
struct Place<S: Simd> {
    /// The column of the first number.
    col: usize,
    /// Columns from one register to the next.
    col_step: usize,
    /// The index of the first number in the whole matrix.
    element: usize,
    /// Numbers from one register to the next in the whole matrix.
    element_step: usize,
    /// The lanes of each register that are in the matrix, where not all are.
    lanes: LaneMask<S>,
}

/// The operands of an op at a tile, with `REST` for some of its lanes. Made only by
/// [`transform`], whose caller guarantees that they cover it.
struct AtTile<'a, S: Simd, E, const REST: bool> {
    simd: S,
    tail_op: &'a TailOp<E>,
    place: Place<S>,
}

impl<S: Simd, E, const REST: bool> AtTile<'_, S, E, REST> {
    /// # Safety
    ///
    /// The registers must be valid, with `REST` their lanes.
    #[inline(always)]
    unsafe fn load<T: Element, const U: usize>(&self, source: *mut T, step: usize) -> Lanes<S, U> {
        let source = source.cast_const();
        // SAFETY: the caller's guarantee.
        unsafe {
            if REST {
                Lanes::load_some(self.simd, source, step, self.place.lanes)
            } else {
                Lanes::load_apart(self.simd, source, step)
            }
        }
    }
}

impl<S: Simd, E: Element, const U: usize, const REST: bool> Operands<Lanes<S, U>>
    for AtTile<'_, S, E, REST>
{
    #[inline(always)]
    fn get(&mut self, index: usize) -> Lanes<S, U> {
        let Self { simd, tail_op, place } = *self;
        let Place { col, col_step, element, element_step, .. } = place;
        let TailOp { op, operands, folded, cols } = tail_op;
        // SAFETY: the guarantee of the caller of `transform`; a scalar is one number.
        unsafe {
            if let Some(folded) = folded {
                return self.load(folded.at(index * cols + col), col_step);
            }
            match op.operands()[index].kind {
                OperandKind::PerChannel => self.load(operands[index].at(col), col_step),
                OperandKind::PerElement => self.load(operands[index].at(element), element_step),
                #[expect(clippy::cast_possible_truncation, reason = "see `uniform`")]
                OperandKind::Random => Lanes::uniform(simd, element as u32, element_step as u32),
                OperandKind::Scalar | OperandKind::Matrix => {
                    Lanes::splat(simd, (*operands[index].at(0)).widen())
                }
            }
        }
    }
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
