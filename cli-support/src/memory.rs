//! The memory of the machine.

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// Bytes that could be allocated now, the limits of a container included.
#[must_use]
pub fn available_bytes() -> u64 {
    let what = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(what);
    let limit = system.cgroup_limits().map(|limits| limits.free_memory);
    limit.unwrap_or(u64::MAX).min(system.available_memory())
}
