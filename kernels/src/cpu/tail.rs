//! Pointwise ops on a stretch of a row: the one piece of code behind every unfused pointwise
//! kernel and behind the tail of every fused one.
//!
//! A tile of a few vector registers is loaded, every op of the tail is applied to it, and it is
//! stored. The ops are a list that is walked for each tile: their formulas are compiled once, and
//! any chain can be run without generating code. The walk costs a predicted jump per op and tile.

use fusion_cost_model::Pointwise;
use fusion_cost_model::kernel::{OperandKind, Operands};
use pulp::{Arch, Scalar, Simd, WithSimd};

use super::kernel::Located;
use super::lanes::{LaneMask, Lanes, first_lanes};
use super::tensors::Tensors;

/// Vector registers in the main tile.
const TILE: usize = 4;

/// A pointwise op with the tensors that it reads.
#[derive(Debug, Clone)]
pub(crate) struct TailOp {
    pub(crate) op: Pointwise,
    /// The op's operands as they are given; nothing for a random one.
    pub(crate) operands: Vec<Located>,
    /// Where the folded operands go, one row each, if the op has any.
    pub(crate) folded: Option<Located>,
    /// Columns of the matrix that the op transforms.
    pub(crate) cols: usize,
}

/// Pointwise ops to be applied one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    pub(crate) ops: Vec<TailOp>,
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
pub(crate) struct Block {
    /// Its first element in memory.
    pub(crate) data: *mut f32,
    /// Numbers from one row to the next in memory.
    pub(crate) stride: usize,
    /// How many rows it has.
    pub(crate) rows: usize,
    /// Its first row as a stretch of the whole matrix.
    pub(crate) first: Stretch,
    /// Columns of the whole matrix.
    pub(crate) matrix_cols: usize,
}

impl Tail {
    pub(crate) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The ops' names joined with `+`.
    pub(crate) fn name(&self) -> String {
        names(&self.ops)
    }

    /// The first tensor of the shape of the matrix that an op reads, if there is one.
    pub(crate) fn operand(&self) -> Option<Located> {
        let is_matrix = |kind| kind == OperandKind::PerElement;
        let of_op = |one: &TailOp| {
            let mut operands = one.op.operands().iter().zip(&one.operands);
            operands.find(|(operand, _)| is_matrix(operand.kind)).map(|(_, located)| *located)
        };
        self.ops.iter().find_map(of_op)
    }

    pub(crate) fn locate(&mut self, tensors: &Tensors) {
        for op in &mut self.ops {
            for located in op.operands.iter_mut().chain(&mut op.folded) {
                located.locate(tensors);
            }
        }
    }

    /// Computes the folded operands; called once per run of a kernel, before its threads start.
    ///
    /// # Safety
    ///
    /// The tensors must lie where they were located, and nothing else may access them.
    pub(crate) unsafe fn fold(&self, arch: Arch) {
        for tail_op in &self.ops {
            if let Some(target) = tail_op.folded {
                arch.dispatch(Fold { tail_op, target });
            }
        }
    }
}

/// Computes the folded operands of every channel. Made only by [`Tail::fold`], whose caller
/// guarantees that the operands and the target are valid and not accessed by others.
struct Fold<'a> {
    tail_op: &'a TailOp,
    /// A row of `cols` numbers for each folded operand.
    target: Located,
}

impl WithSimd for Fold<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let cols = self.tail_op.cols;
        let mut col = 0;
        while col + S::F32_LANES <= cols {
            // SAFETY: a whole vector fits before the end of each row.
            unsafe { self.tile(simd, col) };
            col += S::F32_LANES;
        }
        while col < cols {
            // SAFETY: one number fits before the end of each row.
            unsafe { self.tile(Scalar::new(), col) };
            col += 1;
        }
    }
}

impl Fold<'_> {
    /// # Safety
    ///
    /// A vector must fit before the end of each row.
    #[inline(always)]
    unsafe fn tile<S: Simd>(&self, simd: S, col: usize) {
        let Self { tail_op, target } = self;
        let TailOp { op, operands, cols, .. } = tail_op;
        let operands = AtColumn { simd, operands, col };
        if let Some(folded) = op.fold::<Lanes<S, 1>>(operands) {
            for (row, lanes) in folded.into_iter().enumerate() {
                // SAFETY: the caller guarantees a vector from `col` on in every row.
                unsafe { lanes.store(target.at(row * cols + col)) };
            }
        }
    }
}

