//! Which program is started as a worker, and how.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::ARGUMENT;

/// In the environment of every worker: how many workers it is away from a program that is none.
const DEPTH: &str = "CALIBRATE_WORKER_DEPTH";

/// A worker may start one, which may start none.
const MOST_DEPTH: u32 = 2;

/// Where the loader of Linux looks for libraries first.
#[cfg(unix)]
const LIBRARY_FOLDERS: &str = "LD_LIBRARY_PATH";

/// A program that is a worker when it is started with some arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub(super) path: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

impl Program {
    /// Some program. With these arguments it must call [`serve`](super::serve).
    #[must_use]
    pub const fn new(path: PathBuf, arguments: Vec<OsString>) -> Self {
        Self { path, arguments }
    }

    /// The running program, with [`ARGUMENT`] alone.
    ///
    /// # Errors
    ///
    /// When the system does not report its path.
    pub fn this() -> io::Result<Self> {
        // On Linux this file is the running program itself, also when the one with its name was
        // replaced in the meantime.
        let running = PathBuf::from("/proc/self/exe");
        let is_there = cfg!(target_os = "linux") && running.exists();
        let path = if is_there { running } else { std::env::current_exe()? };
        Ok(Self { path, arguments: vec![ARGUMENT.into()] })
    }

    pub(super) fn start(&self) -> io::Result<Child> {
        let depth = depth() + 1;
        if depth > MOST_DEPTH {
            let text = "the worker of a worker starts none; does the program know its argument?";
            return Err(io::Error::other(text));
        }
        let mut command = Command::new(&self.path);
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            // Its name in a list of processes is not "exe".
            if let Some(name) = std::env::args_os().next() {
                command.arg0(name);
            }
            // A group of its own, so that Ctrl-C in a terminal reaches only this process, which
            // decides what becomes of the worker.
            command.process_group(0);
            if let Some(folders) = std::env::var_os(LIBRARY_FOLDERS) {
                match absolute_folders(&folders) {
                    Some(folders) => command.env(LIBRARY_FOLDERS, folders),
                    None => command.env_remove(LIBRARY_FOLDERS),
                };
            }
        }
        command.args(&self.arguments).env(DEPTH, depth.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn()
    }
}

/// The folders that do not depend on the current one, if there are any. Workers open the libraries of
/// GPUs by name: whoever starts the program in a folder need not know what lies in it. To the loader,
/// an empty entry is the current folder too, as in `LD_LIBRARY_PATH=/opt/lib:$LD_LIBRARY_PATH` where the
/// variable was not set before.
#[cfg(unix)]
fn absolute_folders(folders: &std::ffi::OsStr) -> Option<OsString> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    // To the loader of the GNU C library, a semicolon ends a folder, too.
    let kept: Vec<&[u8]> = folders
        .as_bytes()
        .split(|byte| matches!(byte, b':' | b';'))
        .filter(|folder| folder.starts_with(b"/"))
        .collect();
    (!kept.is_empty()).then(|| OsString::from_vec(kept.join(&b':')))
}

/// Whether this process was started as a worker.
#[cfg(test)]
pub(crate) fn is_worker() -> bool {
    depth() > 0
}

fn depth() -> u32 {
    let depth = std::env::var(DEPTH).ok().and_then(|text| text.parse().ok());
    depth.unwrap_or_default()
}

#[cfg(all(test, unix))]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn libraries_come_from_no_folder_that_depends_on_the_current_one() {
        let of = |folders: &str| absolute_folders(OsStr::new(folders));
        assert_eq!(of("/opt/lib:").unwrap(), "/opt/lib");
        assert_eq!(of(":/opt/lib:.:lib:../lib:/usr/lib").unwrap(), "/opt/lib:/usr/lib");
        // The loader of the GNU C library takes both signs.
        assert_eq!(of("/opt/lib;.:/usr/lib;lib").unwrap(), "/opt/lib:/usr/lib");
        for none in ["", ":", ";", "lib", ".:..", ".;"] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
