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
use super::lanes::Lanes;
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
        let names: Vec<&str> = self.ops.iter().map(|op| op.op.name()).collect();
        names.join("+")
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
        if !self.is_empty() {
            arch.dispatch(Apply { tail: self, source: block.data, block, stream: false });
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
        arch.dispatch(Apply { tail: self, source, block: &block, stream });
    }

    /// # Safety
    ///
    /// The operands must cover the tile at this place.
    #[inline(always)]
    unsafe fn transform<S: Simd, const U: usize>(
        &self,
        mut tile: Lanes<S, U>,
        place: Place,
    ) -> Lanes<S, U> {
        let simd = tile.simd;
        for tail_op in &self.ops {
            tile = tail_op.op.apply(tile, AtTile { simd, tail_op, place });
        }
        tile
    }
}

/// Where the registers of a tile stand in the matrix: side by side in one row, or below each other
/// in as many rows.
#[derive(Clone, Copy)]
struct Place {
    /// The column of the first number.
    col: usize,
    /// Columns from one register to the next.
    col_step: usize,
    /// The index of the first number in the whole matrix.
    element: usize,
    /// Numbers from one register to the next in the whole matrix.
    element_step: usize,
}

/// The operands of an op at a tile. Made only by [`Tail::transform`], whose caller guarantees that
/// they cover it.
struct AtTile<'a, S> {
    simd: S,
    tail_op: &'a TailOp,
    place: Place,
}

impl<S: Simd, const U: usize> Operands<Lanes<S, U>> for AtTile<'_, S> {
    #[inline(always)]
    fn get(&mut self, index: usize) -> Lanes<S, U> {
        let Self { simd, tail_op, place } = *self;
        let Place { col, col_step, element, element_step } = place;
        let TailOp { op, operands, folded, cols } = tail_op;
        // SAFETY: the guarantee of the caller of `transform`; a scalar is one number.
        unsafe {
            if let Some(folded) = folded {
                return Lanes::load_apart(simd, folded.at(index * cols + col), col_step);
            }
            match op.operands()[index].kind {
                OperandKind::PerChannel => {
                    Lanes::load_apart(simd, operands[index].at(col), col_step)
                }
                OperandKind::PerElement => {
                    Lanes::load_apart(simd, operands[index].at(element), element_step)
                }
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
    tail: &'a Tail,
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
        let mut row = 0;
        while row < rows {
            // What is left of a few rows goes through the ops together: a narrow matrix would
            // otherwise walk them for every register.
            let tall = whole > large && rows - row >= TILE;
            let count = if tall { TILE } else { 1 };
            // SAFETY: every tile lies within the rows, which the callers guarantee to be valid.
            unsafe {
                for row in row..row + count {
                    let row = self.row(row);
                    let mut col = 0;
                    while col < large {
                        self.tile::<S, TILE, false>(simd, row, col);
                        col += Lanes::<S, TILE>::COUNT;
                    }
                    while !tall && col < whole {
                        self.tile::<S, 1, false>(simd, row, col);
                        col += S::F32_LANES;
                    }
                    for col in whole..len {
                        self.tile::<Scalar, 1, false>(Scalar::new(), row, col);
                    }
                }
                let mut col = large;
                while tall && col < whole {
                    self.tile::<S, TILE, true>(simd, self.row(row), col);
                    col += S::F32_LANES;
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
    /// on. Which of them is known to the compiler: a step that it does not know costs 10 to 20 % in
    /// a cache.
    ///
    /// # Safety
    ///
    /// The tile must lie within the block.
    #[inline(always)]
    unsafe fn tile<S: Simd, const U: usize, const BELOW: bool>(
        &self,
        simd: S,
        row: Row,
        col: usize,
    ) {
        let Self { tail, block, stream, .. } = *self;
        let Block { stride, first, matrix_cols, .. } = *block;
        let step = if BELOW { stride } else { S::F32_LANES };
        let place = Place {
            col: first.col + col,
            col_step: if BELOW { 0 } else { S::F32_LANES },
            element: row.element + col,
            element_step: if BELOW { matrix_cols } else { S::F32_LANES },
        };
        // SAFETY: the caller's guarantee; streamed rows begin at cache lines, so that their whole
        // vectors are aligned.
        unsafe {
            let tile = Lanes::<S, U>::load_apart(simd, row.source.add(col), step);
            let tile = tail.transform(tile, place);
            if stream {
                tile.stream_apart(row.target.add(col), step);
            } else {
                tile.store_apart(row.target.add(col), step);
            }
        }
    }
}
