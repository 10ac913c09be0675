//! What most calls say.

use rustc_hash::FxHashMap;

/// How often each value was seen.
#[derive(Debug, Default)]
pub(super) struct Votes(FxHashMap<u64, u64>);

impl Votes {
    pub(super) fn add(&mut self, value: u64, count: u64) {
        *self.0.entry(value).or_default() += count;
    }

    /// The most frequent value, of equals the largest.
    pub(super) fn most(&self) -> Option<u64> {
        let votes = self.0.iter().max_by_key(|(value, count)| (**count, **value));
        votes.map(|(value, _)| *value)
    }
}
