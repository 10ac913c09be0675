//! Convolution of NHWC images with a pointwise tail and a max-pool.
//!
//! A tile is a few rows of one output image and a range of output channels. The patches of the
//! tile are gathered into a matrix that stays in cache (im2col) and multiplied with the filters;
//! a 1x1 convolution multiplies the image itself, and a depthwise one sums its taps directly. The
//! tail is applied while the tile is hot, and so is the pool, whose input then never leaves the
//! cache. With nothing after it, this is the unfused convolution: the same core.

mod depthwise;
mod patches;
mod shape;

use std::ops::Range;

use fusion_cost_model::kernel::PoolSizes;
use pulp::Arch;

use self::depthwise::Depthwise;
use self::patches::gather;
use self::shape::Core;
pub(crate) use self::shape::Shape;
use super::gemm::{View, gemm, share};
use super::kernel::{Kernel, Located};
use super::max_pool::{Image, PoolRows};
use super::pool::Pool;
use super::tail::{Block, Stretch, Tail};
use super::tensors::Tensors;

/// Numbers of gathered patches per tile, 512 KiB: a quarter of the second-level cache of current
/// servers, in addition to the filters and the results.
const PATCH_NUMBERS: usize = 1 << 17;

/// Output channels are not split below this for the sake of more threads.
const MIN_CHANNELS: usize = 64;

/// A max-pool after the convolution, with what follows it.
#[derive(Debug)]
pub(crate) struct PoolStage {
    pub(crate) sizes: PoolSizes,
    pub(crate) tail: Tail,
}

/// A convolution with what follows it.
#[derive(Debug)]
pub(crate) struct ConvKernel {
    pub(crate) shape: Shape,
    pub(crate) input: Located,
    pub(crate) filter: Located,
    pub(crate) output: Located,
    pub(crate) tail: Tail,
    pub(crate) pool: Option<PoolStage>,
    pub(crate) tiling: Tiling,
    /// For each thread room for the patches and, with a pool, for the tile before it.
    pub(crate) scratch: Vec<[Located; 2]>,
}

/// How the output is cut into tiles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tiling {
    /// Rows of the final image (after the pool) per tile.
    rows: usize,
    /// Tiles per image.
    blocks: usize,
    /// Ranges of output channels.
    channel_ranges: usize,
}

impl Tiling {
    pub(crate) fn new(shape: &Shape, pool: Option<&PoolSizes>, threads: usize) -> Self {
        let final_h = pool.map_or(shape.out_h, |pool| pool.out_h() as usize);
        let per_row = shape.out_w * shape.depth().max(shape.out_channels);
        let fitting = (PATCH_NUMBERS / per_row.max(1)).max(1);
        let rows = match pool {
            None => fitting,
            // Rows of the convolution that this many pooled rows need.
            Some(pool) => (fitting.saturating_sub(pool.window as usize) / pool.stride as usize) + 1,
        };
        // As even as the threads: a last tile of half the size would keep the others waiting.
        let least = final_h.div_ceil(rows);
        let wanted = if shape.images >= threads { 1 } else { threads.div_ceil(shape.images) };
        let mut blocks = least.next_multiple_of(wanted).min(final_h);
        let mut channel_ranges = 1;
        if shape.images * least < threads
            && shape.groups == 1
            && shape.out_channels / threads >= MIN_CHANNELS
        {
            // Few large tiles with many filters: each thread reads only its own filters.
            blocks = least;
            channel_ranges = threads;
        }
        let rows = final_h.div_ceil(blocks);
        Self { rows, blocks: final_h.div_ceil(rows), channel_ranges }
    }

    fn len(&self, images: usize) -> usize {
        images * self.blocks * self.channel_ranges
    }
}

/// Where a tile lies.
struct Tile {
    image: usize,
    /// Rows of the final image.
    rows: Range<usize>,
    /// Rows of the convolution's image that they need.
    conv_rows: Range<usize>,
    channels: Range<usize>,
}

impl ConvKernel {
    /// Numbers of scratch that a thread needs: for patches, and for the tile before the pool.
    pub(crate) fn scratch_numbers(
        shape: &Shape,
        pool: Option<&PoolSizes>,
        tiling: &Tiling,
    ) -> [usize; 2] {
        let conv_rows = pool.map_or(tiling.rows, |pool| {
            ((tiling.rows - 1) * pool.stride as usize + pool.window as usize).min(shape.out_h)
        });
        let pixels = conv_rows * shape.out_w;
        let patches = if shape.core() == Core::Gathered { pixels * shape.depth() } else { 0 };
        [patches, if pool.is_some() { pixels * shape.out_channels } else { 0 }]
    }

