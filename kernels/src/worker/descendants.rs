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
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let processes = entries.flatten().filter_map(|entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let parent = parent_in(&fs::read_to_string(entry.path().join("stat")).ok()?)?;
        Some((process, parent))
    });
    let processes: Vec<(u32, u32)> = processes.collect();
    let mut found = vec![ancestor];
    let mut looked_at = 0;
    while let Some(&parent) = found.get(looked_at) {
        let children = processes.iter().filter(|(_, its_parent)| *its_parent == parent);
        found.extend(children.map(|(process, _)| *process));
        looked_at += 1;
    }
    found.split_off(1)
}

/// The parent of a process by its `/proc/PID/stat`; `None` of one that has ended, and is only waited
/// for.
fn parent_in(stat: &str) -> Option<u32> {
    // The name of the program, which can be anything, is in parentheses.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut words = after_name.split_ascii_whitespace();
    let has_ended = matches!(words.next()?, "Z" | "X" | "x");
    words.next().filter(|_| !has_ended)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_behind_the_name_whatever_that_is() {
        for (stat, expected) in [
            ("12 (sleep) S 7 12 12 0 -1", Some(7)),
            ("12 (a) S 99 (b) R 7 12", Some(7)),
            ("12 (sleep) Z 7 12 12", None),
            ("12 (sleep) S", None),
            ("12 sleep S 7", None),
            ("", None),
        ] {
            assert_eq!(parent_in(stat), expected, "{stat}");
        }
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
