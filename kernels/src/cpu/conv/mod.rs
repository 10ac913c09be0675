//! Convolution of NHWC images with a pointwise tail and a max-pool.
//!
//! A tile is a few rows of one output image and a range of output channels. The windows of its pixels
//! are multiplied with the filters as they lie in the image; those of a group of channels are gathered
//! first, and a depthwise convolution sums its taps. The tail is applied while the tile is hot, and so
//! is the pool, whose input then never leaves the cache. With nothing after it, this is the unfused
//! convolution: the same core.

mod depthwise;
mod direct;
mod patches;
mod shape;
mod tiling;

use std::ops::Range;

use fusion_cost_model::kernel::PoolSizes;
use pulp::Arch;

use self::depthwise::{Depthwise, takes_two};
use self::direct::Direct;
use self::patches::gather;
pub(crate) use self::shape::{Core, Shape};
pub(crate) use self::tiling::Tiling;
use super::epilogue::FEW_ROWS;
use super::gemm::{View, gemm, share};
use super::kernel::{Kernel, Located};
use super::max_pool::{Image, PoolRows};
use super::panels::Panels;
use super::pool::Pool;
use super::tail::{Block, Stretch, Tail};
use super::tensors::Tensors;

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
    /// How the filters are packed: those of a direct convolution are.
    pub(crate) panels: Option<Panels>,
    pub(crate) output: Located,
    pub(crate) tail: Tail,
    pub(crate) pool: Option<PoolStage>,
    pub(crate) tiling: Tiling,
    /// For each thread room for the rows of the image with padding, or for the patches, and, with a
    /// pool, for the tile before it.
    pub(crate) scratch: Vec<[Located; 2]>,
}

/// Where a tile lies.
#[derive(Clone)]
struct Tile {
    image: usize,
    /// Rows of the final image.
    rows: Range<usize>,
    /// Rows of the convolution's image that they need.
    conv_rows: Range<usize>,
    channels: Range<usize>,
}

/// Moves the rows of the convolution that two neighbouring tiles both pool to where the second one
/// begins. Returns how many there are.
///
/// # Safety
///
/// The rows of the first tile must lie at `data`, `row` numbers each.
unsafe fn keep(before: &Tile, tile: &Tile, data: *mut f32, row: usize) -> usize {
    let is_neighbour = before.image == tile.image && before.channels == tile.channels;
    let shared = tile.conv_rows.start..before.conv_rows.end.min(tile.conv_rows.end);
    if !is_neighbour || before.conv_rows.start > shared.start {
        return 0;
    }
    let from = data.wrapping_add((shared.start - before.conv_rows.start) * row);
    // SAFETY: the caller's guarantee.
    unsafe { from.copy_to(data, shared.len() * row) };
    shared.len()
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
        let input = match shape.core() {
            Core::Gathered => pixels * shape.depth(),
            Core::Direct if shape.pad > 0 => shape.padded_rows(conv_rows) * shape.padded_row(),
            Core::Direct | Core::Depthwise => 0,
        };
        [input, if pool.is_some() { pixels * shape.out_channels } else { 0 }]
    }

    fn tile(&self, index: usize) -> Tile {
        let Tiling { blocks, channel_ranges, .. } = self.tiling;
        let image = index / (blocks * channel_ranges);
        let range = index / blocks % channel_ranges;
        let (final_h, conv_rows) = match &self.pool {
            None => (self.shape.out_h, None),
            Some(stage) => (stage.sizes.out_h() as usize, Some(stage.sizes)),
        };
        let rows = share(final_h, index % blocks, blocks);
        let conv_rows = match conv_rows {
            None => rows.clone(),
            Some(pool) => {
                let (stride, pad) = (pool.stride as usize, pool.pad as usize);
                let first = (rows.start * stride).saturating_sub(pad);
                let end = (rows.end - 1) * stride + pool.window as usize;
                first..end.saturating_sub(pad).min(self.shape.out_h)
            }
        };
        let channels = self.shape.out_channels;
        let width = self.panels.map_or(1, |panels| panels.cut.width);
        let panels = share(channels.div_ceil(width), range, channel_ranges);
        let channels = panels.start * width..(panels.end * width).min(channels);
        Tile { image, rows, conv_rows, channels }
    }
}

impl Kernel for ConvKernel {
    fn name(&self) -> String {
        let core = match self.shape.core() {
            Core::Direct => "conv2d: direct, packed panels",
            Core::Gathered => "conv2d: row-blocked im2col and gemm",
            Core::Depthwise => "conv2d: direct depthwise",
        };
        let mut name = core.to_owned();
        match self.shape.core() {
            _ if self.tail.is_empty() => {}
            Core::Direct => name += &self.tail.places(FEW_ROWS),
            Core::Depthwise => name += &self.tail.places("in registers"),
            Core::Gathered => name += &format!(", {} on each tile in cache", self.tail.name()),
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
            let mut before = None;
            for index in share(self.tiling.len(self.shape.images), thread, threads) {
                let tile = self.tile(index);
                // SAFETY: tiles are disjoint parts of the output, scratch belongs to a thread.
                unsafe { self.compute(arch, thread, &tile, before.as_ref()) };
                before = Some(tile);
            }
        });
    }
}

