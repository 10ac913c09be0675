//! Programs that are not workers, or broken ones.

use super::ends::send;
use super::*;

const GREETING: &str = r"printf '\0calibrate worker protocol 2\n'";

/// The error for a shell script that is not a worker, or is a broken one.
fn error_of(script: &str, limit: Option<Duration>) -> WorkerError {
    let program = Program::new("/bin/sh".into(), vec!["-c".into(), script.into()]);
    let mut worker = Worker::start(&program).unwrap();
    worker.ask(&Behave::Well, limit).unwrap_err()
}

/// A command of a shell that prints bytes.
fn print(bytes: &[u8]) -> String {
    let octal: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("printf '{octal}'")
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, body).unwrap();
    bytes
}

/// A worker that greets and then prints something, after which it waits.
fn after_the_greeting(bytes: &[u8]) -> WorkerError {
    error_of(&format!("echo loading; {GREETING}; {}; cat >/dev/null", print(bytes)), LONG)
}

#[test]
fn a_program_without_the_greeting_is_no_worker() {
    let error = error_of("yes", LONG);
    assert!(matches!(error, WorkerError::NotAWorker), "{error:?}");
    let error = error_of(r"printf '\0calibrate worker protocol 7\n'; cat >/dev/null", LONG);
    assert!(matches!(&error, WorkerError::Version(version) if version == "7"), "{error:?}");
    assert!(error.to_string().contains("use one build of both"), "{error}");
    for script in ["echo hello; exec sleep 1000", "cat >/dev/null"] {
        let error = error_of(script, SHORT);
        assert!(matches!(error, WorkerError::TimeLimit { .. }), "{script}: {error:?}");
    }
    for (script, expected) in [
        ("echo it broke >&2; exit 3", "its process failed: it broke"),
        ("exit 0", "its process ended without an answer (exit status: 0)"),
        ("echo LLVM ERROR >&2; kill -SEGV $$", "its process was ended by signal 11: LLVM ERROR"),
    ] {
        assert_eq!(error_of(script, LONG).to_string(), expected, "{script}");
    }
    // Why depends on what the system counts, and on whether it is short of memory.
    let killed = error_of("kill -KILL $$", LONG).to_string();
    assert!(killed.starts_with("its process was ended by signal 9; "), "{killed}");
}

#[test]
fn garbage_instead_of_an_answer_is_an_error() {
    let other = message::body("survey", &Ok::<(), String>(())).unwrap();
    let error = after_the_greeting(&framed(&other)).to_string();
    assert_eq!(error, "its process was asked `behave` and answered `survey`");

    let wrong_type = message::body("behave", &Ok::<u32, String>(1)).unwrap();
    let mut and_more = message::body("behave", &Ok::<_, String>("done")).unwrap();
    and_more.extend(b"and more");
    let cases: [&[u8]; 6] = [
        b"no answer at all",
        &framed(b""),
        &framed(b"no message"),
        &framed(&wrong_type),
        &framed(&and_more),
        &u64::MAX.to_le_bytes(),
    ];
    for bytes in cases {
        let error = after_the_greeting(bytes);
        assert!(matches!(error, WorkerError::Unreadable { .. }), "{bytes:?}: {error:?}");
    }
    let error = after_the_greeting(&u64::MAX.to_le_bytes()).to_string();
    let expected = "its process answered `behave` with something that cannot be read: a frame";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn an_answer_that_is_cut_off_is_an_error() {
    let answer = framed(&message::body("behave", &Ok::<_, String>("done")).unwrap());
    let question = framed(&message::body("behave", &Behave::Well).unwrap()).len();
    let greeting = format!("{GREETING}; head -c {question} >/dev/null");
    let whole = format!("{greeting}; {}", print(&answer));
    let mut worker =
        Worker::start(&Program::new("/bin/sh".into(), vec!["-c".into(), whole.into()])).unwrap();
    // Whether it ends afterwards does not matter.
    assert_eq!(worker.ask(&Behave::Well, LONG).unwrap(), "done");
    for length in [1, 8, 9, answer.len() - 1] {
        let script = format!("{greeting}; {}", print(&answer[..length]));
        let error = error_of(&script, LONG).to_string();
        let expected = "its process ended in the middle of its answer (exit status: 0)";
        assert_eq!(error, expected, "{length}");
    }
    let error = error_of(&format!("{greeting}; exec >&-; exec sleep 1000"), LONG).to_string();
    assert!(error.contains("closed its output"), "{error}");
}

/// Not a test, but a caller whose worker hangs.
#[test]
#[ignore = "another test starts it and kills it"]
fn the_caller() {
    if let Some(folder) = std::env::var_os("TEST_FOLDER") {
        let mut worker = worker();
        worker.ask(&Behave::Well, LONG).unwrap();
        let id = worker.id().unwrap().to_string();
        std::fs::write(std::path::Path::new(&folder).join("id"), id).unwrap();
        let _ = worker.ask(&Behave::Hang, LONG);
    }
}

/// Whether a process is there and not just waiting for its parent.
#[cfg(target_os = "linux")]
fn runs(id: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

#[cfg(target_os = "linux")]
#[test]
fn a_worker_ends_when_its_caller_is_killed() {
    kill_a_caller(false);
    kill_a_caller(true);
}

/// Kills a caller whose worker hangs, or is stopped, and waits for the end of the worker.
#[cfg(target_os = "linux")]
fn kill_a_caller(is_stopped: bool) {
    let folder = tempfile::tempdir().unwrap();
    let Program { path, arguments } = this_test_program("other_programs::the_caller");
    let mut caller = std::process::Command::new(path)
        .args(arguments)
        .env("TEST_FOLDER", folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let began = std::time::Instant::now();
    let is_late = || began.elapsed() > Duration::from_secs(100);
    let mut id = String::new();
    while id.is_empty() {
        assert!(!is_late(), "it started no worker");
        std::thread::sleep(Duration::from_millis(10));
        id = std::fs::read_to_string(folder.path().join("id")).unwrap_or_default();
    }
    assert!(runs(&id));
    if is_stopped {
        send("-STOP", &id);
    }
    caller.kill().unwrap();
    caller.wait().unwrap();
    while runs(&id) {
        assert!(!is_late(), "the worker is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}
