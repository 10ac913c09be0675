//! Depthwise convolution: one filter per channel, summed directly.

use pulp::{Scalar, Simd, WithSimd};

use super::super::kernel::Located;
use super::super::tail::Block;
use super::Tile;
use super::shape::Shape;

/// A depthwise convolution of the tile's rows, vectorised over channels. Made only by
/// `ConvKernel::convolve`, whose caller guarantees that the block is valid.
pub(super) struct Depthwise<'a> {
    pub(super) shape: &'a Shape,
    /// The image's first number.
    pub(super) image: *const f32,
    pub(super) filter: Located,
    pub(super) tile: &'a Tile,
    pub(super) block: &'a Block,
}

impl WithSimd for Depthwise<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { shape, image, filter, tile, block } = self;
        for (y, row) in tile.conv_rows.clone().zip(0..) {
            for x in 0..shape.out_w {
                let target = block.data.wrapping_add((row * shape.out_w + x) * block.stride);
                let mut channel = tile.channels.start;
                while channel < tile.channels.end {
                    let target = target.wrapping_add(channel - tile.channels.start);
                    // SAFETY: a whole vector of channels, or one, remains.
                    unsafe {
                        if tile.channels.end - channel >= S::F32_LANES {
                            taps(simd, shape, image, filter, [y, x], channel, target);
                            channel += S::F32_LANES;
                        } else {
                            taps(Scalar::new(), shape, image, filter, [y, x], channel, target);
                            channel += 1;
                        }
                    }
                }
            }
        }
    }
}

/// Sums the taps of one pixel for a vector of channels.
///
/// # Safety
///
/// A vector of channels must lie at `channel`, and fit at `target`.
#[inline(always)]
unsafe fn taps<S: Simd>(
    simd: S,
    shape: &Shape,
    image: *const f32,
    filter: Located,
    [y, x]: [usize; 2],
    channel: usize,
    target: *mut f32,
) {
    let Shape { in_h, in_w, in_channels, r, s, stride, pad, .. } = *shape;
    let mut sum = simd.splat_f32s(0.0);
    for tap_y in 0..r {
        let in_y = (y * stride + tap_y).wrapping_sub(pad);
        if in_y >= in_h {
            continue;
        }
        for tap_x in 0..s {
            let in_x = (x * stride + tap_x).wrapping_sub(pad);
            if in_x >= in_w {
                continue;
            }
            let pixel = image.wrapping_add((in_y * in_w + in_x) * in_channels + channel);
            let weight = filter.at((tap_y * s + tap_x) * in_channels + channel);
            // SAFETY: the pixel is inside the image, and the caller guarantees the channels.
            unsafe {
                let pixel = pixel.cast::<S::f32s>().read_unaligned();
                let weight = weight.cast::<S::f32s>().read_unaligned();
                sum = simd.mul_add_e_f32s(pixel, weight, sum);
            }
        }
    }
    // SAFETY: the caller's guarantee.
    unsafe { target.cast::<S::f32s>().write_unaligned(sum) };
}
