//! Process groups that a worker has started, and that end with it.
//!
//! The system ends the leader of a group when the worker ends, and nobody else of it.

use std::sync::Mutex;

static GROUPS: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// Has a group end when this worker leaves in the middle of something.
pub(crate) fn add(group: i32) {
    if let Ok(mut groups) = GROUPS.lock() {
        groups.push(group);
    }
}

/// Forgets a group, which whoever started it is about to end: its number may soon be another's.
pub(crate) fn remove(group: i32) {
    if let Ok(mut groups) = GROUPS.lock() {
        groups.retain(|one| *one != group);
    }
}

/// Ends all of them. Another thread may be in the middle of starting one: its leader ends with the
/// worker.
pub(super) fn end_all() {
    if let Ok(groups) = GROUPS.try_lock() {
        for group in &*groups {
            // SAFETY: it sends a signal and touches no memory. The leader has not been waited for, so
            // that the number is still that of the group.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
    }
}
