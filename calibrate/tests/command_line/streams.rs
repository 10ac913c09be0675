//! Every command with a stdout or a stderr that takes nothing: a full disk, a reader that has gone, a
//! descriptor that is closed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use calibrate::cli::Cli;
use clap::CommandFactory;

use super::files::FOREIGN;
use super::program::{EXAMPLE, TINY, folder};

/// A command line of most commands, and more of those with other ways to print.
const COMMANDS: [&str; 30] = [
    "--help",
    "--version",
    "trace --help",
    "--plan --problem TINY",
    "--problem TINY --quick --force --processes 1 --output run.toml",
    "list",
    "list devices",
    "show e.toml",
    "show e.toml --json",
    "query e.toml --problem add_relu/f32/m4096.n1024",
    "compare e.toml e.toml",
    "compare e.toml e.toml --format html",
    "report e.toml",
    "export e.toml",
    "export e.toml --format jsonl",
    "merge e.toml --output m.toml --overwrite",
    "import a.json --output i.toml",
    "partition g.json --profile e.toml --dim batch=8",
    "workload g.json --profile e.toml --dim batch=8 --predict-only",
    "validate e.toml",
    "selftest --runs 0 --simulations 1 --json",
    "config",
    "completions bash",
    "man",
    "trace info t.json",
    "trace kernels t.json",
    "trace kernels t.json --rows",
    "trace layers t.json",
    "trace idle t.json",
    "trace rates t.json",
];

const GRAPH: &str = r#"{"kind": "graph", "schema_version": 1,
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["batch", 64]}],
    "constants": [{"name": "w", "dtype": "f32", "shape": [64, 32]}],
    "nodes": [{"op": "MatMul", "inputs": ["x", "w"], "outputs": ["y"]},
              {"op": "Relu", "inputs": ["y"], "outputs": ["z"]}],
    "outputs": ["z"]}"#;

const TRACE: &str = r#"{"deviceProperties": [{"id": 0, "name": "NVIDIA A100", "numSms": 108}],
    "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "ampere_sgemm_128x64_tn", "pid": 0, "tid": 7, "ts": 0,
     "dur": 30, "args": {"device": 0, "stream": 7}},
    {"ph": "X", "cat": "kernel", "name": "what_is_this", "pid": 0, "tid": 7, "ts": 40, "dur": 10,
     "args": {"device": 0, "stream": 7}}]}"#;

#[test]
fn a_new_command_has_a_line() {
    let mut names = BTreeSet::new();
    for command in Cli::command().get_subcommands() {
        let below: Vec<_> = command.get_subcommands().map(|one| one.get_name()).collect();
        match &below[..] {
            [] => _ = names.insert(command.get_name().to_owned()),
            below => names.extend(below.iter().map(|one| format!("{} {one}", command.get_name()))),
        }
    }
    // Not for people, or as long as all the rest, or with inputs of their own.
    let others = ["worker", "doctor", "trace problems", "trace compare", "trace index"];
    names.retain(|name| !others.contains(&name.as_str()) && name != "trace validate");
    for name in names {
        let begins = |line: &&str| *line == name || line.starts_with(&format!("{name} "));
        assert!(COMMANDS.iter().any(begins), "{name}");
    }
}

fn run(folder: &Path, line: &str, streams: impl FnOnce(&mut Command)) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.current_dir(folder).env("XDG_CACHE_HOME", "/dev/null");
    command.args(line.replace("TINY", TINY).split(' '));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    streams(&mut command);
    command.output().unwrap()
}

fn full() -> Stdio {
    Stdio::from(File::options().write(true).open("/dev/full").unwrap())
}

/// What nobody reads any more.
fn left() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// The command with a closed descriptor, which its own files must not get instead.
fn closed(folder: &Path, line: &str, which: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_calibrate");
    let line = line.replace("TINY", TINY);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec '{program}' {line} {which}>&-")]);
    command.current_dir(folder).env("XDG_CACHE_HOME", "/dev/null").output().unwrap()
}

#[test]
fn a_stream_that_takes_nothing_is_no_crash_and_loses_no_file() {
    let folder = folder();
    let path = folder.path();
    for (name, text) in
        [("e.toml", EXAMPLE), ("a.json", FOREIGN), ("g.json", GRAPH), ("t.json", TRACE)]
    {
        fs::write(path.join(name), text).unwrap();
    }
    for line in COMMANDS {
        let usual = run(path, line, |_| ());
        let code = usual.status.code();
        let stderr = String::from_utf8_lossy(&usual.stderr);
        assert!(code.is_some_and(|code| code != 1 && code != 2), "{line}: {code:?}: {stderr}");
        let is_as_usual = |what: &str, output: &Output| {
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), code, "{line}, {what}: {stderr}");
            assert!(!stderr.contains("panicked"), "{line}, {what}: {stderr}");
        };
        is_as_usual("closed stdout", &closed(path, line, ""));
        is_as_usual("closed stderr", &closed(path, line, "2"));
        let full_stderr = run(path, line, |command| _ = command.stderr(full()));
        is_as_usual("full stderr", &full_stderr);
        is_as_usual("left stderr", &run(path, line, |command| _ = command.stderr(left())));
        // `| head` does not change what was found.
        is_as_usual("left stdout", &run(path, line, |command| _ = command.stdout(left())));
        // Results that are lost are a failure; what is only said beside a file is not.
        let output = run(path, line, |command| _ = command.stdout(full()));
        let stderr = String::from_utf8_lossy(&output.stderr);
        let expected = if usual.stdout.is_empty() { code } else { Some(1) };
        assert_eq!(output.status.code(), expected, "{line}, full stdout: {stderr}");
        assert!(usual.stdout.is_empty() || stderr.contains("error: "), "{line}: {stderr}");
        assert!(!stderr.contains("panicked"), "{line}, full stdout: {stderr}");
    }
}
