//! Whether memory is moved to disk.

use fusion_cost_model::calibration::Check;

use super::outcome::{pass, warn};
use crate::units::{gibibytes, percent};

const NAME: &str = "swap";

/// The share of the memory that should be available while swap is in use.
const ENOUGH: f64 = 0.10;

/// What was seen of memory and swap, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Size of all swap.
    pub(super) swap: u64,
    /// Used of it.
    pub(super) swap_used: u64,
    /// Size of the memory.
    pub(super) memory: u64,
    /// Available of it.
    pub(super) memory_available: u64,
    /// Pages that were moved while it was watched, where the system reports them.
    pub(super) swapped_pages: Option<u64>,
}

/// Judges swap. Swap in use says little: pages that no process needs stay there for weeks.
pub(super) fn judge(seen: Seen) -> Check {
    const ADVICE: &str = "close other programs, so that memory does not move to disk and back";
    if let Some(pages @ 1..) = seen.swapped_pages {
        return warn(NAME, format!("{pages} pages were moved while it was watched"), ADVICE);
    }
    if seen.swap == 0 {
        return pass(NAME, "none");
    }
    let used = format!("{} of {} used", gibibytes(seen.swap_used), gibibytes(seen.swap));
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let available = seen.memory_available as f64 / seen.memory.max(1) as f64;
    if seen.swap_used > 0 && available < ENOUGH {
        let found = format!("{used}, {} of the memory available", percent(available));
        return warn(NAME, found, ADVICE);
    }
    pass(NAME, used)
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::CheckStatus::{Pass, Warn};

    use super::*;

    #[test]
    fn use_matters_only_where_memory_is_short() {
        for (swap, swap_used, memory_available, swapped_pages, expected) in [
            (0, 0, 500, None, Pass),
            (0, 0, 1, Some(0), Pass),
            (100, 0, 1, Some(0), Pass),
            (100, 90, 100, Some(0), Pass),
            (100, 90, 99, Some(0), Warn),
            (100, 90, 99, None, Warn),
            (100, 1, 500, Some(1), Warn),
        ] {
            let seen = Seen { swap, swap_used, memory: 1000, memory_available, swapped_pages };
            assert_eq!(judge(seen).status, expected, "{seen:?}");
        }
    }
}
