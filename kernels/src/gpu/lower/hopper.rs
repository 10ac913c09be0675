//! GEMMs by `wgmma` and TMA of sm_90a.

use fusion_cost_model::{DType, Op};

use super::Builder;
use super::gemm::{Gemm, Left, scale_text};
use super::operand::{Given, Operand};
use super::phase::{self, Parameters, Phase};
use crate::gpu::architecture::MatrixCore;
use crate::gpu::launch::TensorMap;

/// Threads of its blocks: a warpgroup that copies and two that multiply.
pub(super) const THREADS: u32 = 384;
/// Rows of a tile, 64 for each of the two.
const TILE_ROWS: u32 = 128;
/// How far a stage goes along k: as far as the swizzle, 128 bytes.
const STAGE_DEPTH: u32 = 64;

/// A tile's columns with as many stages as shared memory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    cols: u32,
    stages: u32,
    /// Its time, in hundredths of the time of the widest. Less than half as wide, it reads more
    /// shared memory and L2 for each GEMM.
    cost: u64,
}

const SHAPES: [Shape; 3] = [
    Shape { cols: 256, stages: 4, cost: 100 },
    Shape { cols: 128, stages: 6, cost: 60 },
    Shape { cols: 64, stages: 8, cost: 40 },
];
/// The narrowest is only for matrices that have no more columns.
const NARROWEST: u64 = 64;

impl Shape {
    /// 16-bit numbers of A and B, and two barriers of 8 bytes, for each stage.
    const fn shared_bytes(self) -> u32 {
        self.stages * ((TILE_ROWS + self.cols) * STAGE_DEPTH * 2 + 16)
    }

    fn tiles(self, m: u64, n: u64, batches: u64) -> u64 {
        batches * m.div_ceil(TILE_ROWS.into()) * n.div_ceil(self.cols.into())
    }
}

