//! Scaled dot-product attention, whole or in parts, with the output projection.
//!
//! A thread takes a block of queries of one head: their scores against all keys are a panel that
//! fits into the second-level cache, where softmax and whatever else stands in the chain
//! transform it, and from where it is multiplied with the values. The score matrix never exists.
//! The unfused GEMMs of queries and keys, and of probabilities and values, are the same code
//! with the other parts left out.
//!
//! A thread packs the keys of a head once, for all blocks of its queries. Values are read as they lie.

use std::ops::Range;

use fusion_cost_model::AttentionSizes;
use pulp::Arch;

use super::epilogue::Epilogue;
use super::gemm::{View, gemm, share};
use super::kernel::{Kernel, Located};
use super::layer::Layer;
use super::pool::Pool;
use super::row_ops::RowOp;
use super::row_stage::RowStage;
use super::row_target::Target;
use super::strip::{Cut, Factors, Source, Strip};
use super::tail::{Block, Stretch, Tail};
use super::tensors::Tensors;
use super::transpose;

/// Where the panels of scores come from.
#[derive(Debug)]
pub(crate) enum Scores {
    /// Queries times keys times a scale.
    Gemm { queries: Located, keys: Located, scale: Scale },
    /// They are the input.
    Given(Located),
}

/// What scores are multiplied with before they are written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scale {
    /// It belongs to the op.
    Number(f32),
    /// It is an op of its own, right after the scores.
    Operand(Located),
}

impl Scale {
    fn factors(&self) -> Factors {
        match self {
            Self::Number(number) => Factors::all(number),
            Self::Operand(operand) => Factors::all(operand.at(0)),
        }
    }

    /// # Safety
    ///
    /// The operand must be valid.
    unsafe fn number(&self) -> f32 {
        match self {
            Self::Number(number) => *number,
            // SAFETY: the caller's guarantee.
            Self::Operand(operand) => unsafe { *operand.at(0) },
        }
    }
}

/// The sizes of an attention as the kernel uses them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) batch: usize,
    pub(crate) heads: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    pub(crate) d: usize,
}

impl From<AttentionSizes> for Shape {
    fn from(sizes: AttentionSizes) -> Self {
        Self {
            batch: sizes.b as usize,
            heads: sizes.h as usize,
            queries: sizes.q as usize,
            keys: sizes.kv as usize,
            d: sizes.d as usize,
        }
    }
}

impl Shape {
    /// Queries per block so that a panel of scores fits into `cache_bytes`. `joined`: all heads of
    /// a block are one piece of work.
    pub(crate) fn block_in_cache(&self, joined: bool, threads: usize, cache_bytes: usize) -> usize {
        // Fewer rows read the keys and values too often.
        let fitting = cache_bytes / size_of::<f32>() / self.keys.max(1);
        let pieces = if joined { self.batch } else { self.batch * self.heads };
        self.block_of(fitting.max(24), pieces, threads)
    }

    /// As many queries per block as the threads can share: for kernels that keep nothing in
    /// cache.
    pub(crate) fn block_for_threads(&self, threads: usize) -> usize {
        self.block_of(self.queries, self.batch * self.heads, threads)
    }

    /// At most `most` queries per block, and enough blocks of each of the `pieces` for every
    /// thread.
    fn block_of(&self, most: usize, pieces: usize, threads: usize) -> usize {
        let blocks = self.queries.div_ceil(most.max(1));
        let wanted = if pieces >= threads { 1 } else { threads.div_ceil(pieces) };
        self.queries.div_ceil(blocks.next_multiple_of(wanted)).max(1)
    }
}

