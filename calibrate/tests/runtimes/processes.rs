//! The processes of runtimes, and their folders: none is left behind, however a run ends.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process;
use std::time::{Duration, Instant};

use predicates::str::contains;

use super::{PROBLEM, assert_nothing_is_left, calibrate, folder, left, shortest};

/// Whether a process works in a folder.
fn is_at_work(folder: &Path) -> bool {
    let folder = folder.canonicalize().unwrap();
    let works_there = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder)
    };
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| works_there(&entry))
}

#[test]
fn what_is_left_when_calibrate_is_killed_is_removed_by_the_next_run() {
    let folder = folder(&["hang", "none"]);
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut killed = process::Command::new(env!("CARGO_BIN_EXE_calibrate"))
        .args(["--runtime", "./hang.toml", "--problem", PROBLEM, "--quick", "--force"])
        .args(["--threads", "1", "--output", "r.toml"])
        .current_dir(folder.path())
        .env("TMPDIR", &temporary)
        .env("XDG_CACHE_HOME", folder.path().join("cache"))
        .stdout(process::Stdio::null())
        .stderr(process::Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let wait_for = |what: &dyn Fn() -> bool| {
        while !what() {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait_for(&|| left(folder.path()).iter().any(|one| one.join("hanging").exists()));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let abandoned = left(folder.path());
    assert_eq!(abandoned.len(), 1, "{abandoned:?}");
    wait_for(&|| !is_at_work(&abandoned[0]));
    calibrate(folder.path())
        .args(["--runtime", "./none.toml", "--problem", PROBLEM, "--plan"])
        .assert()
        .success()
        .stdout(contains("(tiny@1.2)"));
    assert_nothing_is_left(folder.path());
}

/// How many processes work in the private folders.
fn processes_in(folder: &Path) -> usize {
    let folder = folder.join("tmp").canonicalize().unwrap();
    let works_there = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder))
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(works_there).count()
}

/// Starts a run of many processes, and returns when a runtime and what it has started are at work.
fn start_long(folder: &Path, runtime: &str) -> process::Child {
    std::fs::create_dir_all(folder.join("tmp")).unwrap();
    let child = process::Command::new(env!("CARGO_BIN_EXE_calibrate"))
        .current_dir(folder)
        .env("TMPDIR", folder.join("tmp"))
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .args(["--threads", "1", "--force", "--output", "r.toml", "--runtime", runtime])
        .args(["--problem", PROBLEM, "--processes", "40", "--spread", "10m"])
        .stderr(process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| folder.join("r.toml.journal").exists());
    wait_for_processes(folder, |count| count >= 2);
    child
}

fn wait_for_processes(folder: &Path, is_so: fn(usize) -> bool) {
    wait_until(|| is_so(processes_in(folder)));
}

fn wait_until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_interrupted_run_ends_what_a_runtime_has_started() {
    for flaw in ["leaves", "escapes"] {
        let folder = folder(&[flaw]);
        let mut child = start_long(folder.path(), &format!("./{flaw}.toml"));
        let id = child.id().to_string();
        let signal = process::Command::new("kill").args(["-INT", &id]).status();
        assert!(signal.unwrap().success());
        child.wait().unwrap();
        wait_for_processes(folder.path(), |count| count == 0);
    }
}

/// Interrupts a command while runtimes hang that it asks what they are or do, and holds what that leaves
/// behind against nothing.
fn interrupt(folder: &Path, signal: &str, command: &mut process::Command) {
    std::fs::create_dir_all(folder.join("tmp")).unwrap();
    let child = command
        .current_dir(folder)
        .env("TMPDIR", folder.join("tmp"))
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .stdout(process::Stdio::piped())
        .stderr(process::Stdio::piped())
        .spawn()
        .unwrap();
    // What escaped from it, and the one that hangs.
    wait_for_processes(folder, |count| count >= 2);
    wait_until(|| left(folder).iter().any(|one| one.join("hanging").exists()));
    let sent = process::Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert!(errors.contains("interrupted before anything was done"), "{errors}");
    assert!(output.stdout.is_empty());
    // On a busy machine one that is killed takes a while to go.
    wait_for_processes(folder, |count| count == 0);
    assert_nothing_is_left(folder);
    assert!(!folder.join("r.toml").exists());
}

#[test]
fn an_interruption_before_anything_is_measured_leaves_nothing_behind() {
    for (flaw, signal) in [("escapes-at-hello", "-INT"), ("escapes-at-supports", "-TERM")] {
        let folder = folder(&[flaw]);
        for options in [&["--output", "r.toml"][..], &["--plan"]] {
            let mut command = process::Command::new(env!("CARGO_BIN_EXE_calibrate"));
            command.args(["--threads", "1", "--force", "--problem", PROBLEM]).args(options);
            interrupt(folder.path(), signal, command.arg(format!("--runtime=./{flaw}.toml")));
        }
    }
}

#[test]
fn an_interrupted_list_of_runtimes_leaves_nothing_behind() {
    let folder = folder(&[]);
    let python = folder.path().join("python3");
    std::fs::write(&python, "#!/bin/sh\nsetsid sleep 3600 &\n: > hanging; sleep 3600\n").unwrap();
    std::fs::set_permissions(&python, Permissions::from_mode(0o755)).unwrap();
    let places = std::env::var("PATH").unwrap();
    let mut command = process::Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.args(["list", "runtimes"]);
    command.env("PATH", format!("{}:{places}", folder.path().display()));
    interrupt(folder.path(), "-INT", &mut command);
}

/// In a session of its own, without a parent, when its worker ends and when it is killed.
#[test]
fn what_escapes_from_a_runtime_ends_with_its_worker() {
    let folder = folder(&["escapes", "escapes-hang"]);
    let run = |runtime: &str| {
        let mut command = shortest(folder.path());
        command.args(["--runtime", runtime, "--problem", PROBLEM]);
        command
    };
    run("./escapes.toml").assert().success();
    wait_for_processes(folder.path(), |count| count == 0);
    run("./escapes-hang.toml")
        .args(["--process-limit", "4s"])
        .assert()
        .code(1)
        .stderr(contains("it is tried once more"));
    wait_for_processes(folder.path(), |count| count == 0);
}
