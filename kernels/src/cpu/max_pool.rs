//! Maximum over windows of an NHWC image.

use std::ops::Range;

use fusion_cost_model::kernel::PoolSizes;
use pulp::{Scalar, Simd, WithSimd};

use super::element::Element;
use super::gemm::share;
use super::kernel::{Kernel, Located};
use super::lanes::Lanes;
use super::pool::Pool;
use super::tensors::Tensors;

/// The rows of an image that are in memory.
pub(crate) struct Image<I> {
    /// The first pixel in memory, of row `first_row`.
    pub(crate) data: *const I,
    pub(crate) first_row: usize,
    /// Numbers from one pixel to the next.
    pub(crate) stride: usize,
    pub(crate) channels: usize,
}

/// Pools rows of one image. Its creator guarantees that the image holds every row that the
/// pooled rows need, that the target is valid for them, and that no other thread writes either.
pub(crate) struct PoolRows<'a, I, O> {
    pub(crate) sizes: &'a PoolSizes,
    pub(crate) image: &'a Image<I>,
    /// Rows of the pooled image.
    pub(crate) rows: Range<usize>,
    /// Their first pixel.
    pub(crate) target: *mut O,
    /// Numbers from one pixel to the next.
    pub(crate) target_stride: usize,
}

impl<I: Element, O: Element> WithSimd for PoolRows<'_, I, O> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { sizes, image, rows, target, target_stride } = self;
        let out_w = sizes.out_w() as usize;
        for (y, row) in rows.zip(0..) {
            for x in 0..out_w {
                let target = target.wrapping_add((row * out_w + x) * target_stride);
                let mut channel = 0;
                while channel < image.channels {
                    let target = target.wrapping_add(channel);
                    let rest = image.channels - channel;
                    // SAFETY: four vectors of channels, one, or one channel remain.
                    unsafe {
                        if rest >= 4 * S::F32_LANES {
                            window::<S, I, O, 4>(simd, sizes, image, [y, x], channel, target);
                            channel += 4 * S::F32_LANES;
                        } else if rest >= S::F32_LANES {
                            window::<S, I, O, 1>(simd, sizes, image, [y, x], channel, target);
                            channel += S::F32_LANES;
                        } else {
                            window::<_, I, O, 1>(
                                Scalar::new(),
                                sizes,
                                image,
                                [y, x],
                                channel,
                                target,
                            );
                            channel += 1;
                        }
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
unsafe fn window<S: Simd, I: Element, O: Element, const U: usize>(
    simd: S,
    sizes: &PoolSizes,
    image: &Image<I>,
    [y, x]: [usize; 2],
    channel: usize,
    target: *mut O,
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
pub(crate) struct MaxPoolKernel<E> {
    pub(crate) sizes: PoolSizes,
    pub(crate) images: usize,
    pub(crate) channels: usize,
    pub(crate) input: Located<E>,
    pub(crate) output: Located<E>,
}

impl<E: Element> Kernel for MaxPoolKernel<E> {
    fn name(&self) -> String {
        "max_pool: one pass".to_owned()
    }

    fn locate(&mut self, tensors: &Tensors) {
        self.input.locate(tensors);
        self.output.locate(tensors);
    }

    unsafe fn run(&self, pool: &Pool) {
        let (arch, threads) = (pool.arch(), pool.threads());
        let Self { ref sizes, images, channels, input, output } = *self;
        let (out_h, out_w) = (sizes.out_h() as usize, sizes.out_w() as usize);
        let image_numbers = (sizes.h * sizes.w) as usize * channels;
        pool.run(&|thread| {
            // Rows are counted over all images; a thread's rows belong to it alone.
            for row in share(images * out_h, thread, threads) {
                let image = Image::<E> {
                    data: input.at(row / out_h * image_numbers),
                    first_row: 0,
                    stride: channels,
                    channels,
                };
                let y = row % out_h;
                arch.dispatch(PoolRows {
                    sizes,
                    image: &image,
                    rows: y..y + 1,
                    target: output.at(row * out_w * channels),
                    target_stride: channels,
                });
            }
        });
    }
}
