//! One calibration at a time: two of them would bind their threads to the same processors, and each
//! would find its samples disturbed by the other.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

/// Held by the calibration that is running on this machine.
#[derive(Debug)]
pub struct MachineLock {
    /// Locked as long as it is open; `None` where no file can be locked.
    file: Option<File>,
}

impl MachineLock {
    /// Takes the lock, or warns on stderr that another calibration has it.
    #[must_use]
    pub fn take() -> Self {
        let lock = Self::take_in(&std::env::temp_dir());
        if lock.is_none() {
            eprintln!(
                "warning: another calibration is running on this machine; wait for it, since the two \
                 disturb each other"
            );
        }
        lock.unwrap_or(Self { file: None })
    }

    /// Whether there is a lock to hold.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.file.is_some()
    }

    /// `None` when another process has it. Where no file can be locked nobody is kept out.
    fn take_in(folder: &Path) -> Option<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let Ok(file) = options.open(folder.join("calibrate.lock")) else {
            return Some(Self { file: None });
        };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => None,
            Ok(()) | Err(TryLockError::Error(_)) => Some(Self { file: Some(file) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_nobody_is_kept_out_for_other_reasons() {
        let folder = tempfile::tempdir().unwrap();
        let first = MachineLock::take_in(folder.path()).unwrap();
        assert!(first.is_held());
        assert!(MachineLock::take_in(folder.path()).is_none());
        drop(first);
        assert!(MachineLock::take_in(folder.path()).is_some());
        assert!(!MachineLock::take_in(&folder.path().join("no")).unwrap().is_held());
    }
}
