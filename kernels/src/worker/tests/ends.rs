//! How workers end: by themselves, called off, or killed, with all that they have started.

use super::*;

#[cfg(unix)]
#[test]
fn a_worker_leaves_without_asking_libraries() {
    let folder = tempfile::tempdir().unwrap();
    for (name, is_finished) in [("finished", true), ("called off", false)] {
        let path = folder.path().join(name);
        let mut worker = worker();
        worker.ask(&Behave::WriteAtExit(path.clone()), LONG).unwrap();
        if is_finished {
            worker.finish();
        } else {
            let input = worker.input();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(300));
                input.close();
            });
            worker.ask(&Behave::Hang, LONG).unwrap_err();
        }
        assert!(!path.exists(), "{name}");
    }
}

/// What a worker ends itself is not what ended there.
#[cfg(unix)]
#[test]
fn a_worker_that_is_called_off_gives_no_answer() {
    for milliseconds in [50, 100, 150, 200] {
        let mut worker = worker();
        let input = worker.input();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(milliseconds));
            input.close();
        });
        let error = worker.ask(&Behave::WaitForAProgram, LONG).unwrap_err();
        assert!(matches!(error, WorkerError::Ended(_)), "{error:?}");
    }
}

/// How many processes work in a folder.
#[cfg(target_os = "linux")]
fn processes_in(folder: &std::path::Path) -> usize {
    let folder = folder.canonicalize().unwrap();
    let works_there = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder)
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(works_there).count()
}

#[cfg(target_os = "linux")]
#[test]
fn what_escapes_from_a_worker_ends_with_it_however_it_ends() {
    type End = fn(Worker);
    let ends: [(&str, End); 5] = [
        ("finished", Worker::finish),
        ("called off", |worker| {
            worker.input().close();
            worker.finish();
        }),
        ("killed for its time", |mut worker| {
            worker.ask(&Behave::Hang, SHORT).unwrap_err();
        }),
        ("stopped", |worker| {
            stop(&worker.id().unwrap().to_string());
            drop(worker);
        }),
        // One that a driver holds answers and does not leave.
        ("stopped and finished", |worker| {
            stop(&worker.id().unwrap().to_string());
            worker.finish();
        }),
    ];
    for (how, end) in ends {
        let folder = tempfile::tempdir().unwrap();
        let mut worker = worker();
        worker.ask(&Behave::LeaveBehind(folder.path().to_owned()), LONG).unwrap();
        assert_eq!(processes_in(folder.path()), 1, "{how}");
        end(worker);
        assert_eq!(processes_in(folder.path()), 0, "{how}");
    }
}

/// What ends under its hands is not started anew while the worker leaves.
#[cfg(target_os = "linux")]
#[test]
fn a_worker_that_leaves_starts_nothing_more() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let mut worker = worker();
        let (input, place) = (worker.input(), folder.path().to_owned());
        std::thread::spawn(move || {
            while processes_in(&place) < 3 {
                std::thread::sleep(Duration::from_millis(1));
            }
            input.close();
        });
        worker.ask(&Behave::StartAgain(folder.path().to_owned()), LONG).unwrap_err();
        assert_eq!(processes_in(folder.path()), 0);
    }
}

#[cfg(unix)]
pub(super) fn send(signal: &str, process: &str) {
    let sent = std::process::Command::new("kill").args([signal, process]).status().unwrap();
    assert!(sent.success());
}

/// Stops a child, and returns when all of its threads stand still: on a busy machine they go on for a
/// while after the signal was sent.
#[cfg(unix)]
fn stop(process: &str) {
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    send("-STOP", process);
    let id = nix::unistd::Pid::from_raw(process.parse().unwrap());
    let status = waitpid(id, Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert!(matches!(status, WaitStatus::Stopped(..)), "{status:?}");
}

#[cfg(unix)]
#[test]
fn a_stopped_worker_is_killed_when_its_time_is_over_or_nobody_wants_its_answer() {
    let stopped = || {
        let mut worker = worker();
        worker.ask(&Behave::Well, LONG).unwrap();
        let id = worker.id().unwrap().to_string();
        stop(&id);
        worker
    };
    let error = stopped().ask(&Behave::Well, SHORT).unwrap_err();
    assert!(matches!(error, WorkerError::TimeLimit { is_stuck: false, .. }), "{error:?}");
    let mut worker = stopped();
    let input = worker.input();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        input.close();
    });
    let error = worker.ask(&Behave::Well, LONG).unwrap_err().to_string();
    assert_eq!(error, "its process did not leave in 5 s after it was asked to, and was killed");
}

#[cfg(unix)]
#[test]
fn a_library_that_hangs_at_exit_keeps_no_worker() {
    let mut worker = worker();
    let input = worker.input();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        input.close();
    });
    let error = worker.ask(&Behave::HangAtExit, LONG).unwrap_err().to_string();
    assert_eq!(error, "its process left when it was asked to");
    // One that has nothing left to do.
    let mut worker = self::worker();
    worker.ask(&Behave::WaitAtExit, LONG).unwrap();
    worker.input().close();
    let error = worker.ask(&Behave::Well, LONG).unwrap_err().to_string();
    assert_eq!(error, "its process left when it was asked to");
}

#[test]
fn closing_the_input_ends_a_worker_in_the_middle_of_an_answer() {
    let mut worker = worker();
    let input = worker.input();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        input.close();
    });
    let error = worker.ask(&Behave::Hang, LONG).unwrap_err();
    assert!(matches!(error, WorkerError::Ended(_)), "{error:?}");
    // And before the first question.
    let mut worker = self::worker();
    worker.input().close();
    let error = worker.ask(&Behave::Well, LONG).unwrap_err();
    assert!(matches!(error, WorkerError::Ended(_)), "{error:?}");
}
