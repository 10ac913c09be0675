//! What calibrate says of runtimes whose files or answers are not as they should be.

use predicates::prelude::*;
use predicates::str::contains;

use super::{SMALL, assert_nothing_is_left, calibrate, folder, load, shortest};

/// It is skipped like one that it refuses at `supports`: nothing has failed.
#[test]
fn a_problem_that_a_runtime_refuses_when_it_is_to_prepare_it_is_skipped() {
    let folder = folder(&["finds-none"]);
    shortest(folder.path())
        .args(["--runtime", "native,./finds-none.toml", "--problem", SMALL])
        .assert()
        .success()
        .stderr(contains("error").not());
    let calibration = load(folder.path());
    assert_eq!(calibration.records.len(), 1);
    let [skipped] = &calibration.skipped[..] else { panic!("{:?}", calibration.skipped) };
    assert!(
        skipped.reason.ends_with("(finds-none@1.2): finds-none does not run it: no kernels today"),
        "{skipped:?}"
    );
    assert_eq!(skipped.failure, None);
    assert_nothing_is_left(folder.path());
}

#[test]
fn another_device_than_the_cpu_is_refused() {
    let folder = folder(&["other-device"]);
    shortest(folder.path())
        .args(["--runtime", "./other-device.toml", "--problem", SMALL])
        .assert()
        .code(1)
        .stderr(contains("its device is cuda; runtimes are asked for cpu only"));
}

#[test]
fn a_script_that_is_not_beside_its_file_is_named() {
    let folder = folder(&[]);
    let text = "kind = \"runtime\"\nschema_version = 1\nname = \"mine\"\n\
                command = [\"python3\", \"nofile.py\"]\n";
    std::fs::write(folder.path().join("mine.toml"), text).unwrap();
    let place = folder.path().display();
    shortest(folder.path())
        .args(["--runtime", "./mine.toml", "--problem", SMALL])
        .assert()
        .code(1)
        .stderr(contains(format!("; there is no `nofile.py` in {place}")));
}

/// What would measure more of a runtime that is not built in is a file, whose place nobody knows.
#[test]
fn advice_names_what_can_be_done() {
    let folder = folder(&["none"]);
    let mut command = shortest(folder.path());
    command.args(["--runtime", "native,./none.toml", "--problem", SMALL]);
    command.args(["--problem", "mul+relu/bf16/m2.n10"]).assert().success();
    let mut query = calibrate(folder.path());
    query.args(["query", "r.toml", "--problem", SMALL, "--threads", "2"]);
    query.args(["--implementation", "tiny@1.2"]);
    query.assert().success().stdout(contains(" --threads 2 --runtime FILE\n"));
    let mut compare = calibrate(folder.path());
    compare.args(["compare", "r.toml", "--by", "implementation"]);
    compare.assert().code(2).stderr(contains("in common, such as --a f32"));
    let mut compare = calibrate(folder.path());
    compare.args(["compare", "r.toml", "--by", "implementation", "--a", "f32"]);
    compare.assert().success();
}
