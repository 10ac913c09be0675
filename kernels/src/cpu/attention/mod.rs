//! Scaled dot-product attention, whole or in parts, with the output projection.
//!
//! A thread takes a block of queries of one head: their scores against all keys are a panel that
//! fits into the second-level cache, where softmax and whatever else stands in the chain
//! transform it, and from where it is multiplied with the values. The score matrix never exists.
//! The unfused GEMMs of queries and keys, and of probabilities and values, are the same code
//! with the other parts left out.
//!
//! A thread packs the keys of a head once, for all blocks of its queries and for all heads that
//! share them. Values are read in place. The keys of a few queries are, too: packing would take longer
//! than it saves.
//!
//! With a causal mask, no block computes with keys that none of its queries sees, except for one
//! behind an odd number of them, whose values are multiplied in pairs: with zero.
//!
//! Between what it reads and what it leaves, numbers are f32. A thread widens what is not: the keys and
//! values of a head once, its queries and given scores a block at a time. The result of a head then
//! waits in f32 until the tail has been applied, which rounds it.
//!
//! Where the processor multiplies pairs of the numbers, nothing is widened: queries are multiplied as
//! they are with packed keys, and probabilities, rounded as an unfused softmax would leave them, with
//! packed values. The values of a few queries are widened as they are read.

mod few_queries;
mod products;
mod rooms;
mod shape;

use std::ops::Range;

use pulp::Arch;

use self::products::Product;
pub(crate) use self::rooms::Room;
use self::rooms::convert;
pub(crate) use self::shape::Shape;
use super::element::{Element, Uniform};
use super::gemm::share;
use super::kernel::{Kernel, Located};
use super::layer::Layer;
use super::pool::Pool;
use super::row_ops::RowOp;
use super::row_stage::RowStage;
use super::row_target::Target;
use super::strip::Cut;
use super::tail::{Block, Rows, Stretch, Tail};
use super::tensors::Tensors;

/// Where the panels of scores come from.
#[derive(Debug)]
pub(crate) enum Scores<E> {
    /// Queries times keys times a scale.
    Gemm { queries: Located<E>, keys: Located<E>, scale: Scale<E> },
    /// They are the input.
    Given(Located<E>),
}

/// What scores are multiplied with before they are written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scale<E> {
    /// It belongs to the op.
    Number(f32),
    /// It is an op of its own, right after the scores.
    Operand(Located<E>),
}

impl<E: Element> Scale<E> {
    /// # Safety
    ///
    /// The operand must be valid.
    unsafe fn number(&self) -> f32 {
        match self {
            Self::Number(number) => *number,
            // SAFETY: the caller's guarantee.
            Self::Operand(operand) => unsafe { *operand.at(0) }.widen(),
        }
    }
}

/// Attention or a part of it.
#[derive(Debug)]
pub(crate) struct AttentionKernel<E: Uniform> {
    pub(crate) shape: Shape,
    pub(crate) block: usize,
    pub(crate) scores: Scores<E>,
    /// What is done to each row of scores.
    pub(crate) stages: Vec<RowStage<E>>,
    /// The values that the probabilities are multiplied with; without them the scores are the
    /// result.
    pub(crate) values: Option<Located<E>>,
    /// Applied to each head's part of the result.
    pub(crate) tail: Tail<E>,
    /// The linear layer on the joined heads.
    pub(crate) projection: Option<Layer<E>>,
    pub(crate) output: Located<E>,
    /// How panels of f32 are cut.
    pub(crate) cut: Cut,
    /// How panels of the numbers as they are stored are cut.
    pub(crate) cut_of_stored: Cut,
    /// For each thread.
    pub(crate) rooms: Vec<Room<E>>,
}

impl<E: Uniform> AttentionKernel<E> {
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

impl<E: Uniform> Kernel for AttentionKernel<E> {
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
            1 if !Self::WIDENS => "gemm per head".to_owned(),
            _ if self.multiplies_pairs() => {
                let unit = self.cut_of_stored.unit();
                format!("panels of {} queries in cache, in pairs{unit}", self.block)
            }
            _ => {
                let on_amx = self.projection.as_ref().is_some_and(|layer| layer.panels.cut.on_amx);
                let projected = if on_amx { ", projected on AMX" } else { "" };
                format!("panels of {} queries in cache{projected}", self.block)
            }
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
        self.rooms.iter_mut().for_each(|room| room.locate(tensors));
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
                // SAFETY: pieces are disjoint parts of the output, a room belongs to a thread.
                unsafe {
                    self.prepare_head(arch, thread, piece / self.blocks(), &mut packed);
                    self.piece(arch, thread, piece);
                }
            }
        });
    }
}

