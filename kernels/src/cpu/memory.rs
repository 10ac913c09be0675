//! How much memory can be used without taking it from others.

use std::path::Path;

/// Bytes that could be allocated now without swapping; `None` where the system does not report it.
///
/// In a container not more than its limit. What it uses of that is not subtracted, because most
/// of it is usually cached files, which give way.
pub(crate) fn available_bytes() -> Option<u64> {
    read(Path::new("/proc"), Path::new("/sys/fs/cgroup"))
}

fn read(proc: &Path, cgroup: &Path) -> Option<u64> {
    let system = mem_available(&std::fs::read_to_string(proc.join("meminfo")).ok()?)?;
    // Of the second version of control groups, then of the first. No limit is not a number ("max")
    // or a very large one.
    let limits = ["memory.max", "memory/memory.limit_in_bytes"].into_iter().filter_map(|name| {
        std::fs::read_to_string(cgroup.join(name)).ok()?.trim().parse::<u64>().ok()
    });
    Some(limits.fold(system, u64::min))
}

/// `MemAvailable` of `/proc/meminfo`, which is in KiB, in bytes.
fn mem_available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:       24684084 kB\nMemFree:         2484532 kB\n\
        MemAvailable:   24093880 kB\nBuffers:            1234 kB\n";
    const AVAILABLE: u64 = 24_093_880 << 10;

    fn bytes(files: &[(&str, &str)]) -> Option<u64> {
        let folder = tempfile::TempDir::new().unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        read(&folder.path().join("proc"), &folder.path().join("cgroup"))
    }

    #[test]
    fn a_limit_of_a_container_counts_where_it_is_lower() {
        let system = ("proc/meminfo", MEMINFO);
        assert_eq!(bytes(&[system]), Some(AVAILABLE));
        assert_eq!(bytes(&[system, ("cgroup/memory.max", "max\n")]), Some(AVAILABLE));
        let limit = ("cgroup/memory.max", "1000000\n");
        assert_eq!(bytes(&[system, limit]), Some(1_000_000));
        let first = ("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(bytes(&[system, first]), Some(AVAILABLE));
    }

    #[test]
    fn a_system_that_tells_nothing_has_no_number() {
        assert_eq!(bytes(&[]), None);
        assert_eq!(bytes(&[("proc/meminfo", "MemTotal: 1 kB\n")]), None);
        assert_eq!(mem_available("MemAvailable: x kB"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_memory() {
        assert!(available_bytes().unwrap() > 1 << 20);
    }
}
