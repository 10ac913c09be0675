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
        }
        command.args(&self.arguments).env(DEPTH, depth.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn()
    }
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
