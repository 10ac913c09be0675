//! What the sums of a product are multiplied with before anything else is done to them.

/// What the rows of a product are multiplied with: one number, or one for each row.
#[derive(Clone, Copy)]
pub(crate) struct Factors {
    pub(super) first: *const f32,
    pub(super) step: usize,
}

static ONE: f32 = 1.0;

impl Factors {
    /// Nothing changes.
    pub(crate) fn one() -> Self {
        Self::all(&raw const ONE)
    }

    /// The same for all rows.
    pub(crate) fn all(factor: *const f32) -> Self {
        Self { first: factor, step: 0 }
    }

    /// One after the other.
    pub(crate) fn each(first: *const f32) -> Self {
        Self { first, step: 1 }
    }

    /// That of a row.
    ///
    /// # Safety
    ///
    /// There must be one for the row.
    #[cfg_attr(
        not(all(target_arch = "x86_64", not(miri))),
        expect(
            dead_code,
            reason = "only micro-kernels of x86-64 multiply integers or pairs of bf16"
        )
    )]
    #[inline(always)]
    pub(super) unsafe fn of_row(&self, row: usize) -> f32 {
        // SAFETY: the caller's guarantee.
        unsafe { *self.first.wrapping_add(row * self.step) }
    }
}
