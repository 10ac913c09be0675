//! How a kernel is launched: what a plan says and a driver does.

use std::fmt;

use super::tensors::TensorId;

/// The blocks and threads of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LaunchShape {
    /// Blocks along x, y and z.
    pub(crate) grid: [u32; 3],
    /// Threads of a block, along x.
    pub(crate) threads: u32,
    /// Bytes of shared memory beyond those that the kernel declares.
    pub(crate) shared_bytes: u32,
    /// Whether all blocks must be resident at once, because they wait for each other.
    pub(crate) cooperative: bool,
    /// How many neighbouring blocks reach each other's shared memory, which the kernel says itself;
    /// the grid is a multiple of it.
    pub(crate) cluster: u32,
}

impl fmt::Display for LaunchShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { grid: [x, y, z], threads, shared_bytes, .. } = self;
        write!(
            f,
            "{x} x {y} x {z} blocks of {threads} threads, {shared_bytes} bytes of shared memory"
        )
    }
}

/// A matrix that the TMA of sm_90a reads in boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TensorMap {
    /// The tensor.
    pub(crate) tensor: TensorId,
    /// Whether its numbers are bf16 and not f16.
    pub(crate) bf16: bool,
    /// Matrices one behind the other, at least 1.
    pub(crate) batches: u64,
    /// Rows of a matrix.
    pub(crate) rows: u64,
    /// Numbers in a row, which lie side by side; a multiple of 8.
    pub(crate) cols: u64,
    /// Rows of a box.
    pub(crate) box_rows: u32,
    /// Numbers in a row of a box: 64, so that a row is 128 bytes, which is how far the swizzle goes.
    pub(crate) box_cols: u32,
}