/// Attention or a part of it.
#[derive(Debug)]
pub(crate) struct AttentionKernel {
    pub(crate) shape: Shape,
    pub(crate) block: usize,
    pub(crate) scores: Scores,
    /// What is done to each row of scores.
    pub(crate) stages: Vec<RowStage>,
    /// The values that the probabilities are multiplied with; without them the scores are the
    /// result.
    pub(crate) values: Option<Located>,
    /// Applied to each head's part of the result.
    pub(crate) tail: Tail,
    /// The linear layer on the joined heads.
    pub(crate) projection: Option<Layer>,
    pub(crate) output: Located,
    pub(crate) cut: Cut,
    /// For each thread room for a panel of scores with a number for each row, for a block of joined
    /// heads, and for packed keys.
    pub(crate) scratch: Vec<[Located; 3]>,
}

impl AttentionKernel {
    /// Whether panels of scores are kept in scratch: not when they are the result, nor when they
    /// are read from the input as they are.
    fn has_panel(values: bool, given: bool, stages: bool) -> bool {
        values && (stages || !given)
    }

    /// Numbers of scratch that a thread needs.
    pub(crate) fn scratch_numbers(&self) -> [usize; 3] {
        let Shape { heads, keys, d, .. } = self.shape;
        let given = matches!(self.scores, Scores::Given(_));
        let panel = Self::has_panel(self.values.is_some(), given, !self.stages.is_empty());
        let joined = self.projection.is_some();
        let packed_heads = if joined { heads } else { 1 };
        [
            if panel { self.block * (keys + 1) } else { 0 },
            if joined { self.block * heads * d } else { 0 },
            if self.packs_keys() { packed_heads * self.packed_numbers() } else { 0 },
        ]
    }

    /// Whether keys are packed: for few queries that would take longer than it saves.
    fn packs_keys(&self) -> bool {
        const FEW_QUERIES: usize = 8;
        matches!(self.scores, Scores::Gemm { .. }) && self.shape.queries >= FEW_QUERIES
    }

    /// Numbers that the packed keys of a head take.
    fn packed_numbers(&self) -> usize {
        transpose::numbers(self.cut, [self.shape.keys, self.shape.d])
    }

    /// Whether the softmax does not divide by the sums, but the product with the values is: it has
    /// fewer numbers.
    fn divides_product(&self) -> bool {
        self.values.is_some() && matches!(self.stages.last(), Some(RowStage::RowOp(RowOp::Softmax)))
    }

    /// Blocks of queries per head.
    fn blocks(&self) -> usize {
        self.shape.queries.div_ceil(self.block)
    }

    /// Pieces of work for the threads: all heads of a block of queries together when they are
    /// joined, else each head by itself.
    fn len(&self) -> usize {
        let heads = if self.projection.is_some() { 1 } else { self.shape.heads };
        self.shape.batch * heads * self.blocks()
    }
}

impl Kernel for AttentionKernel {
    fn name(&self) -> String {
        let mut parts = Vec::new();
        if let Scores::Gemm { scale, .. } = &self.scores {
            parts.push("qk".to_owned());
            if matches!(scale, Scale::Operand(_)) {
                parts.push("scale".to_owned());
            }
        }
        parts.extend(self.stages.iter().map(RowStage::name));
        if self.values.is_some() {
            parts.push("pv".to_owned());
        }
        if !self.tail.is_empty() {
            parts.push(self.tail.name());
        }
        if let Some(layer) = &self.projection {
            parts.push("linear".to_owned());
            if !layer.tail.is_empty() {
                parts.push(layer.tail.name());
            }
        }
        let how = match parts.len() {
            1 => "gemm per head".to_owned(),
            _ => format!("panels of {} queries in cache", self.block),
        };
        format!("{}: {how}", parts.join("+"))
    }

    fn locate(&mut self, tensors: &Tensors) {
        match &mut self.scores {
            Scores::Gemm { queries, keys, scale } => {
                queries.locate(tensors);
                keys.locate(tensors);
                if let Scale::Operand(operand) = scale {
                    operand.locate(tensors);
                }
            }
            Scores::Given(scores) => scores.locate(tensors),
        }
        self.stages.iter_mut().for_each(|stage| stage.locate(tensors));
        self.values.iter_mut().for_each(|values| values.locate(tensors));
        self.tail.locate(tensors);
        self.projection.iter_mut().for_each(|layer| layer.locate(tensors));
        self.output.locate(tensors);
        self.scratch.iter_mut().flatten().for_each(|part| part.locate(tensors));
    }

