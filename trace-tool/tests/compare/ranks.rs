//! Sides with many ranks.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use kernel_traces::synthetic::Lockstep;
use predicates::str::contains;
use tempfile::TempDir;

use super::json;

/// A folder with two runs over four ranks; rank 3 of `late` comes late to every collective.
fn runs() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, late) in [("late", vec![(3, 90_000)]), ("even", vec![])] {
        let path = folder.path().join(name);
        fs::create_dir(&path).unwrap();
        Lockstep { late, steps: 8, ..Lockstep::default() }.write(&path).unwrap();
    }
    folder
}

fn compare(folder: &Path, arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trace-tool"));
    command.current_dir(folder).args(["compare"]).args(arguments).assert().success()
}

#[test]
fn who_waits_for_whom_is_said_of_each_side() {
    let runs = runs();
    let outcome = compare(runs.path(), &["late", "even"]);
    let text = String::from_utf8(outcome.get_output().stdout.clone()).unwrap();
    let (_, ranks) = text.split_once("The ranks of late").unwrap();
    let (late, even) = ranks.split_once("The ranks of even").unwrap();
    assert!(late.contains("Rank 3 arrives last in"), "{late}");
    assert!(!even.split("Where the gap").next().unwrap().contains("arrives last in"), "{even}");
    // Rank 3 waits least and the others most, so it stands for none.
    outcome.stderr(contains("note: of 4 ranks, late/rank"));
}

#[test]
fn other_formats_have_the_ranks_too() {
    let runs = runs();
    let outcome = compare(runs.path(), &["late", "even/rank1.json", "--json"]);
    let text = String::from_utf8(outcome.get_output().stdout.clone()).unwrap();
    let value = json::check(&text);
    let first = &value["ranks"]["first"];
    assert_eq!(first["records"].as_array().unwrap().len(), 4);
    assert_eq!(first["skew"]["groups"][0]["straggler"]["rank"], 3);
    assert_ne!(first["representative"]["rank"], 3);
    assert!(value["ranks"]["second"].is_null());

    let outcome = compare(runs.path(), &["late", "even/rank1.json", "--format", "html"]);
    let outcome = outcome.stdout(contains("<a href=\"#ranks\">Ranks</a>"));
    outcome.stdout(contains("<h2>Ranks</h2>")).stdout(contains("Rank 3 arrives last in"));
}

#[test]
fn a_rank_that_is_named_is_compared_alone() {
    let runs = runs();
    let arguments = ["late", "even", "--rank-a", "3", "--rank-b", "1", "--json"];
    let outcome = compare(runs.path(), &arguments);
    let text = String::from_utf8(outcome.get_output().stdout.clone()).unwrap();
    let value = json::check(&text);
    assert!(value["ranks"]["first"].is_null() && value["ranks"]["second"].is_null());
    let name = value["first"]["name"].as_str().unwrap();
    assert!(name.ends_with("rank3.json"), "{name}");
}
