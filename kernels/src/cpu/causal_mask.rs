//! Which keys the queries of causal attention see.

use fusion_cost_model::AttentionSizes;

/// Which numbers of a row of scores a causal softmax sees: the last query all of them, each one
/// before it one less.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CausalMask {
    queries: usize,
    keys: usize,
}

impl CausalMask {
    /// The mask of an attention, if it has one.
    pub(crate) fn of(sizes: AttentionSizes) -> Option<Self> {
        let AttentionSizes { q, kv, causal, .. } = sizes;
        causal.then_some(Self { queries: q as usize, keys: kv as usize })
    }

    /// How many keys a query sees.
    pub(crate) const fn seen(&self, query: usize) -> usize {
        self.keys - self.queries + query + 1
    }

    /// The same of a row of the scores of all heads.
    pub(crate) const fn seen_by_row(&self, row: usize) -> usize {
        self.seen(row % self.queries)
    }
}
