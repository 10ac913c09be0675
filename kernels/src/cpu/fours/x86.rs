//! On x86-64, by the instructions that there are.

use std::hint::black_box;
use std::ops::Range;

use pulp::Arch;

use super::TOGETHER;
use super::vectors::{Dot256, Dot512, Fours, Words256, Words512};
use crate::cpu::ahead::Ahead;
use crate::cpu::gemm::share;
use crate::cpu::strip::Strip;

/// Sums of the longest vector.
const MOST_LANES: usize = 16;

/// Rows that any of the micro-kernels multiplies together.
const MOST_ROWS: usize = 6;

/// A few rows from `first` on times the rows `from..to` of some vectors of the panel, from `vector` on.
struct Part<'a> {
    strip: &'a Strip<u8>,
    first: usize,
    vector: usize,
    /// A multiple of four, as the depth of a part is.
    from: usize,
    to: usize,
    /// What is left of the rows behind whole fours, in the last part.
    rests: Option<&'a [i32; MOST_ROWS]>,
    ahead: Ahead,
}

/// The products of a part.
///
/// # Safety
///
/// As for [`super::compute`], with the instructions of `F`.
#[inline(always)]
unsafe fn add_up<F: Fours, const R: usize, const V: usize>(part: &Part<'_>) {
    let Part { strip, first, vector, from, to, ahead, .. } = *part;
    let mut ahead = ahead.one_by_one(strip.panel);
    let source = &strip.source;
    let group = TOGETHER * strip.panel_stride;
    let panel = strip.panel.wrapping_add(vector * F::LANES * TOGETHER);
    let mut rows = [source.data; R];
    let mut r = 0;
    while r < R {
        rows[r] = source.row(first + r);
        r += 1;
    }
    // SAFETY: the caller's guarantee: the rows of the panel and the numbers of the source are those of
    // the sizes.
    unsafe {
        let mut sums = [[F::zero(); V]; R];
        let (mut run, mut inside) = source.place(from);
        let mut at = from;
        while at < to {
            let count = (source.run - inside).min(to - at);
            let offset = run * source.run_stride + inside;
            let mut four = at / TOGETHER;
            let mut line = panel.wrapping_add(four * group);
            let whole = count / TOGETHER * TOGETHER;
            let (mut number, end) = (offset, offset + whole);
            while number < end {
                let mut fours = [0; R];
                let mut r = 0;
                while r < R {
                    let place = rows[r].wrapping_add(number);
                    fours[r] = place.cast::<i32>().read_unaligned();
                    r += 1;
                }
                multiply_add::<F, R, V>(&mut sums, line, fours);
                if R > 2 {
                    ahead.term(four);
                }
                four += 1;
                line = line.wrapping_add(group);
                number = number.wrapping_add(TOGETHER);
            }
            at += count;
            run += 1;
            inside = 0;
        }
        if let Some(rests) = part.rests {
            let mut fours = [0; R];
            let mut r = 0;
            while r < R {
                fours[r] = rests[r];
                r += 1;
            }
            multiply_add::<F, R, V>(&mut sums, panel.wrapping_add(to / TOGETHER * group), fours);
        }
        if (from, to) == (0, strip.k) && strip.cols - vector * F::LANES >= V * F::LANES {
            let mut r = 0;
            while r < R {
                let row = first + r;
                let factor = strip.factors.of_row(row);
                let target = strip.target.wrapping_add(row * strip.target_stride);
                let mut v = 0;
                while v < V {
                    F::store_scaled(
                        sums[r][v],
                        factor,
                        target.wrapping_add((vector + v) * F::LANES),
                    );
                    v += 1;
                }
                r += 1;
            }
            return;
        }
        // In memory before anything else is done with them: longer loops over sums would keep them there
        // from the beginning.
        let mut own = [[[0; MOST_LANES]; V]; R];
        let mut r = 0;
        while r < R {
            let mut v = 0;
            while v < V {
                F::store(sums[r][v], own[r][v].as_mut_ptr());
                v += 1;
            }
            r += 1;
        }
        for (row, own) in (first..).zip(&own) {
            for (vector, own) in (vector..).zip(own) {
                part.write::<F>(row, vector * F::LANES, own);
            }
        }
    }
}

/// The numbers of some rows behind the last whole four, with zeros behind them: what comes after is
/// another row's. By itself, since it would push the sums out of the registers.
///
/// # Safety
///
/// As for [`super::compute`].
#[inline(never)]
unsafe fn rests(strip: &Strip<u8>, rows: Range<usize>) -> [i32; MOST_ROWS] {
    let whole = strip.k / TOGETHER * TOGETHER;
    let mut rests = [0; MOST_ROWS];
    for (rest, row) in rests.iter_mut().zip(rows) {
        let mut four = [0; TOGETHER];
        for (byte, number) in four.iter_mut().zip(whole..strip.k) {
            // SAFETY: the caller's guarantee; rows with such a rest are one run.
            *byte = unsafe { strip.source.row(row).wrapping_add(number).read() };
        }
        *rest = i32::from_le_bytes(four);
    }
    rests
}

