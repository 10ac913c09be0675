//! Compile workers that live on, and some that do not. The protocol itself is tested in
//! `crate::worker`.

use super::*;
use crate::CompileService;
use crate::worker::is_worker;

/// The arguments with which this program is a compile worker.
const ARGUMENTS: [&str; 4] =
    ["gpu::compile_worker::tests::the_worker", "--exact", "--ignored", "--nocapture"];

const LONG: Duration = Duration::from_secs(100);

impl CompileWorker {
    /// This program, started once more.
    pub(crate) fn in_this_test_program() -> Self {
        let program = std::env::current_exe().unwrap();
        Self::of(Program::new(program, ARGUMENTS.map(Into::into).to_vec()), LONG)
    }

    fn of(program: Program, time_limit: Duration) -> Self {
        Self { program: Some(program), folders: Vec::new(), time_limit, running: None }
    }
}

/// Not a test, but what the worker is.
#[test]
#[ignore = "serves as the compile worker of other tests"]
fn the_worker() {
    if is_worker() {
        let Err(error) = CompileService::serve();
        panic!("{error}");
    }
}

fn program() -> Compile {
    Compile {
        name: "k".into(),
        // Longer than what a pipe holds.
        text: "x".repeat(1 << 20),
        headers: vec![("a.h".into(), "é".into())],
        options: vec!["-O3".into()],
    }
}

#[test]
fn without_its_compiler_it_compiles_nothing() {
    let mut worker = CompileWorker::in_this_test_program();
    let mut running = Worker::start(worker.program.as_ref().unwrap()).unwrap();
    for _ in 0..2 {
        let answer = running.ask(&program(), Some(LONG)).unwrap();
        let why = "the worker was not asked to find its compiler".to_owned();
        assert_eq!(answer, Compilation::Failed(why));
    }
    // Where there is one, it does not like the program.
    assert!(!matches!(worker.compile(&program()).unwrap(), Compilation::Code { .. }));
}

#[test]
#[cfg(unix)]
fn one_that_dies_is_started_again_for_the_next_question() {
    for (script, expected) in [
        ("echo it broke >&2; exit 3", "its process failed: it broke"),
        ("kill -ABRT $$", "its process was ended by signal 6"),
        ("cat >/dev/null", "its process gave no answer in 0.5 s"),
    ] {
        let limit = if expected.contains("0.5 s") { Duration::from_millis(500) } else { LONG };
        let shell = Program::new("/bin/sh".into(), vec!["-c".into(), script.into()]);
        let mut worker = CompileWorker::of(shell, limit);
        let ended = worker.open().unwrap_err().to_string();
        assert!(ended.starts_with(expected), "{script}: {ended}");
        let ended = worker.compile(&program()).unwrap_err().to_string();
        assert!(ended.starts_with(expected), "{script}: {ended}");
    }
}
