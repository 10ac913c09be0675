//! How a worker ended without an answer, in words.

use std::process::ExitStatus;

use super::memory_kills::MemoryKills;

/// The signal that no process can catch, with which Linux ends processes when memory runs out.
#[cfg(unix)]
const SIGKILL: i32 = 9;

/// Says how a process ended by itself, and what it last wrote to its standard error. `kills` are those
/// for want of memory at its start.
pub(crate) fn how(
    status: ExitStatus,
    last_words: &str,
    is_truncated: bool,
    kills: MemoryKills,
) -> String {
    let last_words = last_words.strip_prefix("error: ").unwrap_or(last_words);
    let after = |text: String| {
        if last_words.is_empty() { text } else { format!("{text}: {last_words}") }
    };
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let why = if signal == SIGKILL { kills.explain(MemoryKills::until_now()) } else { "" };
        return after(format!("its process was ended by signal {signal}{why}"));
    }
    if is_truncated {
        return after(format!("its process ended in the middle of its answer ({status})"));
    }
    if last_words.is_empty() {
        format!("its process ended without an answer ({status})")
    } else {
        format!("its process failed: {last_words}")
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    #[test]
    fn each_end_has_its_words() {
        use std::os::unix::process::ExitStatusExt;
        use std::process::ExitStatus;

        use crate::worker::memory_kills::MemoryKills;

        for (status, last_words, is_truncated, expected) in [
            (
                9,
                "",
                false,
                "its process was ended by signal 9; most likely it needed too much memory",
            ),
            (11, "", false, "its process was ended by signal 11"),
            (6, "LLVM ERROR", false, "its process was ended by signal 6: LLVM ERROR"),
            (0, "", false, "its process ended without an answer (exit status: 0)"),
            (1 << 8, "error: no threads", false, "its process failed: no threads"),
            (0, "", true, "its process ended in the middle of its answer (exit status: 0)"),
        ] {
            let status = ExitStatus::from_raw(status);
            let said = super::how(status, last_words, is_truncated, MemoryKills::unknown());
            assert_eq!(said, expected);
        }
    }
}