    unsafe fn run(&self, pool: &Pool) {
        // SAFETY: the caller's guarantee; the threads have not started.
        unsafe {
            self.stages.iter().for_each(|stage| stage.fold(pool.arch()));
            self.tail.fold(pool.arch());
            self.projection.iter().for_each(|layer| layer.fold(pool.arch()));
        }
        let (arch, threads) = (pool.arch(), pool.threads());
        pool.run(&|thread| {
            let mut packed = None;
            for piece in share(self.len(), thread, threads) {
                // SAFETY: pieces are disjoint parts of the output, scratch belongs to a thread.
                unsafe {
                    self.pack_keys(arch, thread, piece / self.blocks(), &mut packed);
                    self.piece(arch, thread, piece);
                }
            }
        });
    }
}

impl AttentionKernel {
    /// Packs the keys of a head, or of all heads of a batch where they are joined, unless that was the
    /// last that the thread has packed.
    ///
    /// # Safety
    ///
    /// The scratch of `thread` must belong to the calling thread.
    unsafe fn pack_keys(
        &self,
        arch: Arch,
        thread: usize,
        above: usize,
        packed: &mut Option<usize>,
    ) {
        let Scores::Gemm { keys: located, .. } = self.scores else { return };
        if !self.packs_keys() || packed.replace(above) == Some(above) {
            return;
        }
        let Shape { heads, keys, d, .. } = self.shape;
        let count = if self.projection.is_some() { heads } else { 1 };
        for head in 0..count {
            let source = located.at((above * count + head) * keys * d);
            let target = self.scratch[thread][2].at(head * self.packed_numbers());
            // SAFETY: the caller's guarantee; there is room for as many heads.
            unsafe { transpose::pack(arch, self.cut, source, [keys, d], target) };
        }
    }

    /// Computes a block of queries of one head, or of all heads where they are joined.
    ///
    /// # Safety
    ///
    /// The piece's rows of the output, and the scratch of `thread` with its packed keys, must belong to
    /// the calling thread.
    unsafe fn piece(&self, arch: Arch, thread: usize, piece: usize) {
        let Shape { heads, queries, d, .. } = self.shape;
        let start = piece % self.blocks() * self.block;
        let rows = start..(start + self.block).min(queries);
        let above = piece / self.blocks();
        // SAFETY: the caller's guarantee.
        unsafe {
            let Some(layer) = &self.projection else {
                let (batch, head) = (above / heads, above % heads);
                let target = self.output.at((batch * queries + start) * heads * d);
                self.head(arch, thread, [batch, head], rows, target);
                return;
            };
            let batch = above;
            let joined = self.scratch[thread][1].at(0);
            for head in 0..heads {
                self.head(arch, thread, [batch, head], rows.clone(), joined);
            }
            let first = batch * queries + start;
            let target = self.output.at(first * layer.n);
            layer.apply(arch, thread, joined.cast_const(), target, first, rows.len());
        }
    }