/// Adds four numbers of each row times four rows of the panel.
///
/// # Safety
///
/// As for [`add_up`].
#[inline(always)]
unsafe fn multiply_add<F: Fours, const R: usize, const V: usize>(
    sums: &mut [[F::Sums; V]; R],
    panel: *const i8,
    fours: [i32; R],
) {
    // SAFETY: the caller's guarantee.
    unsafe {
        let mut weights = [F::weights(panel); V];
        let mut v = 1;
        while v < V {
            weights[v] = F::weights(panel.wrapping_add(v * F::LANES * TOGETHER));
            v += 1;
        }
        let mut r = 0;
        while r < R {
            let numbers = F::numbers(fours[r]);
            let mut v = 0;
            while v < V {
                sums[r][v] = F::add(sums[r][v], numbers, weights[v]);
                v += 1;
            }
            r += 1;
        }
    }
}

impl Part<'_> {
    /// Adds sums to what the rows of the panel before these left, in a row from a column on. Until
    /// they are whole, they are integers.
    ///
    /// # Safety
    ///
    /// As for [`add_up`].
    #[inline(always)]
    unsafe fn write<F: Fours>(&self, row: usize, col: usize, own: &[i32; MOST_LANES]) {
        let Part { strip, from, to, .. } = *self;
        let target = strip.target.wrapping_add(row * strip.target_stride + col);
        let (is_first, is_last) = (from == 0, to == strip.k);
        let cols = strip.cols - col;
        // SAFETY: the caller's guarantee.
        unsafe {
            let factor = strip.factors.of_row(row);
            if cols < F::LANES {
                for (lane, &own) in own[..cols].iter().enumerate() {
                    let place = target.wrapping_add(lane);
                    let before = if is_first { 0 } else { place.cast::<i32>().read() };
                    let sum = own.wrapping_add(before);
                    if is_last {
                        place.write(sum as f32 * factor);
                    } else {
                        place.cast::<i32>().write(sum);
                    }
                }
                return;
            }
            let mut sums = F::load(own.as_ptr());
            if !is_first {
                sums = F::plus(sums, F::load(target.cast::<i32>()));
            }
            if is_last {
                F::store_scaled(sums, factor, target);
            } else {
                F::store(sums, target.cast::<i32>());
            }
        }
    }
}

/// Fours in each sum when the peak rate is measured.
const DEPTH: usize = 4096;

/// Different numbers that are multiplied then, or a product would be computed once.
const STEPS: usize = 16;

/// Adds products to `R` times `V` sums: what the micro-kernel does when all its numbers are at hand.
///
/// # Safety
///
/// The caller must have the instructions of `F`.
#[inline(always)]
unsafe fn add_to_sums<F: Fours, const R: usize, const V: usize>() -> f64 {
    let panel = black_box([1_i8; MOST_LANES * TOGETHER]);
    let four = black_box(0x0102_0304);
    // SAFETY: the caller's guarantee; the weights are those of a vector.
    unsafe {
        let numbers = [[F::numbers(four); R]; STEPS];
        let numbers = black_box(&numbers);
        let mut weights = [F::weights(panel.as_ptr()); V];
        let mut v = 0;
        while v < V {
            weights[v] = black_box(weights[v]);
            v += 1;
        }
        let mut sums = [[F::zero(); V]; R];
        for step in 0..DEPTH {
            let numbers = &numbers[step % STEPS];
            let mut r = 0;
            while r < R {
                let mut v = 0;
                while v < V {
                    sums[r][v] = F::add(sums[r][v], numbers[r], weights[v]);
                    v += 1;
                }
                r += 1;
            }
        }
        black_box(sums);
    }
    (2 * TOGETHER * F::LANES * R * V * DEPTH) as f64
}