/// The per-channel operands of an op at a vector of channels. Made only by [`Fold::tile`], whose
/// caller guarantees that they cover it.
struct AtColumn<'a, S> {
    simd: S,
    operands: &'a [Located],
    col: usize,
}

impl<S: Simd> Operands<Lanes<S, 1>> for AtColumn<'_, S> {
    #[inline(always)]
    fn get(&mut self, index: usize) -> Lanes<S, 1> {
        // SAFETY: the guarantee of the caller of `Fold::tile`.
        unsafe { Lanes::load(self.simd, self.operands[index].at(self.col)) }
    }
}

impl Tail {
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
            let block = &flat(ops, *block);
            arch.dispatch(Apply { ops, source: block.data, block, stream: false });
        }
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
    pub(crate) unsafe fn apply(
        &self,
        arch: Arch,
        source: *const f32,
        target: *mut f32,
        first: Stretch,
        rows: usize,
        stream: bool,
    ) {
        let cols = first.len;
        let block = Block { data: target, stride: cols, rows, first, matrix_cols: cols };
        let ops = self.ops.as_slice();
        let block = &flat(ops, block);
        arch.dispatch(Apply { ops, source, block, stream });
    }
}

/// The names joined with `+`.
pub(super) fn names(ops: &[TailOp]) -> String {
    let names: Vec<&str> = ops.iter().map(|op| op.op.name()).collect();
    names.join("+")
}

/// The block as a single row, where its rows lie one after the other and no op asks for the column:
/// what is left after whole vectors is then met once, and not in each row.
fn flat(ops: &[TailOp], block: Block) -> Block {
    let Block { rows, stride, first, matrix_cols, .. } = block;
    let is_whole = stride == first.len && matrix_cols == first.len;
    if !is_whole || ops.iter().any(|one| one.op.is_per_channel()) {
        return block;
    }
    let len = rows * first.len;
    let first = Stretch { len, ..first };
    Block { rows: 1, stride: len, matrix_cols: len, first, ..block }
}

/// # Safety
///
/// The operands must cover the tile at this place, with `REST` the lanes of the place.
#[inline(always)]
unsafe fn transform<S: Simd, const U: usize, const REST: bool>(
    ops: &[TailOp],
    mut tile: Lanes<S, U>,
    place: Place<S>,
) -> Lanes<S, U> {
    let simd = tile.simd;
    for tail_op in ops {
        tile = tail_op.op.apply(tile, AtTile::<S, REST> { simd, tail_op, place });
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
struct AtTile<'a, S: Simd, const REST: bool> {
    simd: S,
    tail_op: &'a TailOp,
    place: Place<S>,
}

impl<S: Simd, const REST: bool> AtTile<'_, S, REST> {
    /// # Safety
    ///
    /// The registers must be valid, with `REST` their lanes.
    #[inline(always)]
    unsafe fn load<const U: usize>(&self, source: *const f32, step: usize) -> Lanes<S, U> {
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

impl<S: Simd, const U: usize, const REST: bool> Operands<Lanes<S, U>> for AtTile<'_, S, REST> {
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
                    Lanes::splat(simd, *operands[index].at(0))
                }
            }
        }
    }
}

/// Applies a tail to a block. Made only by the two functions above, whose callers guarantee what
/// the code below relies on.
///
/// One type for both, so that the formulas are compiled once per instruction set.
struct Apply<'a> {
    ops: &'a [TailOp],
    /// Where the block's rows are read; they are written to the block itself.
    source: *const f32,
    block: &'a Block,
    /// Whether the block is written around the caches.
    stream: bool,
}

impl WithSimd for Apply<'_> {
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
struct Row {
    source: *const f32,
    target: *mut f32,
    element: usize,
}

impl Apply<'_> {
    #[inline(always)]
    fn row(&self, row: usize) -> Row {
        let Block { data, stride, first, matrix_cols, .. } = *self.block;
        Row {
            source: self.source.wrapping_add(row * stride),
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
        row: Row,
        col: usize,
        lanes: LaneMask<S>,
    ) {
        let Self { ops, block, stream, .. } = *self;
        let Block { stride, first, matrix_cols, .. } = *block;
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
                Lanes::<S, U>::load_some(simd, source, step, lanes)
            } else {
                Lanes::<S, U>::load_apart(simd, source, step)
            };
            let tile = transform::<S, U, REST>(ops, tile, place);
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
