//! What newer profilers say about a collective beside its kernel: whose it is and how large.

use serde::{Deserialize, Serialize};

use crate::dtypes;

/// What a collective was called with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Message {
    /// Its name in the words of the framework: `allreduce`, `_allgather_base`.
    pub collective: String,
    /// The process group; the same on all its ranks.
    pub group: String,
    /// The ranks of the group as the profiler lists them, which leaves out some of many.
    pub ranks: String,
    /// How many ranks the group has; 0 if the trace does not say.
    pub group_size: u64,
    /// The type of the elements: `Float`, `BFloat16`.
    pub dtype: String,
    /// The elements that this rank gives.
    pub sent: u64,
    /// The elements that this rank gets.
    pub received: u64,
}

impl Message {
    /// Reads the text of a message, as [`Trace::messages`](crate::Trace::messages) has it.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The size by which bandwidths of collectives are stated: the larger of what this rank gives
    /// and gets, in bytes. None if the trace does not say.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let elements = self.sent.max(self.received);
        elements.checked_mul(dtypes::bytes(&self.dtype)?).filter(|bytes| *bytes > 0)
    }
}
