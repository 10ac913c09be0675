//! What people read: lists, help, files and answers.

use calibrate::selftest::simulation::Disturbance;
use predicates::prelude::*;
use predicates::str::contains;

use super::program::{EXAMPLE, calibrate, folder};

#[test]
fn lists_and_help_read_as_they_should() {
    let folder = folder();
    for what in ["patterns", "ops", "shapes", "workloads", "hardware"] {
        let output = calibrate(folder.path()).args(["list", what]).assert().success();
        let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
        insta::assert_snapshot!(format!("list_{what}"), text);
    }
    calibrate(folder.path())
        .args(["list", "devices"])
        .assert()
        .success()
        .stdout(contains("cpu   ").and(contains("\n  cuda  ")).and(contains("\n  hip   ")));
    let output = calibrate(folder.path()).args(["--help"]).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    insta::assert_snapshot!("help", text);
    calibrate(folder.path()).assert().code(2).stderr(contains("Usage: calibrate"));
    // The options of all commands are not among those of a run.
    calibrate(folder.path())
        .args(["compare", "--help"])
        .assert()
        .success()
        .stdout(contains("--color").and(contains("What to measure next").not()));
    for shell in ["bash", "zsh", "fish"] {
        calibrate(folder.path())
            .args(["completions", shell])
            .assert()
            .success()
            .stdout(contains("require-hardware"));
    }
    calibrate(folder.path()).arg("man").assert().success().stdout(contains(".TH calibrate 1"));
    calibrate(folder.path()).args(["man", "--output", "man1"]).assert().success();
    for page in ["calibrate.1", "calibrate-show.1", "calibrate-trace-compare.1"] {
        assert!(folder.path().join("man1").join(page).exists(), "{page}");
    }
}

#[test]
fn lists_fit_the_page() {
    let folder = folder();
    let output = calibrate(folder.path()).arg("list").env("COLUMNS", "80").assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(text.contains("NVIDIA Jetson"), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80 && line.trim_end() == line, "{line:?}");
    }
}

#[test]
fn show_reads_as_it_should() {
    let folder = folder();
    std::fs::write(folder.path().join("e.toml"), EXAMPLE).unwrap();
    let output = calibrate(folder.path()).args(["show", "e.toml"]).assert().success();
    insta::assert_snapshot!("show", String::from_utf8(output.get_output().stdout.clone()).unwrap());
    let query = ["query", "e.toml", "--problem", "add_relu/f32/m4096.n1024"];
    let output = calibrate(folder.path()).args(query).assert().success();
    insta::assert_snapshot!(
        "query",
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    );
}

/// What a file says cannot look like a message of its own.
#[test]
fn reasons_of_a_file_stay_on_one_line() {
    let folder = folder();
    let forged = EXAMPLE.replacen("text = \"", "text = \"a\\nerror: forged; ", 1);
    assert_ne!(forged, EXAMPLE);
    std::fs::write(folder.path().join("f.toml"), forged).unwrap();
    for columns in ["", "80"] {
        let mut shown = calibrate(folder.path());
        let shown = shown.env("COLUMNS", columns).args(["show", "f.toml"]).assert().success();
        let text = String::from_utf8_lossy(&shown.get_output().stdout).into_owned();
        assert!(text.contains("a\\nerror: forged; "), "{text}");
    }
}

/// The simulation through the command line, with too few draws to say anything about coverage.
#[test]
fn the_selftest_reports_for_people_and_for_programs() {
    let folder = folder();
    calibrate(folder.path())
        .args(["selftest", "--runs", "0", "--simulations", "1"])
        .assert()
        .stdout(contains("position bias").and(contains("half-width")));
    let output = calibrate(folder.path())
        .args(["selftest", "--runs", "1", "--processes", "3", "--simulations", "1"])
        .args(["--threads", "1", "--json"])
        .assert();
    let result: serde_json::Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    // Each script for a large and for a small run.
    assert_eq!(result["simulation"].as_array().unwrap().len(), 2 * Disturbance::ALL.len());
    let kinds = result["against_itself"].as_array().unwrap();
    assert!(kinds.len() == 2 && kinds.iter().all(|kind| kind["runs"] == 1), "{kinds:?}");
    let code = match result["result"].as_str().unwrap() {
        "passed" => 0,
        "undecided" => 3,
        _ => 4,
    };
    output.code(code);
}

