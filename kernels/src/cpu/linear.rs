//! A linear layer with a pointwise tail: `Y = tail(X W)`.

use super::element::{Element, Left};
use super::epilogue::FEW_ROWS;
use super::gemm::Grid;
use super::kernel::{Kernel, Located};
use super::layer::Layer;
use super::pool::Pool;
use super::tensors::Tensors;

/// `Y = tail(X W)` over tiles of Y, the first ops of the tail applied to a few rows at a time, the
/// others to some tiles while they are in cache. With an empty tail it is the unfused linear
/// kernel: the same GEMM on the same tiles.
#[derive(Debug)]
pub(crate) struct LinearKernel<E: Left, O = E> {
    /// Without stages that need whole rows.
    pub(crate) layer: Layer<E>,
    pub(crate) x: Located<E>,
    pub(crate) y: Located<O>,
    pub(crate) grid: Grid,
}

impl<E: Left, O: Element> Kernel for LinearKernel<E, O> {
    fn name(&self) -> String {
        let Layer { panels, tail, .. } = &self.layer;
        format!("linear: packed {}{}", panels.cut.name(), tail.places::<E>(FEW_ROWS))
    }

    fn locate(&mut self, tensors: &Tensors) {
        self.x.locate(tensors);
        self.y.locate(tensors);
        self.layer.locate(tensors);
    }

    unsafe fn run(&self, pool: &Pool) {
        // SAFETY: the caller's guarantee; the threads have not started.
        unsafe { self.layer.fold(pool.arch()) };
        let Self { layer, x, y, grid } = self;
        let (arch, threads) = (pool.arch(), pool.threads());
        pool.run(&|thread| {
            for block in grid.blocks(thread, threads) {
                // SAFETY: the blocks of Y are disjoint, X and the operands are only read.
                unsafe { layer.block(arch, thread, x.at(0).cast_const(), y.at(0), 0, block) };
            }
        });
    }
}
