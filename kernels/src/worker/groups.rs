//! Process groups that a worker has started, and that end with it.
//!
//! The system ends the leader of a group when the worker ends, and nobody else of it.

use std::io;
use std::process::Child;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::service::{is_leaving, wait_for_the_end};

/// How long the system may take to start a process.
const TIME_TO_START: Duration = Duration::from_millis(500);

static GROUPS: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// Starts the leader of a group, which ends with all that it starts when this worker leaves in the
/// middle of something. A worker that is leaving starts nothing: whoever sees a process end under its
/// hands would otherwise start the next one behind the last look at what there is to end.
pub(crate) fn start(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    if is_leaving() {
        drop(groups);
        wait_for_the_end();
    }
    let child = spawn()?;
    groups.extend(i32::try_from(child.id()));
    Ok(child)
}

/// Forgets a group, which whoever started it is about to end: its number may soon be another's.
pub(crate) fn remove(group: i32) {
    let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    groups.retain(|one| *one != group);
}

/// Ends all of them, and one that another thread is just starting.
pub(super) fn end_all() {
    let until = Instant::now() + TIME_TO_START;
    let groups = loop {
        match GROUPS.try_lock() {
            Ok(groups) => break groups,
            Err(TryLockError::Poisoned(groups)) => break groups.into_inner(),
            // Its leader ends with the worker.
            Err(TryLockError::WouldBlock) if Instant::now() >= until => return,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    for group in &*groups {
        // SAFETY: it sends a signal and touches no memory. The leader has not been waited for, so
        // that the number is still that of the group.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}
