//! Workers that answer, and workers that do what they should not.

mod ends;
#[cfg(unix)]
mod other_programs;

use std::ffi::OsString;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::*;

/// For what must come.
const LONG: Option<Duration> = Some(Duration::from_secs(100));
/// For what never comes.
const SHORT: Option<Duration> = Some(Duration::from_millis(500));

/// What a worker is to do before it answers, or instead.
#[derive(Debug, Serialize, Deserialize)]
enum Behave {
    Well,
    PrintFromC,
    Complain {
        bytes: usize,
    },
    Exit(i32),
    Abort,
    Panic,
    Hang,
    /// Waits for a program that ends with the worker, and says that it ended.
    WaitForAProgram,
    HangAtExit,
    WaitAtExit,
    StartAWorker,
    /// Says that it does so.
    SayAndHang {
        limit: Option<Duration>,
    },
    SayAndExit,
    /// Starts processes that work in this folder: one in a session of its own, whose parent has ended.
    LeaveBehind(std::path::PathBuf),
    /// Starts the next such process in this folder whenever one has ended.
    StartAgain(std::path::PathBuf),
    /// Has a library write this file at the end of the process.
    WriteAtExit(std::path::PathBuf),
}

impl Question for Behave {
    const NAME: &'static str = "behave";
    type Answer = String;
}

#[derive(Debug, Serialize, Deserialize)]
struct Double(#[serde(with = "serde_bytes")] Vec<u8>);

impl Question for Double {
    const NAME: &'static str = "double";
    type Answer = Double;
}

/// Has the name of another question and its own type.
#[derive(Debug, Serialize, Deserialize)]
struct Misnamed;

impl Question for Misnamed {
    const NAME: &'static str = "behave";
    type Answer = u32;
}

#[derive(Debug, Serialize, Deserialize)]
struct Unknown;

impl Question for Unknown {
    const NAME: &'static str = "unknown";
    type Answer = ();
}

/// A question that never can be written.
#[derive(Debug, Deserialize)]
struct Unsendable;

impl Serialize for Unsendable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("a path that is not text"))
    }
}

impl Question for Unsendable {
    const NAME: &'static str = "unsendable";
    type Answer = ();
}

fn behave(behaviour: Behave, notes: &Notes) -> String {
    match behaviour {
        Behave::Well => {}
        Behave::PrintFromC => {
            println!("a greeting from Rust");
            #[cfg(unix)]
            // SAFETY: the text is a C string, and no stream means all of them.
            unsafe {
                libc::puts(c"a greeting from C".as_ptr());
                libc::fflush(std::ptr::null_mut());
            }
        }
        Behave::Complain { bytes } => {
            use std::io::Write;
            std::io::stderr().write_all(&vec![b'x'; bytes]).unwrap();
        }
        Behave::Exit(code) => {
            eprintln!("error: it broke");
            std::process::exit(code);
        }
        Behave::Abort => std::process::abort(),
        Behave::Panic => panic!("out of ideas"),
        Behave::HangAtExit => {
            behave(Behave::WaitAtExit, notes);
            wait_for_ever();
        }
        Behave::WaitAtExit => {
            #[cfg(unix)]
            // SAFETY: the function is there as long as the program.
            unsafe {
                libc::atexit(wait_for_ever);
            }
        }
        Behave::Hang => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        Behave::WaitForAProgram => {
            let mut command = std::process::Command::new("sleep");
            #[cfg(unix)]
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            command.arg("3600");
            #[cfg(unix)]
            let mut program = groups::start(|| command.spawn()).unwrap();
            #[cfg(not(unix))]
            let mut program = command.spawn().unwrap();
            let status = program.wait().unwrap();
            return format!("the program ended: {status}");
        }
        Behave::StartAWorker => {
            let started = Worker::start(&this_test_program("the_worker"));
            return match started.and_then(|mut it| it.ask(&Behave::StartAWorker, LONG)) {
                Ok(answer) => format!("it said: {answer}"),
                Err(error) => error.to_string(),
            };
        }
        Behave::SayAndHang { limit } => {
            notes.doing("read the future", None);
            notes.doing("waited for it", limit);
            wait_for_ever();
        }
        Behave::SayAndExit => {
            notes.doing("read the future", None);
            return behave(Behave::Exit(3), notes);
        }
        Behave::LeaveBehind(folder) => leave_behind(&folder),
        Behave::StartAgain(folder) => start_again(&folder),
        Behave::WriteAtExit(path) => {
            WRITTEN_AT_EXIT.set(path).unwrap();
            #[cfg(unix)]
            // SAFETY: the function is there as long as the program.
            unsafe {
                libc::atexit(write_a_file);
            }
        }
    }
    "done".to_owned()
}

