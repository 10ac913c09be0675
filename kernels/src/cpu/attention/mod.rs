//! Scaled dot-product attention, whole or in parts, with the output projection.
//!
//! A thread takes a block of queries of one head: their scores against all keys are a panel that
//! fits into the second-level cache, where softmax and whatever else stands in the chain
//! transform it, and from where it is multiplied with the values. The score matrix never exists.
//! The unfused GEMMs of queries and keys, and of probabilities and values, are the same code
//! with the other parts left out.
//!
//! A thread packs the keys of a head once, for all blocks of its queries and for all heads that
//! share them. Values are read in place, without rearranging them.
//!
//! With a causal mask, no block computes with keys that none of its queries sees.

mod shape;

use std::ops::Range;

use pulp::Arch;

pub(crate) use self::shape::Shape;

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
        let Shape { heads, keys, sharing, width, .. } = self.shape;
        let given = matches!(self.scores, Scores::Given(_));
        let panel = Self::has_panel(self.values.is_some(), given, !self.stages.is_empty());
        let joined = self.projection.is_some();
        let packed_heads = if joined { heads / sharing } else { 1 };
        [
            if panel { self.block * (keys + 1) } else { 0 },
            if joined { self.block * width } else { 0 },
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
        self.values.is_some()
            && matches!(self.stages.last(), Some(RowStage::RowOp(RowOp::Softmax { .. })))
    }

    /// How many of the keys are of use to a block of queries: what none of them sees counts for
    /// nothing where the softmax is the last that is done to the scores.
    fn keys_of(&self, rows: &Range<usize>) -> usize {
        match (self.shape.mask, self.stages.last()) {
            (Some(mask), Some(RowStage::RowOp(RowOp::Softmax { .. }))) => mask.seen(rows.end - 1),
            _ => self.shape.keys,
        }
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

    /// The queries of a piece. Under a mask the last blocks take longest: taken from both ends in
    /// turn, neighbouring pieces are as much work as any others.
    fn rows(&self, piece: usize) -> Range<usize> {
        let (index, blocks) = (piece % self.blocks(), self.blocks());
        let block = match self.shape.mask {
            Some(_) if index % 2 == 1 => blocks - 1 - index / 2,
            Some(_) => index / 2,
            None => index,
        };
        let start = block * self.block;
        start..(start + self.block).min(self.shape.queries)
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
        let Shape { heads, keys, d, sharing, .. } = self.shape;
        let (first, count) = match self.projection {
            Some(_) => (above * (heads / sharing), heads / sharing),
            None => (above / sharing, 1),
        };
        if !self.packs_keys() || packed.replace(first) == Some(first) {
            return;
        }
        for head in 0..count {
            let source = located.at((first + head) * keys * d);
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
        let Shape { heads, queries, width, .. } = self.shape;
        let rows = self.rows(piece);
        let above = piece / self.blocks();
        // SAFETY: the caller's guarantee.
        unsafe {
            let Some(layer) = &self.projection else {
                let (batch, head) = (above / heads, above % heads);
                let first = if self.shape.is_folded { batch } else { batch * queries + rows.start };
                let target = self.output.at(first * width);
                self.head(arch, thread, [batch, head], rows, target);
                return;
            };
            let batch = above;
            let joined = self.scratch[thread][1].at(0);
            for head in 0..heads {
                self.head(arch, thread, [batch, head], rows.clone(), joined);
            }
            let first = batch * queries + rows.start;
            let target = self.output.at(first * layer.n);
            layer.apply(arch, thread, joined.cast_const(), target, first, rows.len());
        }
    }

    /// Computes one head of a block of queries. `joined` is the block's first row of joined
    /// heads, or the only one; it is not used when the scores are the result.
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
        let Shape { heads, queries, keys, d, sharing, .. } = self.shape;
        let matrix = batch * heads + head;
        let of_keys = matrix / sharing;
        let first_row = matrix * queries + rows.start;
        let used = self.keys_of(&rows);
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
        // With nothing but a softmax between the GEMMs, what is not used has no place in the panel.
        let is_narrow = given.is_none() && self.values.is_some() && self.stages.len() == 1;
        let stride = if is_narrow { used } else { keys };
        let packed_head = if self.projection.is_some() { head / sharing } else { 0 };
        let packed = packed.at(packed_head * self.packed_numbers());
        let shares = self.divides_product().then(|| scratch.at(self.block * keys));
        // SAFETY: the panel has the block's rows of `keys` scores, and the rows are in the given scores
        // if there are any.
        unsafe {
            self.scores(arch, [of_keys, first_row], [rows.len(), used], packed, (panel, stride));
            RowStage::apply_all(
                &self.stages,
                arch,
                given.unwrap_or(panel),
                Target { shares, ..Target::plain(panel) },
                first_row..first_row + rows.len(),
                stride,
            );
        }
        let Some(values) = self.values else { return };
        let block = self.block_of_result([batch, head], &rows, joined);
        let target_stride = if self.shape.is_folded { d } else { block.stride };
        for col in (0..d).step_by(self.cut.width) {
            let strip = Strip {
                rows: rows.len(),
                k: used,
                cols: self.cut.cols(d, col),
                source: Source::rows(panel, stride),
                panel: values.at(of_keys * keys * d + col),
                panel_stride: d,
                target: block.data.wrapping_add(col),
                target_stride,
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

    /// Where the result of a head of a block of queries goes.
    fn block_of_result(
        &self,
        [batch, head]: [usize; 2],
        rows: &Range<usize>,
        joined: *mut f32,
    ) -> Block {
        let Shape { queries, d, width, is_folded, .. } = self.shape;
        let (row, col, rows, len) = if is_folded {
            (batch, (head * queries + rows.start) * d, 1, rows.len() * d)
        } else {
            (batch * queries + rows.start, head * d, rows.len(), d)
        };
        Block {
            data: joined.wrapping_add(col),
            stride: width,
            rows,
            first: Stretch { col, element: row * width + col, len },
            matrix_cols: width,
        }
    }

    /// Computes rows of scores against the first `used` keys, if they are not given. Those of the panel
    /// are `stride` numbers apart.
    ///
    /// # Safety
    ///
    /// The panel must be valid for the rows and belong to this thread, and the keys be packed.
    unsafe fn scores(
        &self,
        arch: Arch,
        [of_keys, first_row]: [usize; 2],
        [rows, used]: [usize; 2],
        packed: *const f32,
        (panel, stride): (*mut f32, usize),
    ) {
        let Scores::Gemm { queries, keys: located, scale } = &self.scores else { return };
        let Shape { keys, d, .. } = self.shape;
        let source = queries.at(first_row * d).cast_const();
        if !self.packs_keys() {
            let left = View::rows(source, d);
            let right = View::rows(located.at(of_keys * keys * d), d).transposed();
            // SAFETY: the caller's guarantee.
            unsafe { gemm([rows, d, used], panel, stride, left, right, scale.number()) };
            return;
        }
        for col in (0..used).step_by(self.cut.width) {
            let strip = Strip {
                rows,
                k: d,
                cols: self.cut.cols(used, col),
                source: Source::rows(source, d),
                panel: packed.wrapping_add(col * d),
                panel_stride: self.cut.packed_cols(keys, col),
                target: panel.wrapping_add(col),
                target_stride: stride,
                factors: scale.factors(),
                epilogue: Epilogue::NONE,
                depth: self.cut.depth,
            };
            // SAFETY: as above.
            unsafe { strip.compute(arch) };
        }
    }
}