impl<E: Uniform> AttentionKernel<E> {
    /// Computes a block of queries of one head, or of all heads where they are joined.
    ///
    /// # Safety
    ///
    /// The piece's rows of the output, and the room of `thread` with its head, must belong to the calling
    /// thread.
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
            let joined = self.rooms[thread].joined.at(0);
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
        joined: *mut E,
    ) {
        let Shape { heads, queries, keys, d, sharing, is_folded, .. } = self.shape;
        let matrix = batch * heads + head;
        let first_row = matrix * queries + rows.start;
        let used = self.keys_of(&rows);
        let room = self.rooms[thread];
        let given = match self.scores {
            Scores::Gemm { .. } => None,
            Scores::Given(scores) => Some(scores.at(first_row * keys)),
        };
        let of_scores = self.output.at(first_row * keys);
        // Where scores are that need no room: the given ones, or the result.
        let in_place = match (self.has_panel(), given) {
            (true, _) => None,
            (false, Some(given)) if self.values.is_some() => E::as_f32(given),
            (false, _) => E::as_f32(of_scores),
        };
        let panel = in_place.unwrap_or(room.panel.at(0));
        // With nothing but a softmax between the GEMMs, what is not used has no place in the panel.
        let is_narrow = given.is_none() && self.values.is_some() && self.stages.len() == 1;
        let stride = if is_narrow { used } else { keys };
        // The heads of a batch that are joined lie in the room one after the other.
        let held = if self.projection.is_some() { head / sharing } else { 0 };
        let of_keys = matrix / sharing;
        let shares = self.divides_product().then(|| room.panel.at(self.block * keys));
        let rows_of_all = first_row..first_row + rows.len();
        // SAFETY: the caller's guarantee; the panel has the block's rows of `keys` scores, and the
        // rows are in the given scores if there are any.
        unsafe {
            self.scores(
                arch,
                thread,
                [of_keys, held, first_row],
                [rows.len(), used],
                (panel, stride),
            );
            let scores = (given, panel.cast_const());
            if self.values.is_none() {
                let room = self.has_panel().then_some(panel);
                let target = Target { room, ..Target::plain(of_scores) };
                self.apply_stages(arch, scores, target, rows_of_all, stride);
                return;
            }
            let block = self.block_of_result([batch, head], &rows, joined);
            let target_stride = if is_folded { d } else { block.stride };
            let (target, target_stride) = match E::as_f32(block.data) {
                Some(target) => (target, target_stride),
                None => (room.result.at(0), d),
            };
            let product = Product { target, target_stride, rows: rows.len(), used };
            if self.reads_stored_values() {
                let (probabilities, stride) = match given {
                    Some(given) if self.stages.is_empty() => (given, keys),
                    _ => {
                        let probabilities = room.probabilities.at(0);
                        let target = Target { room: Some(panel), ..Target::plain(probabilities) };
                        self.apply_stages(arch, scores, target, rows_of_all, stride);
                        (probabilities, stride)
                    }
                };
                let probabilities = (probabilities, stride);
                self.times_stored_values(arch, thread, [of_keys, held], probabilities, &product);
            } else {
                let target = Target { shares, ..Target::plain(panel) };
                self.apply_stages(arch, scores, target, rows_of_all, stride);
                let panel = (panel.cast_const(), stride);
                self.times_values(arch, thread, [of_keys, held], panel, shares, &product);
            }
            match E::as_f32(block.data) {
                Some(data) => self.tail.apply_to_block(arch, &block.at(data)),
                // The rows of a room lie side by side, as folded ones do.
                None => {
                    let stride = block.first.len;
                    self.tail.apply_into(arch, Rows { data: target.cast_const(), stride }, &block);
                }
            }
        }
    }

    /// Takes rows of scores through the stages: given ones, or those of a panel. Without stages they may
    /// have to be stored in another way.
    ///
    /// # Safety
    ///
    /// As for [`RowStage::apply_all`].
    unsafe fn apply_stages<O: Element>(
        &self,
        arch: Arch,
        (given, panel): (Option<*mut E>, *const f32),
        target: Target<O>,
        rows: Range<usize>,
        cols: usize,
    ) {
        let (stages, numbers) = (&self.stages, rows.len() * cols);
        // SAFETY: the caller's guarantee.
        unsafe {
            match given {
                Some(given) if stages.is_empty() => convert(arch, given, target.data, numbers),
                None if stages.is_empty() => convert(arch, panel, target.data, numbers),
                Some(given) => RowStage::apply_all(stages, arch, given, target, rows, cols),
                None => RowStage::apply_all(stages, arch, panel, target, rows, cols),
            }
        }
    }

    /// Where the result of a head of a block of queries goes.
    fn block_of_result(
        &self,
        [batch, head]: [usize; 2],
        rows: &Range<usize>,
        joined: *mut E,
    ) -> Block<E> {
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
}
