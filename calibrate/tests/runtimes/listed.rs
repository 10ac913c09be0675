//! What `list runtimes` says.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process;

use predicates::prelude::*;
use predicates::str::contains;

use super::{assert_nothing_is_left, calibrate, folder};

#[test]
fn runtimes_are_listed_with_their_versions_or_what_they_lack() {
    let folder = folder(&[]);
    calibrate(folder.path()).args(["list", "runtimes"]).assert().success().stdout(
        contains("pytorch")
            .and(contains("onnxruntime"))
            .and(contains("template     3."))
            .and(contains("on cpu"))
            .and(contains("Traceback").not()),
    );
    assert_nothing_is_left(folder.path());
}

/// A `python3` that sees no packages, whatever is installed here.
fn write_bare_python(folder: &Path) {
    let mut python = process::Command::new("python3");
    let found = python.args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    write_python(folder, &format!("exec '{}' -S -E \"$@\"", found.trim()));
}

/// A `python3` that does this.
fn write_python(folder: &Path, does: &str) {
    let python = folder.join("python3");
    std::fs::write(&python, format!("#!/bin/sh\n{does}\n")).unwrap();
    std::fs::set_permissions(&python, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn runtimes_that_lack_something_say_all_of_it_and_how_to_install_it() {
    let folder = folder(&[]);
    let list = || {
        let mut command = calibrate(folder.path());
        command.args(["list", "runtimes"]).env("PATH", folder.path());
        command.assert().success()
    };
    list().stdout(
        contains("pytorch      not found: `python3` cannot be started: No such file or directory")
            .and(contains("; to install what it needs: pip install torch numpy")),
    );
    write_python(folder.path(), "echo nonsense");
    list().stdout(
        contains("pytorch      does not work: it")
            .and(contains("cannot be read").or(contains("out of turn")))
            .and(contains("pip install").not()),
    );
    write_bare_python(folder.path());
    let lacks = |modules: &str, packages: &str| {
        contains(format!("has no {modules}; to install what it needs: pip install {packages}\n"))
    };
    list().stdout(
        lacks("numpy and no torch", "torch numpy")
            .and(lacks("numpy", "numpy"))
            .and(lacks("numpy and no onnxruntime", "onnxruntime"))
            .and(contains("template     3.")),
    );
    assert_nothing_is_left(folder.path());
}
