//! The sizes of a problem by name: one type for each form of chain.
//!
//! They can be written as literals, so that the compiler finds a size that is missing. A form that
//! gets another size is a change that every caller must see.

/// Sizes of a chain of pointwise and row ops: a matrix `[m, n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowsSizes {
    /// Rows.
    pub m: u64,
    /// Columns.
    pub n: u64,
}

/// Sizes of a linear op: X `[m, k]`, W `[k, n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinearSizes {
    /// Rows.
    pub m: u64,
    /// Input features.
    pub k: u64,
    /// Output features.
    pub n: u64,
}

/// Sizes of two linear ops: X `[m, k]`, W1 `[k, n]`, W2 `[n, o]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MlpSizes {
    /// Rows.
    pub m: u64,
    /// Input features.
    pub k: u64,
    /// Hidden features.
    pub n: u64,
    /// Output features.
    pub o: u64,
}

/// Sizes of a convolution, by the letters of cuDNN, MIOpen and CUTLASS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvSizes {
    /// Images.
    pub n: u64,
    /// Input channels.
    pub c: u64,
    /// Input height.
    pub h: u64,
    /// Input width.
    pub w: u64,
    /// Output channels.
    pub k: u64,
    /// Filter height.
    pub r: u64,
    /// Filter width.
    pub s: u64,
    /// Stride of the filter.
    pub stride: u64,
    /// Zero padding on each side.
    pub pad: u64,
    /// Groups of channels.
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

/// Sizes of a max-pool by itself, apart from its window: images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageSizes {
    /// Images.
    pub n: u64,
    /// Channels.
    pub c: u64,
    /// Height.
    pub h: u64,
    /// Width.
    pub w: u64,
}

/// The window of a max-pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolWindow {
    /// Height and width.
    pub size: u64,
    /// Stride.
    pub stride: u64,
    /// Padding on each side.
    pub pad: u64,
}

/// A max-pool over an image of `h x w`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSizes {
    /// Height of the image.
    pub h: u64,
    /// Width of the image.
    pub w: u64,
    /// Height and width of the window.
    pub window: u64,
    /// Stride of the window.
    pub stride: u64,
    /// Padding on each side.
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

/// Sizes of attention: Q `[b h, q, d]`, K and V `[b kvh, kv, d]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttentionSizes {
    /// Batch.
    pub b: u64,
    /// Heads.
    pub h: u64,
    /// Queries.
    pub q: u64,
    /// Keys and values.
    pub kv: u64,
    /// Features of a head.
    pub d: u64,
    /// Heads of keys and values: as many as heads of queries, or fewer, each shared by as many
    /// neighbouring heads of queries (grouped-query attention; multi-query with one).
    pub kvh: u64,
    /// Whether the softmax sees, of each query, no key after its own. The last query is at the last
    /// key, so that query `i` sees the first `kv - q + i + 1` keys. With a single query that is all
    /// of them, and a problem with one is the same problem with and without.
    pub causal: bool,
}

impl AttentionSizes {
    /// Heads of queries that share a head of keys and values.
    #[must_use]
    pub const fn group(&self) -> u64 {
        self.h / self.kvh
    }

    /// How many keys a query sees.
    #[must_use]
    pub const fn seen(&self, query: u64) -> u64 {
        if self.causal { self.kv - self.q + query + 1 } else { self.kv }
    }

    /// Pairs of a query and a key that it sees, in all heads.
    #[must_use]
    pub const fn pairs(&self) -> u64 {
        let unseen = if self.causal { self.q * (self.q - 1) / 2 } else { 0 };
        self.b * self.h * (self.q * self.kv - unseen)
    }
}
