//! Whether the kernel ended a process because memory ran out: signal 9 does not say who sent it.

/// How many processes the kernel has ended for want of memory, on the whole machine since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryKills(Option<u64>);

impl MemoryKills {
    /// Those until now, as Linux counts them in `/proc/vmstat` since 4.13.
    pub(crate) fn until_now() -> Self {
        Self(std::fs::read_to_string("/proc/vmstat").ok().and_then(|text| counted(&text)))
    }

    #[cfg(test)]
    pub(super) fn unknown() -> Self {
        Self(None)
    }

    /// Explains signal 9 of a process that was started at this count, in words to follow it.
    pub(super) fn explain(self, now: Self) -> &'static str {
        match (self.0, now.0) {
            (Some(before), Some(now)) if before == now => {
                "; the kernel ended no process for want of memory, so a program sent it"
            }
            (Some(_), Some(_)) => "; meanwhile the kernel ended a process for want of memory",
            _ => "; most likely it needed too much memory",
        }
    }
}

/// The count in the text of `/proc/vmstat`.
fn counted(vmstat: &str) -> Option<u64> {
    let line = vmstat.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{MemoryKills, counted};

    #[test]
    fn the_count_is_found_by_its_whole_name() {
        assert_eq!(counted("nr_free_pages 7\noom_kill 12\noom_kill_other 3\n"), Some(12));
        assert_eq!(counted("oom_kill_other 3\n"), None);
        assert_eq!(counted("oom_kill many\n"), None);
        assert_eq!(counted(""), None);
    }

    #[test]
    fn a_kill_is_blamed_on_memory_only_where_the_kernel_counted_one() {
        let at = |count| MemoryKills(Some(count));
        let of_a_program = at(3).explain(at(3));
        assert!(of_a_program.contains("a program sent it"), "{of_a_program}");
        let of_the_kernel = at(3).explain(at(4));
        assert!(of_the_kernel.contains("for want of memory"), "{of_the_kernel}");
        assert!(!of_the_kernel.contains("a program"), "{of_the_kernel}");
        for (before, now) in [
            (MemoryKills::unknown(), at(3)),
            (at(3), MemoryKills::unknown()),
            (MemoryKills::unknown(), MemoryKills::unknown()),
        ] {
            assert!(before.explain(now).contains("most likely"), "{before:?} {now:?}");
        }
    }
}
