//! Files that become shorter while they are mapped.

/// Makes the program end with a message and exit code 1, instead of by SIGBUS, when a file that it
/// has mapped becomes shorter: a trace that is written anew, or copied to a full disk.
///
/// To be called once by a program, before it loads a trace. A library has no such right: the signal
/// belongs to the process. Does something on Linux only; elsewhere the signal stays what it is.
pub fn end_with_message_when_files_shrink() {
    #[cfg(target_os = "linux")]
    handler::install();
}

#[cfg(target_os = "linux")]
mod handler {
    use libc::{c_int, c_void};

    const MESSAGE: &[u8] = b"error: a file became shorter while it was read; wait until it is \
        written, and run the command again\n";

    pub(super) fn install() {
        // SAFETY: all bytes zero are an action without flags and with an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = end as extern "C" fn(c_int) as usize;
        // SAFETY: the action is initialised, and its handler does only what handlers may. The
        // runtime's own handler of this signal is for guard pages of stacks, which on Linux raise
        // SIGSEGV.
        unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) };
    }

    extern "C" fn end(_: c_int) {
        // SAFETY: both may be called by handlers of signals; the message is a constant.
        unsafe {
            libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast::<c_void>(), MESSAGE.len());
            libc::_exit(1);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use memmap2::Mmap;

    /// Set in the process that is to end.
    const IN_CHILD: &str = "KERNEL_TRACES_TEST_SHRINKS";

    fn shrink() {
        super::end_with_message_when_files_shrink();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 1 << 16]).unwrap();
        // SAFETY: that it becomes shorter is what is tested, and ends the process.
        let map = unsafe { Mmap::map(&file) }.unwrap();
        assert_eq!(map[1 << 15], 7);
        file.set_len(0).unwrap();
        assert_eq!(map[1 << 15], 7, "this is read from nowhere");
    }

    #[test]
    fn a_file_that_shrinks_is_an_error_and_no_crash() {
        if std::env::var_os(IN_CHILD).is_some() {
            return shrink();
        }
        let mut child = Command::new(std::env::current_exe().unwrap());
        let name = "shrinking::tests::a_file_that_shrinks_is_an_error_and_no_crash";
        child.args(["--exact", name, "--nocapture"]).env(IN_CHILD, "1");
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("became shorter while it was read"), "{output:?}");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
}
