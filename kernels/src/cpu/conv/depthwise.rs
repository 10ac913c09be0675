//! Depthwise convolution: one filter per channel, summed directly.
//!
//! The sums of several neighbouring pixels stay in registers while the taps go by, so that a weight
//! is loaded once for all of them and no addition waits for the one before it. With the commonest
//! filter, 3x3 with stride 1, these are pixels of two rows: a number of the image is then loaded once
//! for six taps, and a row of the image comes to the first-level cache for two rows of the result.
//! Pixels whose window reaches over an edge of the image have fewer taps; they are summed one by one,
//! several vectors of channels at once.

use std::ops::Range;

use fusion_cost_model::DType;
use pulp::{Arch, Scalar, Simd, WithSimd};

use super::super::element::{Element, Left};
use super::super::epilogue::Epilogue;
use super::super::kernel::Located;
use super::super::lanes::Lanes;
use super::shape::Shape;

/// Pixels that are summed together where there are as many: with their weights and addresses they
/// fit into 16 vector registers.
const MANY: usize = 8;
/// The same for what is left of a row.
const FEW: usize = 4;

/// Taps in a row and a column of the filters that two rows are summed with together.
const TAPS: usize = 3;
/// Pixels of each of two rows that are summed together: with the pixels of the image and a weight
/// they fit into 16 vector registers, ...
const OF_TWO: usize = 4;
/// ... and these where the numbers are widened, which takes a register or two more.
const OF_TWO_WIDENED: usize = 3;

/// Pixels of one row of a depthwise convolution, or of two. Made only by
/// `ConvKernel::convolve_depthwise`, whose caller guarantees that the target is valid for them.
pub(super) struct Depthwise<'a, E: Left> {
    pub(super) shape: &'a Shape,
    /// The image's first number.
    pub(super) image: *const E,
    pub(super) filter: Located<E::Weight>,
    /// The row of the output image.
    pub(super) y: usize,
    /// The pixels of that row.
    pub(super) xs: Range<usize>,
    /// Where the first of them goes; the others follow it, all their channels side by side.
    pub(super) target: *mut f32,
    /// What sums of products of integers are multiplied with. It stays where it is, since a copy of it
    /// would lie on the stack.
    pub(super) scale: &'a f32,
    /// What is done to the sums then.
    pub(super) epilogue: Epilogue,
    /// Numbers from there to where the same pixels of the next row go, if that is summed too; see
    /// [`takes_two`].
    pub(super) below: Option<usize>,
}

/// Whether the rows `y` and `y + 1` can be summed together: the filter is a common one, and no window
/// of theirs reaches over the upper or lower edge.
pub(super) fn takes_two(shape: &Shape, y: usize) -> bool {
    let rows = whole(shape, shape.r, shape.in_h);
    let is_common = shape.r == TAPS && shape.s == TAPS && shape.stride == 1;
    is_common && rows.contains(&y) && rows.contains(&(y + 1))
}

impl<E: Left> WithSimd for Depthwise<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { y, ref xs, target, below, .. } = self;
        let (mut parts, inner) = ([xs.clone(), xs.end..xs.end], self.inner(xs));
        if let Some(below) = below.filter(|_| inner.len() >= OF_TWO) {
            if size_of::<E>() < size_of::<f32>() && S::REGISTER_COUNT < 32 {
                self.two_rows::<S, OF_TWO_WIDENED, { 2 * OF_TWO_WIDENED }>(simd, &inner, below);
            } else {
                self.two_rows::<S, OF_TWO, { 2 * OF_TWO }>(simd, &inner, below);
            }
            parts = [xs.start..inner.start, inner.end..xs.end];
        }
        let rows = if below.is_some() { 2 } else { 1 };
        for row in 0..rows {
            let target = target.wrapping_add(row * below.unwrap_or(0));
            for part in &parts {
                let pixels = part.start - xs.start;
                // The only call: all that it does is compiled into this place.
                let target = target.wrapping_add(pixels * self.shape.in_channels);
                self.row(simd, y + row, part, target);
            }
        }
    }
}

