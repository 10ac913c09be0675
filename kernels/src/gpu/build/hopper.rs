//! Matrix products by `wgmma` and bulk copies of sm_90a.

use fusion_cost_model::DType;

use super::Builder;
use super::phase::{Parameters, Phase};
use super::product::{Given, Left, Product};
use crate::gpu::architecture::MatrixCore;
use crate::gpu::plan::TensorMap;

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
    /// shared memory and L2 for each product.
    cost: u64,
}

const SHAPES: [Shape; 2] =
    [Shape { cols: 256, stages: 4, cost: 100 }, Shape { cols: 128, stages: 6, cost: 60 }];

impl Shape {
    /// 16-bit numbers of A and B, and two barriers of 8 bytes, for each stage.
    const fn shared_bytes(self) -> u32 {
        self.stages * ((TILE_ROWS + self.cols) * STAGE_DEPTH * 2 + 16)
    }

    fn tiles(self, m: u64, n: u64) -> u64 {
        m.div_ceil(TILE_ROWS.into()) * n.div_ceil(self.cols.into())
    }
}

impl Builder<'_> {
    /// The phase that computes a product; `None` where the device has no `wgmma`, the operands do
    /// not suit bulk copies, or there are too few tiles for its processors. All phases of its
    /// kernel must run with [`THREADS`] threads.
    pub(super) fn hopper_product(
        &self,
        product: &Product,
        parameters: &mut Parameters,
    ) -> Option<Phase> {
        let Product { m, n, k, batches, b, given, .. } = *product;
        let shape = self.hopper_shape(m, n, k)?;
        let Left::Matrix(a) = product.a else { return None };
        let whole = batches == [1, 1] && a.stride == k && b.stride == n && given == Given::Rows;
        if !whole || product.scale.to_bits() != 1.0_f32.to_bits() || product.pool.is_some() {
            return None;
        }
        // Each block does its share of the tiles in one call.
        let blocks = shape.tiles(m, n).min(self.device.processors.max(1).into());
        let map = |tensor, rows, cols, box_rows| TensorMap {
            tensor,
            bf16: self.problem.dtype() == DType::Bf16,
            batches: 1,
            rows,
            cols,
            box_rows,
            box_cols: STAGE_DEPTH,
        };
        let a = parameters.map(map(a.tensor, m, k, TILE_ROWS));
        let b = parameters.map(map(b.tensor, k, n, STAGE_DEPTH));
        let c = parameters.write(product.output);
        let [rows, cols, depth, count] = [m, n, k, blocks].map(|size| parameters.size(size));
        let struct_name = format!("{}_tail", product.name);
        let tail = self.tail_text(&struct_name, product.tail.clone(), parameters);
        Some(Phase {
            name: format!("{}_wgmma_{TILE_ROWS}x{}x{STAGE_DEPTH}", product.name, shape.cols),
            headers: vec!["hopper/product.h"],
            definitions: tail.definition,
            tile: format!(
                "port::hopper::product<T, {}, {}>({a}, {b}, {c}, {rows}, {cols}, {depth}, tile, \
                 {count}, {});",
                shape.cols, shape.stages, tail.construct
            ),
            tiles: blocks,
            threads: THREADS,
            shared_bytes: shape.shared_bytes(),
        })
    }

    /// The shape of tiles whose rounds on all processors take least time; `None` where the device
    /// has no `wgmma`, rows are no multiples of 16 bytes, or most processors would have no tile.
    pub(super) fn hopper_shape(&self, m: u64, n: u64, k: u64) -> Option<Shape> {
        let numbers = matches!(self.problem.dtype(), DType::F16 | DType::Bf16);
        if self.device.architecture.matrix_core != MatrixCore::Wgmma || !numbers {
            return None;
        }
        // Coordinates are i32, and a last tile goes beyond the end.
        let suits = |cols: u64| cols.is_multiple_of(8) && cols < 1 << 30;
        if !suits(n) || !suits(k) || m >= 1 << 30 {
            return None;
        }
        let processors = u64::from(self.device.processors.max(1));
        let fits = |shape: &Shape| shape.shared_bytes() <= self.device.shared_bytes_per_block;
        let time = |shape: &Shape| shape.tiles(m, n).div_ceil(processors) * shape.cost;
        let shape = SHAPES.into_iter().filter(fits).min_by_key(time)?;
        // With half of the processors it is still quicker than `mma` on all of them.
        (2 * shape.tiles(m, n) >= processors).then_some(shape)
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::Problem;

    use crate::gpu::build::build;
    use crate::gpu::emulation::{check_on, device};

    /// The kernels of the fused variant and of the unfused one.
    fn kernels(problem: &str) -> Vec<String> {
        let plan = build(&problem.parse().unwrap(), &device("sm_90a")).unwrap();
        plan.kernels().map(|kernel| kernel.code.entry.clone()).collect()
    }

    #[test]
    fn products_use_it_where_it_suits() {
        for (problem, count) in [
            ("linear+bias+relu/bf16/m8192.k8192.n8192", 2),
            ("linear+bias/f16/m1100.k72.n1000", 2),
            ("linear+bias+layer_norm/bf16/m1100.k72.n1000", 2),
            ("linear+gelu+linear/bf16/m4096.k1024.n4096.o1024", 3),
            // The second layer has too few columns, and a kernel has one number of threads.
            ("linear+gelu+linear/bf16/m4096.k1024.n4096.o8", 1),
            // Rows of 16 bytes; numbers of 16 bits; half of the processors.
            ("linear+bias/bf16/m8192.k8192.n8196", 0),
            ("linear+bias/bf16/m8192.k8190.n8192", 0),
            ("linear+bias/f32/m8192.k8192.n8192", 0),
            ("linear+bias/bf16/m64.k8192.n8192", 0),
            ("attention/bf16/b8.h16.q1024.kv1024.d64", 1),
            ("attention/f16/b8.h16.q1024.kv1024.d128", 1),
            ("multihead_linear/bf16/b8.h16.q1024.kv1024.d64.n1024", 2),
            ("attention/f16/b8.h16.q1024.kv1024.d80", 0),
            ("attention/f16/b1.h1.q1024.kv1024.d64", 0),
            // Steps between the products.
            ("qk+scale+softmax+pv/bf16/b8.h16.q1024.kv1024.d64", 0),
        ] {
            let kernels = kernels(problem);
            let found = kernels.iter().filter(|name| name.contains("wgmma")).count();
            assert_eq!(found, count, "{problem}: {kernels:?}");
        }
    }

    #[test]
    fn tiles_are_as_wide_as_all_processors_have_work_for() {
        let name = |problem| kernels(problem).remove(0);
        assert!(name("linear+bias/bf16/m8192.k8192.n8192").contains("128x256"));
        // 64 tiles would leave half of the processors with nothing to do.
        assert!(name("linear+bias/bf16/m2048.k512.n1024").contains("128x128"));
    }

    fn check(problems: &[&str]) {
        let problems: Vec<Problem> = problems.iter().map(|text| text.parse().unwrap()).collect();
        // Few processors, so that small problems have enough tiles for them.
        let mut device = device("sm_90a");
        device.processors = 2;
        check_on(&problems, &device);
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
            "attention/bf16/b2.h2.q10.kv300.d64",
            "attention/f16/b1.h3.q3.kv1.d128",
            "qk+softmax+pv+relu/bf16/b2.h1.q5.kv131.d64",
            "qk+softmax+pv+add/f16/b1.h2.q130.kv20.d128",
            "multihead_linear/bf16/b2.h2.q129.kv17.d64.n24",
        ]);
    }
}
