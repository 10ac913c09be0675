//! Pointwise chains on tensors of any shape: one pass over all elements.

use super::element::Element;
use super::gemm::share;
use super::kernel::{Kernel, Located};
use super::nontemporal;
use super::pool::Pool;
use super::tail::{Stretch, Tail};
use super::tensors::Tensors;

/// A pointwise chain without per-channel operands, so that the shape does not matter.
#[derive(Debug)]
pub(crate) struct ElementwiseKernel<E> {
    pub(crate) elements: usize,
    pub(crate) input: Located<E>,
    pub(crate) output: Located<E>,
    pub(crate) tail: Tail<E>,
    /// Whether the output is written around the caches.
    pub(crate) stream: bool,
}

impl<E: Element> Kernel for ElementwiseKernel<E> {
    fn name(&self) -> String {
        let how = if self.stream { nontemporal::NAME } else { "one pass" };
        format!("{}: {how}", self.tail.name())
    }

    fn locate(&mut self, tensors: &Tensors) {
        self.input.locate(tensors);
        self.output.locate(tensors);
        self.tail.locate(tensors);
    }

    unsafe fn run(&self, pool: &Pool) {
        // SAFETY: the caller's guarantee; the threads have not started.
        unsafe { self.tail.fold(pool.arch()) };
        let (arch, threads) = (pool.arch(), pool.threads());
        let lines = self.elements.div_ceil(E::LINE);
        pool.run(&|thread| {
            // By whole lines, so that no thread writes into the line of another.
            let lines = share(lines, thread, threads);
            let elements = lines.start * E::LINE..(lines.end * E::LINE).min(self.elements);
            let stretch = Stretch { col: 0, element: elements.start, len: elements.len() };
            let input = self.input.at(stretch.element).cast_const();
            let output = self.output.at(stretch.element);
            // SAFETY: the elements belong to this thread, the operands have the same shape, and
            // tensors begin at a cache line, as every share does.
            unsafe { self.tail.apply(arch, input, output, stretch, 1, self.stream) };
            if self.stream {
                nontemporal::fence();
            }
        });
    }
}
