//! The caches of the processor, as the system reports them.

use std::path::Path;
use std::sync::LazyLock;

use fusion_cost_model::calibration::ObservedCache;

use super::topology;

/// A second-level cache that current desktop processors have at least, for systems that report
/// nothing.
const FALLBACK_L2_BYTES: u64 = 1 << 20;

/// A last-level cache that is larger than those of most processors, for systems that report
/// nothing.
const FALLBACK_LAST_LEVEL_BYTES: u64 = 32 << 20;

/// The data and unified caches of the first processor; empty where the system reports nothing.
#[must_use]
pub fn observed_caches() -> Vec<ObservedCache> {
    observed().to_vec()
}

/// The same, read once: they stay what they are while a program runs.
fn observed() -> &'static [ObservedCache] {
    static OBSERVED: LazyLock<Vec<ObservedCache>> =
        LazyLock::new(|| read(Path::new("/sys/devices/system/cpu/cpu0/cache")));
    &OBSERVED
}

fn read(folder: &Path) -> Vec<ObservedCache> {
    let mut caches: Vec<ObservedCache> = (0..)
        .map(|index| folder.join(format!("index{index}")))
        .take_while(|index| index.exists())
        .filter_map(|index| read_one(&index))
        .collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

fn read_one(index: &Path) -> Option<ObservedCache> {
    let text = |name| std::fs::read_to_string(index.join(name)).ok();
    if text("type")?.trim() == "Instruction" {
        return None;
    }
    Some(ObservedCache {
        level: text("level")?.trim().parse().ok()?,
        bytes: parse_size(text("size")?.trim()).filter(|bytes| *bytes > 0)?,
        shared_by: text("shared_cpu_list").map_or(1, |list| count_list(list.trim())),
    })
}

/// `48K` or `32M` in bytes.
fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => match text.strip_suffix('M') {
            Some(number) => (number, 1 << 20),
            None => (text, 1),
        },
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// How many processors `0-3,8` names, at least 1.
fn count_list(list: &str) -> u32 {
    u32::try_from(topology::parse_list(list).count()).unwrap_or(u32::MAX).max(1)
}

/// A first-level cache that current processors have at least.
const FALLBACK_L1_BYTES: u64 = 32 << 10;

/// Bytes of the first-level cache for data of a thread.
pub(crate) fn first_level_bytes() -> usize {
    let first = observed().iter().find(|cache| cache.level == 1);
    let bytes = first.map_or(FALLBACK_L1_BYTES, |cache| cache.bytes / u64::from(cache.shared_by));
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// How much of its second-level cache a thread should fill with intermediate results: half, so
/// that the operands fit in addition to them.
pub(crate) fn block_bytes() -> usize {
    usize::try_from(second_level_bytes() / 2).unwrap_or(usize::MAX)
}

/// Bytes of the second-level cache that a thread has for itself.
pub(crate) fn second_level_bytes() -> u64 {
    let second = observed().iter().find(|cache| cache.level == 2);
    second.map_or(FALLBACK_L2_BYTES, |cache| cache.bytes / u64::from(cache.shared_by))
}

/// Bytes of all last-level caches that `threads` threads can fill.
///
/// Where a processor has several, each thread fills only its own, and a run on all
/// threads must touch as much as fills all of them.
pub(crate) fn last_level_bytes(threads: usize) -> u64 {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online");
    let processors = online.map_or(1, |list| count_list(list.trim()));
    last_level_of(observed(), processors, threads)
}

fn last_level_of(caches: &[ObservedCache], processors: u32, threads: usize) -> u64 {
    let Some(last) = caches.iter().max_by_key(|cache| cache.bytes) else {
        return FALLBACK_LAST_LEVEL_BYTES;
    };
    let instances = u64::from(processors.div_ceil(last.shared_by.max(1)));
    last.bytes.saturating_mul(instances.clamp(1, threads.max(1) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_lists_of_the_system() {
        assert_eq!(parse_size("48K"), Some(49_152));
        assert_eq!(parse_size("2M"), Some(2 << 20));
        assert_eq!(parse_size("x"), None);
        assert_eq!(count_list("0-3,8"), 5);
        assert_eq!(count_list("0"), 1);
        assert_eq!(count_list(""), 1);
    }

    #[test]
    fn a_system_that_tells_nothing_has_no_caches() {
        assert_eq!(read(Path::new("/nonexistent")), []);
        assert!(block_bytes() > 0);
    }

    #[test]
    fn threads_fill_the_last_level_caches_that_they_can_reach() {
        let cache = |level, bytes, shared_by| ObservedCache { level, bytes, shared_by };
        let caches = [cache(1, 32 << 10, 1), cache(2, 1 << 20, 1), cache(3, 32 << 20, 8)];
        assert_eq!(last_level_of(&caches, 64, 1), 32 << 20);
        assert_eq!(last_level_of(&caches, 64, 3), 96 << 20);
        assert_eq!(last_level_of(&caches, 64, 64), 256 << 20);
        assert_eq!(last_level_of(&caches, 2, 2), 32 << 20);
        assert_eq!(last_level_of(&[], 64, 64), FALLBACK_LAST_LEVEL_BYTES);
        assert!(last_level_bytes(2) > 0);
    }
}