    /// Computes one head of a block of queries. `joined` is the block's first row of joined
    /// heads; it is not used when the scores are the result.
    ///
    /// # Safety
    ///
    /// The rows of the result and `joined` must belong to this thread.
    unsafe fn head(
        &self,
        arch: Arch,
        thread: usize,
        [batch, head]: [usize; 2],
        rows: Range<usize>,
        joined: *mut f32,
    ) {
        let Shape { heads, queries, keys, d, .. } = self.shape;
        let matrix = batch * heads + head;
        let first_row = matrix * queries + rows.start;
        let given = match self.scores {
            Scores::Gemm { .. } => None,
            Scores::Given(scores) => Some(scores.at(first_row * keys)),
        };
        let has_panel = AttentionKernel::has_panel(
            self.values.is_some(),
            given.is_some(),
            !self.stages.is_empty(),
        );
        let [scratch, _, packed] = self.scratch[thread];
        let panel = match (has_panel, given) {
            (true, _) => scratch.at(0),
            (false, Some(given)) if self.values.is_some() => given,
            (false, _) => self.output.at(first_row * keys),
        };
        let packed_head = if self.projection.is_some() { head } else { 0 };
        let packed = packed.at(packed_head * self.packed_numbers());
        let shares = self.divides_product().then(|| scratch.at(self.block * keys));
        // SAFETY: the panel has the block's rows of `keys` scores, and the rows are in the given scores
        // if there are any.
        unsafe {
            self.scores(arch, [matrix, first_row], rows.len(), packed, panel);
            RowStage::apply_all(
                &self.stages,
                arch,
                given.unwrap_or(panel),
                Target { shares, ..Target::plain(panel) },
                first_row..first_row + rows.len(),
                keys,
            );
        }
        let Some(values) = self.values else { return };
        let width = heads * d;
        let block = Block {
            data: joined.wrapping_add(head * d),
            stride: width,
            rows: rows.len(),
            first: Stretch {
                col: head * d,
                element: (batch * queries + rows.start) * width + head * d,
                len: d,
            },
            matrix_cols: width,
        };
        for col in (0..d).step_by(self.cut.width) {
            let strip = Strip {
                rows: rows.len(),
                k: keys,
                cols: self.cut.cols(d, col),
                source: Source::rows(panel, keys),
                panel: values.at(matrix * keys * d + col),
                panel_stride: d,
                target: block.data.wrapping_add(col),
                target_stride: width,
                factors: shares.map_or(Factors::one(), |one| Factors::each(one)),
                epilogue: Epilogue::NONE,
                depth: self.cut.depth,
            };
            // SAFETY: the caller's guarantee.
            unsafe { strip.compute(arch) };
        }
        // SAFETY: the caller's guarantee.
        unsafe { self.tail.apply_to_block(arch, &block) };
    }

    /// Computes rows of scores, if they are not given.
    ///
    /// # Safety
    ///
    /// The panel must be valid for the rows and belong to this thread, and the keys of the matrix be
    /// packed.
    unsafe fn scores(
        &self,
        arch: Arch,
        [matrix, first_row]: [usize; 2],
        rows: usize,
        packed: *const f32,
        panel: *mut f32,
    ) {
        let Scores::Gemm { queries, keys: located, scale } = &self.scores else { return };
        let Shape { keys, d, .. } = self.shape;
        let source = queries.at(first_row * d).cast_const();
        if !self.packs_keys() {
            let left = View::rows(source, d);
            let right = View::rows(located.at(matrix * keys * d), d).transposed();
            // SAFETY: the caller's guarantee.
            unsafe { gemm([rows, d, keys], panel, keys, left, right, scale.number()) };
            return;
        }
        for col in (0..keys).step_by(self.cut.width) {
            let strip = Strip {
                rows,
                k: d,
                cols: self.cut.cols(keys, col),
                source: Source::rows(source, d),
                panel: packed.wrapping_add(col * d),
                panel_stride: self.cut.packed_cols(keys, col),
                target: panel.wrapping_add(col),
                target_stride: keys,
                factors: scale.factors(),
                epilogue: Epilogue::NONE,
                depth: self.cut.depth,
            };
            // SAFETY: as above.
            unsafe { strip.compute(arch) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_work() {
        let shape = Shape { batch: 1, heads: 8, queries: 128, keys: 128, d: 64 };
        // All heads of a block are one piece: blocks of queries must feed the threads.
        for threads in [1, 2, 3, 4] {
            let block = shape.block_in_cache(true, threads, 1 << 20);
            assert!(shape.queries.div_ceil(block) >= threads, "{threads} threads, {block}");
        }
        assert_eq!(shape.block_in_cache(false, 4, 1 << 20), 128);
        let one_head = Shape { heads: 1, ..shape };
        assert_eq!(one_head.block_for_threads(4), 32);
    }
}
