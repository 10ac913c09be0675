//! Chains of pointwise ops on a matrix.

use std::ops::Range;

use fusion_cost_model::Op;

use super::Builder;
use super::phase::{Parameters, Phase, THREADS};
use crate::gpu::tensors::TensorId;

/// Chunks of a thread where there is enough work for all processors. Four of 16 bytes from each
/// of the 1,024 threads that a processor holds at least are 64 KiB under way at a time, which is
/// above what bandwidth times latency asks for on an H200 (4.8 TB/s, 132 processors and somewhat
/// less than a microsecond: 36 KiB).
const CHUNKS: u64 = 4;

impl Builder<'_> {
    /// Pointwise steps alone, in one pass over memory.
    pub(super) fn pointwise_phase(
        &self,
        steps: Range<usize>,
        input: TensorId,
        output: TensorId,
        parameters: &mut Parameters,
    ) -> Phase {
        let shape = self.steps[steps.start].output;
        let elements = shape.elements();
        let by_column = steps.clone().any(|step| self.reads_column(step));
        let vector = if by_column {
            self.vector(shape.cols)
        } else {
            self.widest_vector().min(1 << elements.ilog2())
        };
        let tile = u64::from(THREADS) * vector;
        let processors = u64::from(self.device.processors);
        let chunks = if elements.div_ceil(tile * CHUNKS) < 2 * processors { 1 } else { CHUNKS };
        let read = parameters.read(input);
        let write = parameters.write(output);
        let count = parameters.size(elements);
        let tail = self.tail_text("pointwise_steps", steps, parameters);
        let (construct, kind) = (&tail.construct, if by_column { "columns" } else { "flat" });
        let statement = if by_column {
            let cols = parameters.size(shape.cols);
            let step_rows = parameters.size(tile / shape.cols);
            let step_cols = parameters.size(tile % shape.cols);
            format!(
                "pointwise::tile<{chunks}, {vector}>({construct}, {read}, {write}, {count}, \
                 {cols}, {step_rows}, {step_cols}, tile);"
            )
        } else {
            format!(
                "pointwise::flat_tile<{chunks}, {vector}>({construct}, {read}, {write}, {count}, \
                 tile);"
            )
        };
        Phase {
            cluster: 1,
            name: format!("pointwise_{kind}_{chunks}x{vector}"),
            headers: vec!["pointwise.h"],
            definitions: tail.definition,
            tile: statement,
            tiles: elements.div_ceil(tile * chunks),
            threads: THREADS,
            shared_bytes: 0,
        }
    }

    /// Whether a step reads something that depends on the column.
    fn reads_column(&self, step: usize) -> bool {
        matches!(self.steps[step].op, Op::Pointwise(op) if op.is_per_channel())
    }

    /// Numbers of 16 bytes, which is as much as an instruction reads.
    pub(super) fn widest_vector(&self) -> u64 {
        16 / self.problem.dtype().bytes()
    }

    /// The most numbers that can be read at a time in rows of this many.
    pub(super) fn vector(&self, cols: u64) -> u64 {
        self.widest_vector().min(1 << cols.trailing_zeros().min(3))
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::Pointwise;

    use crate::gpu::tests::emulation;

    /// Without the one that only integers have.
    fn ops() -> impl Iterator<Item = &'static Pointwise> {
        Pointwise::ALL.iter().filter(|op| **op != Pointwise::Requantize)
    }

    /// Every op alone and with itself, with and without a rest, in one block and in several.
    #[test]
    fn every_op_is_right_on_every_device() {
        for (architecture, dtype) in [("sm_80", "f32"), ("sm_75", "bf16"), ("gfx942", "f16")] {
            let problem = |op: &Pointwise| {
                let name = op.name();
                ["m1.n1", "m7.n513", "m3.n1024"]
                    .map(|sizes| format!("{name}+{name}/{dtype}/{sizes}").parse().unwrap())
            };
            let problems: Vec<_> = ops().flat_map(problem).collect();
            emulation::check_all(&problems, architecture);
        }
    }

    #[test]
    fn what_is_no_number_goes_through_every_op() {
        for op in ops() {
            let problem = format!("{}+relu6/f32/m3.n8", op.name());
            emulation::check_with(&problem, "sm_80", &[(3, f32::NAN), (20, f32::NAN)]);
        }
    }

    /// Enough elements that threads do several chunks.
    #[test]
    fn several_chunks_of_a_thread_are_right() {
        for architecture in ["gfx1100", "gfx942"] {
            emulation::check("bias+add+dropout/bf16/m1201.n264", "gfx1100");
            emulation::check("add+dropout/f16/m601.n523", architecture);
        }
    }
}