/// A shell that waits for what it has started, and another one when that was ended.
fn start_again(folder: &std::path::Path) {
    #[cfg(unix)]
    loop {
        use std::os::unix::process::CommandExt;
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "setsid sleep 3600 & sleep 3600"]).current_dir(folder).process_group(0);
        let mut shell = groups::start(|| shell.spawn()).unwrap();
        groups::remove(shell.id().try_into().unwrap());
        shell.wait().unwrap();
    }
    #[cfg(not(unix))]
    let _ = folder;
}

/// A shell in a session of its own that ends at once, and what it has started does not.
fn leave_behind(folder: &std::path::Path) {
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "sleep 3600 & true"]).current_dir(folder);
        // SAFETY: it is one system call, which allocates no memory and takes no lock.
        unsafe {
            shell.pre_exec(|| {
                libc::setsid();
                Ok(())
            });
        }
        assert!(shell.status().unwrap().success());
    }
    #[cfg(not(unix))]
    let _ = folder;
}

static WRITTEN_AT_EXIT: std::sync::OnceLock<std::path::PathBuf> = std::sync::OnceLock::new();

/// What a library may do at the end of a process.
extern "C" fn write_a_file() {
    if let Some(path) = WRITTEN_AT_EXIT.get() {
        let _ = std::fs::write(path, "");
    }
}

/// What a hostile library does at the end of a process.
extern "C" fn wait_for_ever() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// This test program, as a process that runs one of its tests.
fn this_test_program(test: &str) -> Program {
    let name = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    let arguments = ["--exact", "--ignored", "--nocapture"].map(OsString::from);
    let arguments = [&[OsString::from(name)], &arguments[..]].concat();
    Program::new(std::env::current_exe().unwrap(), arguments)
}

fn worker() -> Worker {
    Worker::start(&this_test_program("the_worker")).unwrap()
}

/// Not a test, but what the worker is.
#[test]
#[ignore = "other tests start it as their worker"]
fn the_worker() {
    if !is_worker() {
        return;
    }
    let Err(error) = serve(|request| match request.name() {
        Behave::NAME => request.answer(|it| behave(it, &request.notes())),
        Double::NAME => request.answer(|Double(bytes)| Double(bytes.repeat(2))),
        _ => request.unknown(),
    });
    panic!("{error}");
}

#[test]
fn questions_are_answered_one_after_the_other() {
    let mut worker = worker();
    assert_eq!(worker.ask(&Behave::Well, LONG).unwrap(), "done");
    // More than a pipe holds, in both directions, and bytes of every value.
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|index| (index >> 3) as u8).collect();
    let Double(doubled) = worker.ask(&Double(bytes.clone()), LONG).unwrap();
    assert!(doubled == bytes.repeat(2));
    assert_eq!(worker.ask(&Behave::Well, None).unwrap(), "done");
    worker.finish();
}

#[test]
fn what_libraries_print_does_not_come_between() {
    let mut worker = worker();
    for _ in 0..2 {
        assert_eq!(worker.ask(&Behave::PrintFromC, LONG).unwrap(), "done");
    }
    // A pipe holds 64 KiB.
    assert_eq!(worker.ask(&Behave::Complain { bytes: 10_000_000 }, LONG).unwrap(), "done");
    let error = worker.ask(&Behave::Exit(3), LONG).unwrap_err().to_string();
    // What C printed went to the standard error, where the last words are from.
    assert!(error.contains("a greeting from C") && error.ends_with("it broke"), "{error}");
}

