//! Where the system gives less than a program expects.

use assert_cmd::Command;
use fusion_cost_model::calibration::HardwareCalibration;
use predicates::prelude::*;
use predicates::str::contains;

use super::program::{EXAMPLE, TINY, calibrate, folder, names};

/// `calibrate 2> /dev/full`, and a stderr that nobody reads any more.
#[cfg(target_os = "linux")]
#[test]
fn a_full_or_closed_stderr_loses_nothing() {
    use std::process::{Command as Process, Stdio};
    let folder = folder();
    let closed = || {
        let mut child = Process::new("true").stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        child.wait().unwrap();
        Stdio::from(stdin)
    };
    let full = || Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap());
    let run = ["--force", "--problem", TINY, "--quick", "--processes", "1", "--output", "t.toml"];
    for (args, stderr, code) in [
        (&["--fusion", "nothing"][..], full(), 2),
        (&["--fusion", "nothing"], closed(), 2),
        (&["show", "no.toml"], full(), 1),
        (&run, closed(), 0),
    ] {
        let mut program = Process::new(env!("CARGO_BIN_EXE_calibrate"));
        let program = program.current_dir(folder.path()).env("XDG_CACHE_HOME", "/dev/null");
        let status = program.args(args).stdout(Stdio::null()).stderr(stderr).status().unwrap();
        assert_eq!(status.code(), Some(code), "{args:?}");
    }
    assert!(HardwareCalibration::load(folder.path().join("t.toml")).is_ok());
    let mut program = Process::new(env!("CARGO_BIN_EXE_calibrate"));
    let output = program.args(["list", "ops"]).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error: "), "{output:?}");
}

/// A process needs three and its libraries and files a fourth one; a worker needs more.
#[cfg(unix)]
#[test]
fn too_few_file_descriptors_are_an_error_and_no_panic() {
    let folder = folder();
    std::fs::write(folder.path().join("e.toml"), EXAMPLE).unwrap();
    let program = env!("CARGO_BIN_EXE_calibrate");
    let run = |limit: u32, args: &str| {
        // Whoever started the test may have left some open.
        let close = (3..10).fold("exec".to_owned(), |all, one| format!("{all} {one}>&-"));
        let script = format!("{close}; ulimit -n {limit}; exec '{program}' {args}");
        let mut command = Command::new("sh");
        command.current_dir(folder.path()).env("XDG_CACHE_HOME", "/dev/null");
        command.args(["-c", &script]).assert()
    };
    run(4, "show e.toml").success();
    let measure = format!("--problem {TINY} --quick --force --output t.toml");
    for (limit, args) in (4..=10).flat_map(|limit| [(limit, "show e.toml"), (limit, &measure)]) {
        let output = run(limit, args).stderr(contains("panicked").not()).get_output().clone();
        let stderr = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => {}
            Some(1) => assert!(stderr.contains("error: "), "{limit}, {args}: {stderr}"),
            other => panic!("{limit}, {args}: {other:?}: {stderr}"),
        }
    }
}

/// `ulimit -f`, as batch systems set it.
#[cfg(unix)]
#[test]
fn a_limit_on_the_size_of_files_is_an_error_that_leaves_nothing_behind() {
    let folder = folder();
    std::fs::write(folder.path().join("e.toml"), EXAMPLE).unwrap();
    let page = "report e.toml --format html -o page.html";
    for (limit, args) in [(1, page), (2, page)] {
        let script =
            format!("ulimit -f {limit}; exec '{}' {args}", env!("CARGO_BIN_EXE_calibrate"));
        let mut command = Command::new("sh");
        command.current_dir(folder.path()).args(["-c", &script]);
        command.assert().code(1).stderr(contains("error: cannot write page.html: File too large"));
        assert_eq!(names(folder.path()), ["e.toml"]);
    }
}