    fn tile(&self, index: usize) -> Tile {
        let Tiling { rows, blocks, channel_ranges } = self.tiling;
        let image = index / (blocks * channel_ranges);
        let range = index / blocks % channel_ranges;
        let start = index % blocks * rows;
        let (final_h, conv_rows) = match &self.pool {
            None => (self.shape.out_h, None),
            Some(stage) => (stage.sizes.out_h() as usize, Some(stage.sizes)),
        };
        let rows = start..(start + rows).min(final_h);
        let conv_rows = match conv_rows {
            None => rows.clone(),
            Some(pool) => {
                let (stride, pad) = (pool.stride as usize, pool.pad as usize);
                let first = (rows.start * stride).saturating_sub(pad);
                let end = (rows.end - 1) * stride + pool.window as usize;
                first..end.saturating_sub(pad).min(self.shape.out_h)
            }
        };
        Tile {
            image,
            rows,
            conv_rows,
            channels: share(self.shape.out_channels, range, channel_ranges),
        }
    }
}

impl Kernel for ConvKernel {
    fn name(&self) -> String {
        let core = match self.shape.core() {
            Core::Pointwise => "conv2d: 1x1 gemm",
            Core::Gathered => "conv2d: row-blocked im2col and gemm",
            Core::Depthwise => "conv2d: direct depthwise",
        };
        let mut name = core.to_owned();
        if !self.tail.is_empty() {
            name += &format!(", {} on each tile in cache", self.tail.name());
        }
        if let Some(stage) = &self.pool {
            name += ", max_pool from cache";
            if !stage.tail.is_empty() {
                name += &format!(", {} on the pooled tile", stage.tail.name());
            }
        }
        name
    }

    fn locate(&mut self, tensors: &Tensors) {
        for located in [&mut self.input, &mut self.filter, &mut self.output] {
            located.locate(tensors);
        }
        self.tail.locate(tensors);
        if let Some(stage) = &mut self.pool {
            stage.tail.locate(tensors);
        }
        self.scratch.iter_mut().flatten().for_each(|part| part.locate(tensors));
    }

    unsafe fn run(&self, pool: &Pool) {
        // SAFETY: the caller's guarantee; the threads have not started.
        unsafe {
            self.tail.fold(pool.arch());
            if let Some(stage) = &self.pool {
                stage.tail.fold(pool.arch());
            }
        }
        let (arch, threads) = (pool.arch(), pool.threads());
        pool.run(&|thread| {
            for index in share(self.tiling.len(self.shape.images), thread, threads) {
                // SAFETY: tiles are disjoint parts of the output, scratch belongs to a thread.
                unsafe { self.compute(arch, thread, &self.tile(index)) };
            }
        });
    }
}

impl ConvKernel {
    /// # Safety
    ///
    /// The tile of the output, and the scratch of `thread`, must belong to the calling thread.
    unsafe fn compute(&self, arch: Arch, thread: usize, tile: &Tile) {
        let Shape { out_h, out_w, out_channels, .. } = self.shape;
        let first_pixel = (tile.image * out_h + tile.conv_rows.start) * out_w;
        let element = first_pixel * out_channels + tile.channels.start;
        // Without a pool the tile is part of the output; with one it is scratch.
        let (data, stride) = match &self.pool {
            None => (self.output.at(element), out_channels),
            Some(_) => (self.scratch[thread][1].at(0), tile.channels.len()),
        };
        let block = Block {
            data,
            stride,
            rows: tile.conv_rows.len() * out_w,
            first: Stretch { col: tile.channels.start, element, len: tile.channels.len() },
            matrix_cols: out_channels,
        };
        // SAFETY: the caller's guarantee; everything else is only read.
        unsafe {
            if self.shape.core() == Core::Depthwise {
                self.convolve_depthwise(arch, tile, &block);
            } else {
                self.convolve(thread, tile, &block);
                self.tail.apply_to_block(arch, &block);
            }
            if let Some(stage) = &self.pool {
                self.max_pool(arch, tile, &block, stage);
            }
        }
    }

