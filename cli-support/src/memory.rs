//! The memory of the machine.

use std::fs;
use std::path::{Path, PathBuf};

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// Bytes that could be allocated now, the limit of a container or a batch job included; `u64::MAX`
/// where the system does not say it.
#[must_use]
pub fn available_bytes() -> u64 {
    let what = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(what);
    let available = match system.total_memory() {
        // Without `/proc` nothing is known.
        0 => u64::MAX,
        _ => system.available_memory(),
    };
    left_in_groups(Path::new("/")).map_or(available, |left| left.min(available))
}

/// A version of control groups: where its memory controller is mounted, and what its files are
/// called.
struct Version {
    mount: &'static str,
    limit: &'static str,
    used: &'static str,
    /// The lines of `memory.stat` that count cached files.
    cached: [&'static str; 2],
}

const VERSIONS: [Version; 2] = [
    Version {
        mount: "sys/fs/cgroup",
        limit: "memory.max",
        used: "memory.current",
        cached: ["active_file", "inactive_file"],
    },
    Version {
        mount: "sys/fs/cgroup/memory",
        limit: "memory.limit_in_bytes",
        used: "memory.usage_in_bytes",
        cached: ["total_active_file", "total_inactive_file"],
    },
];

/// What the control groups of this process may still allocate; `None` where none has a limit. Each
/// group is within its parent: the one with the least left decides.
fn left_in_groups(root: &Path) -> Option<u64> {
    let own = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let folders = VERSIONS.iter().flat_map(|version| {
        let mount = root.join(version.mount);
        // In a container, its own group is mounted instead, and the path may lead nowhere.
        let path = own.lines().find_map(|line| path_of(line, version)).unwrap_or_default();
        let folders: Vec<PathBuf> = path.ancestors().map(|group| mount.join(group)).collect();
        folders.into_iter().map(move |folder| (version, folder))
    });
    folders.filter_map(|(version, folder)| version.left_in(&folder)).min()
}

/// The group that a line of `/proc/self/cgroup` names, such as `0::/user.slice` of the second version
/// or `4:memory:/docker/1` of the first.
fn path_of(line: &str, version: &Version) -> Option<PathBuf> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(':')?;
    let is_first = controllers.split(',').any(|one| one == "memory");
    let is_its = if version.mount.ends_with("memory") { is_first } else { controllers.is_empty() };
    is_its.then(|| PathBuf::from(path.trim_start_matches('/')))
}

impl Version {
    /// What may still be allocated in a group; `None` without a limit. Cached files are of its memory
    /// but give way.
    fn left_in(&self, folder: &Path) -> Option<u64> {
        let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
        // No limit is `max`, or a number beyond all memory.
        let limit = number(self.limit)?;
        let used = number(self.used).unwrap_or(0);
        let stat = text("memory.stat").unwrap_or_default();
        let cached = self.cached.iter().filter_map(|key| {
            let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(name, _)| name == key)?.1.trim().parse::<u64>().ok()
        });
        Some(limit.saturating_sub(used.saturating_sub(cached.fold(0, u64::saturating_add))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left on a machine with these files.
    fn left(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = root.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        left_in_groups(root.path())
    }

    const STAT: &str = "anon 300\nfile 500\nkernel 10\nshmem 100\ninactive_file 250\nactive_file 150\n\
        inactive_anon 300\n";

    #[test]
    fn cached_files_do_not_count_as_used() {
        let max = ("sys/fs/cgroup/memory.max", "1000\n");
        let current = ("sys/fs/cgroup/memory.current", "810\n");
        let stat = ("sys/fs/cgroup/memory.stat", STAT);
        assert_eq!(left(&[max, current, stat]), Some(1000 - (810 - 400)));
        assert_eq!(left(&[max, current]), Some(190), "without knowing what is cached");
        assert_eq!(left(&[max]), Some(1000));
        let over = ("sys/fs/cgroup/memory.current", "2000\n");
        assert_eq!(left(&[max, over]), Some(0));
        let none = ("sys/fs/cgroup/memory.max", "max\n");
        assert_eq!(left(&[none, current, stat]), None);
        assert_eq!(left(&[]), None);
        assert_eq!(left(&[("sys/fs/cgroup/memory.max", "-1\n"), current]), None);
    }

    #[test]
    fn the_first_version_has_other_names() {
        let own = ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/1\n1:name=systemd:/\n");
        let limit = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
        let usage = ("sys/fs/cgroup/memory/memory.usage_in_bytes", "600\n");
        let stat = (
            "sys/fs/cgroup/memory/memory.stat",
            "active_file 9\ninactive_file 9\ntotal_active_file 100\ntotal_inactive_file 200\n",
        );
        assert_eq!(left(&[own, limit, usage, stat]), Some(700));
        let job = ("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "500\n");
        assert_eq!(left(&[own, limit, usage, stat, job]), Some(500));
        let other = ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "5\n");
        assert_eq!(left(&[own, limit, usage, stat, other]), Some(700), "another controller's");
    }

    /// As in a job of Slurm, or a service with a slice of its own.
    #[test]
    fn the_group_with_the_least_left_decides() {
        let own = ("proc/self/cgroup", "0::/slurm/job_1/step_0\n");
        let of = |folder: &'static str, limit: &'static str| {
            let file: &'static str = format!("sys/fs/cgroup/slurm{folder}/memory.max").leak();
            (file, limit)
        };
        assert_eq!(left(&[own, of("", "900"), of("/job_1", "400")]), Some(400));
        assert_eq!(left(&[own, of("", "300"), of("/job_1", "400")]), Some(300));
        assert_eq!(left(&[own, of("/job_2", "1"), of("/job_1/step_0", "max")]), None);
        let used = ("sys/fs/cgroup/slurm/memory.current", "850");
        assert_eq!(left(&[own, of("", "900"), used, of("/job_1", "400")]), Some(50));
        // In a container that sees the path outside.
        let mounted = ("sys/fs/cgroup/memory.max", "70");
        assert_eq!(left(&[own, mounted]), Some(70));
    }
}
