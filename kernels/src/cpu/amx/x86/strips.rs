//! A strip in blocks of two tiles of rows and two of columns.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::gathered::{GROUPS, Groups};
use super::rows::RowsOfTiles;
use super::tiles::{COLS, Dot, GROUP_BYTES, ROW_BYTES, ROWS, Shapes, Unit, left, right, sums};
use crate::cpu::gemm::share;
use crate::cpu::strip::Strip;

/// Steps of the longest part: gathered rows of two tiles take 32 KiB of the stack then.
const MOST_STEPS: usize = 16;

/// Columns of the widest panel.
const MOST_COLS: usize = 4 * COLS;

/// A tile in memory.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Tile([u8; ROWS * ROW_BYTES]);

/// # Safety
///
/// As for `amx::compute`.
pub(super) unsafe fn compute<U: Unit, E: Dot>(strip: &Strip<E>) {
    assert!(strip.cols <= strip.panel_stride && strip.panel_stride <= MOST_COLS);
    let groups = Groups::new(strip);
    // SAFETY: the caller's guarantee.
    let last = unsafe { Last::new(strip, groups.all) };
    let steps = groups.steps();
    let steps_of_part = (strip.depth / (GROUPS * E::TOGETHER)).clamp(1, MOST_STEPS);
    // A sum without terms is zero.
    let parts = steps.div_ceil(steps_of_part).max(1);
    let mut shapes = None;
    let mut gathered = [const { MaybeUninit::<[Tile; MOST_STEPS]>::uninit() }; 2];
    for part in 0..parts {
        let steps = share(steps, part, parts);
        let mut tiles = RowsOfTiles::new(strip.rows, strip.source.line);
        while let Some(upper) = tiles.next() {
            let rows = [upper, tiles.next().unwrap_or_default()];
            let mut lefts = [[(std::ptr::null(), 0); MOST_STEPS]; 2];
            for ((rows, lefts), room) in rows.iter().zip(&mut lefts).zip(&mut gathered) {
                if rows.is_empty() {
                    continue;
                }
                let room = room.as_mut_ptr().cast::<Tile>();
                for (at, step) in steps.clone().enumerate() {
                    lefts[at] = match groups.in_place::<E>(step) {
                        Some(number) => {
                            let first = strip.source.row(rows.start).wrapping_add(number);
                            (first.cast(), strip.source.stride * size_of::<E>())
                        }
                        None => {
                            let tile = room.wrapping_add(at);
                            // By convention, what it calls may set the tiles anew.
                            shapes = None;
                            // SAFETY: the caller's guarantee; there is room for each step.
                            unsafe {
                                groups.gather(&strip.source, rows.clone(), step, tile.cast());
                            }
                            (tile.cast_const().cast(), ROW_BYTES)
                        }
                    };
                }
            }
            let block =
                Block { strip, last: &last, rows: &rows, lefts: &lefts, steps: steps.clone() };
            for col in (0..strip.cols).step_by(2 * COLS) {
                // SAFETY: the caller's guarantee.
                unsafe { block.compute::<U>(col, &mut shapes) };
            }
            if part + 1 == parts {
                // SAFETY: the caller's guarantee: these are rows of the target.
                unsafe { rows.into_iter().for_each(|rows| finish(strip, rows)) };
            }
        }
    }
    // SAFETY: the caller's guarantee.
    unsafe { U::release() };
}

/// The rows of the panel in the last step, where they are fewer than a tile has: with rows of zeros
/// behind them.
struct Last(Option<(usize, [Tile; MOST_COLS / COLS])>);

impl Last {
    /// # Safety
    ///
    /// As for [`compute`].
    unsafe fn new<E: Dot>(strip: &Strip<E>, groups: usize) -> Self {
        let (step, rest) = (groups / GROUPS, groups % GROUPS);
        Self((rest > 0).then(|| {
            let mut tiles = [Tile([0; ROWS * ROW_BYTES]); MOST_COLS / COLS];
            let bytes = strip.panel_stride * GROUP_BYTES;
            let from = strip.panel.cast::<u8>().wrapping_add(step * GROUPS * bytes);
            // SAFETY: the caller's guarantee; the tiles have room for 16 rows of the widest panel.
            unsafe { from.copy_to_nonoverlapping(tiles.as_mut_ptr().cast(), rest * bytes) };
            (step, tiles)
        }))
    }
}

/// Some steps of the rows of two tiles. The second tile may have no rows.
struct Block<'a, E: Dot> {
    strip: &'a Strip<E>,
    last: &'a Last,
    rows: &'a [Range<usize>; 2],
    /// Where the rows of a tile lie in each step, and the bytes from one to the next.
    lefts: &'a [[(*const u8, usize); MOST_STEPS]; 2],
    steps: Range<usize>,
}

