//! Which program a runtime is, and how it is started.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::interpreter;

/// How the program of a runtime is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeProgram {
    /// What it is called in messages.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// A private folder: its working directory and the place of its temporary files. Whoever made it
    /// removes it.
    pub folder: PathBuf,
    /// A folder that outlives the process, for what the runtime compiles.
    pub cache: Option<PathBuf>,
}

/// What keeps an allocator from giving memory back to the system, so that no sample pays for getting
/// it again, and how many threads the libraries may use that runtimes are made of. What the user has
/// set stays.
fn environment(threads: usize) -> [(&'static str, String); 9] {
    let threads = threads.to_string();
    [
        ("MALLOC_MMAP_MAX_", "0".to_owned()),
        ("MALLOC_TRIM_THRESHOLD_", (1_u64 << 40).to_string()),
        ("MALLOC_TOP_PAD_", (64_u64 << 20).to_string()),
        ("MALLOC_ARENA_MAX", "1".to_owned()),
        ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1".to_owned()),
        ("OMP_NUM_THREADS", threads.clone()),
        ("MKL_NUM_THREADS", threads.clone()),
        ("OPENBLAS_NUM_THREADS", threads),
        ("PYTHONUNBUFFERED", "1".to_owned()),
    ]
}

impl RuntimeProgram {
    /// The program without its arguments, for messages.
    pub(super) fn executable(&self) -> String {
        self.command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Starts it on some processors, or where the system likes.
    pub(super) fn start(&self, threads: usize, processors: Option<&[u32]>) -> io::Result<Child> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "its command is empty"));
        };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder).env("TMPDIR", &self.folder);
        for (name, value) in environment(threads) {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        confine(&mut command, processors);
        #[cfg(unix)]
        let started = crate::worker::groups::start(|| command.spawn());
        #[cfg(not(unix))]
        let started = command.spawn();
        started.map_err(|error| interpreter::named(Path::new(program), error))
    }
}

/// Has the process end with this one, whatever ends it, lead a group of its own, so that it can be
/// ended with all that it starts, and run on these processors only.
#[cfg(target_os = "linux")]
fn confine(command: &mut Command, processors: Option<&[u32]>) {
    use std::os::unix::process::CommandExt;

    use crate::affinity::Mask;

    let mask = processors.map(Mask::of);
    command.process_group(0);
    let before_it_runs = move || {
        // SAFETY: it sets a number of the process and touches no memory.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        if let Some(mask) = mask {
            // It then is free, and says so by the processors that it is seen on.
            let _ = mask.bind_this_thread();
        }
        Ok(())
    };
    // SAFETY: between the two halves of starting it, only system calls are made: no memory is
    // allocated and no lock taken.
    unsafe { command.pre_exec(before_it_runs) };
}

#[cfg(not(target_os = "linux"))]
fn confine(command: &mut Command, _processors: Option<&[u32]>) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(not(unix))]
    let _ = command;
}

/// Ends a process and all that it started.
pub(super) fn end_group(child: &mut Child) {
    #[cfg(unix)]
    if let Ok(group) = i32::try_from(child.id()) {
        crate::worker::groups::remove(group);
        // SAFETY: it sends a signal and touches no memory. The group is there as long as its leader
        // has not been waited for, which only this process does.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    // It fails when the process has ended.
    let _ = child.kill();
}
