//! How a tile of a convolution is computed, by each of the cores.

use std::ops::Range;

use pulp::Arch;

use super::super::element::{Element, Left};
use super::super::epilogue::Epilogue;
use super::super::factors::Factors;
use super::super::gemm::{View, gemm};
use super::super::max_pool::{Image, PoolRows};
use super::super::strip::{Source, Strip};
use super::super::tail::{Block, Rows, Stretch};
use super::depthwise::{Depthwise, takes_two};
use super::direct::Direct;
use super::patches::gather;
use super::{ConvKernel, Core, PART, PoolStage, Room, Shape, Tile, keep};

impl<E: Left, O: Element> ConvKernel<E, O> {
    /// # Safety
    ///
    /// The tile of the output, and the room of `thread`, must belong to the calling thread, and the
    /// tile `before` be what it computed last.
    pub(super) unsafe fn compute(
        &self,
        arch: Arch,
        thread: usize,
        tile: &Tile,
        before: Option<&Tile>,
    ) {
        let Shape { out_h, out_w, out_channels, .. } = self.shape;
        let first_pixel = (tile.image * out_h + tile.conv_rows.start) * out_w;
        let element = first_pixel * out_channels + tile.channels.start;
        let channels = tile.channels.len();
        let block = Block {
            data: self.output.at(element),
            stride: out_channels,
            rows: tile.conv_rows.len() * out_w,
            first: Stretch { col: tile.channels.start, element, len: channels },
            matrix_cols: out_channels,
        };
        // SAFETY: the caller's guarantee; everything else is only read.
        unsafe {
            // Without a pool the tile is part of the output; with one it waits in a room.
            let Some(stage) = &self.pool else {
                self.convolve_with_tail(arch, thread, tile, &block);
                return;
            };
            let data = self.rooms[thread].tile.at(0);
            let block = Block { stride: channels, ..block.at(data) };
            let kept = before.map_or(0, |before| keep(before, tile, data, out_w * channels));
            let (row, first) = (kept * out_w, block.first);
            let fresh = Block {
                data: data.wrapping_add(row * channels),
                rows: block.rows - row,
                first: Stretch { element: first.element + row * out_channels, ..first },
                ..block
            };
            let conv_rows = tile.conv_rows.start + kept..tile.conv_rows.end;
            let of_fresh = Tile { conv_rows, ..tile.clone() };
            if fresh.rows > 0 {
                self.convolve_with_tail(arch, thread, &of_fresh, &fresh);
            }
            self.max_pool(arch, thread, tile, &block, stage);
        }
    }

    /// # Safety
    ///
    /// The block must be valid and belong to this thread.
    unsafe fn convolve_with_tail<T: Element>(
        &self,
        arch: Arch,
        thread: usize,
        tile: &Tile,
        block: &Block<T>,
    ) {
        let Self { shape, filter, ref tail, .. } = *self;
        let room = self.rooms[thread];
        // SAFETY: the caller's guarantee; the room holds the rows of the largest tile.
        unsafe {
            match (&self.panels, shape.core()) {
                (Some(panels), _) => {
                    let direct = Direct {
                        shape: &shape,
                        image: self.image(tile),
                        filter,
                        panels,
                        scale: &self.scale,
                        tail,
                        rows: tile.conv_rows.clone(),
                        channels: tile.channels.clone(),
                        padded: room.input.at(0),
                        sums: room.sums.at(0),
                    };
                    direct.compute(arch, block);
                }
                (None, Core::Depthwise) => self.convolve_depthwise(arch, thread, tile, block),
                (None, _) => self.convolve_groups(arch, thread, tile, block),
            }
        }
    }

    /// One group of channels after the other.
    ///
    /// # Safety
    ///
    /// The block must be valid and belong to this thread.
    unsafe fn convolve_groups<T: Element>(
        &self,
        arch: Arch,
        thread: usize,
        tile: &Tile,
        block: &Block<T>,
    ) {
        let Shape { out_channels, groups, .. } = self.shape;
        let (depth, filters) = (self.shape.depth(), out_channels / groups);
        let Room { input, sums, .. } = self.rooms[thread];
        let patches = input.at(0);
        for group in 0..groups {
            let filter = self.filter.at(group * filters);
            // The filter is a matrix of depth x out_channels.
            // SAFETY: the caller's guarantee; the room holds the patches of the largest tile, and the
            // sums of a panel of it.
            unsafe {
                gather(&self.shape, self.image(tile), group, tile.conv_rows.clone(), patches);
                let in_f32 = (E::as_f32(patches), E::Weight::as_f32(filter), T::as_f32(block.data));
                if let (Some(patches), Some(filter), Some(target)) = in_f32 {
                    let left = View::rows(patches, depth);
                    let right = View::rows(filter, out_channels);
                    let target = target.wrapping_add(group * filters);
                    gemm([block.rows, depth, filters], target, block.stride, left, right, 1.0);
                    continue;
                }
                for col in (0..filters).step_by(self.cut.width) {
                    let cols = self.cut.cols(filters, col);
                    let columns = block.columns(group * filters + col, cols);
                    let (target, stride) = match T::as_f32(columns.data) {
                        Some(sums) => (sums, block.stride),
                        None => (sums.at(0), self.cut.width),
                    };
                    let strip = Strip {
                        rows: block.rows,
                        k: depth,
                        cols,
                        source: Source::rows(patches, depth),
                        panel: filter.wrapping_add(col).cast_const(),
                        panel_stride: out_channels,
                        is_padded: false,
                        target,
                        target_stride: stride,
                        factors: Factors::all(&raw const self.scale),
                        epilogue: Epilogue::NONE,
                        depth: self.cut.depth,
                    };
                    strip.compute(arch);
                    if T::as_f32(columns.data).is_none() {
                        let sums = Rows { data: target.cast_const(), stride };
                        self.tail.apply_into(arch, sums, &columns);
                    }
                }
            }
        }
        if let Some(data) = T::as_f32(block.data) {
            // SAFETY: the caller's guarantee.
            unsafe { self.tail.apply_to_block(arch, &block.at(data)) };
        }
    }

