//! Chains that work row by row: pointwise ops, row ops, and linear layers among them.
//!
//! A thread takes a block of rows through the whole chain while they are in its cache. The
//! elementwise patterns, the MLP and chains such as `linear+bias+add+layer_norm` are all this one
//! kernel with other stages, and so is each unfused pointwise or row op.

use std::ops::Range;

use pulp::Arch;

use super::element::Uniform;
use super::gemm::share;
use super::kernel::{Kernel, Located};
use super::layer::Layer;
use super::nontemporal;
use super::pool::Pool;
use super::row_stage::RowStage;
use super::row_target::Target;
use super::tensors::Tensors;

/// A chain of row stages and linear layers over blocks of rows.
#[derive(Debug)]
pub(crate) struct RowsKernel<E: Uniform> {
    pub(crate) rows: usize,
    /// Columns of the input.
    pub(crate) cols: usize,
    /// Rows that go through the chain together.
    pub(crate) block_rows: usize,
    pub(crate) input: Located<E>,
    pub(crate) output: Located<E>,
    /// What is done to the rows of a chain without layers.
    pub(crate) stages: Vec<RowStage<E>>,
    /// The layers of a chain with some; at most two.
    pub(crate) layers: Vec<Layer<E>>,
    /// For each thread room for a block between two layers, if there are two.
    pub(crate) between: Vec<Located<E>>,
    /// For each thread room for a group of rows, in a chain without layers whose output they cannot wait
    /// in: since it is written around the caches, or is not f32.
    pub(crate) room: Vec<Located>,
    /// Whether the output of a chain without layers is written around the caches.
    pub(crate) stream: bool,
    /// Whether a thread fetches the rows after those at hand into its first-level cache.
    pub(crate) near: bool,
}

impl<E: Uniform> RowsKernel<E> {
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

impl<E: Uniform> Kernel for RowsKernel<E> {
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
            (0, _) if self.stream => format!("{chain}: {}", nontemporal::NAME),
            (0, 1) => format!("{chain}: one pass"),
            (0, _) => format!("{chain}: row by row in cache"),
            _ => {
                let unit = self.layers.first().map_or("", |layer| layer.panels.cut.unit());
                format!("{chain}: blocks of {} rows in cache{unit}", self.block_rows)
            }
        }
    }

    fn locate(&mut self, tensors: &Tensors) {
        self.input.locate(tensors);
        self.output.locate(tensors);
        self.stages.iter_mut().for_each(|stage| stage.locate(tensors));
        self.layers.iter_mut().for_each(|layer| layer.locate(tensors));
        self.between.iter_mut().for_each(|block| block.locate(tensors));
        self.room.iter_mut().for_each(|room| room.locate(tensors));
    }

    unsafe fn run(&self, pool: &Pool) {
        // SAFETY: the caller's guarantee; the threads have not started.
        unsafe {
            self.stages.iter().for_each(|stage| stage.fold(pool.arch()));
            self.layers.iter().for_each(|layer| layer.fold(pool.arch()));
        }
        let (arch, threads) = (pool.arch(), pool.threads());
        pool.run(&|thread| {
            // Rows are shared and not blocks, so that no thread has a block more than another.
            let rows = share(self.rows, thread, threads);
            for start in rows.clone().step_by(self.block_rows) {
                let end = rows.end.min(start + self.block_rows);
                // SAFETY: blocks of rows are disjoint parts of the output.
                unsafe { self.block(arch, thread, start..end) };
            }
            if self.stream {
                nontemporal::fence();
            }
        });
    }
}

impl<E: Uniform> RowsKernel<E> {
    /// Takes a block of rows through the chain.
    ///
    /// # Safety
    ///
    /// The rows of the output, and what `thread` has room in, must belong to the calling thread.
    unsafe fn block(&self, arch: Arch, thread: usize, block: Range<usize>) {
        let Self { cols, input, output, ref stages, ref layers, .. } = *self;
        let output_cols = layers.last().map_or(cols, |layer| layer.n);
        let (first, count) = (block.start, block.len());
        let mut source = input.at(first * cols).cast_const();
        if !stages.is_empty() {
            let room = self.room.get(thread).map(|room| room.at(0));
            let plain = Target::plain(output.at(first * cols));
            let target = Target { room, stream: self.stream, near: self.near, ..plain };
            // SAFETY: the caller's guarantee; a chain with stages first has no layers. Where it
            // streams, rows are whole lines of a tensor, which begins at one.
            unsafe {
                RowStage::apply_all(stages, arch, source, target, block, cols);
            }
            return;
        }
        for (index, layer) in layers.iter().enumerate() {
            let target = if index + 1 == layers.len() {
                output.at(first * output_cols)
            } else {
                self.between[thread].at(0)
            };
            // SAFETY: the caller's guarantee; of at most two layers the first writes the scratch
            // and the second reads it.
            unsafe { layer.apply(arch, thread, source, target, first, count) };
            source = target.cast_const();
        }
    }
}
