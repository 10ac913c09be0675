//! The sizes of one kind of op each, as [`Sizes`](super::Sizes) gives them out.

/// Sizes of a linear layer: X `[m, k]`, W `[k, n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the letters are explained by the size keys")]
pub struct LinearSizes {
    pub m: u64,
    pub k: u64,
    pub n: u64,
}

/// Sizes of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the letters are explained by the size keys")]
pub struct ConvSizes {
    pub n: u64,
    pub c: u64,
    pub h: u64,
    pub w: u64,
    pub k: u64,
    pub r: u64,
    pub s: u64,
    pub stride: u64,
    pub pad: u64,
    pub groups: u64,
}

impl ConvSizes {
    /// Height of the output image.
    #[must_use]
    pub const fn out_h(&self) -> u64 {
        (self.h + 2 * self.pad - self.r) / self.stride + 1
    }

    /// Width of the output image.
    #[must_use]
    pub const fn out_w(&self) -> u64 {
        (self.w + 2 * self.pad - self.s) / self.stride + 1
    }
}

/// Sizes of a max-pool over an image of `h x w`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the letters are explained by the size keys")]
pub struct PoolSizes {
    pub h: u64,
    pub w: u64,
    pub window: u64,
    pub stride: u64,
    pub pad: u64,
}

impl PoolSizes {
    /// Height of the output image.
    #[must_use]
    pub const fn out_h(&self) -> u64 {
        (self.h + 2 * self.pad - self.window) / self.stride + 1
    }

    /// Width of the output image.
    #[must_use]
    pub const fn out_w(&self) -> u64 {
        (self.w + 2 * self.pad - self.window) / self.stride + 1
    }
}

/// Sizes of attention: Q `[b h, q, d]`, K and V `[b h, kv, d]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the letters are explained by the size keys")]
pub struct AttentionSizes {
    pub b: u64,
    pub h: u64,
    pub q: u64,
    pub kv: u64,
    pub d: u64,
}
