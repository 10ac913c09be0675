//! The sizes of an attention as its kernel uses them, and how its queries are cut into blocks.

use fusion_cost_model::AttentionSizes;

use crate::cpu::causal_mask::CausalMask;

/// The sizes of an attention as the kernel uses them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) batch: usize,
    pub(crate) heads: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    pub(crate) d: usize,
    /// Neighbouring heads that share keys and values.
    pub(crate) sharing: usize,
    /// Numbers of a row of the result: the features of all heads side by side.
    pub(crate) width: usize,
    /// Whether the queries are heads of one query each that share keys and values, and not queries
    /// of one head: their results lie side by side.
    pub(crate) is_folded: bool,
    pub(crate) mask: Option<CausalMask>,
}

impl Shape {
    /// The single queries of heads that share keys are the rows of one GEMM, unless the heads are
    /// `joined` for what follows.
    pub(crate) fn new(sizes: AttentionSizes, joined: bool) -> Self {
        let AttentionSizes { b, h, q, kv, d, kvh, .. } = sizes;
        let is_folded = q == 1 && kvh < h && !joined;
        let (heads, queries, sharing) =
            if is_folded { (kvh, sizes.group(), 1) } else { (h, q, sizes.group()) };
        Self {
            batch: b as usize,
            heads: heads as usize,
            queries: queries as usize,
            keys: kv as usize,
            d: d as usize,
            sharing: sharing as usize,
            width: (h * d) as usize,
            is_folded,
            mask: CausalMask::of(sizes),
        }
    }

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

    /// At most `most` queries per block, and as many blocks of each of the `pieces` as keep all threads
    /// busy to the end: three heads for two threads would take as long as four.
    fn block_of(&self, most: usize, pieces: usize, threads: usize) -> usize {
        /// Fewer queries are not worth reading the keys for once more.
        const FEW: usize = 24;
        let blocks = self.queries.div_ceil(most.max(1));
        let of_thread = |blocks: usize| (pieces * blocks).div_ceil(threads);
        // The busiest thread has no more than a tenth above its share.
        let is_even = |blocks: usize| of_thread(blocks) * threads * 10 <= pieces * blocks * 11;
        let is_worth_it = |blocks: usize| self.queries.div_ceil(blocks) >= FEW;
        let even = (blocks..=blocks * threads).find(|&blocks| is_even(blocks));
        let wanted = if pieces >= threads { 1 } else { threads.div_ceil(pieces) };
        let blocks =
            even.filter(|&even| is_worth_it(even)).unwrap_or(blocks.next_multiple_of(wanted));
        self.queries.div_ceil(blocks).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_work() {
        let sizes = AttentionSizes { b: 1, h: 8, q: 128, kv: 128, d: 64, kvh: 8, causal: false };
        let shape = Shape::new(sizes, false);
        // All heads of a block are one piece: blocks of queries must feed the threads.
        for threads in [1, 2, 3, 4] {
            let block = shape.block_in_cache(true, threads, 1 << 20);
            assert!(shape.queries.div_ceil(block) >= threads, "{threads} threads, {block}");
        }
        assert_eq!(shape.block_in_cache(false, 4, 1 << 20), 128);
        let one_head = Shape { heads: 1, ..shape };
        assert_eq!(one_head.block_for_threads(4), 32);
        // Three heads for two threads, and a query for each head.
        let three_heads = Shape { heads: 3, queries: 77, ..shape };
        assert_eq!(three_heads.block_for_threads(2), 39);
        assert_eq!(three_heads.block_for_threads(3), 77);
        assert_eq!(Shape { queries: 1, ..three_heads }.block_for_threads(2), 1);
        // No more blocks than are worth it.
        assert_eq!(Shape { queries: 40, ..three_heads }.block_for_threads(2), 40);
    }
}