    /// Sums the taps of a tile, two rows at a time where it can, and applies the ops after the epilogue
    /// to a few pixels at a time while they are in the first-level cache.
    ///
    /// # Safety
    ///
    /// The block must be valid and belong to this thread.
    unsafe fn convolve_depthwise<T: Element>(
        &self,
        arch: Arch,
        thread: usize,
        tile: &Tile,
        block: &Block<T>,
    ) {
        let (shape, image, filter) = (&self.shape, self.image(tile), self.filter);
        let Shape { out_w, out_channels, .. } = *shape;
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
            let pixels = (PART / rows / out_channels.max(1)).clamp(1, out_w.max(1));
            for start in (0..out_w).step_by(pixels) {
                let xs = start..(start + pixels).min(out_w);
                // Groups are not shared among threads, so the block has all channels.
                let (target, step) = match T::as_f32(part(row, &xs).data) {
                    Some(sums) => (sums, out_w * block.stride),
                    None => (self.rooms[thread].sums.at(0), xs.len() * out_channels),
                };
                let depthwise = Depthwise {
                    shape,
                    image,
                    filter,
                    y,
                    xs: xs.clone(),
                    target,
                    scale: &self.scale,
                    epilogue: self.tail.epilogue::<E>(block.first.col),
                    below: (rows == 2).then_some(step),
                };
                depthwise.compute(arch);
                for below in 0..rows {
                    let part = part(row + below, &xs);
                    // SAFETY: the part is one of the block, and its sums lie where they were left.
                    unsafe {
                        if let Some(data) = T::as_f32(part.data) {
                            self.tail.apply_after_epilogue::<E>(arch, &part.at(data));
                        } else {
                            let data = target.wrapping_add(below * step).cast_const();
                            let sums = Rows { data, stride: out_channels };
                            self.tail.apply_into(arch, sums, &part);
                        }
                    }
                }
            }
            row += rows;
        }
    }

    /// The first number of the image that a tile reads.
    fn image(&self, tile: &Tile) -> *const E {
        let Shape { in_h, in_w, in_channels, .. } = self.shape;
        self.input.at(tile.image * in_h * in_w * in_channels).cast_const()
    }

    /// # Safety
    ///
    /// The block must hold the tile's rows of the convolution; the tile must belong to this
    /// thread.
    unsafe fn max_pool(
        &self,
        arch: Arch,
        thread: usize,
        tile: &Tile,
        block: &Block,
        stage: &PoolStage<E::Between>,
    ) {
        let out_channels = self.shape.out_channels;
        let (final_h, final_w) = (stage.sizes.out_h() as usize, stage.sizes.out_w() as usize);
        let pixel = (tile.image * final_h + tile.rows.start) * final_w;
        let element = pixel * out_channels + tile.channels.start;
        let image = Image {
            data: block.data.cast_const(),
            first_row: tile.conv_rows.start,
            stride: block.stride,
            channels: tile.channels.len(),
        };
        let pooled = Block {
            data: self.output.at(element),
            stride: out_channels,
            rows: tile.rows.len() * final_w,
            first: Stretch { col: tile.channels.start, element, len: tile.channels.len() },
            matrix_cols: out_channels,
        };
        // The image holds every row that the pooled rows need.
        let (sizes, rows, image) = (&stage.sizes, tile.rows.clone(), &image);
        if stage.tail.is_empty() {
            let (target, target_stride) = (pooled.data, pooled.stride);
            arch.dispatch(PoolRows { sizes, image, rows, target, target_stride });
            return;
        }
        let (target, target_stride) = match O::as_f32(pooled.data) {
            Some(target) => (target, pooled.stride),
            None => (self.rooms[thread].sums.at(0), image.channels),
        };
        arch.dispatch(PoolRows { sizes, image, rows, target, target_stride });
        let sums = Rows { data: target.cast_const(), stride: target_stride };
        // SAFETY: the caller's guarantee; where the sums are the output, each is read before it is
        // written.
        unsafe { stage.tail.apply_into(arch, sums, &pooled) };
    }
}
