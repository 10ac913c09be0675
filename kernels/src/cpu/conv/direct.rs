//! Convolution as a GEMM whose left side is the image itself: the rows are the windows of the pixels.
//!
//! In NHWC the numbers of a window that belong to one row of the filter lie side by side. So a window is
//! as many runs of numbers as the filter has rows, and nothing is gathered. An image with padding is
//! copied once, a few rows at a time, with zeros around it.

use std::ops::Range;

use pulp::Arch;

use super::super::element::{Element, Left};
use super::super::factors::Factors;
use super::super::kernel::Located;
use super::super::panels::Panels;
use super::super::strip::{Source, Strip};
use super::super::tail::{Block, Rows, Tail};
use super::shape::Shape;

/// Rows of a direct convolution. Made only by `ConvKernel::convolve`.
pub(super) struct Direct<'a, E: Left> {
    pub(super) shape: &'a Shape,
    /// The image's first number.
    pub(super) image: *const E,
    pub(super) filter: Located<E::Weight>,
    pub(super) panels: &'a Panels,
    /// What all sums are multiplied with.
    pub(super) scale: &'a f32,
    /// Its first ops are applied by the micro-kernel where sums stay in the block.
    pub(super) tail: &'a Tail<E::Between>,
    /// Rows of the output.
    pub(super) rows: Range<usize>,
    /// Output channels: whole panels, as far as there are channels.
    pub(super) channels: Range<usize>,
    /// Room for the rows of the image with padding around them, if there is some.
    pub(super) padded: *mut E,
    /// Room for the sums of a panel, where the block does not hold them.
    pub(super) sums: *mut f32,
}

impl<E: Left> Direct<'_, E> {
    /// With the tail.
    ///
    /// # Safety
    ///
    /// Image, filter and rooms must be valid, the block too, and it belongs to this thread as the rooms
    /// do.
    pub(super) unsafe fn compute<O: Element>(self, arch: Arch, block: &Block<O>) {
        let Shape { in_w, in_channels, out_w, out_channels, stride, pad, .. } = *self.shape;
        let row = self.shape.padded_row();
        let data = if pad == 0 {
            self.image.wrapping_add(self.rows.start * stride * in_w * in_channels)
        } else {
            // SAFETY: the caller's guarantee.
            unsafe { self.pad() };
            self.padded.cast_const()
        };
        let source = Source {
            data,
            stride: stride * in_channels,
            line: out_w,
            line_stride: stride * row,
            run: self.shape.run(),
            run_stride: row,
        };
        let Panels { k, cut, .. } = *self.panels;
        let in_block = O::as_f32(block.data);
        for col in self.channels.clone().step_by(cut.width) {
            let (place, panel_stride) = self.panels.place(col);
            let first = col - self.channels.start;
            let (target, target_stride) = match in_block {
                Some(sums) => (sums.wrapping_add(first), block.stride),
                None => (self.sums, cut.width),
            };
            let strip = Strip {
                rows: block.rows,
                k,
                cols: cut.cols(out_channels, col),
                source,
                panel: self.filter.at(place),
                panel_stride,
                is_padded: true,
                target,
                target_stride,
                factors: Factors::all(self.scale),
                epilogue: self.tail.epilogue::<E>(col),
                depth: cut.depth,
            };
            // SAFETY: the caller's guarantee; every window lies in the image or the room.
            unsafe {
                E::compute(strip, arch, cut);
                if in_block.is_none() {
                    let sums = Rows { data: target.cast_const(), stride: target_stride };
                    self.tail.apply_into(arch, sums, &block.columns(first, strip.cols));
                }
            }
        }
        if let Some(sums) = in_block {
            // SAFETY: the caller's guarantee.
            unsafe { self.tail.apply_after_epilogue::<E>(arch, &block.at(sums)) };
        }
    }

    /// Copies the rows of the image that the rows of the output need, with zeros around them.
    ///
    /// # Safety
    ///
    /// As for [`Self::compute`].
    unsafe fn pad(&self) {
        let Shape { in_h, in_w, in_channels, stride, pad, .. } = *self.shape;
        let row = self.shape.padded_row();
        let (sides, inside) = (pad * in_channels, in_w * in_channels);
        for y in 0..self.shape.padded_rows(self.rows.len()) {
            let target = self.padded.wrapping_add(y * row);
            let in_y = (self.rows.start * stride + y).wrapping_sub(pad);
            // SAFETY: the row is one of the room's, and of the image's where it has one.
            unsafe {
                if in_y >= in_h {
                    target.write_bytes(0, row);
                    continue;
                }
                target.write_bytes(0, sides);
                let source = self.image.add(in_y * inside);
                target.add(sides).copy_from_nonoverlapping(source, inside);
                target.add(sides + inside).write_bytes(0, sides);
            }
        }
    }
}
