//! A linear layer with a pointwise tail: `Y = tail(X W)`.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

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
            format!(
                "linear: tiled gemm, {} on each tile in cache",
                self.tail.name()
            )
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
        let threads = pool.threads();
        pool.run(&|thread| {
            let tiles = share(self.grid.len(), thread, threads);
            Arch::new().dispatch(Tiles {
                kernel: self,
                tiles,
            });
        });
    }
}

/// The tiles of one thread.
struct Tiles<'a> {
    kernel: &'a LinearKernel,
    tiles: Range<usize>,
}

impl WithSimd for Tiles<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let LinearKernel {
            k,
            n,
            x,
            w,
            y,
            tail,
            grid,
        } = self.kernel;
        let (k, n) = (*k, *n);
        for index in self.tiles {
            let (rows, cols) = grid.tile(index);
            let element = rows.start * n + cols.start;
            let block = Block {
                data: y.at(element),
                stride: n,
                rows: rows.len(),
                first: Stretch {
                    col: cols.start,
                    element,
                    len: cols.len(),
                },
                matrix_cols: n,
            };
            // SAFETY: the tile lies within the tensors, whose sizes are m k, k n and m n; the
            // tiles of Y are disjoint, everything else is only read.
            unsafe {
                product(
                    [rows.len(), k, cols.len()],
                    block.data,
                    n,
                    View::rows(x.at(rows.start * k), k),
                    View::rows(w.at(cols.start), n),
                    1.0,
                );
                tail.apply_to_block(simd, &block);
            }
        }
    }
}
