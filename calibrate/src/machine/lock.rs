//! One calibration at a time: two of them would bind their threads to the same processors, and each
//! would find its samples disturbed by the other, whoever started it.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use cli_support::say;

/// Held by the calibration that is running on this machine.
#[derive(Debug)]
pub struct MachineLock {
    /// Locked as long as it is open; `None` where no file can be locked.
    file: Option<File>,
}

/// Who has the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    process: u32,
    /// By name, else by number.
    user: Option<String>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.process)?;
        self.user.iter().try_for_each(|user| write!(f, " of {user}"))
    }
}

impl MachineLock {
    /// Takes the lock. Where another calibration has it, that is an error, or with `force` a warning
    /// on stderr.
    ///
    /// # Errors
    ///
    /// When another calibration is running and there is no `force`.
    pub fn take(force: bool) -> anyhow::Result<Self> {
        Self::take_or_warn(&place(), force)
    }

    fn take_or_warn(path: &Path, force: bool) -> anyhow::Result<Self> {
        match Self::take_at(path) {
            Ok(Ok(lock)) => return Ok(lock),
            Ok(Err(holder)) => {
                let holder = holder.map_or_else(String::new, |holder| format!(" ({holder})"));
                let text = format!(
                    "another calibration is running on this machine{holder}, and the two would disturb \
                     each other"
                );
                if !force {
                    anyhow::bail!("{text}; wait for it, or go on all the same with --force");
                }
                say!("warning: {text}");
            }
            Err(error) => say!(
                "warning: cannot lock {} ({error}); other calibrations on this machine would go \
                 unnoticed",
                path.display()
            ),
        }
        Ok(Self { file: None })
    }

    /// Whether there is a lock to hold.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.file.is_some()
    }

    /// The inner error is who has the lock, where that is known.
    fn take_at(path: &Path) -> io::Result<Result<Self, Option<Holder>>> {
        let file = open(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Ok(Err(holder(&file))),
            // Some file systems know no locks.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Ok(Self { file: Some(file) })),
        }
    }
}

impl Drop for MachineLock {
    /// Not by closing the file alone: a process that another thread is about to start has it open, too,
    /// until it runs its program.
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // Closing it is the other way.
            let _ = file.unlock();
        }
    }
}

/// The file: the same for all users, whatever their folder of temporary files.
fn place() -> PathBuf {
    let folder = if cfg!(unix) { PathBuf::from("/tmp") } else { std::env::temp_dir() };
    folder.join("calibrate.lock")
}

/// Opens the file, or makes it.
///
/// A lock takes no more than the right to read. So it does not matter who made the file, nor that
/// Linux lets nobody write the files of others in a folder that all may write to.
fn open(path: &Path) -> io::Result<File> {
    let mut existing = OpenOptions::new();
    existing.read(true);
    let mut new = OpenOptions::new();
    new.read(true).write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Anyone can leave a link or a FIFO there.
        existing.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        new.mode(0o644);
    }
    // Where another calibration removes or makes the file between the two, the next attempt sees it.
    for _ in 0..3 {
        match existing.open(path) {
            Ok(file) if file.metadata()?.is_file() => return Ok(file),
            Ok(_) => return Err(io::Error::other("it is not a regular file")),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        match new.open(path) {
            Ok(file) => return readable_by_all(file),
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => {}
        }
    }
    Err(io::Error::other("it comes and goes"))
}

/// Whatever mode new files get by the user's choice.
fn readable_by_all(file: File) -> io::Result<File> {
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    Ok(file)
}

/// Who has locked a file, where the system says it.
#[cfg(unix)]
fn holder(file: &File) -> Option<Holder> {
    use std::os::unix::fs::MetadataExt;
    let process = process_with_lock(&locks()?, file.metadata().ok()?.ino())?;
    let user = fs::metadata(format!("/proc/{process}")).ok().map(|folder| {
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        user_name(&users, folder.uid())
    });
    Some(Holder { process, user })
}

/// All locks of the machine. Read at once: between two parts the list may change, and a line be missed.
#[cfg(unix)]
fn locks() -> Option<String> {
    use std::io::Read as _;
    const MORE_THAN_ALL: usize = 1 << 18;
    let mut text = String::with_capacity(MORE_THAN_ALL);
    File::open("/proc/locks").ok()?.read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(not(unix))]
fn holder(_: &File) -> Option<Holder> {
    None
}