#[test]
fn how_a_worker_ended_is_said_with_its_last_words() {
    let ask = |behaviour| worker().ask(&behaviour, LONG).unwrap_err().to_string();
    let error = ask(Behave::Exit(3));
    assert!(error.contains("its process failed: ") && error.contains("it broke"), "{error}");
    let error = ask(Behave::Panic);
    assert!(error.contains("out of ideas"), "{error}");
    #[cfg(unix)]
    assert_eq!(ask(Behave::Abort), "its process was ended by signal 6");
    let mut worker = worker();
    worker.ask(&Behave::Exit(3), LONG).unwrap_err();
    let error = worker.ask(&Behave::Well, LONG).unwrap_err().to_string();
    assert_eq!(error, "its process has ended before");
}

#[test]
fn a_worker_that_hangs_is_killed() {
    let mut worker = worker();
    let error = worker.ask(&Behave::Hang, SHORT).unwrap_err();
    assert!(matches!(error, WorkerError::TimeLimit { is_stuck: false, .. }), "{error:?}");
    assert_eq!(error.to_string(), "its process gave no answer in 0.5 s and was killed");
    let error = worker.ask(&Behave::Well, LONG).unwrap_err().to_string();
    assert_eq!(error, "its process has ended before");
}

#[test]
fn what_a_worker_says_last_is_in_the_error_and_limits_its_time() {
    let mut worker = worker();
    let error = worker.ask(&Behave::SayAndHang { limit: SHORT }, LONG).unwrap_err();
    assert!(matches!(error, WorkerError::TimeLimit { is_of_note: true, .. }), "{error:?}");
    let killed = "its process gave no answer in 0.5 s while it waited for it, and was killed";
    assert_eq!(error.to_string(), killed);
    // The whole answer has its own time, in which a worker that has started says what it does however busy
    // the machine is.
    let mut worker = self::worker();
    worker.ask(&Behave::Well, LONG).unwrap();
    let limit = Some(Duration::from_secs(3));
    let error = worker.ask(&Behave::SayAndHang { limit: LONG }, limit).unwrap_err();
    assert!(matches!(error, WorkerError::TimeLimit { is_of_note: false, .. }), "{error:?}");
    assert_eq!(error.to_string(), killed.replace("0.5", "3"));
    let error = self::worker().ask(&Behave::SayAndExit, LONG).unwrap_err().to_string();
    assert!(error.ends_with("it broke (while it read the future)"), "{error}");
}

#[test]
fn a_question_of_another_type_is_refused_and_the_worker_stays() {
    let mut worker = worker();
    let error = worker.ask(&Unknown, LONG).unwrap_err().to_string();
    assert_eq!(error, "its process refused `unknown`: this worker does not know the question");
    let error = worker.ask(&Misnamed, LONG).unwrap_err().to_string();
    assert!(error.starts_with("its process refused `behave`: it cannot be read: "), "{error}");
    let error = worker.ask(&Unsendable, LONG).unwrap_err().to_string();
    assert_eq!(error, "`unsendable` cannot be sent to a worker: a path that is not text");
    assert_eq!(worker.ask(&Behave::Well, LONG).unwrap(), "done");
}

#[test]
fn workers_start_workers_but_not_for_ever() {
    let said = worker().ask(&Behave::StartAWorker, LONG).unwrap();
    assert!(said.starts_with("it said: its process cannot be started: "), "{said}");
}

#[test]
fn a_program_that_is_not_there_cannot_be_started() {
    let error = Worker::start(&Program::new("/nowhere/at/all".into(), Vec::new())).unwrap_err();
    assert!(error.to_string().starts_with("its process cannot be started: "), "{error}");
}