    /// # Safety
    ///
    /// The block must be valid and belong to this thread.
    unsafe fn convolve(&self, thread: usize, tile: &Tile, block: &Block) {
        let shape = &self.shape;
        let Shape { in_channels, out_w, out_channels, groups, .. } = *shape;
        let image = self.image(tile);
        let core = shape.core();
        let (depth, pixels) = (shape.depth(), block.rows);
        let channels = shape.group_channels();
        let filters = out_channels / groups;
        for group in 0..groups {
            let left = if core == Core::Pointwise {
                let first = tile.conv_rows.start * out_w * in_channels + group * channels;
                View::rows(image.wrapping_add(first), in_channels)
            } else {
                let patches = self.scratch[thread][0].at(0);
                // SAFETY: the scratch holds the patches of the largest tile.
                unsafe { gather(shape, image, group, tile.conv_rows.clone(), patches) };
                View::rows(patches, depth)
            };
            // One group: the tile's range of channels. Several: all channels of each.
            let (first, count) = if groups == 1 {
                (tile.channels.start, tile.channels.len())
            } else {
                (group * filters, filters)
            };
            let target = block.data.wrapping_add(first - tile.channels.start);
            let right = View::rows(self.filter.at(first), out_channels);
            // SAFETY: the caller's guarantee; the filter is a matrix of depth x out_channels.
            unsafe { gemm([pixels, depth, count], target, block.stride, left, right, 1.0) };
        }
    }

    /// Sums the taps of a tile, and applies the tail to a few pixels at a time while they are in the
    /// first-level cache.
    ///
    /// # Safety
    ///
    /// The block must be valid and belong to this thread.
    unsafe fn convolve_depthwise(&self, arch: Arch, tile: &Tile, block: &Block) {
        /// Numbers of the result that the tail is applied to at a time, 16 KiB: half of the
        /// smallest first-level cache of current processors.
        const PART: usize = 4096;
        let shape = &self.shape;
        let out_w = shape.out_w;
        let part = (PART / shape.out_channels.max(1)).clamp(1, out_w.max(1));
        for (y, row) in tile.conv_rows.clone().zip(0..) {
            for start in (0..out_w).step_by(part) {
                let xs = start..(start + part).min(out_w);
                let pixel = row * out_w + start;
                let element = block.first.element + pixel * block.matrix_cols;
                let part = Block {
                    data: block.data.wrapping_add(pixel * block.stride),
                    rows: xs.len(),
                    first: Stretch { element, ..block.first },
                    ..*block
                };
                let (image, target) = (self.image(tile), part.data);
                // Groups are not shared among threads, so the block has all channels.
                arch.dispatch(Depthwise { shape, image, filter: self.filter, y, xs, target });
                // SAFETY: the part is one of the block.
                unsafe { self.tail.apply_to_block(arch, &part) };
            }
        }
    }

    /// The first number of the image that a tile reads.
    fn image(&self, tile: &Tile) -> *const f32 {
        let Shape { in_h, in_w, in_channels, .. } = self.shape;
        self.input.at(tile.image * in_h * in_w * in_channels).cast_const()
    }

    /// # Safety
    ///
    /// The block must hold the tile's rows of the convolution; the tile must belong to this
    /// thread.
    unsafe fn max_pool(&self, arch: Arch, tile: &Tile, block: &Block, stage: &PoolStage) {
        let out_channels = self.shape.out_channels;
        let (final_h, final_w) = (stage.sizes.out_h() as usize, stage.sizes.out_w() as usize);
        let pixel = (tile.image * final_h + tile.rows.start) * final_w;
        let element = pixel * out_channels + tile.channels.start;
        let target = self.output.at(element);
        let image = Image {
            data: block.data,
            first_row: tile.conv_rows.start,
            stride: block.stride,
            channels: tile.channels.len(),
        };
        let pooled = Block {
            data: target,
            stride: out_channels,
            rows: tile.rows.len() * final_w,
            first: Stretch { col: tile.channels.start, element, len: tile.channels.len() },
            matrix_cols: out_channels,
        };
        // The image holds every row that the pooled rows need.
        arch.dispatch(PoolRows {
            sizes: &stage.sizes,
            image: &image,
            rows: tile.rows.clone(),
            target,
            target_stride: out_channels,
        });
        // SAFETY: the caller's guarantee.
        unsafe { stage.tail.apply_to_block(arch, &pooled) };
    }
}