/// What a command prints with nothing under `/proc`; `None` where the test may not make that so.
#[cfg(target_os = "linux")]
fn without_proc(folder: &std::path::Path, args: &str) -> Option<std::process::Output> {
    let inside = "mount -t tmpfs none /proc && [ -z \"$(ls /proc)\" ] && echo hidden >&2 && exec";
    let script = format!("{inside} '{}' {args}", env!("CARGO_BIN_EXE_calibrate"));
    let output = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .current_dir(folder)
        .env("XDG_CACHE_HOME", "/dev/null")
        .output()
        .ok()?;
    String::from_utf8_lossy(&output.stderr).starts_with("hidden").then_some(output)
}

/// In a container whose `/proc` is masked: nothing that a reader of files needs, and a worker that
/// cannot be started is an error that says so.
#[cfg(target_os = "linux")]
#[test]
fn without_proc_everything_says_what_it_can_and_nothing_panics() {
    let folder = folder();
    std::fs::write(folder.path().join("e.toml"), EXAMPLE).unwrap();
    let query = format!("query e.toml --problem {TINY}");
    let measure = format!("--problem {TINY} --quick --force --processes 1 --output t.toml");
    for (args, codes) in [
        ("show e.toml", &[0][..]),
        (&query, &[0]),
        ("list", &[0]),
        ("list devices", &[0]),
        ("validate e.toml", &[0]),
        (&measure, &[0, 1]),
    ] {
        let Some(output) = without_proc(folder.path(), args) else {
            println!("SKIPPED: this needs `unshare --mount`, and with it root");
            return;
        };
        let stderr = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        assert!(!stderr.contains("panicked"), "{args}: {stderr}");
        assert!(code.is_some_and(|code| codes.contains(&code)), "{args}: {code:?}: {stderr}");
        assert!(code == Some(0) || stderr.contains("error: "), "{args}: {stderr}");
    }
}

/// Files that are called like the drivers of GPUs and lie where the program is started, where the loader
/// would look first.
#[cfg(target_os = "linux")]
#[test]
fn no_library_of_the_current_folder_is_opened() {
    let folder = folder();
    let listed = || {
        let mut command = calibrate(folder.path());
        let output =
            command.env("LD_LIBRARY_PATH", ":.").args(["list", "devices"]).assert().success();
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    };
    let before = listed();
    for name in ["libcuda.so.1", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"] {
        // The loader says "file too short" of what it opens.
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    assert_eq!(listed(), before);
}

/// A user who may have no more threads, and an address space without room for another stack.
#[cfg(target_os = "linux")]
#[test]
fn a_system_without_threads_is_an_error_and_no_panic() {
    let folder = folder();
    std::fs::write(folder.path().join("e.toml"), EXAMPLE).unwrap();
    let program = env!("CARGO_BIN_EXE_calibrate");
    let measure = format!("--problem {TINY} --quick --force --processes 1 --output t.toml");
    for args in ["list", "list devices", "list runtimes", "validate e.toml", &measure] {
        for limit in ["-v 60000", "-v 80000", "-v 120000", "-v 200000"] {
            let script = format!("ulimit {limit}; exec '{program}' {args}");
            let mut command = Command::new("sh");
            command.current_dir(folder.path()).env("XDG_CACHE_HOME", "/dev/null");
            let output = command.args(["-c", &script]).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(!stderr.contains("panicked"), "{args}, {limit}: {stderr}");
            assert_ne!(output.status.code(), Some(101), "{args}, {limit}: {stderr}");
        }
    }
}

/// The loader looks for libraries in its own folders: what lies in the current one is no library.
#[cfg(target_os = "linux")]
#[test]
fn the_current_folder_has_no_libraries() {
    let (without, with) = (folder(), folder());
    for name in ["libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7", "libcuda.so.1"] {
        std::fs::write(with.path().join(name), b"\x7fELF and no more").unwrap();
    }
    let listed = |folder: &std::path::Path| {
        let mut command = calibrate(folder);
        let output = command.args(["list", "devices"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(listed(with.path()), listed(without.path()));
}
