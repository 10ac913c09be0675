//! The memory of the machine.

use sysinfo::{CGroupLimits, MemoryRefreshKind, RefreshKind, System};

/// Bytes that could be allocated now, the limit of a container included; `u64::MAX` where the
/// system does not say it.
#[must_use]
pub fn available_bytes() -> u64 {
    let what = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(what);
    // Without `/proc` nothing is known, and asking for the limits would panic.
    if system.total_memory() == 0 {
        return u64::MAX;
    }
    let limit = system.cgroup_limits().map_or(u64::MAX, |limits| left_of(&limits));
    limit.min(system.available_memory())
}

/// What a container may still allocate: cached files count as its memory, but give way.
fn left_of(limits: &CGroupLimits) -> u64 {
    limits.total_memory.saturating_sub(limits.rss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_files_do_not_count_as_used() {
        let limits = CGroupLimits { total_memory: 100, free_memory: 5, free_swap: 0, rss: 30 };
        assert_eq!(left_of(&limits), 70);
        let over = CGroupLimits { rss: 130, ..limits };
        assert_eq!(left_of(&over), 0);
    }
}
