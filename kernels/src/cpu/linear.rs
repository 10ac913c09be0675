//! A linear layer with a pointwise tail: `Y = tail(X W)`.

use pulp::Arch;

use super::kernel::{Kernel, Located};
use super::pool::Pool;
use super::product::{Grid, View, product, share};
use super::tail::{Block, Stretch, Tail};
use super::tensors::Tensors;

/// `Y = tail(X W)` over tiles of Y, the tail applied to each tile while it is in cache. With an
/// empty tail it is the unfused linear kernel: the same product on the same tiles.
#[derive(Debug)]
pub(crate) struct LinearKernel {
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) x: Located,
    pub(crate) w: Located,
    pub(crate) y: Located,
    pub(crate) tail: Tail,
    pub(crate) grid: Grid,
}

impl Kernel for LinearKernel {
    fn name(&self) -> String {
        if self.tail.is_empty() {
            "linear: tiled gemm".to_owned()
        } else {
            format!("linear: tiled gemm, {} on each tile in cache", self.tail.name())
        }
    }

    fn locate(&mut self, tensors: &Tensors) {
        for located in [&mut self.x, &mut self.w, &mut self.y] {
            located.locate(tensors);
        }
        self.tail.locate(tensors);
    }

    unsafe fn run(&self, pool: &mut Pool) {
        // SAFETY: the caller's guarantee; the threads have not started.
        unsafe { self.tail.fold() };
        let (arch, threads) = (Arch::new(), pool.threads());
        pool.run(&|thread| {
            for index in share(self.grid.len(), thread, threads) {
                // SAFETY: the tiles of Y are disjoint.
                unsafe { self.tile(arch, index) };
            }
        });
    }
}

impl LinearKernel {
    /// # Safety
    ///
    /// No other thread may access this tile of Y.
    unsafe fn tile(&self, arch: Arch, index: usize) {
        let Self { k, n, x, w, y, ref tail, grid } = *self;
        let (rows, cols) = grid.tile(index);
        let element = rows.start * n + cols.start;
        let block = Block {
            data: y.at(element),
            stride: n,
            rows: rows.len(),
            first: Stretch { col: cols.start, element, len: cols.len() },
            matrix_cols: n,
        };
        let left = View::rows(x.at(rows.start * k), k);
        let right = View::rows(w.at(cols.start), n);
        // SAFETY: the tile lies within the tensors, whose sizes are m k, k n and m n; X and W are
        // only read.
        unsafe {
            product([rows.len(), k, cols.len()], block.data, n, left, right, 1.0);
            tail.apply_to_block(arch, &block);
        }
    }
}
