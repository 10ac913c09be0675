//! Where rows go that pass through row ops, and what is fetched meanwhile.

use super::element::Element;

/// Where rows go.
#[derive(Clone, Copy)]
pub(crate) struct Target<O = f32> {
    /// The first row.
    pub(crate) data: *mut O,
    /// Where rows wait in f32 until the last pass over them, as many as go through the ops together.
    /// Else they wait where they go, which then is f32.
    pub(crate) room: Option<*mut f32>,
    /// Whether the rows, which have a room, are written around the caches: every one of them begins at a
    /// cache line and has a whole number of lines.
    pub(crate) stream: bool,
    /// Where a softmax at the end leaves a number for each row, and does not multiply the row with it.
    pub(crate) shares: Option<*mut f32>,
    /// Whether the rows after these are fetched into the first-level cache, and not just into the
    /// second-level one.
    pub(crate) near: bool,
}

impl<O: Element> Target<O> {
    /// Rows that are written as usual, and may be where they are read.
    pub(crate) const fn plain(data: *mut O) -> Self {
        Self { data, room: None, stream: false, shares: None, near: true }
    }

    /// Where rows wait; null where a target that is not f32 has no room, and so has no use for it.
    #[inline(always)]
    pub(crate) fn waiting(&self) -> *mut f32 {
        match (self.room, O::as_f32(self.data)) {
            (Some(place), _) | (None, Some(place)) => place,
            (None, None) => std::ptr::null_mut(),
        }
    }
}

/// What the thread reads or writes after the rows at hand: fetching it while it computes keeps the
/// memory busy. The addresses need not be valid. With `NEAR` it goes into the first-level cache, and
/// not just into the second-level one: known to the compiler, since a jump beside every vector takes
/// longer than the vector.
#[derive(Clone, Copy)]
pub(crate) struct Ahead<E, const NEAR: bool> {
    pub(crate) source: *const E,
    pub(crate) operand: *const E,
}

impl<E, const NEAR: bool> Ahead<E, NEAR> {
    /// Asks for a line of the next rows of the source.
    #[inline(always)]
    pub(crate) fn fetch_source(&self, i: usize) {
        fetch::<E, NEAR>(self.source.wrapping_add(i));
    }

    /// Asks for a line of what the operand has for the next rows, or of where those go.
    #[inline(always)]
    pub(crate) fn fetch_operand(&self, i: usize) {
        fetch::<E, NEAR>(self.operand.wrapping_add(i));
    }
}

/// Asks for a line that will be read.
#[inline(always)]
fn fetch<E, const NEAR: bool>(address: *const E) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: SSE is part of x86-64, and any address may be asked for.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        if NEAR {
            _mm_prefetch::<_MM_HINT_T0>(address.cast());
        } else {
            _mm_prefetch::<_MM_HINT_T1>(address.cast());
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
