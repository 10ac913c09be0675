//! The ops of a tail on one tile of vector registers.

use std::hint::black_box;

use fusion_cost_model::Pointwise;
use fusion_cost_model::kernel::{OperandKind, Operands};
use pulp::Simd;

use super::TailOp;
use crate::cpu::element::Element;
use crate::cpu::lanes::{LaneMask, Lanes};

/// Applies the ops one after the other.
///
/// # Safety
///
/// The operands must cover the tile at this place, with `REST` the lanes of the place.
#[inline(always)]
pub(in crate::cpu) unsafe fn transform<S: Simd, E: Element, const U: usize, const REST: bool>(
    ops: &[TailOp<E>],
    mut tile: Lanes<S, U>,
    place: Place<S>,
) -> Lanes<S, U> {
    let simd = tile.simd;
    for tail_op in ops {
        // By value, so that the operands of the op are known where its formula is: the table of
        // operands would otherwise be read again for each tile.
        let op = tail_op.op;
        tile = op.apply(tile, AtTile::<S, E, REST> { simd, op, tail_op, place });
    }
    tile
}

/// Where the registers of a tile stand in the matrix: side by side in one row, or below each other
/// in as many rows.
#[derive(Clone, Copy)]
pub(in crate::cpu) struct Place<S: Simd> {
    /// The column of the first number.
    pub(in crate::cpu) col: usize,
    /// Columns from one register to the next.
    pub(in crate::cpu) col_step: usize,
    /// The index of the first number in the whole matrix.
    pub(in crate::cpu) element: usize,
    /// Numbers from one register to the next in the whole matrix.
    pub(in crate::cpu) element_step: usize,
    /// The lanes of each register that are in the matrix, where not all are.
    pub(in crate::cpu) lanes: LaneMask<S>,
}

/// The operands of an op at a tile, with `REST` for some of its lanes. Made only by
/// [`transform`], whose caller guarantees that they cover it.
struct AtTile<'a, S: Simd, E, const REST: bool> {
    simd: S,
    op: Pointwise,
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
        let Self { simd, op, tail_op, place } = *self;
        let Place { col, col_step, element, element_step, .. } = place;
        let TailOp { operands, folded, cols, .. } = tail_op;
        // SAFETY: the guarantee of the caller of `transform`; a scalar is one number.
        unsafe {
            if let (true, Some(folded)) = (op.has_folded(), folded) {
                return self.load(folded.at(index * cols + col), col_step);
            }
            match op.operands()[index].kind {
                OperandKind::PerChannel => self.load(operands[index].at(col), col_step),
                OperandKind::PerElement => self.load(operands[index].at(element), element_step),
                #[expect(clippy::cast_possible_truncation, reason = "see `uniform`")]
                OperandKind::Random => {
                    // Hidden from the compiler, which would prepare the numbers for every tile,
                    // whether it has such an op or not.
                    let [element, step] = black_box([element, element_step]);
                    Lanes::uniform(simd, element as u32, step as u32)
                }
                OperandKind::Scalar | OperandKind::Matrix => {
                    Lanes { simd, v: [E::splat(simd, operands[index].at(0)); U] }
                }
            }
        }
    }
}
