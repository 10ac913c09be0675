//! The sums of the micro-kernel, in registers.
//!
//! Where there are 32 registers, a term is 24 multiply-adds of long vectors, and what else a loop does is
//! little. With 16, as with AVX2, it is 12 of short ones. The two threads of a core share what dispatches
//! instructions, and while the other thread is busy, a loop over one term at a time is bound by that and
//! not by its multiply-adds. So the loop there takes four terms in a turn, with addresses of as few
//! instructions as can be. Both loops ask for the next part of the panel, for which the first rows would
//! wait.

use pulp::Simd;

use super::ahead::{Ahead, TERMS};
use super::element::{Element, Left};
use super::lanes::LaneMask;
use super::strip::Source;

/// The terms `from..to` of the sums of `R` rows.
pub(super) struct Terms<S: Simd, E: Left, const R: usize> {
    pub(super) source: Source<E>,
    /// Where the rows begin.
    pub(super) rows: [*const E; R],
    pub(super) panel: *const E::Weight,
    /// Numbers from one row of the panel to the next.
    pub(super) panel_stride: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    /// The lanes of the last vector of a row of the panel.
    pub(super) last: LaneMask<S>,
}

impl<S: Simd, E: Left, const R: usize> Terms<S, E, R> {
    /// Whether [`Self::in_turns`] is the way: with 16 vector registers, and whole vectors of f32. The
    /// lanes of a part, and numbers that are widened, would push sums of several terms out of the
    /// registers.
    pub(super) const fn takes_turns(rest: bool) -> bool {
        S::REGISTER_COUNT < 32 && size_of::<E>() == size_of::<f32>() && !rest
    }

    /// Their products with the panel, added up in `U` sums for each result, four terms in a turn. With
    /// `REST` the last of `V` vectors is not a whole one.
    ///
    /// # Safety
    ///
    /// The rows of the panel and the numbers of the source must be valid for the terms.
    #[inline(always)]
    pub(super) unsafe fn in_turns<const V: usize, const U: usize, const REST: bool>(
        &self,
        simd: S,
        ahead: Ahead,
    ) -> [[[S::f32s; V]; R]; U] {
        let Self { ref source, rows, panel, panel_stride, from, to, last } = *self;
        let mut sums = [[[simd.splat_f32s(0.0); V]; R]; U];
        let mut ahead = ahead.in_turns(panel);
        let mut line = panel.wrapping_add(from * panel_stride);
        let three = opaque(3 * panel_stride);
        let (mut run, mut inside) = source.place(from);
        let mut at = from;
        while at < to {
            let count = (source.run - inside).min(to - at);
            let offset = run * source.run_stride + inside;
            let mut numbers = rows;
            let mut r = 0;
            while r < R {
                numbers[r] = opaque_place(rows[r].wrapping_add(offset));
                r += 1;
            }
            let whole = count / TERMS * TERMS;
            let mut i = 0;
            // SAFETY: the caller's guarantee.
            unsafe {
                while i < whole {
                    let lines = [
                        line,
                        line.wrapping_add(panel_stride),
                        line.wrapping_add(2 * panel_stride),
                        line.wrapping_add(three),
                    ];
                    let mut u = 0;
                    while u < TERMS {
                        let row = Row::<S, V, REST>::load(simd, lines[u], last);
                        row.multiply_add(&mut sums[u % U], numbers, i + u);
                        u += 1;
                    }
                    if R > 2 {
                        ahead.turn();
                    }
                    line = line.wrapping_add(TERMS * panel_stride);
                    i += TERMS;
                }
                while i < count {
                    let row = Row::<S, V, REST>::load(simd, line, last);
                    row.multiply_add(&mut sums[0], numbers, i);
                    line = line.wrapping_add(panel_stride);
                    i += 1;
                }
            }
            at += count;
            run += 1;
            inside = 0;
        }
        sums
    }

