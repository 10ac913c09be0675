//! The limit that a shell or a batch system sets on the size of files (`ulimit -f`).

/// Has a write beyond the limit fail, as one to a full disk does. Otherwise its signal would end the
/// program without a word, and leave temporary files behind. What the program starts inherits it.
pub fn fail_beyond_it() {
    #[cfg(unix)]
    // SAFETY: no function is installed that would have to be safe in a signal, and nothing else here
    // has one for this signal.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
