//! How long each process has worked.

use std::collections::HashMap;

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// A process that worked while it was watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Busy {
    /// The name as the system reports it, often shortened.
    pub(super) name: String,
    /// The number of the process.
    pub(super) pid: u32,
    /// For how many milliseconds of processor time it worked.
    pub(super) milliseconds: u64,
}

/// The processes that were there at first, and what they had done until then.
pub(super) struct Processes {
    system: System,
    until_now: HashMap<Pid, u64>,
    own: Option<Pid>,
}

impl Processes {
    /// Begins to watch.
    pub(super) fn watch() -> Self {
        let mut system = System::new();
        refresh(&mut system, ProcessesToUpdate::All);
        let processes = system.processes().iter();
        let until_now = processes.map(|(pid, p)| (*pid, p.accumulated_cpu_time())).collect();
        Self { system, until_now, own: sysinfo::get_current_pid().ok() }
    }

    /// Milliseconds of processor time that this process has used since the watch began.
    pub(super) fn own_work(&mut self) -> u64 {
        let Some(own) = self.own else { return 0 };
        refresh(&mut self.system, ProcessesToUpdate::Some(&[own]));
        self.work_of(own)
    }

    /// The other processes that have worked since the watch began, the busiest first.
    pub(super) fn busiest_others(&mut self) -> Vec<Busy> {
        refresh(&mut self.system, ProcessesToUpdate::All);
        let others = self.system.processes().iter().filter(|(pid, _)| Some(**pid) != self.own);
        let mut busy: Vec<_> = others
            .map(|(pid, process)| Busy {
                name: printable(&process.name().to_string_lossy()),
                pid: pid.as_u32(),
                milliseconds: self.work_of(*pid),
            })
            .filter(|busy| busy.milliseconds > 0)
            .collect();
        busy.sort_unstable_by_key(|busy| (std::cmp::Reverse(busy.milliseconds), busy.pid));
        busy
    }

    /// Milliseconds since the watch began; one that was not there then has done all of its work
    /// since.
    fn work_of(&self, pid: Pid) -> u64 {
        let until_now = self.until_now.get(&pid).copied().unwrap_or(0);
        let all = self.system.process(pid).map_or(0, sysinfo::Process::accumulated_cpu_time);
        all.saturating_sub(until_now)
    }
}

fn refresh(system: &mut System, which: ProcessesToUpdate<'_>) {
    // Threads are counted in their processes, and reading each of them would take long.
    let what = ProcessRefreshKind::nothing().with_cpu().without_tasks();
    system.refresh_processes_specifics(which, true, what);
}

/// A process can give itself any name, and this one goes to a terminal.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_control_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a?[2Jb?");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_works_is_found_and_this_one_is_not() {
        use std::process::Command;
        use std::time::{Duration, Instant};

        let mut processes = Processes::watch();
        let mut worker = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        // Far longer than it takes, since the machine may be busy with other tests.
        let deadline = Instant::now() + Duration::from_secs(20);
        let is_worker = |busy: &Busy| busy.pid == worker.id();
        let mut others = Vec::new();
        while !others.iter().any(is_worker) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
            others = processes.busiest_others();
        }
        let found = others.iter().find(|busy| is_worker(busy)).cloned();
        // Before anything is asserted, so that it never goes on working.
        worker.kill().unwrap();
        worker.wait().unwrap();
        assert_eq!(found.unwrap().name, "sh");
        assert!(others.iter().all(|busy| busy.pid != std::process::id()));
        assert!(others.is_sorted_by_key(|busy| std::cmp::Reverse(busy.milliseconds)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_own_work_is_known() {
        let mut processes = Processes::watch();
        let start = std::time::Instant::now();
        while processes.own_work() == 0 {
            assert!(start.elapsed() < std::time::Duration::from_secs(20));
        }
    }
}