#[test]
fn a_trace_is_summed_up_for_people_and_for_programs() {
    let folder = folder();
    let event = |name: &str, ts: u32, dur: u32| {
        format!(
            "{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{name}\", \"pid\": 0, \"tid\": 7, \
             \"ts\": {ts}, \"dur\": {dur}, \"args\": {{\"device\": 0, \"stream\": 7}}}}"
        )
    };
    let events = [event("ampere_sgemm_128x64_tn", 0, 30), event("what_is_this", 40, 10)];
    let device = "{\"id\": 0, \"name\": \"NVIDIA A100\", \"warpSize\": 32, \"numSms\": 108}";
    let text =
        format!("{{\"deviceProperties\": [{device}], \"traceEvents\": [{}]}}", events.join(","));
    std::fs::write(folder.path().join("t.json"), text).unwrap();
    calibrate(folder.path())
        .args(["trace", "info", "t.json"])
        .assert()
        .success()
        .stdout(contains("vendor      NVIDIA").and(contains("NVIDIA A100, 108 multiprocessors")));
    calibrate(folder.path()).args(["trace", "kernels", "t.json"]).assert().success().stdout(
        contains("2 kernels, copies and fills, 40.0 us together; busy for 40.0 us of 50.0 us")
            .and(contains("75.0 %"))
            .and(contains("25.0 % of the time is in kernels that no rule knows")),
    );
    let output = calibrate(folder.path()).args(["trace", "kernels", "t.json", "--json"]).assert();
    let summary: serde_json::Value =
        serde_json::from_slice(&output.success().get_output().stdout).unwrap();
    assert_eq!(summary["by_class"][0]["name"], "GEMM");
    assert_eq!(summary["total_ns"], 40_000);

    std::fs::write(folder.path().join("no.json"), "# a heading").unwrap();
    for (file, message) in
        [("no.json", "is not a profiler trace"), ("missing.json", "cannot read missing.json")]
    {
        calibrate(folder.path())
            .args(["trace", "kernels", file])
            .assert()
            .code(1)
            .stdout("")
            .stderr(contains(message).and(contains("os error 2): ").not()));
    }
}

#[test]
fn a_plan_of_one_problem_reads_as_one() {
    let folder = folder();
    calibrate(folder.path())
        .args(["--plan", "--problem", "add_relu/f32/m8.n8", "--threads", "1"])
        .assert()
        .success()
        .stdout(contains("1 record (sizes: given on the command line) and 2 A/A runs"))
        // Waiting takes as long as all processes that an undecided problem gets.
        .stdout(contains("about 2 min; slow problems take longer").and(contains("0.0 GiB").not()));
}

#[test]
fn several_dtypes_are_measured_in_one_run() {
    let folder = folder();
    let plan = |more: &[&str]| {
        let mut command = calibrate(folder.path());
        command.args(["--plan", "--quick", "--threads", "1"]).args(more).assert()
    };
    let both = ["--fusion", "linear_bias_relu,linear+requantize", "--dtype", "f32,bf16,i8"];
    plan(&both).success().stdout(
        contains("linear_bias_relu/f32/")
            .and(contains("linear_bias_relu/bf16/"))
            .and(contains("linear+bias+relu+requantize/i8/"))
            .and(contains("linear+requantize/i8/"))
            .and(contains("linear+requantize/f32/").not()),
    );
    // Softmax is none of integers.
    plan(&["--fusion", "linear,softmax", "--dtype", "i8"])
        .success()
        .stderr(contains("has no i8 sizes for softmax; left out"));
    plan(&["--fusion", "linear", "--dtype", "f32,i9"]).code(2).stderr(contains("dtype `i9`"));
}
