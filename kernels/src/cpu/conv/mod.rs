//! Convolution of NHWC images with a pointwise tail and a max-pool.
//!
//! A tile is a few rows of one output image and a range of output channels. The windows of its pixels
//! are multiplied with the filters as they lie in the image; those of a group of channels are gathered
//! first, and a depthwise convolution sums its taps. The tail is applied while the tile is hot, and so
//! is the pool, whose input then never leaves the cache. With nothing after it, this is the unfused
//! convolution: the same core.
//!
//! Sums are f32. They stay in a tile that is f32, where the first ops are applied with them; else they
//! wait in a room for a panel of them, or for a few pixels, and are rounded once when the tail has been
//! applied. A tile before a pool is f32 in any case.

mod compute;
mod depthwise;
mod direct;
mod patches;
mod shape;
mod tiling;

use std::ops::Range;

use fusion_cost_model::DType;
use fusion_cost_model::kernel::PoolSizes;

pub(crate) use self::shape::{Core, Shape};
pub(crate) use self::tiling::Tiling;
use super::element::{Element, Left};
use super::epilogue::FEW_ROWS;
use super::gemm::share;
use super::kernel::{Kernel, Located};
use super::panels::Panels;
use super::pool::Pool;
use super::strip::Cut;
use super::tail::Tail;
use super::tensors::Tensors;

/// A max-pool after the convolution, with what follows it.
#[derive(Debug)]
pub(crate) struct PoolStage<E> {
    pub(crate) sizes: PoolSizes,
    pub(crate) tail: Tail<E>,
}

/// What a thread has room for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room<E> {
    /// The rows of the image with padding, or the patches.
    pub(crate) input: Located<E>,
    /// The tile before a pool.
    pub(crate) tile: Located,
    /// Sums that wait, where the output is not f32: of a panel, of a few pixels, or of the pooled tile
    /// if ops follow the pool.
    pub(crate) sums: Located,
}

/// A convolution with what follows it.
#[derive(Debug)]
pub(crate) struct ConvKernel<E: Left, O = E> {
    pub(crate) shape: Shape,
    pub(crate) input: Located<E>,
    pub(crate) filter: Located<E::Weight>,
    /// How the filters are packed: those of a direct convolution are.
    pub(crate) panels: Option<Panels>,
    /// How filters that are not packed are cut, where the `gemm` crate does not multiply them.
    pub(crate) cut: Cut,
    pub(crate) output: Located<O>,
    pub(crate) tail: Tail<E::Between>,
    pub(crate) pool: Option<PoolStage<E::Between>>,
    pub(crate) tiling: Tiling,
    /// What all sums are multiplied with: 1 for those of floating-point numbers.
    pub(crate) scale: f32,
    /// For each thread.
    pub(crate) rooms: Vec<Room<E>>,
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

/// Numbers of the result that the tail of a depthwise convolution is applied to at a time, 16 KiB: half
/// of the smallest first-level cache of current processors.
const PART: usize = 4096;

impl<E: Left, O: Element> ConvKernel<E, O> {
    /// Numbers of the parts of a [`Room`], for panels of `width` columns.
    pub(crate) fn room_numbers(
        shape: &Shape,
        pool: Option<&PoolStage<E::Between>>,
        tiling: &Tiling,
        width: usize,
    ) -> [usize; 3] {
        let sizes = pool.map(|stage| stage.sizes);
        let conv_rows = sizes.map_or(tiling.rows, |pool| {
            ((tiling.rows - 1) * pool.stride as usize + pool.window as usize).min(shape.out_h)
        });
        let pixels = conv_rows * shape.out_w;
        let input = match shape.core() {
            Core::Gathered => pixels * shape.depth(),
            Core::Direct if shape.pad > 0 => shape.padded_rows(conv_rows) * shape.padded_row(),
            Core::Direct | Core::Depthwise => 0,
        };
        let tile = if pool.is_some() { pixels * shape.out_channels } else { 0 };
        let sums = match (O::DTYPE, pool, shape.core()) {
            (DType::F32, ..) => 0,
            (_, Some(stage), _) if stage.tail.is_empty() => 0,
            (_, Some(stage), _) => tiling.rows * stage.sizes.out_w() as usize * shape.out_channels,
            (_, None, Core::Depthwise) => PART.max(2 * shape.out_channels),
            (_, None, Core::Direct | Core::Gathered) => pixels * width,
        };
        [input, tile, sums]
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

impl<E: Left, O: Element> Kernel for ConvKernel<E, O> {
    fn name(&self) -> String {
        let core = match self.shape.core() {
            Core::Direct => "conv2d: direct, packed ",
            Core::Gathered if E::DTYPE == DType::F32 => "conv2d: row-blocked im2col and gemm",
            Core::Gathered => "conv2d: row-blocked im2col and panels",
            Core::Depthwise => "conv2d: direct depthwise",
        };
        let mut name = core.to_owned();
        name += self.panels.map_or("", |panels| panels.cut.name());
        match self.shape.core() {
            _ if self.tail.is_empty() => {}
            Core::Direct => name += &self.tail.places::<E>(FEW_ROWS),
            Core::Depthwise => name += &self.tail.places::<E>("in registers"),
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
        self.input.locate(tensors);
        self.filter.locate(tensors);
        self.output.locate(tensors);
        self.tail.locate(tensors);
        if let Some(stage) = &mut self.pool {
            stage.tail.locate(tensors);
        }
        for room in &mut self.rooms {
            room.input.locate(tensors);
            room.tile.locate(tensors);
            room.sums.locate(tensors);
        }
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
                // SAFETY: tiles are disjoint parts of the output, a room belongs to a thread.
                unsafe { self.compute(arch, thread, &tile, before.as_ref()) };
                before = Some(tile);
            }
        });
    }
}