/// The process that a line of `/proc/locks` names for a file:
/// `1: FLOCK  ADVISORY  WRITE 4711 fd:01:1311 0 EOF`.
fn process_with_lock(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let kind = words.nth(1)?;
        let process = words.nth(2)?;
        let file = words.next()?;
        let is_this = kind == "FLOCK" && file.rsplit(':').next()?.parse() == Ok(inode);
        // One in another namespace has no number here.
        process.parse().ok().filter(|process| is_this && *process > 0)
    })
}

/// The name of a user in `/etc/passwd`, else the number.
fn user_name(users: &str, id: u32) -> String {
    let name_of = |line: &str| {
        let mut parts = line.split(':');
        let name = parts.next()?;
        (parts.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    };
    users.lines().find_map(name_of).unwrap_or_else(|| format!("user {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_nobody_is_kept_out_for_other_reasons() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibrate.lock");
        let first = MachineLock::take_at(&path).unwrap().unwrap();
        assert!(first.is_held());
        assert!(MachineLock::take_at(&path).unwrap().is_err());
        let refused = MachineLock::take_or_warn(&path, false).unwrap_err().to_string();
        assert!(refused.contains("--force"), "{refused}");
        if cfg!(target_os = "linux") {
            assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        }
        assert!(!MachineLock::take_or_warn(&path, true).unwrap().is_held());
        drop(first);
        assert!(MachineLock::take_at(&path).unwrap().is_ok());
        // A folder where nothing can be locked keeps nobody out.
        let nowhere = folder.path().join("no/calibrate.lock");
        assert!(!MachineLock::take_or_warn(&nowhere, false).unwrap().is_held());
        assert!(MachineLock::take_at(&folder.path().join("no/calibrate.lock")).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_holder_is_found_while_others_lock_and_unlock() {
        use std::sync::atomic::{AtomicBool, Ordering};

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibrate.lock");
        let _held = MachineLock::take_at(&path).unwrap().unwrap();
        let file = File::open(&path).unwrap();
        let ended = AtomicBool::new(false);
        let missed = std::thread::scope(|scope| {
            for thread in 0..3 {
                let (folder, ended) = (folder.path(), &ended);
                scope.spawn(move || {
                    let new = |index| File::create(folder.join(format!("{thread}.{index}")));
                    let files: Vec<File> = (0..8).map(|index| new(index).unwrap()).collect();
                    while !ended.load(Ordering::Relaxed) {
                        files.iter().for_each(|file| file.lock().unwrap());
                        files.iter().for_each(|file| file.unlock().unwrap());
                    }
                });
            }
            let missed = (0..20_000).filter(|_| holder(&file).is_none()).count();
            ended.store(true, Ordering::Relaxed);
            missed
        });
        assert_eq!(missed, 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_of_another_user_keeps_out_and_what_is_no_file_is_not_followed() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let [path, link, target, fifo] =
            ["calibrate.lock", "link", "target", "fifo"].map(|name| folder.path().join(name));
        let first = MachineLock::take_at(&path).unwrap().unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "all may read it");
        // As the file of another user is, in a folder that all may write to.
        fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).unwrap();
        assert!(MachineLock::take_at(&path).unwrap().is_err());
        drop(first);

        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(MachineLock::take_at(&link).is_err());
        assert!(!target.exists(), "nothing is made through a link");
        fs::write(&target, "").unwrap();
        assert!(MachineLock::take_at(&link).is_err());
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert!(MachineLock::take_at(&fifo).is_err());
    }

    #[test]
    fn the_holder_is_named() {
        let locks = "1: POSIX  ADVISORY  WRITE 1 fd:01:1311 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 0 fd:01:1311 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 7 fd:01:1311 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 4711 fd:01:1311 0 EOF\n\
                     4: FLOCK  ADVISORY  READ 12 fd:01:99 0 EOF\nnonsense\n";
        assert_eq!(process_with_lock(locks, 1311), Some(4711));
        assert_eq!(process_with_lock(locks, 99), Some(12));
        assert_eq!(process_with_lock(locks, 5), None);
        let users = "root:x:0:0:root:/:/bin/sh\nnobody\nada:x:1000:1000::/:\n";
        assert_eq!([0, 1000, 3].map(|id| user_name(users, id)), ["root", "ada", "user 3"]);
        let holder = Holder { process: 4711, user: Some("ada".to_owned()) };
        assert_eq!(holder.to_string(), "process 4711 of ada");
    }
}
