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
            arch.dispatch(Apply { tail: self, source: block.data, block });
        }
    }

    /// Reads whole rows that lie one after the other, applies every op, and writes them to
    /// `target` in the same way. `source` and `target` may be the same. `first` is the first row
    /// as a stretch of the whole matrix.
    ///
    /// # Safety
    ///
    /// `source` must be valid for reads and `target` for writes of the rows, the operands must
    /// cover them, and no other thread may write any of them meanwhile.
    pub(crate) unsafe fn apply(
        &self,
        arch: Arch,
        source: *const f32,
        target: *mut f32,
        first: Stretch,
        rows: usize,
    ) {
        let cols = first.len;
        let block = Block { data: target, stride: cols, rows, first, matrix_cols: cols };
        arch.dispatch(Apply { tail: self, source, block: &block });
    }

    /// # Safety
    ///
    /// The operands must cover the tile at this column and element.
    #[inline(always)]
    unsafe fn transform<S: Simd, const U: usize>(
        &self,
        mut tile: Lanes<S, U>,
        col: usize,
        element: usize,
    ) -> Lanes<S, U> {
        let simd = tile.simd;
        for tail_op in &self.ops {
            tile = tail_op.op.apply(tile, AtTile { simd, tail_op, col, element });
        }
        tile
    }
}

/// The operands of an op at a tile. Made only by [`Tail::transform`], whose caller guarantees that
/// they cover it.
struct AtTile<'a, S> {
    simd: S,
    tail_op: &'a TailOp,
    col: usize,
    element: usize,
}

impl<S: Simd, const U: usize> Operands<Lanes<S, U>> for AtTile<'_, S> {
    #[inline(always)]
    fn get(&mut self, index: usize) -> Lanes<S, U> {
        let Self { simd, tail_op, col, element } = *self;
        let TailOp { op, operands, folded, cols } = tail_op;
        // SAFETY: the guarantee of the caller of `transform`; a scalar is one number.
        unsafe {
            if let Some(folded) = folded {
                return Lanes::load(simd, folded.at(index * cols + col));
            }
            match op.operands()[index].kind {
                OperandKind::PerChannel => Lanes::load(simd, operands[index].at(col)),
                OperandKind::PerElement => Lanes::load(simd, operands[index].at(element)),
                #[expect(clippy::cast_possible_truncation, reason = "see `uniform`")]
                OperandKind::Random => Lanes::uniform(simd, element as u32),
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
}

impl WithSimd for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { tail, source, block } = self;
        let Stretch { col, element, len } = block.first;
        let large = Lanes::<S, TILE>::COUNT;
        let small = Lanes::<S, 1>::COUNT;
        for row in 0..block.rows {
            let source = source.wrapping_add(row * block.stride);
            let target = block.data.wrapping_add(row * block.stride);
            let element = element + row * block.matrix_cols;
            let mut done = 0;
            // SAFETY: every tile ends within the row, which the callers guarantee to be valid.
            unsafe {
                while done + large <= len {
                    let tile = Lanes::<S, TILE>::load(simd, source.add(done));
                    tail.transform(tile, col + done, element + done).store(target.add(done));
                    done += large;
                }
                while done + small <= len {
                    let tile = Lanes::<S, 1>::load(simd, source.add(done));
                    tail.transform(tile, col + done, element + done).store(target.add(done));
                    done += small;
                }
                while done < len {
                    let tile = Lanes::<Scalar, 1>::load(Scalar::new(), source.add(done));
                    tail.transform(tile, col + done, element + done).store(target.add(done));
                    done += 1;
                }
            }
        }
    }
}