impl<E: Dot> Block<'_, E> {
    /// Computes it with two tiles of columns from one on, or with the one that is left.
    ///
    /// # Safety
    ///
    /// As for [`compute`].
    #[inline(always)]
    unsafe fn compute<U: Unit>(&self, col: usize, shapes: &mut Option<Shapes>) {
        let cols = self.strip.cols - col;
        let cols = [cols.min(COLS), cols.saturating_sub(COLS).min(COLS)];
        let wanted = Shapes::new([self.rows[0].len(), self.rows[1].len()], cols);
        // SAFETY: the caller's guarantee; tiles without rows or columns are not used.
        unsafe {
            if shapes.as_ref() != Some(&wanted) {
                U::set(shapes.insert(wanted));
            }
            match (self.rows[1].is_empty(), cols[1] == 0) {
                (true, true) => self.add_up::<U, 1, 1>(col),
                (true, false) => self.add_up::<U, 1, 2>(col),
                (false, true) => self.add_up::<U, 2, 1>(col),
                (false, false) => self.add_up::<U, 2, 2>(col),
            }
        }
    }

    /// For `R` tiles of rows and `C` of columns.
    ///
    /// # Safety
    ///
    /// As for [`compute`].
    #[inline(always)]
    unsafe fn add_up<U: Unit, const R: usize, const C: usize>(&self, col: usize) {
        let Self { strip, rows, .. } = self;
        let stride = strip.target_stride * size_of::<f32>();
        let target = |row: usize, at: usize| -> *mut u8 {
            let first = rows[row].start * strip.target_stride;
            strip.target.wrapping_add(first + col + at * COLS).cast()
        };
        // SAFETY: the caller's guarantee: rows, panel and target have what the sizes say.
        unsafe {
            if self.steps.start == 0 {
                U::zero::<{ sums(0, 0) }>();
                if C > 1 {
                    U::zero::<{ sums(0, 1) }>();
                }
                if R > 1 {
                    U::zero::<{ sums(1, 0) }>();
                }
                if R > 1 && C > 1 {
                    U::zero::<{ sums(1, 1) }>();
                }
            } else {
                U::load::<{ sums(0, 0) }>(target(0, 0), stride);
                if C > 1 {
                    U::load::<{ sums(0, 1) }>(target(0, 1), stride);
                }
                if R > 1 {
                    U::load::<{ sums(1, 0) }>(target(1, 0), stride);
                }
                if R > 1 && C > 1 {
                    U::load::<{ sums(1, 1) }>(target(1, 1), stride);
                }
            }
            for (at, step) in self.steps.clone().enumerate() {
                self.add_step::<U, R, C>(col, at, step);
            }
            U::store::<{ sums(0, 0) }>(target(0, 0), stride);
            if C > 1 {
                U::store::<{ sums(0, 1) }>(target(0, 1), stride);
            }
            if R > 1 {
                U::store::<{ sums(1, 0) }>(target(1, 0), stride);
            }
            if R > 1 && C > 1 {
                U::store::<{ sums(1, 1) }>(target(1, 1), stride);
            }
        }
    }

    /// The step that is number `at` of these.
    ///
    /// # Safety
    ///
    /// As for [`compute`].
    #[inline(always)]
    unsafe fn add_step<U: Unit, const R: usize, const C: usize>(
        &self,
        col: usize,
        at: usize,
        step: usize,
    ) {
        let bytes = self.strip.panel_stride * GROUP_BYTES;
        let panel = match &self.last.0 {
            Some((last, tiles)) if *last == step => tiles.as_ptr().cast::<u8>(),
            _ => self.strip.panel.cast::<u8>().wrapping_add(step * GROUPS * bytes),
        };
        let panel = panel.wrapping_add(col * GROUP_BYTES);
        // SAFETY: the caller's guarantee.
        unsafe {
            let (rows, stride) = self.lefts[0][at];
            U::load::<{ left(0) }>(rows, stride);
            U::load::<{ right(0) }>(panel, bytes);
            U::add_products::<E, { sums(0, 0) }, { left(0) }, { right(0) }>();
            if C > 1 {
                U::load::<{ right(1) }>(panel.wrapping_add(COLS * GROUP_BYTES), bytes);
                U::add_products::<E, { sums(0, 1) }, { left(0) }, { right(1) }>();
            }
            if R > 1 {
                let (rows, stride) = self.lefts[1][at];
                U::load::<{ left(1) }>(rows, stride);
                U::add_products::<E, { sums(1, 0) }, { left(1) }, { right(0) }>();
            }
            if R > 1 && C > 1 {
                U::add_products::<E, { sums(1, 1) }, { left(1) }, { right(1) }>();
            }
        }
    }
}

/// Makes numbers of the sums of some rows.
///
/// # Safety
///
/// The target must be valid for the rows, and there must be a factor for each.
#[inline(always)]
unsafe fn finish<E: Dot>(strip: &Strip<E>, rows: Range<usize>) {
    for row in rows {
        // SAFETY: the caller's guarantee.
        let (factor, sums) = unsafe {
            let first = strip.target.wrapping_add(row * strip.target_stride);
            (strip.factors.of_row(row), std::slice::from_raw_parts_mut(first, strip.cols))
        };
        for sum in sums {
            *sum = E::finish(*sum, factor);
        }
    }
}
