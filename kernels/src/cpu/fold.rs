//! What ops compute for each channel once in a run: the gain and offset of a batch norm.

use fusion_cost_model::kernel::Operands;
use pulp::{Arch, Scalar, Simd, WithSimd};

use super::element::Element;
use super::kernel::Located;
use super::lanes::Lanes;
use super::tail::{MAX_OPERANDS, Tail, TailOp};

impl<E: Element> Tail<E> {
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
struct Fold<'a, E> {
    tail_op: &'a TailOp<E>,
    /// A row of `cols` numbers for each folded operand.
    target: Located,
}

impl<E: Element> WithSimd for Fold<'_, E> {
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

impl<E: Element> Fold<'_, E> {
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
struct AtColumn<'a, S, E> {
    simd: S,
    operands: &'a [Located<E>; MAX_OPERANDS],
    col: usize,
}

impl<S: Simd, E: Element> Operands<Lanes<S, 1>> for AtColumn<'_, S, E> {
    #[inline(always)]
    fn get(&mut self, index: usize) -> Lanes<S, 1> {
        // SAFETY: the guarantee of the caller of `Fold::tile`.
        unsafe { Lanes::load(self.simd, self.operands[index].at(self.col).cast_const()) }
    }
}
