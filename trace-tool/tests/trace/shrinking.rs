//! Files that become shorter while the program reads them.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::SystemTime;

/// So many events take a debug build far longer than it takes to see that they are mapped.
const EVENTS: u32 = 60_000;

fn write_trace(path: &Path) {
    let mut file = std::io::BufWriter::new(File::create(path).unwrap());
    file.write_all(b"{\"schemaVersion\": 1, \"traceEvents\": [").unwrap();
    for event in 0..EVENTS {
        let comma = if event == 0 { "" } else { "," };
        write!(
            file,
            "{comma}{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm_{}\", \"pid\": 0, \
             \"tid\": 7, \"ts\": {}, \"dur\": {}, \"args\": {{\"device\": 0, \"stream\": 7, \
             \"correlation\": {event}}}}}",
            event % 97,
            20 * event,
            1 + event % 13
        )
        .unwrap();
    }
    file.write_all(b"]}").unwrap();
}

/// Runs a command and cuts a file as soon as it is mapped.
fn cut_while_read(folder: &Path, args: &[&str], name: &str) -> std::process::Output {
    let mut child = Process::new(env!("CARGO_BIN_EXE_trace-tool"))
        .current_dir(folder)
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let maps = format!("/proc/{}/maps", child.id());
    while !fs::read_to_string(&maps).unwrap_or_default().contains(name) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before {name} was cut");
    }
    File::options().write(true).open(folder.join(name)).unwrap().set_len(4096).unwrap();
    child.wait_with_output().unwrap()
}

/// Writes files as they were. The index knows the trace by its time, too.
fn restore(files: &[(Vec<u8>, SystemTime, PathBuf)]) {
    for (bytes, modified, path) in files {
        fs::write(path, bytes).unwrap();
        File::options().write(true).open(path).unwrap().set_modified(*modified).unwrap();
    }
}

#[test]
fn a_trace_or_an_index_that_shrinks_is_an_error_and_no_crash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    write_trace(&path.join("t.json"));
    let made = super::program::trace(path).args(["index", "t.json"]).assert().success();
    drop(made);
    // The second one last: it is read instead of the trace.
    for (args, name) in [
        (&["kernels", "t.json", "--no-index"][..], "t.json"),
        (&["kernels", "t.json", "--stream", "--no-index"], "t.json"),
        (&["layers", "t.json"], "t.json.ktindex"),
    ] {
        let before = [path.join("t.json"), path.join("t.json.ktindex")].map(|one| {
            let modified = fs::metadata(&one).unwrap().modified().unwrap();
            (fs::read(&one).unwrap(), modified, one)
        });
        let mut output = cut_while_read(path, args, name);
        // It looks at what kind of file it is first, and a file that is cut before it is read is a short
        // one.
        for _ in 0..20 {
            if !String::from_utf8_lossy(&output.stderr).contains("warning: truncated") {
                break;
            }
            restore(&before);
            output = cut_while_read(path, args, name);
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
        assert!(stderr.contains("became shorter while it was read"), "{args:?}: {stderr}");
        restore(&before);
    }
}