/// A micro-kernel: for `$rows` rows and as many vectors as named last at a time, and the functions above
/// with the instructions that it is for.
macro_rules! micro_kernel {
    ($(#[$doc:meta])* $name:ident, $fours:ty, $features:literal, $rows:literal, $vectors:literal) => {
        $(#[$doc])*
        pub(super) mod $name {
            use super::*;

            /// # Safety
            ///
            /// As for [`super::super::compute`], with these instructions.
            #[target_feature(enable = $features)]
            pub(in super::super) unsafe fn compute(strip: &Strip<u8>) {
                let vectors = strip.cols.div_ceil(<$fours>::LANES);
                for vector in (0..vectors).step_by($vectors) {
                    // SAFETY: the caller's guarantee.
                    unsafe {
                        match vectors - vector {
                            1 => parts::<1>(strip, vector),
                            2 => parts::<{ least(2, $vectors) }>(strip, vector),
                            3 => parts::<{ least(3, $vectors) }>(strip, vector),
                            _ => parts::<$vectors>(strip, vector),
                        }
                    }
                }
            }

            /// # Safety
            ///
            /// As for [`compute`].
            #[target_feature(enable = $features)]
            unsafe fn parts<const V: usize>(strip: &Strip<u8>, vector: usize) {
                let blocks = strip.rows.div_ceil($rows);
                for part in 0..strip.parts() {
                    let Range { start: from, end: to } = strip.part(part, TOGETHER);
                    let fours = from / TOGETHER..to.div_ceil(TOGETHER);
                    let ahead = Ahead::new(&fours, blocks.max(1), TOGETHER * strip.panel_stride);
                    // Behind the last part comes the next panel, but for other vectors of this one.
                    let is_last = vector + $vectors >= strip.cols.div_ceil(<$fours>::LANES);
                    let ahead = if to == strip.k && !is_last { ahead.of_nothing() } else { ahead };
                    for block in 0..blocks {
                        let rows = share(strip.rows, block, blocks);
                        // SAFETY: the caller's guarantee.
                        unsafe {
                            let rests = (!to.is_multiple_of(TOGETHER))
                                .then(|| rests(strip, rows.clone()));
                            let (first, rests) = (rows.start, rests.as_ref());
                            let ahead = ahead.of_block(block);
                            let part = Part { strip, first, vector, from, to, rests, ahead };
                            match rows.len() {
                                1 => few::<1, V>(&part),
                                2 => few::<2, V>(&part),
                                3 => few::<3, V>(&part),
                                4 => few::<{ least(4, $rows) }, V>(&part),
                                5 => few::<{ least(5, $rows) }, V>(&part),
                                _ => few::<$rows, V>(&part),
                            }
                        }
                    }
                }
            }

            /// A function of its own for each count of rows: in one large function the sums would
            /// not stay in registers.
            ///
            /// # Safety
            ///
            /// As for [`compute`].
            #[inline(never)]
            #[target_feature(enable = $features)]
            unsafe fn few<const R: usize, const V: usize>(part: &Part<'_>) {
                // SAFETY: the caller's guarantee.
                unsafe { add_up::<$fours, R, V>(part) };
            }

            /// Adds products to as many sums as the micro-kernel has, and returns how many
            /// operations that are.
            ///
            /// # Safety
            ///
            /// As for [`compute`].
            #[target_feature(enable = $features)]
            pub(super) unsafe fn operations() -> f64 {
                // SAFETY: the caller's guarantee.
                unsafe { add_to_sums::<$fours, $rows, $vectors>() }
            }
        }
    };
}

const fn least(one: usize, other: usize) -> usize {
    if one < other { one } else { other }
}

micro_kernel! {
    /// With VNNI and 32 registers.
    dot_512, Dot512, "avx512f,avx512vnni", 6, 4
}
micro_kernel! {
    /// With VNNI and 16 registers.
    dot_256, Dot256, "avx2,avxvnni", 6, 2
}
micro_kernel! {
    /// With 32 registers: weights are in two of them.
    words_512, Words512, "avx512f,avx512bw", 6, 2
}
micro_kernel! {
    /// With 16.
    words_256, Words256, "avx2", 3, 2
}

/// # Safety
///
/// As for [`super::compute`].
pub(super) unsafe fn compute(strip: &Strip<u8>, arch: Arch) {
    // SAFETY: the caller's guarantee; the processor has the instructions.
    unsafe {
        match arch {
            Arch::V4(_) if is_x86_feature_detected!("avx512vnni") => dot_512::compute(strip),
            Arch::V4(_) => words_512::compute(strip),
            _ if is_x86_feature_detected!("avxvnni") => dot_256::compute(strip),
            _ => words_256::compute(strip),
        }
    }
}

/// See [`super::operations`].
pub(super) fn operations(arch: Arch) -> f64 {
    // SAFETY: the processor has the instructions.
    unsafe {
        match arch {
            Arch::V4(_) if is_x86_feature_detected!("avx512vnni") => dot_512::operations(),
            Arch::V4(_) => words_512::operations(),
            Arch::V3(_) if is_x86_feature_detected!("avxvnni") => dot_256::operations(),
            Arch::V3(_) => words_256::operations(),
            _ => 0.0,
        }
    }
}
