//! Chains of pointwise ops that end with 8-bit integers: one pass over a matrix of sums.

use super::gemm::share;
use super::kernel::{Kernel, Located};
use super::pool::Pool;
use super::tail::{Stretch, Tail};
use super::tensors::Tensors;

/// Pointwise ops on f32, whose results are rounded to unsigned 8-bit integers.
#[derive(Debug)]
pub(crate) struct RequantizeKernel {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) input: Located<f32>,
    pub(crate) output: Located<u8>,
    pub(crate) tail: Tail,
}

impl Kernel for RequantizeKernel {
    fn name(&self) -> String {
        format!("{}: one pass", self.tail.name())
    }

    fn locate(&mut self, tensors: &Tensors) {
        self.input.locate(tensors);
        self.output.locate(tensors);
        self.tail.locate(tensors);
    }

    unsafe fn run(&self, pool: &Pool) {
        // SAFETY: the caller's guarantee; the threads have not started.
        unsafe { self.tail.fold(pool.arch()) };
        let (arch, threads, cols) = (pool.arch(), pool.threads(), self.cols);
        pool.run(&|thread| {
            let rows = share(self.rows, thread, threads);
            let element = rows.start * cols;
            let first = Stretch { col: 0, element, len: cols };
            let input = self.input.at(element).cast_const();
            let output = self.output.at(element);
            // SAFETY: the rows belong to this thread, and the operands cover them.
            unsafe { self.tail.apply(arch, input, output, first, rows.len(), false) };
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::conforms::{conforms, cpus};

    /// Rows that are shorter and longer than a cache line and a vector, and rests of both.
    #[test]
    fn sums_are_requantized_in_every_row() {
        for mut cpu in cpus() {
            for chain in ["requantize", "bias+relu+requantize", "batch_norm+add+gelu+requantize"] {
                for size in ["m1.n1", "m67.n3", "m129.n16", "m3.n333", "m5.n1024"] {
                    let [_, fused] = conforms(&mut cpu, &format!("{chain}/i8/{size}"));
                    assert_eq!(fused, [format!("{chain}: one pass")]);
                }
            }
        }
    }
}
