//! What a worker has started, and what that has started: all of it ends with the worker.
//!
//! A process can leave its group (`setsid`), and outlive the one that started it. A worker adopts
//! such orphans, so that whatever is started below it stays below it, and can be found there when
//! the worker ends by itself or is killed by its caller. What a worker leaves behind that somebody
//! else kills, such as the system for its memory, is nobody's.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, waitid};

/// How long they may take to end: some start others all the time, and some belong to other users.
const TIME_TO_END: Duration = Duration::from_millis(500);

/// Has this process adopt what its descendants leave behind.
pub(super) fn adopt() {
    // SAFETY: it sets a number of this process and touches no memory. Where the system refuses it,
    // orphans are lost as they always were.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1_u64, 0_u64, 0_u64, 0_u64);
    }
}

/// Ends all that this process has started or adopted.
pub(super) fn end_own() {
    // Most workers have no children, and need not look for any.
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    if waitid(Id::All, look) != Err(Errno::ECHILD) {
        end_below(std::process::id());
    }
}

/// Ends all that a worker has started or adopted, before its caller kills it.
pub(super) fn end_those_of(worker: u32) {
    // It is stopped first, so that it starts nothing more.
    if send(worker, libc::SIGSTOP).is_ok() {
        end_below(worker);
    }
}

/// Ends the descendants of a process. Those that start others meanwhile leave these to be found in
/// the next turn.
fn end_below(ancestor: u32) {
    let until = Instant::now() + TIME_TO_END;
    loop {
        let below = below(ancestor);
        for process in &below {
            // One that has ended since is not there. Its number goes to another one only after all
            // others had their turn.
            let _ = send(*process, libc::SIGKILL);
        }
        if below.is_empty() || Instant::now() >= until {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn send(process: u32, signal: i32) -> io::Result<()> {
    let process = i32::try_from(process).map_err(io::Error::other)?;
    // SAFETY: it sends a signal and touches no memory. The number is that of one process, since it is
    // above 0.
    match unsafe { libc::kill(process, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The descendants of a process that run.
fn below(ancestor: u32) -> Vec<u32> {
    let run = all_below(ancestor).into_iter().filter(|process| !process.stat.has_ended);
    run.map(|process| process.id).collect()
}

/// The processor time of all descendants of a process: of those that run, of those that have ended
/// and are not waited for yet, and of those that were waited for.
pub(crate) fn processor_time_below(ancestor: u32) -> Duration {
    let own = Stat::of(ancestor).map_or(0, |stat| stat.ticks_of_waited);
    let of_one = |Process { stat, .. }: Process| stat.ticks.saturating_add(stat.ticks_of_waited);
    let ticks = all_below(ancestor).into_iter().map(of_one).fold(own, u64::saturating_add);
    // SAFETY: it reads a number of the system.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let per_second = u64::try_from(per_second).unwrap_or_default().max(1);
    Duration::from_millis(ticks.saturating_mul(1000) / per_second)
}

/// A process that is there.
struct Process {
    id: u32,
    stat: Stat,
}

/// The descendants of a process. Those that have ended have none: whoever adopts theirs is the
/// parent.
fn all_below(ancestor: u32) -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let processes = entries.flatten().filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        Some(Process { id, stat: Stat::of(id)? })
    });
    let mut others: Vec<Process> = processes.collect();
    let mut found: Vec<Process> = Vec::new();
    let (mut parent, mut looked_at) = (ancestor, 0);
    loop {
        let is_child = |process: &mut Process| process.stat.parent == parent;
        found.extend(others.extract_if(.., is_child));
        let Some(next) = found.get(looked_at) else { return found };
        (parent, looked_at) = (next.id, looked_at + 1);
    }
}

/// What is used of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// Whether it only waits to be waited for.
    has_ended: bool,
    parent: u32,
    /// Its processor time, in ticks of `sysconf`.
    ticks: u64,
    /// That of its children that it has waited for, and of theirs.
    ticks_of_waited: u64,
}

impl Stat {
    fn of(process: u32) -> Option<Self> {
        Self::read(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    fn read(text: &str) -> Option<Self> {
        // The name of the program, which can be anything, is in parentheses.
        let (_, after_name) = text.rsplit_once(')')?;
        let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
        // Numbered from 3 on in the manual.
        let field = |number: usize| fields.get(number - 3).copied();
        let number = |of: usize| field(of)?.parse::<u64>().ok();
        Some(Self {
            has_ended: matches!(field(3)?, "Z" | "X" | "x"),
            parent: field(4)?.parse().ok()?,
            ticks: number(14)? + number(15)?,
            ticks_of_waited: number(16)? + number(17)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_behind_the_name_whatever_that_is() {
        let rest = "12 12 0 -1 0 7 0 8 0 1 2 30 40 20 0";
        let stat = |has_ended| Stat { has_ended, parent: 7, ticks: 3, ticks_of_waited: 70 };
        for (name, state, expected) in [
            ("(sleep)", "S", Some(stat(false))),
            ("(a) S 99 (b)", "R", Some(stat(false))),
            ("(sleep)", "Z", Some(stat(true))),
            ("sleep", "S", None),
        ] {
            assert_eq!(Stat::read(&format!("12 {name} {state} 7 {rest}")), expected, "{name}");
        }
        for short in ["12 (sleep) S", "12 (sleep) S 7 12 12 0 -1", ""] {
            assert_eq!(Stat::read(short), None, "{short}");
        }
    }

    #[test]
    fn the_processor_time_of_children_is_counted_while_they_run_and_once_they_are_waited_for() {
        let now = || processor_time_below(std::process::id());
        let before = now();
        let spins = "while :; do :; done";
        let mut child = std::process::Command::new("sh").args(["-c", spins]).spawn().unwrap();
        while now() < before + Duration::from_millis(300) {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What was counted in ticks is rounded in another place now.
        assert!(now() >= before + Duration::from_millis(250));
    }

    #[test]
    fn children_are_found_below_this_process() {
        let mut child = std::process::Command::new("sleep").arg("3600").spawn().unwrap();
        assert!(below(std::process::id()).contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!below(std::process::id()).contains(&child.id()));
    }
}
