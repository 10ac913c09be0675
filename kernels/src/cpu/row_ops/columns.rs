//! A row as vectors, and what is left after them.

use pulp::Simd;

use crate::cpu::element::Element;
use crate::cpu::lanes::{LaneMask, first_lanes};

/// How a row is cut into vectors; `LONG` where a sum over a row may have several parts.
#[derive(Clone, Copy)]
pub(super) struct Columns<S: Simd, const LONG: bool> {
    pub(super) simd: S,
    pub(super) len: usize,
    /// Where the whole vectors end.
    pub(super) whole: usize,
    /// The lanes that are left then.
    rest: LaneMask<S>,
}

impl<S: Simd, const LONG: bool> Columns<S, LONG> {
    #[inline(always)]
    pub(super) fn new(simd: S, len: usize) -> Self {
        let whole = len / S::F32_LANES * S::F32_LANES;
        Self { simd, len, whole, rest: first_lanes(simd, len - whole) }
    }

    #[inline(always)]
    pub(super) fn has_rest(&self) -> bool {
        self.whole < self.len
    }

    /// What is left of a row; the other lanes are zero.
    ///
    /// # Safety
    ///
    /// The row must be valid.
    #[inline(always)]
    pub(super) unsafe fn load_rest<E: Element>(&self, row: *const E) -> S::f32s {
        // SAFETY: the caller's guarantee.
        unsafe { E::load_some(self.simd, row.add(self.whole), self.rest) }
    }

    /// # Safety
    ///
    /// The row must be valid for writes.
    #[inline(always)]
    pub(super) unsafe fn store_rest<E: Element>(&self, row: *mut E, v: S::f32s) {
        // SAFETY: the caller's guarantee.
        unsafe { E::store_some(self.simd, row.add(self.whole), self.rest, v) }
    }

    /// The lanes that are left of a row, and `others` in the other ones.
    #[inline(always)]
    pub(super) fn only_rest(&self, v: S::f32s, others: f32) -> S::f32s {
        self.simd.select_f32s(self.rest.memory.mask(), v, self.simd.splat_f32s(others))
    }
}