impl ConvKernel {
    /// # Safety
    ///
    /// The tile of the output, and the scratch of `thread`, must belong to the calling thread, and the
    /// tile `before` be what it computed last.
    unsafe fn compute(&self, arch: Arch, thread: usize, tile: &Tile, before: Option<&Tile>) {
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
            let Some(stage) = &self.pool else {
                self.convolve_with_tail(arch, thread, tile, &block);
                return;
            };
            let kept = before.map_or(0, |before| keep(before, tile, data, out_w * stride));
            let (row, first) = (kept * out_w, block.first);
            let fresh = Block {
                data: data.wrapping_add(row * stride),
                rows: block.rows - row,
                first: Stretch { element: first.element + row * out_channels, ..first },
                ..block
            };
            let conv_rows = tile.conv_rows.start + kept..tile.conv_rows.end;
            let of_fresh = Tile { conv_rows, ..tile.clone() };
            if fresh.rows > 0 {
                self.convolve_with_tail(arch, thread, &of_fresh, &fresh);
            }
            self.max_pool(arch, tile, &block, stage);
        }
    }

    /// # Safety
    ///
    /// The block must be valid and belong to this thread.
    unsafe fn convolve_with_tail(&self, arch: Arch, thread: usize, tile: &Tile, block: &Block) {
        // SAFETY: the caller's guarantee.
        unsafe {
            if self.shape.core() == Core::Depthwise {
                self.convolve_depthwise(arch, tile, block);
            } else {
                self.convolve(arch, thread, tile, block);
            }
        }
    }

    /// With the tail.
    ///
    /// # Safety
    ///
    /// The block must be valid and belong to this thread.
    unsafe fn convolve(&self, arch: Arch, thread: usize, tile: &Tile, block: &Block) {
        let shape = &self.shape;
        let Shape { out_channels, groups, .. } = *shape;
        let (image, rows) = (self.image(tile), tile.conv_rows.clone());
        let room = self.scratch[thread][0].at(0);
        if let Some(panels) = &self.panels {
            let (filter, channels) = (self.filter, tile.channels.clone());
            let tail = &self.tail;
            let direct =
                Direct { shape, image, filter, panels, tail, rows, channels, padded: room };
            // SAFETY: the caller's guarantee; the scratch holds the rows of the largest tile.
            unsafe {
                direct.compute(arch, block);
                tail.apply_after_epilogue(arch, block);
            }
            return;
        }
        let (depth, filters) = (shape.depth(), out_channels / groups);
        for group in 0..groups {
            // SAFETY: the scratch holds the patches of the largest tile.
            unsafe { gather(shape, image, group, rows.clone(), room) };
            let target = block.data.wrapping_add(group * filters);
            let (left, right) = (
                View::rows(room, depth),
                View::rows(self.filter.at(group * filters), out_channels),
            );
            // SAFETY: the caller's guarantee; the filter is a matrix of depth x out_channels.
            unsafe { gemm([block.rows, depth, filters], target, block.stride, left, right, 1.0) };
        }
        // SAFETY: the caller's guarantee.
        unsafe { self.tail.apply_to_block(arch, block) };
    }

    /// Sums the taps of a tile, two rows at a time where it can, and applies the ops after the epilogue
    /// to a few pixels at a time while they are in the first-level cache.
    ///
    /// # Safety
    ///
    /// The block must be valid and belong to this thread.
    unsafe fn convolve_depthwise(&self, arch: Arch, tile: &Tile, block: &Block) {
        /// Numbers of the result that the tail is applied to at a time, 16 KiB: half of the
        /// smallest first-level cache of current processors.
        const PART: usize = 4096;
        let (shape, image, filter) = (&self.shape, self.image(tile), self.filter);
        let out_w = shape.out_w;
        let part = |row: usize, xs: &Range<usize>| {
            let pixel = row * out_w + xs.start;
            let element = block.first.element + pixel * block.matrix_cols;
            Block {
                data: block.data.wrapping_add(pixel * block.stride),
                rows: xs.len(),
                first: Stretch { element, ..block.first },
                ..*block
            }
        };
        let mut row = 0;
        while row < tile.conv_rows.len() {
            let y = tile.conv_rows.start + row;
            let rows = if y + 1 < tile.conv_rows.end && takes_two(shape, y) { 2 } else { 1 };
            let pixels = (PART / rows / shape.out_channels.max(1)).clamp(1, out_w.max(1));
            for start in (0..out_w).step_by(pixels) {
                let xs = start..(start + pixels).min(out_w);
                let target = part(row, &xs).data;
                // Groups are not shared among threads, so the block has all channels.
                let below = (rows == 2).then_some(out_w * block.stride);
                arch.dispatch(Depthwise {
                    shape,
                    image,
                    filter,
                    y,
                    xs: xs.clone(),
                    target,
                    epilogue: self.tail.epilogue(block.first.col),
                    below,
                });
                for row in row..row + rows {
                    // SAFETY: the part is one of the block.
                    unsafe { self.tail.apply_after_epilogue(arch, &part(row, &xs)) };
                }
            }
            row += rows;
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
