//! Max-pools.

use std::ops::Range;

use super::Builder;
use super::phase::{self, Parameters, Phase, THREADS};
use crate::gpu::plan::KernelPlan;
use crate::gpu::tensors::TensorId;

/// Windows up to this are compiled into the kernel, so that all of one is read at once.
const MOST_WINDOW: u64 = 3;

impl Builder<'_> {
    /// A max-pool alone.
    pub(super) fn max_pool_kernel(
        &mut self,
        step: usize,
        input: TensorId,
        output: TensorId,
    ) -> Option<KernelPlan> {
        let mut parameters = Parameters::default();
        let phase =
            self.max_pool_phase(step, step + 1..step + 1, input, output, &mut parameters)?;
        Some(phase::kernel(vec![phase], parameters, self.problem.dtype(), &mut self.table))
    }

    /// A max-pool with the pointwise steps that follow it.
    pub(super) fn max_pool_phase(
        &self,
        step: usize,
        tail: Range<usize>,
        input: TensorId,
        output: TensorId,
        parameters: &mut Parameters,
    ) -> Option<Phase> {
        let pool = self.problem.sizes().pool()?;
        let shape = self.steps[step].output;
        let vector = self.vector(shape.cols);
        let window = if pool.window <= MOST_WINDOW { pool.window } else { 0 };
        let image = [pool.h, pool.w, pool.out_h(), pool.out_w(), shape.cols];
        let sizes = image.into_iter().chain([pool.window, pool.stride, pool.pad]);
        let sizes = sizes.map(|size| parameters.size(size)).collect::<Vec<_>>().join(", ");
        let read = parameters.read(input);
        let write = parameters.write(output);
        let elements = parameters.size(shape.elements());
        let tail = self.tail_text("max_pool_steps", tail, parameters);
        Some(Phase {
            cluster: 1,
            name: format!("max_pool_{window}x{vector}"),
            headers: vec!["max_pool.h"],
            tile: format!(
                "max_pool::tile<{window}, {vector}>({}, {read}, {write}, max_pool::Sizes{{{sizes}}}, \
                 {elements}, tile);",
                tail.construct
            ),
            definitions: tail.definition,
            tiles: shape.elements().div_ceil(u64::from(THREADS) * vector),
            threads: THREADS,
            shared_bytes: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::gpu::tests::emulation;

    /// Windows that reach out of the image on all sides, that overlap and leave gaps, and one that
    /// is larger than any that is compiled in.
    #[test]
    fn windows_of_every_kind_are_right() {
        let sizes = [
            "n2.c2.h5.w7.k3.r1.s1.pool2.pstride3",
            "n1.c2.h9.w6.k8.r1.s1.pool3.pstride1.ppad1",
            "n1.c1.h9.w13.k5.r1.s1.pool5.pstride2.ppad2",
            "n1.c1.h4.w4.k16.r1.s1.pool4.pstride4.ppad2",
        ];
        for (architecture, dtype) in [("sm_80", "f32"), ("gfx942", "bf16"), ("sm_75", "f16")] {
            let problems = sizes
                .map(|sizes| format!("conv2d+max_pool+add+relu/{dtype}/{sizes}").parse().unwrap());
            emulation::check_all(&problems, architecture);
        }
    }
}