impl<E: Left> Depthwise<'_, E> {
    /// Computes them, with the widest vectors that there are. Not where it is called: what has no
    /// vectors would be compiled into each place.
    #[inline(never)]
    pub(super) fn compute(self, arch: Arch) {
        arch.dispatch(self);
    }

    /// Those of some pixels whose windows are whole from left to right.
    #[inline(always)]
    fn inner(&self, xs: &Range<usize>) -> Range<usize> {
        let inner = whole(self.shape, self.shape.s, self.shape.in_w);
        inner.start.clamp(xs.start, xs.end)..inner.end.clamp(xs.start, xs.end)
    }

    /// Pixels of two rows, whose windows are whole: at least `P` of each row, and `N` are those of both.
    #[inline(always)]
    fn two_rows<S: Simd, const P: usize, const N: usize>(
        &self,
        simd: S,
        inner: &Range<usize>,
        below: usize,
    ) {
        let Self { shape, y, ref xs, target, .. } = *self;
        let mut x = inner.start;
        while x < inner.end {
            // The last ones may overlap those before them: what both sum is the same.
            let first = x.min(inner.end - P);
            let window = self.window(y, first, 0..TAPS, 0..TAPS);
            let target = target.wrapping_add((first - xs.start) * shape.in_channels);
            // SAFETY: the windows of both rows are inside the image, and the pixels are some of theirs.
            unsafe { window.channels_of_two::<S, P, N>(simd, target, below) };
            x = first + P;
        }
    }

    /// Pixels of a row, the first of which goes to `target`.
    #[inline(always)]
    fn row<S: Simd>(&self, simd: S, y: usize, xs: &Range<usize>, target: *mut f32) {
        let shape = self.shape;
        let rows = inside(y, shape, shape.r, shape.in_h);
        let inner = self.inner(xs);
        let mut x = xs.start;
        while x < xs.end {
            let rest = inner.end.saturating_sub(x);
            // The last neighbours of a row may overlap those before them: what both sum is the same.
            let count = if x < inner.start || rest == 0 || inner.len() < FEW {
                1
            } else if rest <= FEW || inner.len() < MANY {
                FEW
            } else {
                MANY
            };
            let first = if count > rest && count > 1 { inner.end - count } else { x };
            let cols = inside(first, shape, shape.s, shape.in_w);
            let window = self.window(y, first, rows.clone(), cols);
            let target = target.wrapping_add((first - xs.start) * shape.in_channels);
            // SAFETY: the taps of the window are inside the image, and those of its neighbours too,
            // whose windows are as whole; the pixels are some of this row's.
            unsafe {
                match count {
                    MANY => window.channels::<S, MANY>(simd, target),
                    FEW => window.channels::<S, FEW>(simd, target),
                    _ => window.channels::<S, 1>(simd, target),
                }
            }
            x = first + count;
        }
    }
}

/// The taps of the output coordinate `at` that lie inside an image of this size.
#[inline(always)]
fn inside(at: usize, shape: &Shape, taps: usize, size: usize) -> Range<usize> {
    let start = at * shape.stride;
    let end = (size + shape.pad).saturating_sub(start).min(taps);
    shape.pad.saturating_sub(start).min(end)..end
}

/// The output coordinates all of whose taps lie inside an image of this size.
#[inline(always)]
fn whole(shape: &Shape, taps: usize, size: usize) -> Range<usize> {
    let start = shape.pad.div_ceil(shape.stride);
    // The last coordinate whose window ends with the image, plus one.
    let end = (size + shape.pad).checked_sub(taps).map_or(0, |last| last / shape.stride + 1);
    start.min(end)..end
}

impl<E: Left> Depthwise<'_, E> {
    #[inline(always)]
    fn window(&self, y: usize, x: usize, rows: Range<usize>, cols: Range<usize>) -> Window<'_, E> {
        let Shape { in_w, in_channels, s, stride, pad, .. } = *self.shape;
        // An empty window's first tap may lie outside; it is not read.
        let y = (y * stride + rows.start).wrapping_sub(pad);
        let x = (x * stride + cols.start).wrapping_sub(pad);
        let pixel = y.wrapping_mul(in_w).wrapping_add(x).wrapping_mul(in_channels);
        Window {
            pixel: self.image.wrapping_add(pixel),
            weight: self.filter.at((rows.start * s + cols.start) * in_channels),
            rows: rows.len(),
            cols: cols.len(),
            image_row: in_w * in_channels,
            filter_row: s * in_channels,
            neighbour: stride * in_channels,
            channels: in_channels,
            scale: self.scale,
            epilogue: self.epilogue,
        }
    }
}

