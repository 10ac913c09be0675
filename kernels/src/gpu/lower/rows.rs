//! Pointwise and row ops on a matrix.

use std::fmt::Write as _;
use std::ops::Range;

use fusion_cost_model::kernel::OperandKind;
use fusion_cost_model::{AttentionSizes, Op};

use super::Builder;
use super::phase::{self, Parameters, Phase, THREADS};
use crate::gpu::plan::KernelPlan;
use crate::gpu::tensors::TensorId;

/// Numbers of a row that a thread holds at most, in a kernel of its own. A block of 1,024 threads
/// leaves 64 registers to each, and what is read in addition to the row has to be in them too.
const HELD: u64 = 16;
const HELD_ALONE: u64 = 32;
/// The same as a phase of another kernel, whose blocks are smaller and cannot be chosen.
const HELD_BY_WARP: u64 = 32;
const HELD_BY_BLOCK: u64 = 64;
/// Numbers that each thread should have at least before a team is made larger.
const WORTH_A_LANE: u64 = 16;
/// Bytes of a row that its team should read at a time: half of a line of the caches.
const SEGMENT_BYTES: u64 = 64;
/// The largest block.
const MOST_THREADS: u32 = 1024;
/// For partial results of up to 32 warps, twice.
const TEAM_BYTES: u32 = 256;

/// How the rows are divided among threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    /// Threads of a block.
    threads: u32,
    /// Those of them that do a row together.
    lanes: u32,
    /// How often each reads `vector` numbers.
    chunks: u64,
    vector: u64,
    /// Whether a team holds a whole row.
    held: bool,
}

