//! The sizes of a convolution, and which core they call for.

use fusion_cost_model::ConvSizes;

/// The sizes of a convolution as the kernel uses them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) images: usize,
    pub(crate) in_h: usize,
    pub(crate) in_w: usize,
    pub(crate) in_channels: usize,
    pub(crate) out_h: usize,
    pub(crate) out_w: usize,
    pub(crate) out_channels: usize,
    pub(super) r: usize,
    pub(super) s: usize,
    pub(super) stride: usize,
    pub(super) pad: usize,
    pub(super) groups: usize,
}

impl From<ConvSizes> for Shape {
    fn from(sizes: ConvSizes) -> Self {
        Self {
            images: sizes.n as usize,
            in_h: sizes.h as usize,
            in_w: sizes.w as usize,
            in_channels: sizes.c as usize,
            out_h: sizes.out_h() as usize,
            out_w: sizes.out_w() as usize,
            out_channels: sizes.k as usize,
            r: sizes.r as usize,
            s: sizes.s as usize,
            stride: sizes.stride as usize,
            pad: sizes.pad as usize,
            groups: sizes.groups as usize,
        }
    }
}

/// How the core computes a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Core {
    /// The windows of the pixels are the rows of a GEMM, as they lie in the image.
    Direct,
    /// The windows of a group of channels are gathered first.
    Gathered,
    /// One filter per channel: a sum of taps, not a GEMM.
    Depthwise,
}

impl Shape {
    pub(super) fn group_channels(&self) -> usize {
        self.in_channels / self.groups
    }

    /// Terms in the sum of one output.
    pub(crate) fn depth(&self) -> usize {
        self.r * self.s * self.group_channels()
    }

    pub(crate) fn core(&self) -> Core {
        if self.group_channels() == 1 && self.in_channels == self.out_channels {
            Core::Depthwise
        } else if self.groups == 1 {
            Core::Direct
        } else {
            Core::Gathered
        }
    }

    /// Numbers of a window that lie side by side in the image.
    pub(crate) fn run(&self) -> usize {
        self.s * self.in_channels
    }

    /// Numbers in a row of the image with its padding.
    pub(super) fn padded_row(&self) -> usize {
        (self.in_w + 2 * self.pad) * self.in_channels
    }

    /// Rows of the image with its padding that this many rows of the output need.
    pub(super) fn padded_rows(&self, out_rows: usize) -> usize {
        out_rows.saturating_sub(1) * self.stride + self.r
    }
}