/// The taps of a pixel that lie inside the image, as addresses and distances in numbers.
struct Window<'a, E: Left> {
    /// The first tap's channels in the image, and its weights.
    pixel: *const E,
    weight: *const E::Weight,
    rows: usize,
    cols: usize,
    /// From one row of taps to the next, in the image and in the filter.
    image_row: usize,
    filter_row: usize,
    /// From the first tap of a pixel to that of its neighbour.
    neighbour: usize,
    channels: usize,
    scale: &'a f32,
    epilogue: Epilogue,
}

impl<E: Left> Window<'_, E> {
    /// Sums the taps of `P` neighbouring pixels for all channels. They go to `target`, one pixel
    /// after the other.
    ///
    /// # Safety
    ///
    /// The taps of all `P` pixels must lie inside the image, and the pixels fit at `target`.
    #[inline(always)]
    unsafe fn channels<S: Simd, const P: usize>(&self, simd: S, target: *mut f32) {
        let (count, lanes) = (self.channels, S::F32_LANES);
        let mut channel = 0;
        // SAFETY: as many channels remain as each call sums, and the rest is the caller's guarantee.
        unsafe {
            if P == 1 {
                while channel + 4 * lanes <= count {
                    self.sum::<S, P, 4>(simd, channel, target);
                    channel += 4 * lanes;
                }
                while channel + 2 * lanes <= count {
                    self.sum::<S, P, 2>(simd, channel, target);
                    channel += 2 * lanes;
                }
            }
            while channel < count && count >= lanes {
                // The last vector may overlap the one before it: what both sum is the same.
                channel = channel.min(count - lanes);
                self.sum::<S, P, 1>(simd, channel, target);
                channel += lanes;
            }
            while channel < count {
                self.sum::<Scalar, P, 1>(Scalar::new(), channel, target);
                channel += 1;
            }
        }
    }

    /// Sums the taps of `P` neighbouring pixels in each of two rows, for all channels: of those from this
    /// window on, which go to `target`, and of those `below` them.
    ///
    /// # Safety
    ///
    /// The windows must have all taps and lie inside the image, and the pixels fit where they go.
    #[inline(always)]
    unsafe fn channels_of_two<S: Simd, const P: usize, const N: usize>(
        &self,
        simd: S,
        target: *mut f32,
        below: usize,
    ) {
        let (count, lanes) = (self.channels, S::F32_LANES);
        let mut channel = 0;
        // SAFETY: as many channels remain as each call sums, and the rest is the caller's guarantee.
        unsafe {
            while channel < count && count >= lanes {
                // As above.
                channel = channel.min(count - lanes);
                self.sum_two::<S, P, N>(simd, channel, target, below);
                channel += lanes;
            }
            while channel < count {
                self.sum_two::<Scalar, P, N>(Scalar::new(), channel, target, below);
                channel += 1;
            }
        }
    }

    /// The same for a vector of channels.
    ///
    /// # Safety
    ///
    /// As for [`Self::channels_of_two`], and a vector of channels must lie at `channel`.
    #[inline(always)]
    unsafe fn sum_two<S: Simd, const P: usize, const N: usize>(
        &self,
        simd: S,
        channel: usize,
        target: *mut f32,
        below: usize,
    ) {
        let mut sums = Lanes { simd, v: [simd.splat_f32s(0.0); N] };
        // SAFETY: the caller's guarantee.
        unsafe {
            self.add_row::<S, P, N, 0>(channel, &mut sums);
            self.add_row::<S, P, N, 1>(channel, &mut sums);
            self.add_row::<S, P, N, 2>(channel, &mut sums);
            self.add_row::<S, P, N, 3>(channel, &mut sums);
        }
        let target = target.wrapping_add(channel);
        // SAFETY: the caller's guarantee.
        unsafe {
            // Both rows together where the registers are full: after a branch that only one row waits
            // for, the compiler computes the other one from pixels and weights that it has put on the
            // stack. Elsewhere one by one: then it keeps all in registers.
            let together = S::REGISTER_COUNT < 32 && P == OF_TWO;
            let sums = if together { self.finish(sums, channel) } else { sums };
            for row in 0..2 {
                let mut of_row = [simd.splat_f32s(0.0); P];
                of_row.copy_from_slice(&sums.v[row * P..][..P]);
                let of_row = Lanes { simd, v: of_row };
                let of_row = if together { of_row } else { self.finish(of_row, channel) };
                of_row.store_apart(target.wrapping_add(row * below), self.channels);
            }
        }
    }

    /// The sums of pixels for a vector of channels, with the epilogue applied.
    ///
    /// # Safety
    ///
    /// The channels must exist.
    #[inline(always)]
    unsafe fn finish<S: Simd, const P: usize>(
        &self,
        sums: Lanes<S, P>,
        channel: usize,
    ) -> Lanes<S, P> {
        let is_of_integers = matches!(E::DTYPE, DType::I8);
        let sums = if is_of_integers { sums * Lanes::splat(sums.simd, *self.scale) } else { sums };
        // SAFETY: the caller's guarantee.
        unsafe { self.epilogue.apply_to_sums(sums, channel) }
    }

    /// Adds what the pixels of a row of the image give to two rows of sums: to each as the row of taps
    /// in which they are there.
    ///
    /// # Safety
    ///
    /// As for [`Self::sum_two`].
    #[inline(always)]
    unsafe fn add_row<S: Simd, const P: usize, const N: usize, const ROW: usize>(
        &self,
        channel: usize,
        sums: &mut Lanes<S, N>,
    ) {
        let Lanes { simd, v: sums } = sums;
        let simd = *simd;
        let pixel = self.pixel.wrapping_add(ROW * self.image_row + channel);
        // The last of them are for more taps than there are.
        let mut pixels = [simd.splat_f32s(0.0); N];
        let mut p = 0;
        while p < P + TAPS - 1 {
            // SAFETY: the caller's guarantee.
            pixels[p] = unsafe { E::load(simd, pixel.wrapping_add(p * self.channels)) };
            p += 1;
        }
        let mut row = 0;
        while row < 2 {
            if row <= ROW && ROW - row < TAPS {
                let weights = self.weight.wrapping_add((ROW - row) * self.filter_row + channel);
                let mut tap = 0;
                while tap < TAPS {
                    // SAFETY: as above.
                    let weight =
                        unsafe { E::Weight::load(simd, weights.wrapping_add(tap * self.channels)) };
                    let mut p = 0;
                    while p < P {
                        let sum = &mut sums[row * P + p];
                        *sum = simd.mul_add_e_f32s(pixels[p + tap], weight, *sum);
                        p += 1;
                    }
                    tap += 1;
                }
            }
            row += 1;
        }
    }

    /// Sums the taps of `P` neighbouring pixels for `V` vectors of channels.
    ///
    /// # Safety
    ///
    /// As for [`Self::channels`], and the vectors of channels must lie at `channel`.
    #[inline(always)]
    unsafe fn sum<S: Simd, const P: usize, const V: usize>(
        &self,
        simd: S,
        channel: usize,
        target: *mut f32,
    ) {
        let Self { neighbour, channels, .. } = *self;
        let mut sums = [[simd.splat_f32s(0.0); V]; P];
        for tap_y in 0..self.rows {
            let weights = self.weight.wrapping_add(tap_y * self.filter_row);
            let pixels = self.pixel.wrapping_add(tap_y * self.image_row);
            // The only number that a tap changes, by which the loop ends too: of one for each pixel, the
            // compiler would increment all.
            let mut tap = channel;
            while tap < channel + self.cols * channels {
                let (weight, pixel) = (weights.wrapping_add(tap), pixels.wrapping_add(tap));
                let mut v = 0;
                while v < V {
                    let of_vector = v * S::F32_LANES;
                    // SAFETY: the caller's guarantee.
                    let weight = unsafe { E::Weight::load(simd, weight.add(of_vector)) };
                    let mut p = 0;
                    while p < P {
                        // SAFETY: as above.
                        let pixel = unsafe { E::load(simd, pixel.add(p * neighbour + of_vector)) };
                        sums[p][v] = simd.mul_add_e_f32s(pixel, weight, sums[p][v]);
                        p += 1;
                    }
                    v += 1;
                }
                tap += channels;
            }
        }
        let mut v = 0;
        while v < V {
            let channel = channel + v * S::F32_LANES;
            let mut of_pixels = [sums[0][v]; P];
            let mut p = 1;
            while p < P {
                of_pixels[p] = sums[p][v];
                p += 1;
            }
            let of_pixels = Lanes { simd, v: of_pixels };
            // SAFETY: the caller's guarantee.
            unsafe {
                let finished = self.finish(of_pixels, channel);
                finished.store_apart(target.wrapping_add(channel), self.channels);
            }
            v += 1;
        }
    }
}

#[cfg(test)]
mod tests;
