//! A private folder for the process of a runtime, which nothing outlives for long.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Once;

use tempfile::TempDir;

const PREFIX: &str = "calibrate-runtime-";

/// The file in such a folder that is locked for as long as somebody uses it.
const LOCK: &str = "lock";

/// A private folder, which is removed with all that is in it when the value is dropped. That of a
/// program that was killed is removed by the next one that needs a folder.
#[derive(Debug)]
pub struct PrivateFolder {
    folder: TempDir,
    /// Locked as long as it is open.
    _lock: File,
}

impl PrivateFolder {
    /// A new one among the temporary files.
    ///
    /// # Errors
    ///
    /// When there is no place for it.
    pub fn new() -> io::Result<Self> {
        static FIRST: Once = Once::new();
        let new = Self::new_in(&std::env::temp_dir())?;
        FIRST.call_once(|| remove_abandoned(&new));
        Ok(new)
    }

    fn new_in(place: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        // It is locked before it has its name, so that nobody finds it unlocked.
        let unnamed = folder.path().join("unnamed");
        let lock = File::create(&unnamed)?;
        // Some file systems know no locks; their folders stay behind.
        let _ = lock.try_lock();
        fs::rename(unnamed, folder.path().join(LOCK))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders beside this one whose owner is the same and no longer there. What cannot be
/// removed is left to whoever cleans temporary files.
fn remove_abandoned(own: &PrivateFolder) {
    let place = own.path().parent().unwrap_or(Path::new("/"));
    let Ok(entries) = fs::read_dir(place) else { return };
    let user = own.path().metadata().ok().as_ref().map(user_of);
    for entry in entries.flatten() {
        let is_one = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_its = |found: &fs::Metadata| found.is_dir() && Some(user_of(found)) == user;
        if is_one && entry.metadata().is_ok_and(|found| is_its(&found)) {
            let folder = entry.path();
            let lock = folder.join(LOCK);
            // A runtime may have put a FIFO there, which would open when somebody writes into it.
            let is_file = lock.symlink_metadata().is_ok_and(|found| found.is_file());
            if is_file && File::open(lock).is_ok_and(|lock| lock.try_lock().is_ok()) {
                let _ = fs::remove_dir_all(folder);
            }
        }
    }
}

#[cfg(unix)]
fn user_of(found: &fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::uid(found)
}

#[cfg(not(unix))]
fn user_of(_found: &fs::Metadata) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_program_left_is_removed_and_what_is_in_use_stays() {
        let place = tempfile::tempdir().unwrap();
        let in_use = PrivateFolder::new_in(place.path()).unwrap();
        let own = PrivateFolder::new_in(place.path()).unwrap();
        let abandoned = place.path().join("calibrate-runtime-killed");
        fs::create_dir_all(abandoned.join("program")).unwrap();
        fs::write(abandoned.join(LOCK), "").unwrap();
        fs::write(abandoned.join("program").join("x.py"), "").unwrap();
        let others = place.path().join("calibrate-other");
        fs::create_dir(&others).unwrap();
        fs::write(others.join(LOCK), "").unwrap();
        remove_abandoned(&own);
        assert!(!abandoned.exists());
        assert!(in_use.path().exists() && own.path().exists() && others.exists());
        drop((in_use, own));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "only what is another's");
    }

    #[cfg(unix)]
    #[test]
    fn a_fifo_instead_of_a_lock_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let own = PrivateFolder::new_in(place.path()).unwrap();
        let left = place.path().join("calibrate-runtime-left");
        fs::create_dir(&left).unwrap();
        let made = std::process::Command::new("mkfifo").arg(left.join(LOCK)).status().unwrap();
        assert!(made.success());
        remove_abandoned(&own);
        assert!(left.exists());
    }
}
