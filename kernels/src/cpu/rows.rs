//! Chains that work row by row: pointwise ops, row ops, and linear layers among them.
//!
//! A thread takes a block of rows through the whole chain while they are in its cache. The
//! elementwise patterns, the MLP and chains such as `linear+bias+add+layer_norm` are all this one
//! kernel with other stages, and so is each unfused pointwise or row op.

use std::ops::Range;

use pulp::Arch;

use super::gemm::share;
use super::kernel::{Kernel, Located};
use super::layer::Layer;
use super::pool::Pool;
use super::row_ops::RowOp;
use super::tail::{Stretch, Tail};
use super::tensors::Tensors;

/// What is done to each row by itself.
#[derive(Debug, Clone)]
pub(crate) enum RowStage {
    Tail(Tail),
    RowOp(RowOp),
}

impl RowStage {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Tail(tail) => tail.name(),
            Self::RowOp(op) => op.name().to_owned(),
        }
    }

    pub(crate) fn locate(&mut self, tensors: &Tensors) {
        match self {
            Self::Tail(tail) => tail.locate(tensors),
            Self::RowOp(op) => op.locate(tensors),
        }
    }

    /// # Safety
    ///
    /// As for [`Tail::fold`].
    pub(crate) unsafe fn fold(&self, arch: Arch) {
        if let Self::Tail(tail) = self {
            // SAFETY: the caller's guarantee.
            unsafe { tail.fold(arch) };
        }
    }

    /// Takes rows through stages: reads them from `source`, leaves them in `target`. The rows lie
    /// one after the other, `cols` numbers each; `rows` is where they are in the whole matrix.
    ///
    /// A few rows at a time go through all stages, so that they stay in the first-level cache.
    ///
    /// # Safety
    ///
    /// Source and target must be valid for the rows, the operands of the stages must cover them,
    /// and no other thread may write any of them.
    pub(crate) unsafe fn apply_all(
        stages: &[Self],
        arch: Arch,
        source: *const f32,
        target: *mut f32,
        rows: Range<usize>,
        cols: usize,
    ) {
        /// Numbers that go through the stages together, 8 KiB.
        const GROUP: usize = 2048;
        let group = (GROUP / cols.max(1)).max(1);
        for start in rows.clone().step_by(group) {
            let count = group.min(rows.end - start);
            let offset = (start - rows.start) * cols;
            let target = target.wrapping_add(offset);
            let mut from = source.wrapping_add(offset);
            for stage in stages {
                // SAFETY: the caller's guarantee; after the first stage the rows are in the
                // target.
                unsafe {
                    match stage {
                        Self::Tail(tail) => {
                            let first = Stretch { col: 0, element: start * cols, len: cols };
                            tail.apply(arch, from, target, first, count);
                        }
                        Self::RowOp(op) => op.apply(arch, from, target, count, cols),
                    }
                }
                from = target.cast_const();
            }
        }
    }
}

/// A chain of row stages and linear layers over blocks of rows.
#[derive(Debug)]
pub(crate) struct RowsKernel {
    pub(crate) rows: usize,
    /// Columns of the input.
    pub(crate) cols: usize,
    /// Rows that go through the chain together.
    pub(crate) block_rows: usize,
    pub(crate) input: Located,
    pub(crate) output: Located,
    /// What is done to the rows of a chain without layers.
    pub(crate) stages: Vec<RowStage>,
    /// The layers of a chain with some; at most two.
    pub(crate) layers: Vec<Layer>,
    /// For each thread room for a block between two layers, if there are two.
    pub(crate) scratch: Vec<Located>,
}

impl RowsKernel {
    /// Rows per block: as many as the GEMM's micro-kernel gains from, in blocks of equal size
    /// for every thread. Up to a few thousand columns such a block stays in the second-level
    /// cache; beyond that it spills into the third, which costs less than reading the weights
    /// once more for smaller blocks would.
    pub(crate) fn block_rows(rows: usize, threads: usize) -> usize {
        const MOST: usize = 192;
        let per_thread = rows.div_ceil(threads).max(1);
        per_thread.div_ceil(per_thread.div_ceil(MOST))
    }
}

impl Kernel for RowsKernel {
    fn name(&self) -> String {
        let mut parts: Vec<String> = self.stages.iter().map(RowStage::name).collect();
        for layer in &self.layers {
            parts.push("linear".to_owned());
            if !layer.tail.is_empty() {
                parts.push(layer.tail.name());
            }
            parts.extend(layer.stages.iter().map(RowStage::name));
        }
        let chain = parts.join("+");
        match (self.layers.len(), self.stages.len()) {
            (0, 1) => format!("{chain}: one pass"),
            (0, _) => format!("{chain}: row by row in cache"),
            _ => format!("{chain}: blocks of {} rows in cache", self.block_rows),
        }
    }

    fn locate(&mut self, tensors: &Tensors) {
        self.input.locate(tensors);
        self.output.locate(tensors);
        self.stages.iter_mut().for_each(|stage| stage.locate(tensors));
        self.layers.iter_mut().for_each(|layer| layer.locate(tensors));
        self.scratch.iter_mut().for_each(|scratch| scratch.locate(tensors));
    }

    unsafe fn run(&self, pool: &mut Pool) {
        // SAFETY: the caller's guarantee; the threads have not started.
        unsafe {
            self.stages.iter().for_each(|stage| stage.fold(pool.arch()));
            self.layers.iter().for_each(|layer| layer.fold(pool.arch()));
        }
        let (arch, threads) = (pool.arch(), pool.threads());
        let blocks = self.rows.div_ceil(self.block_rows);
        pool.run(&|thread| {
            for block in share(blocks, thread, threads) {
                // SAFETY: blocks of rows are disjoint parts of the output.
                unsafe { self.block(arch, thread, block) };
            }
        });
    }
}

impl RowsKernel {
    /// Takes a block of rows through the chain.
    ///
    /// # Safety
    ///
    /// The rows of the output, and the scratch of `thread`, must belong to the calling thread.
    unsafe fn block(&self, arch: Arch, thread: usize, block: usize) {
        let Self { rows, cols, block_rows, input, output, ref stages, ref layers, .. } = *self;
        let output_cols = layers.last().map_or(cols, |layer| layer.n);
        let first = block * block_rows;
        let count = block_rows.min(rows - first);
        let mut source = input.at(first * cols).cast_const();
        if !stages.is_empty() {
            let target = output.at(first * cols);
            // SAFETY: the caller's guarantee; a chain with stages first has no layers.
            unsafe {
                RowStage::apply_all(stages, arch, source, target, first..first + count, cols);
            }
            return;
        }
        for (index, layer) in layers.iter().enumerate() {
            let target = if index + 1 == layers.len() {
                output.at(first * output_cols)
            } else {
                self.scratch[thread].at(0)
            };
            // SAFETY: the caller's guarantee; of at most two layers the first writes the scratch
            // and the second reads it.
            unsafe { layer.apply(arch, source, target, first, count) };
            source = target.cast_const();
        }
    }
}