impl Builder<'_> {
    /// Whether the problem's linear layers and attention are computed by `wgmma`: all of them or
    /// none, and in both variants, so that these differ by fusion and not by instructions. A fused
    /// kernel could not have both, since all its phases have the same threads.
    pub(super) fn on_hopper(&self) -> bool {
        let mut linear = self.steps.iter().filter(|step| step.op == Op::Linear);
        let suits = linear.all(|step| {
            let (m, k, n) = (step.input.rows, step.input.cols, step.output.cols);
            self.hopper_shape(m, n, k, 1).is_some()
        });
        suits && self.attention_suits_hopper()
    }

    /// Threads of kernels with linear layers, as many in every phase.
    pub(super) fn linear_threads(&self) -> u32 {
        if self.on_hopper() { THREADS } else { phase::THREADS }
    }

    /// The phase that computes a GEMM; `None` where the device has no `wgmma`, the operands do
    /// not suit TMA, or there are too few tiles for its processors. All phases of its
    /// kernel must run with [`THREADS`] threads.
    pub(super) fn hopper_gemm(&self, gemm: &Gemm, parameters: &mut Parameters) -> Option<Phase> {
        let Gemm { ref name, m, n, k, batches: [outer, inner], b, given, .. } = *gemm;
        let batches = outer * inner;
        let shape = self.hopper_shape(m, n, k, batches)?;
        let Left::Matrix(a) = gemm.a else { return None };
        let (b_rows, b_cols, b_box_rows, n_major) = match given {
            Given::Rows => (k, n, STAGE_DEPTH, 1),
            Given::Columns => (n, k, shape.cols, 0),
        };
        // One map goes over all batches, one behind the other.
        let dense = |operand: &Operand, rows: u64, cols: u64| {
            operand.stride == cols
                && (inner == 1 || operand.steps[1] == rows * cols)
                && (outer == 1 || operand.steps[0] == inner * rows * cols)
        };
        if !dense(&a, m, k) || !dense(&b, b_rows, b_cols) || gemm.pool.is_some() {
            return None;
        }
        // Each block does its share of the tiles in one call.
        let blocks = shape.tiles(m, n, batches).min(self.device.processors.max(1).into());
        let map = |operand: &Operand, rows, cols, box_rows| TensorMap {
            tensor: operand.tensor,
            bf16: self.problem.dtype() == DType::Bf16,
            batches: batches / operand.sharing,
            rows,
            cols,
            box_rows,
            box_cols: STAGE_DEPTH,
        };
        let sharing = parameters.factor(b.sharing);
        let a = parameters.map(map(&a, m, k, TILE_ROWS));
        let b = parameters.map(map(&b, b_rows, b_cols, b_box_rows));
        let c = parameters.write(gemm.output);
        let [rows, cols, depth, count] = [m, n, k, blocks].map(|size| parameters.size(size));
        let batched = batches > 1;
        let [all, inner] = [batches, inner]
            .map(|count| if batched { parameters.size(count) } else { count.to_string() });
        let scale = scale_text(gemm.scale, parameters);
        let tail = self.tail_text(&format!("{name}_tail"), gemm.tail.clone(), parameters);
        Some(Phase {
            name: format!("{name}_wgmma_{TILE_ROWS}x{}x{STAGE_DEPTH}", shape.cols),
            headers: vec!["hopper/gemm.h"],
            definitions: tail.definition,
            tile: format!(
                "{{ const {name}_tail tail = {construct}; \
                 const port::hopper::GemmOutput<T, {name}_tail> output = {{{c}, {rows}, \
                 {cols}, {all}, {inner}, {scale}, tail}}; \
                 port::hopper::gemm<{tile_cols}, {stages}, {batched}, {n_major}>({a}, {b}, \
                 output, {depth}, {sharing}, tile, {count}); }}",
                construct = tail.construct,
                tile_cols = shape.cols,
                stages = shape.stages,
            ),
            tiles: blocks,
            threads: THREADS,
            shared_bytes: shape.shared_bytes(),
        })
    }

    /// The shape of tiles whose rounds on all processors take least time; `None` where the device
    /// has no `wgmma`, rows are no multiples of 16 bytes, or most processors would have no tile.
    pub(super) fn hopper_shape(&self, m: u64, n: u64, k: u64, batches: u64) -> Option<Shape> {
        let numbers = matches!(self.problem.dtype(), DType::F16 | DType::Bf16);
        if self.device.architecture.matrix_core != MatrixCore::Wgmma || !numbers {
            return None;
        }
        // Coordinates are i32, and a last tile goes beyond the end.
        let within = |size: u64| size < 1 << 30;
        let suits = |cols: u64| cols.is_multiple_of(8) && within(cols);
        if !suits(n) || !suits(k) || !within(m) || !within(batches) {
            return None;
        }
        let processors = u64::from(self.device.processors.max(1));
        let fits = |shape: &Shape| {
            shape.shared_bytes() <= self.device.shared_bytes_per_block
                && (n <= NARROWEST || u64::from(shape.cols) > NARROWEST)
        };
        let time = |shape: &Shape| shape.tiles(m, n, batches).div_ceil(processors) * shape.cost;
        let shape = SHAPES.into_iter().filter(fits).min_by_key(time)?;
        // With half of the processors it is still quicker than `mma` on all of them.
        (2 * shape.tiles(m, n, batches) >= processors).then_some(shape)
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::Problem;

    use crate::gpu::HEADERS;
    use crate::gpu::lower::lower;
    use crate::gpu::tests::emulation::{Headers, Order, check_on, compiler, device, failures_on};

    /// The kernels of the fused variant and of the unfused one.
    fn kernels(problem: &str) -> Vec<String> {
        let plan = lower(&problem.parse().unwrap(), &device("sm_90a")).unwrap();
        plan.kernels().map(|kernel| kernel.code.entry.clone()).collect()
    }

    #[test]
    fn gemms_use_it_where_it_suits() {
        for (problem, count) in [
            ("linear+bias+relu/bf16/m8192.k8192.n8192", 2),
            ("linear+bias/f16/m1100.k72.n1000", 2),
            ("linear+bias+layer_norm/bf16/m1100.k72.n1000", 2),
            ("linear+gelu+linear/bf16/m4096.k1024.n4096.o1024", 3),
            // The second layer has too few columns: neither has it, fused or not.
            ("linear+gelu+linear/bf16/m4096.k1024.n4096.o8", 0),
            // Rows of 16 bytes; numbers of 16 bits; half of the processors.
            ("linear+bias/bf16/m8192.k8192.n8196", 0),
            ("linear+bias/bf16/m8192.k8190.n8192", 0),
            ("linear+bias/f32/m8192.k8192.n8192", 0),
            ("linear+bias/bf16/m64.k8192.n8192", 0),
            // Both GEMMs alone, and all in one.
            ("attention/bf16/b8.h16.q1024.kv1024.d64", 3),
            ("attention/f16/b8.h16.q1024.kv1024.d128", 3),
            ("multihead_linear/bf16/b8.h16.q1024.kv1024.d64.n1024", 4),
            ("attention/f16/b8.h16.q1024.kv1024.d80", 0),
            ("attention/f16/b1.h1.q1024.kv1024.d64", 0),
            // Rows of probabilities, and rows of the layer after it.
            ("attention/bf16/b8.h16.q1024.kv1020.d64", 0),
            ("multihead_linear/bf16/b8.h16.q1024.kv1020.d64.n1024", 0),
            ("multihead_linear/bf16/b8.h16.q1024.kv1024.d64.n1020", 0),
            // Steps between the GEMMs, and one GEMM without the other.
            ("qk+scale+softmax+pv/bf16/b8.h16.q1024.kv1024.d64", 0),
            ("attention_scores/bf16/b8.h16.q1024.kv1024.d64", 0),
            ("attention_output/bf16/b8.h16.q1024.kv1024.d64", 0),
        ] {
            let kernels = kernels(problem);
            let found = kernels.iter().filter(|name| name.contains("wgmma")).count();
            assert_eq!(found, count, "{problem}: {kernels:?}");
        }
    }

    #[test]
    fn tiles_are_as_wide_as_all_processors_have_work_for() {
        let name = |problem, index: usize| kernels(problem).remove(index);
        assert!(name("linear+bias/bf16/m8192.k8192.n8192", 0).contains("128x256"));
        // 64 tiles would leave half of the processors with nothing to do.
        assert!(name("linear+bias/bf16/m2048.k512.n1024", 0).contains("128x128"));
        // No wider than the values are.
        assert!(name("attention/bf16/b8.h16.q1024.kv1024.d64", 2).contains("values_wgmma_128x64"));
        assert!(name("attention/bf16/b8.h16.q1024.kv1024.d128", 2).contains("128x128"));
    }

    /// Checks problems on a device of few processors, so that small ones have enough tiles; all of
    /// them or none must take this path.
    fn check_all(problems: &[&str], by_wgmma: bool) {
        let problems: Vec<Problem> = problems.iter().map(|text| text.parse().unwrap()).collect();
        let mut device = device("sm_90a");
        device.processors = 2;
        for problem in &problems {
            let plan = lower(problem, &device).unwrap();
            let gemms = plan.kernels().map(|kernel| kernel.code.entry.as_str()).filter(|name| {
                ["linear", "scores", "values", "attention"]
                    .iter()
                    .any(|kind| name.starts_with(kind))
            });
            for name in gemms {
                assert_eq!(name.contains("wgmma"), by_wgmma, "{problem}: {name}");
            }
        }
        check_on(&problems, &device);
    }

    fn check(problems: &[&str]) {
        check_all(problems, true);
    }

    #[test]
    fn linear_layers_with_what_follows() {
        check(&[
            // Edges on all sides, and several tiles for each block; less than a stage along k;
            // more than a round of the ring.
            "linear+bias+silu+mul/bf16/m300.k72.n520",
            "linear+bias+dropout/f16/m130.k8.n8",
            "linear+bias+gelu/bf16/m200.k456.n264",
            "linear+add/f16/m1.k136.n16",
            // The widest tiles.
            "linear+bias/bf16/m200.k72.n248",
        ]);
    }

    #[test]
    fn layers_and_rows_one_after_the_other_in_a_kernel() {
        check(&[
            "linear+bias+add+layer_norm/bf16/m131.k72.n272",
            "linear+gelu+linear/f16/m260.k24.n136.o16",
        ]);
    }

    #[test]
    fn attention_with_what_follows() {
        check(&[
            "attention/bf16/b2.h2.q10.kv304.d64",
            "attention/f16/b1.h3.q3.kv8.d128",
            "qk+softmax+pv+relu/bf16/b2.h1.q5.kv136.d64",
            "qk+softmax+pv+add/f16/b1.h2.q130.kv24.d128",
            "multihead_linear/bf16/b2.h2.q129.kv24.d64.n24",
            // Odd numbers of batches and heads, the widest tiles of scores, and more than a round
            // of the ring.
            "attention_head/f16/b3.h5.q131.kv72.d64",
            "attention_head/bf16/b1.h3.q200.kv248.d128",
            "attention_head/f16/b3.h1.q70.kv520.d128",
            "attention_head/bf16/b1.h3.q129.kv584.d64",
        ]);
    }

    /// More and fewer than a tile of queries, at both ends of a longer row of keys.
    #[test]
    fn attention_with_a_causal_mask_and_shared_keys() {
        check(&[
            "attention_head/bf16/b2.h6.q131.kv264.d64.kvh2.causal1",
            "attention_head/f16/b1.h4.q200.kv200.d128.kvh1.causal1",
            "attention_head/bf16/b1.h4.q3.kv136.d64.kvh2",
            "qk+softmax+pv+add/f16/b1.h2.q270.kv304.d64.causal1",
            "multihead_linear/bf16/b2.h2.q129.kv136.d64.kvh1.causal1.n24",
        ]);
    }

    #[test]
    fn parts_of_attention_have_the_same_instructions_fused_or_not() {
        check_all(
            &[
                "attention_scores/f16/b3.h1.q130.kv72.d64",
                "attention_scores/bf16/b1.h3.q33.kv136.d128",
                "attention_output/bf16/b3.h1.q130.kv72.d64",
                "attention_output/f16/b1.h3.q33.kv136.d128",
                "attention_head/bf16/b3.h1.q130.kv70.d64",
            ],
            false,
        );
    }

    /// What batches, columns, the scale and edges need, and what takes its place.
    const CHANGES: [(&str, &str); 11] = [
        ("place.row * TILE_ROWS, place.batch,", "place.row * TILE_ROWS, 0,"),
        (" && col < output.n", ""),
        ("outer * output.m;", "0;"),
        ("inner * output.n;\n            target.stride", "0;\n            target.stride"),
        ("target.stride = output.inner * output.n;", ""),
        (" * output.scale;", ";"),
        ("box * BOX_COLS, depth, batch_of_b,", "box * BOX_COLS, depth, 0,"),
        ("place.col * COLS, batch_of_b,", "place.col * COLS, 0,"),
        ("N_MAJOR ? NEXT_K_OF_ROWS : NEXT_K;", "NEXT_K_OF_ROWS;"),
        ("tile -= batch * of_batch();", ""),
        ("row < output.m && ", ""),
    ];

    #[test]
    fn what_batches_need_is_missed() {
        are_missed(&CHANGES[..2]);
    }

    #[test]
    #[ignore = "compiles kernels for each of the changes: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
    fn all_that_batches_need_is_missed() {
        are_missed(&CHANGES[2..]);
    }

    /// One tile, which fits into the ring of stages: the producer is done before the consumers have
    /// begun.
    #[test]
    fn a_producer_that_takes_its_registers_back_too_early_is_seen() {
        let changes = [
            // Before the consumers have theirs: nobody ever goes on.
            ("sync_threads(REGISTERS_RETURNED, GEMM_THREADS);", "sync_threads(9, WARPGROUP);"),
            // Before its own warps have met.
            ("sync_threads(REGISTERS_RETURNED, GEMM_THREADS);", ""),
        ];
        let orders: Vec<Order> = (1..=24).map(Order::Shuffled).collect();
        are_missed_in("hopper/gemm.h", "linear+bias/bf16/m100.k72.n248", &changes, &orders);
    }

    fn are_missed(changes: &[(&str, &str)]) {
        let problem = "attention_head/f16/b2.h3.q131.kv72.d64";
        are_missed_in("hopper/gemm.h", problem, changes, &[Order::Forward]);
    }

    /// A mask that is off by one or missing where more keys follow, and the keys of another head.
    #[test]
    fn what_a_mask_and_shared_keys_need_is_missed() {
        let changes = [
            ("wgmma_col(i) >= least + wgmma_row(i)", "wgmma_col(i) > least + wgmma_row(i)"),
            ("problem.seen_by(first_query) - first_key;", "problem.key_count - first_key;"),
            ("problem.keys_of(matrix)", "matrix / problem.heads"),
        ];
        let problem = "attention_head/f16/b1.h4.q150.kv264.d64.kvh2.causal1";
        are_missed_in("hopper/attend.h", problem, &changes, &[Order::Forward]);
    }

    /// Makes each change of a header by itself, and sees that the kernels are wrong then.
    fn are_missed_in(header: &str, problem: &str, changes: &[(&str, &str)], orders: &[Order]) {
        if compiler().is_none() {
            return;
        }
        let mut device = device("sm_90a");
        device.processors = 2;
        let problem = [problem.parse().unwrap()];
        for &(from, to) in changes {
            let change = |(name, text): &(&str, &str)| {
                let changed = *name == header;
                assert!(!changed || text.matches(from).count() == 1, "`{from}`");
                let text = if changed { text.replace(from, to) } else { (*text).to_owned() };
                ((*name).to_owned(), text)
            };
            let headers = Headers::new(HEADERS.iter().map(change).collect());
            let found = failures_on(&problem, &device, &headers, orders);
            let text: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert!(!text.is_empty(), "`{from}` as `{to}` goes unnoticed");
            assert!(!text[0].contains("does not compile"), "`{from}` as `{to}`: {}", text[0]);
        }
    }
}