impl Builder<'_> {
    /// Pointwise and row steps on a matrix, in one pass over its rows.
    pub(super) fn rows_kernel(
        &mut self,
        steps: Range<usize>,
        input: TensorId,
        output: TensorId,
    ) -> Option<KernelPlan> {
        let mut parameters = Parameters::default();
        let phase = if self.steps[steps.clone()].iter().any(|step| step.op.is_row()) {
            let shape = self.own_shape(steps.clone());
            self.rows("rows", steps, input, output, shape, &mut parameters)
        } else {
            self.pointwise_phase(steps, input, output, &mut parameters)
        };
        Some(phase::kernel(vec![phase], parameters, self.problem.dtype(), &mut self.table))
    }

    /// The same as a phase of a kernel with other ones, whose blocks have `threads` threads; the
    /// name must be another one than those of other phases of the kernel.
    pub(super) fn rows_phase(
        &self,
        name: &str,
        steps: Range<usize>,
        input: TensorId,
        output: TensorId,
        threads: u32,
        parameters: &mut Parameters,
    ) -> Phase {
        let shape = self.shape_with(steps.start, threads);
        self.rows(name, steps, input, output, shape, parameters)
    }

    fn rows(
        &self,
        name: &str,
        steps: Range<usize>,
        input: TensorId,
        output: TensorId,
        shape: Shape,
        parameters: &mut Parameters,
    ) -> Phase {
        let matrix = self.steps[steps.start].output;
        let Shape { threads, lanes, chunks, vector, held } = shape;
        let read = parameters.read(input);
        let write = parameters.write(output);
        let rows = parameters.size(matrix.rows);
        let cols = parameters.size(matrix.cols);
        let definitions = self.program(name, steps, parameters);
        let shape = format!("{lanes}, {chunks}, {vector}");
        let tile = if held {
            format!(
                "rows::held_tile<{shape}>({name}_program{{args}}, {read}, {write}, {rows}, {cols}, \
                 tile);"
            )
        } else {
            format!(
                "rows::long_tile<{shape}>({name}_program{{args}}, {read}, {write}, {cols}, tile);"
            )
        };
        let kind = if held { "held" } else { "long" };
        Phase {
            cluster: 1,
            name: format!("rows_{kind}_{lanes}x{chunks}x{vector}"),
            headers: vec!["rows.h"],
            definitions,
            tile,
            tiles: matrix.rows.div_ceil(u64::from((threads / lanes).max(1))),
            threads,
            shared_bytes: if lanes > self.device.architecture.warp { TEAM_BYTES } else { 0 },
        }
    }

    /// What is done to a row, as `rows.h` wants it.
    fn program(&self, name: &str, steps: Range<usize>, parameters: &mut Parameters) -> String {
        let mut tails = String::new();
        let mut ops = String::new();
        let mut pointwise = String::new();
        let mut weights = String::new();
        let mut shifts = String::new();
        // A causal softmax is the first of what is done to scores.
        let mask = self.causal_softmax(steps.start).map(|AttentionSizes { q, kv, .. }| {
            let [queries, keys] = [q, kv].map(|size| parameters.size(size));
            format!(
                "    PORT_DEVICE i64 seen(i64 row) const {{
        return rows::seen_by_row(row, {queries}, {keys});
    }}
"
            )
        });
        let (masked, seen) = (mask.is_some(), mask.as_deref().unwrap_or_default());
        let mut stage = 0;
        let mut start = steps.start;
        loop {
            let end =
                (start..steps.end).find(|&step| self.steps[step].op.is_row()).unwrap_or(steps.end);
            let tail = self.tail_text(&format!("{name}_steps_{stage}"), start..end, parameters);
            tails.push_str(&tail.definition);
            let here = format!("        if constexpr (STAGE == {stage})");
            let _ = writeln!(pointwise, "{here} {}.apply(x, row, col);", tail.construct);
            if end == steps.end {
                break;
            }
            if masked && stage == 0 {
                let _ = writeln!(pointwise, "{here} rows::hide_unseen(x, col, seen(row));");
            }
            let op = match self.steps[end].op {
                Op::Softmax => "SOFTMAX",
                Op::LayerNorm => "LAYER_NORM",
                _ => "RMS_NORM",
            };
            let _ = writeln!(ops, "{here} return rows::{op};");
            for (texts, operand) in [(&mut weights, 0), (&mut shifts, 1)] {
                if let Some(&tensor) = self.operands[end].get(operand) {
                    let _ = writeln!(texts, "{here} return {};", parameters.read(tensor));
                }
            }
            stage += 1;
            start = end + 1;
        }
        format!(
            "{tails}struct {name}_program {{
    const Args& args;
    static constexpr int OPS = {stage};
    static constexpr bool MASKED = {masked};
{seen}    template <int STAGE> static constexpr rows::Op op() {{
{ops}    }}
    template <int STAGE, int V>
    PORT_DEVICE void pointwise(float (&x)[V], i64 row, i64 col) const {{
{pointwise}    }}
    template <int STAGE> PORT_DEVICE const T* weight() const {{
{weights}        return nullptr;
    }}
    template <int STAGE> PORT_DEVICE const T* shift() const {{
{shifts}        return nullptr;
    }}
}};
"
        )
    }

    /// The sizes of the attention whose softmax a step is, if that has a causal mask.
    fn causal_softmax(&self, step: usize) -> Option<AttentionSizes> {
        let sizes = self.problem.sizes().attention()?;
        (sizes.causal && self.steps[step].op == Op::Softmax).then_some(sizes)
    }

    /// For a kernel of its own, which chooses its threads.
    fn own_shape(&self, steps: Range<usize>) -> Shape {
        let matrix = self.steps[steps.start].output;
        let warp = self.device.architecture.warp;
        if matrix.cols <= u64::from(warp) * HELD {
            let shape = self.shape_with(steps.start, THREADS);
            // Fewer rows to a block where some processors would have none.
            let blocks = |threads: u32| matrix.rows.div_ceil(u64::from(threads / shape.lanes));
            let mut threads = THREADS;
            while threads > warp && blocks(threads) < 2 * u64::from(self.device.processors) {
                threads /= 2;
            }
            return Shape { threads, ..shape };
        }
        let mut threads = 2 * warp;
        let share = |threads: u32| {
            let chunk = u64::from(threads) * self.vector(matrix.cols);
            matrix.cols.div_ceil(chunk) * self.vector(matrix.cols)
        };
        while threads < MOST_THREADS && share(threads) > WORTH_A_LANE {
            threads *= 2;
        }
        let alone = steps.clone().all(|step| !self.reads_columns(step));
        let most = if alone { HELD_ALONE } else { HELD };
        let held = if share(threads) <= most { most } else { 0 };
        // A row that is not held is left to smaller blocks, several for each processor.
        let threads = if held == 0 { MOST_THREADS / 2 } else { threads };
        self.block_shape(matrix.cols, threads, held)
    }

    /// Whether a step reads something in addition to the row for each of its columns.
    fn reads_columns(&self, step: usize) -> bool {
        let by_column = |kind| matches!(kind, OperandKind::PerChannel | OperandKind::PerElement);
        self.steps[step].op.operands().iter().any(|operand| by_column(operand.kind))
    }

    /// For blocks of `threads` threads.
    fn shape_with(&self, step: usize, threads: u32) -> Shape {
        let cols = self.steps[step].output.cols;
        let warp = self.device.architecture.warp;
        if cols > u64::from(warp) * HELD_BY_WARP {
            return self.block_shape(cols, threads, HELD_BY_BLOCK);
        }
        let vector = self.vector(cols);
        let chunks = |lanes: u32| cols.div_ceil(u64::from(lanes) * vector);
        let segment = |lanes: u32| u64::from(lanes) * vector * self.problem.dtype().bytes();
        let mut lanes = 1;
        while lanes < warp
            && chunks(lanes) > 1
            && (chunks(lanes) * vector > WORTH_A_LANE || segment(lanes) < SEGMENT_BYTES)
        {
            lanes *= 2;
        }
        Shape { threads, lanes, chunks: chunks(lanes), vector, held: true }
    }

    /// A row for all threads of a block, which holds it if that is at most `most` numbers each.
    fn block_shape(&self, cols: u64, threads: u32, most: u64) -> Shape {
        let vector = self.vector(cols);
        let chunks = cols.div_ceil(u64::from(threads) * vector);
        let held = chunks * vector <= most;
        let chunks = if held { chunks } else { WORTH_A_LANE / vector };
        Shape { threads, lanes: threads, chunks, vector, held }
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::kernel::Form;
    use fusion_cost_model::{DType, Problem};

    use super::*;
    use crate::gpu::tests::{emulation, problems};

    fn rows_problems(dtype: DType) -> Vec<Problem> {
        let all = problems::problems(dtype).into_iter();
        all.filter(|problem| problem.chain().form() == Form::Rows).collect()
    }

    #[test]
    fn every_chain_is_right_on_narrow_and_wide_warps() {
        // Each problem in one dtype on the first, and in the next one on the second: in all of them
        // on both it takes minutes to compile, and every dtype converts where it loads and stores.
        let dtypes = [DType::F32, DType::F16, DType::Bf16].map(rows_problems);
        for (turn, architecture) in ["sm_80", "gfx942"].into_iter().enumerate() {
            let dealt = (0..dtypes[0].len()).map(|index| dtypes[(index + turn) % 3][index]);
            emulation::check_all(&dealt.collect::<Vec<_>>(), architecture);
        }
    }

    /// From a lane to a row up to rows that no block holds.
    #[test]
    fn rows_of_every_length_are_right() {
        let mut problems: Vec<Problem> = Vec::new();
        for chain in
            ["softmax+scale", "add+layer_norm+softmax", "bias+rms_norm+dropout+layer_norm+relu"]
        {
            for sizes in
                ["m5.n8", "m9.n31", "m300.n96", "m3.n1025", "m2.n2080", "m2.n16384", "m1.n33001"]
            {
                for dtype in ["f32", "bf16"] {
                    problems.push(format!("{chain}/{dtype}/{sizes}").parse().unwrap());
                }
            }
        }
        for architecture in ["sm_90a", "gfx90a"] {
            emulation::check_all(&problems, architecture);
        }
    }

    /// In rows of a warp, of a block, and in one that is read several times.
    #[test]
    fn what_is_no_number_goes_where_it_does_in_the_reference() {
        for cols in [37, 1100, 16_500] {
            let at = |row: usize, col: usize| row * cols + col;
            let mut replaced = vec![
                (at(0, 5), f32::NAN),
                (at(1, 36), f32::INFINITY),
                (at(2, 0), f32::NEG_INFINITY),
            ];
            replaced.extend((0..cols).map(|col| (at(3, col), f32::NEG_INFINITY)));
            for chain in ["softmax+scale", "layer_norm+sigmoid", "add+rms_norm"] {
                let problem = format!("{chain}/f32/m5.n{cols}");
                emulation::check_with(&problem, "sm_80", &replaced);
            }
        }
    }

    #[test]
    fn teams_fit_their_rows() {
        let device = emulation::device("sm_90a");
        for (cols, rows, expected) in [
            (1, 1 << 20, (256, 1, 1, 1, true)),
            (17, 1 << 20, (256, 16, 2, 1, true)),
            (64, 1 << 20, (256, 4, 4, 4, true)),
            (512, 4096, (256, 32, 4, 4, true)),
            (512, 4, (32, 32, 4, 4, true)),
            (1024, 4, (64, 64, 4, 4, true)),
            (4096, 4096, (256, 256, 4, 4, true)),
            (32_768, 64, (1024, 1024, 8, 4, true)),
            (32_769, 64, (512, 512, 16, 1, false)),
        ] {
            let problem: Problem = format!("softmax+relu/f32/m{rows}.n{cols}").parse().unwrap();
            let Shape { threads, lanes, chunks, vector, held } =
                Builder::new(&problem, &device).own_shape(0..2);
            assert_eq!((threads, lanes, chunks, vector, held), expected, "{rows} {cols}");
            let reach = u64::from(lanes) * chunks * vector;
            assert!(!held || (reach >= cols && reach - cols < u64::from(lanes) * vector));
        }
    }
}
