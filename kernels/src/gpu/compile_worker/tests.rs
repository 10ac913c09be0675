//! Workers that do what they should not.

use std::ffi::OsString;
use std::time::Duration;

use super::*;

/// The arguments with which this program is a compile worker.
const ARGUMENTS: [&str; 4] =
    ["gpu::compile_worker::tests::the_worker", "--exact", "--ignored", "--nocapture"];

impl Worker {
    /// This program, started once more.
    pub(crate) fn in_this_test_program() -> Self {
        let program = std::env::current_exe().unwrap();
        Self::of(program, ARGUMENTS.map(OsString::from).to_vec(), LONG)
    }
}

/// Not a test, but what the worker is.
#[test]
#[ignore = "serves as the compile worker of other tests"]
fn the_worker() {
    if std::env::var_os(VARIABLE).is_some() {
        run().unwrap();
    }
}

fn shell(script: &str, limit: Duration) -> Worker {
    Worker::of("/bin/sh".into(), vec![OsString::from("-c"), script.into()], limit)
}

fn question() -> Question {
    Question::Compile {
        name: "k".into(),
        // Longer than what a pipe holds.
        text: "x".repeat(1 << 20),
        headers: Vec::new(),
        options: Vec::new(),
    }
}

const LONG: Duration = Duration::from_secs(100);

#[test]
fn questions_are_answered_until_there_are_no_more() {
    let mut asked = Vec::new();
    question().write(&mut asked).unwrap();
    question().write(&mut asked).unwrap();
    let mut said = Vec::new();
    serve(asked.as_slice(), &mut said).unwrap();
    let mut answers = said.strip_prefix(GREETING).unwrap();
    for _ in 0..2 {
        // It was not told where to look for a compiler.
        assert!(matches!(Answer::read(&mut answers).unwrap(), Answer::Failed(_)));
    }
    assert!(answers.is_empty());
    assert!(serve(&asked[..asked.len() - 1], &mut Vec::new()).is_err());
}

#[test]
#[cfg(unix)]
fn how_a_worker_ended_is_said_with_its_last_words() {
    for (script, expected) in [
        ("echo it broke >&2; exit 3", "exit status: 3: it broke"),
        ("kill -ABRT $$", "signal: 6"),
        ("echo LLVM ERROR >&2; kill -SEGV $$", "signal: 11"),
        ("cat >/dev/null", "it gave no answer in 0.5 s"),
        ("exec sleep 1000", "it gave no answer in 0.5 s"),
    ] {
        let limit = if expected.contains("0.5 s") { Duration::from_millis(500) } else { LONG };
        let mut worker = shell(script, limit);
        let ended = worker.open().unwrap_err().to_string();
        assert!(ended.starts_with(expected), "{script}: {ended}");
        // The next question starts another one, which ends in the same way.
        let ended = worker.ask(question()).unwrap_err().to_string();
        assert!(ended.starts_with(expected), "{script}: {ended}");
    }
}

#[test]
#[cfg(unix)]
fn a_program_that_is_no_worker_is_an_error() {
    let ended = shell("yes", LONG).open().unwrap_err().to_string();
    assert!(ended.contains("it is no compile worker"), "{ended}");
    let mut nothing = Worker::of("/nowhere/at/all".into(), Vec::new(), LONG);
    let ended = nothing.open().unwrap_err().to_string();
    assert!(ended.contains("it cannot be started"), "{ended}");
    // What libraries say before the greeting does not matter, and what is no answer does.
    let script = r"echo loading; printf '\0compile worker 1\n'; printf 'no answer at all'; cat";
    let ended = shell(script, LONG).open().unwrap_err().to_string();
    assert!(ended.contains("no message"), "{ended}");
}
