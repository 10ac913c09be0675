//! Maximum over windows of an NHWC image.

use std::ops::Range;

use fusion_cost_model::PoolSizes;
use pulp::{Arch, Simd, WithSimd};

use super::kernel::{Kernel, Located};
use super::lanes::Lanes;
use super::pool::Pool;
use super::product::share;
use super::tensors::Tensors;

/// The rows of an image that are in memory.
pub(crate) struct Image {
    /// The first pixel in memory, of row `first_row`.
    pub(crate) data: *const f32,
    pub(crate) first_row: usize,
    /// Numbers from one pixel to the next.
    pub(crate) stride: usize,
    pub(crate) channels: usize,
}

/// Pools rows of one image into `target`, whose pixels are `target_stride` numbers apart.
///
/// # Safety
///
/// The image must hold every row that the pooled rows need, and the target must be valid for
/// them; no other thread may write either.
#[inline(always)]
pub(crate) unsafe fn pool_rows<S: Simd>(
    simd: S,
    sizes: &PoolSizes,
    image: &Image,
    rows: Range<usize>,
    target: *mut f32,
    target_stride: usize,
) {
    let out_w = sizes.out_w() as usize;
    for (y, row) in rows.zip(0..) {
        for x in 0..out_w {
            let target = target.wrapping_add((row * out_w + x) * target_stride);
            let mut channel = 0;
            while channel < image.channels {
                // SAFETY: four vectors of channels, one, or one channel remain.
                unsafe {
                    let target = target.add(channel);
                    let rest = image.channels - channel;
                    if rest >= 4 * S::F32_LANES {
                        window::<S, 4>(simd, sizes, image, [y, x], channel, target);
                        channel += 4 * S::F32_LANES;
                    } else if rest >= S::F32_LANES {
                        window::<S, 1>(simd, sizes, image, [y, x], channel, target);
                        channel += S::F32_LANES;
                    } else {
                        let scalar = pulp::Scalar::new();
                        window::<_, 1>(scalar, sizes, image, [y, x], channel, target);
                        channel += 1;
                    }
                }
            }
        }
    }
}

/// The maximum of one window for a tile of channels. NaN wins, as in PyTorch.
///
/// # Safety
///
/// A tile of channels must lie at `channel`, and fit at `target`.
#[inline(always)]
unsafe fn window<S: Simd, const U: usize>(
    simd: S,
    sizes: &PoolSizes,
    image: &Image,
    [y, x]: [usize; 2],
    channel: usize,
    target: *mut f32,
) {
    let (height, width) = (sizes.h as usize, sizes.w as usize);
    let (window, stride) = (sizes.window as usize, sizes.stride as usize);
    let pad = sizes.pad as usize;
    let mut best = Lanes::<S, U>::splat(simd, f32::NEG_INFINITY);
    for tap_y in 0..window {
        let in_y = (y * stride + tap_y).wrapping_sub(pad);
        if in_y >= height {
            continue;
        }
        for tap_x in 0..window {
            let in_x = (x * stride + tap_x).wrapping_sub(pad);
            if in_x >= width {
                continue;
            }
            let pixel = (in_y - image.first_row) * width + in_x;
            let data = image.data.wrapping_add(pixel * image.stride + channel);
            // SAFETY: the pixel is inside the image, and the caller guarantees the channels.
            let values = unsafe { Lanes::<S, U>::load(simd, data) };
            best = best.max_or_nan(values);
        }
    }
    // SAFETY: the caller's guarantee.
    unsafe { best.store(target) };
}

/// The unfused max-pool: the same code as in the fused one, on an image in memory.
#[derive(Debug)]
pub(crate) struct MaxPoolKernel {
    pub(crate) sizes: PoolSizes,
    pub(crate) images: usize,
    pub(crate) channels: usize,
    pub(crate) input: Located,
    pub(crate) output: Located,
}

impl Kernel for MaxPoolKernel {
    fn name(&self) -> String {
        "max_pool: one pass".to_owned()
    }

    fn locate(&mut self, tensors: &Tensors) {
        self.input.locate(tensors);
        self.output.locate(tensors);
    }

    unsafe fn run(&self, pool: &mut Pool) {
        let threads = pool.threads();
        let rows = self.images * self.sizes.out_h() as usize;
        pool.run(&|thread| {
            let rows = share(rows, thread, threads);
            Arch::new().dispatch(Rows { kernel: self, rows });
        });
    }
}

/// The output rows of one thread, counted over all images.
struct Rows<'a> {
    kernel: &'a MaxPoolKernel,
    rows: Range<usize>,
}

impl WithSimd for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let MaxPoolKernel {
            sizes,
            channels,
            input,
            output,
            ..
        } = self.kernel;
        let (out_h, out_w) = (sizes.out_h() as usize, sizes.out_w() as usize);
        let image_numbers = (sizes.h * sizes.w) as usize * channels;
        for row in self.rows {
            let image = Image {
                data: input.at(row / out_h * image_numbers),
                first_row: 0,
                stride: *channels,
                channels: *channels,
            };
            let target = output.at(row * out_w * channels);
            let y = row % out_h;
            // SAFETY: rows of the output belong to one thread, the input is only read.
            unsafe { pool_rows(simd, sizes, &image, y..y + 1, target, *channels) };
        }
    }
}