    /// The same, a term of each sum after the other.
    ///
    /// # Safety
    ///
    /// As for [`Self::in_turns`].
    #[inline(always)]
    pub(super) unsafe fn one_by_one<const V: usize, const U: usize, const REST: bool>(
        &self,
        simd: S,
        ahead: Ahead,
    ) -> [[[S::f32s; V]; R]; U] {
        let Self { ref source, rows, panel, panel_stride, from, to, last } = *self;
        let mut sums = [[[simd.splat_f32s(0.0); V]; R]; U];
        let mut ahead = ahead.one_by_one(panel);
        let (mut run, mut inside) = source.place(from);
        let mut at = from;
        while at < to {
            let count = (source.run - inside).min(to - at);
            // From the number at `at` of the run to where it lies.
            let offset = (run * source.run_stride + inside).wrapping_sub(at);
            let end = at + count;
            // SAFETY: the caller's guarantee.
            unsafe {
                while at + U <= end {
                    let mut u = 0;
                    while u < U {
                        let row = panel.wrapping_add((at + u) * panel_stride);
                        let row = Row::<S, V, REST>::load(simd, row, last);
                        row.multiply_add(&mut sums[u], rows, offset.wrapping_add(at + u));
                        u += 1;
                    }
                    if R > 2 {
                        ahead.term(at);
                    }
                    at += U;
                }
                while at < end {
                    let row = panel.wrapping_add(at * panel_stride);
                    let row = Row::<S, V, REST>::load(simd, row, last);
                    row.multiply_add(&mut sums[0], rows, offset.wrapping_add(at));
                    at += 1;
                }
            }
            run += 1;
            inside = 0;
        }
        sums
    }
}

/// A row of a panel, in registers.
struct Row<S: Simd, const V: usize, const REST: bool> {
    simd: S,
    v: [S::f32s; V],
}

impl<S: Simd, const V: usize, const REST: bool> Row<S, V, REST> {
    /// # Safety
    ///
    /// The row must be valid, with `REST` the first lanes of its last vector.
    #[inline(always)]
    unsafe fn load<E: Element>(simd: S, row: *const E, last: LaneMask<S>) -> Self {
        let mut vectors = [simd.splat_f32s(0.0); V];
        let mut v = 0;
        while v < V {
            let row = row.wrapping_add(v * S::F32_LANES);
            // SAFETY: the caller's guarantee.
            vectors[v] = unsafe {
                if REST && v + 1 == V { E::load_some(simd, row, last) } else { E::load(simd, row) }
            };
            v += 1;
        }
        Self { simd, v: vectors }
    }

    /// Adds a number of each of `R` rows, the one at `at`, times this row.
    ///
    /// # Safety
    ///
    /// The numbers must be valid.
    #[inline(always)]
    unsafe fn multiply_add<E: Left, const R: usize>(
        &self,
        sums: &mut [[S::f32s; V]; R],
        rows: [*const E; R],
        at: usize,
    ) {
        let mut r = 0;
        while r < R {
            // SAFETY: the caller's guarantee.
            let number = unsafe { E::splat(self.simd, rows[r].wrapping_add(at)) };
            let mut v = 0;
            while v < V {
                sums[r][v] = self.simd.mul_add_e_f32s(number, self.v[v], sums[r][v]);
                v += 1;
            }
            r += 1;
        }
    }
}

/// The same number, of which the compiler does not know how it was made. It would otherwise compute each
/// address of a loop from its parts, with more instructions than a short loop has.
#[inline(always)]
fn opaque(number: usize) -> usize {
    opaque_place(std::ptr::without_provenance::<u8>(number)).addr()
}

/// The same of a place.
#[inline(always)]
#[cfg_attr(not(all(target_arch = "x86_64", not(miri))), expect(unused_mut, reason = "as given"))]
#[cfg_attr(
    all(target_arch = "x86_64", not(miri)),
    allow(clippy::pointers_in_nomem_asm_block, reason = "nothing is read or written at the place")
)]
fn opaque_place<T>(mut place: *const T) -> *const T {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: nothing is done.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) place, options(pure, nomem, nostack, preserves_flags));
    }
    place
}
