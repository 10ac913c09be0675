//! The command as a user meets it.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use kernel_traces::Vendor;
use kernel_traces::synthetic::{self, Annotation, Model, Plan};
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;

use super::json;

fn compare(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trace-tool"));
    command.current_dir(folder).arg("compare");
    command
}

fn stdout(command: &mut Command) -> String {
    let output = command.assert().success();
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

fn write(path: &Path, plan: &Plan) {
    fs::write(path, synthetic::text(plan).unwrap().0).unwrap();
}

/// A folder with traces of one model from two vendors, `amd.json` and `nvidia.json`.
fn pair() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, vendor, seed) in [("amd.json", Vendor::Amd, 1), ("nvidia.json", Vendor::Nvidia, 2)] {
        let annotations = vec![Annotation::Vllm];
        let plan = Plan {
            vendor,
            seed,
            layers: 6,
            steps: 5,
            copies: true,
            annotations,
            ..Plan::default()
        };
        write(&folder.path().join(name), &plan);
    }
    folder
}

#[test]
fn a_pair_reads_as_it_should() {
    let folder = pair();
    let text = stdout(compare(folder.path()).args(["amd.json", "nvidia.json"]));
    insta::assert_snapshot!("compare_pair", text);
    let phase = ["amd.json", "nvidia.json", "--phase", "decode", "--layer", "2", "--top", "3"];
    insta::assert_snapshot!("compare_pair_layer", stdout(compare(folder.path()).args(phase)));
    insta::assert_snapshot!("compare_help", stdout(compare(folder.path()).arg("--help")));
}

#[test]
fn the_formats_of_a_pair() {
    let folder = pair();
    let of =
        |more: &[&str]| stdout(compare(folder.path()).args(["amd.json", "nvidia.json"]).args(more));
    let value = json::check(&of(&["--json"]));
    assert_eq!(value["first"]["vendor"], "AMD");
    assert_eq!(value["first"]["name"], "amd.json");
    assert_eq!(of(&["--json"]), of(&["--format", "json"]));
    let causes = value["gap"]["causes"].as_array().unwrap();
    let sum: f64 = causes.iter().map(|cause| cause["gap_ns"].as_f64().unwrap()).sum();
    let gap = value["gap"]["gap_ns"].as_f64().unwrap();
    assert!((sum - gap).abs() <= 1e-6 * gap.abs().max(1.0) + 1.0, "{sum} {gap}");
    assert!(of(&["--format", "csv"]).starts_with("operation,amd_count,nvidia_count,"));
    let slots = of(&["--format", "csv", "--table", "slots"]);
    let kinds = value["layers"]["kinds"].as_array().unwrap();
    let expected: usize = kinds.iter().map(|kind| kind["slots"].as_array().unwrap().len()).sum();
    assert_eq!(::csv::Reader::from_reader(slots.as_bytes()).records().count(), expected);
    assert!(of(&["--format", "html"]).starts_with("<!DOCTYPE html>"));
}

#[test]
fn exchanged_sides_have_the_opposite_gap() {
    let folder = pair();
    let gap = |files: [&str; 2]| {
        let value = json::check(&stdout(compare(folder.path()).args(files).arg("--json")));
        value["gap"]["gap_ns"].as_f64().unwrap()
    };
    assert_eq!(gap(["amd.json", "nvidia.json"]), -gap(["nvidia.json", "amd.json"]));
}

#[test]
fn a_trace_against_itself_has_no_gap() {
    let folder = pair();
    let output = compare(folder.path()).args(["amd.json", "./amd.json", "--json"]).assert();
    let output =
        output.success().stderr(contains("warning: same-file: amd.json is compared with itself"));
    let value = json::check(&String::from_utf8_lossy(&output.get_output().stdout));
    assert_eq!(value["gap"]["gap_ns"], 0.0);
    assert_eq!(value["fusions"].as_array().unwrap().len(), 0);
    assert!(value["gap"]["causes"].as_array().unwrap().iter().all(|one| one["gap_ns"] == 0.0));
}

/// Under another name, too, in every format.
#[test]
fn a_copy_of_a_trace_is_told() {
    let folder = pair();
    fs::copy(folder.path().join("amd.json"), folder.path().join("copy.json")).unwrap();
    for second in ["copy.json", "amd.json"] {
        for format in ["text", "html", "json"] {
            let args = ["amd.json", second, "--format", format];
            assert!(
                stdout(compare(folder.path()).args(args)).contains("same recording"),
                "{format}"
            );
        }
    }
    let args = ["amd.json", "copy.json", "--format", "csv"];
    let told = contains("warning: same-recording: amd and copy are the same recording");
    compare(folder.path()).args(args).assert().success().stderr(told);
    let other = stdout(compare(folder.path()).args(["amd.json", "nvidia.json"]));
    assert!(!other.contains("same recording"), "{other}");
}

#[test]
fn ranks_of_folders() {
    let folder = tempfile::tempdir().unwrap();
    for run in ["a", "b"] {
        fs::create_dir(folder.path().join(run)).unwrap();
        for rank in [0, 3] {
            let plan = Plan { layers: 3, seed: rank + 1, rank, world_size: 4, ..Plan::default() };
            write(&folder.path().join(run).join(format!("rank{rank}.json")), &plan);
        }
    }
    let names = |args: &[&str]| {
        let output = compare(folder.path()).args(["a", "b", "--json"]).args(args).output().unwrap();
        let value = json::check(&String::from_utf8_lossy(&output.stdout));
        let name = |side: &str| value[side]["name"].as_str().unwrap().to_owned();
        (name("first"), name("second"), String::from_utf8(output.stderr).unwrap())
    };
    let (first, second, said) = names(&[]);
    assert!(first.ends_with("rank0.json") && second.ends_with("rank0.json"), "{first} {second}");
    assert!(said.contains("--rank-a N names another"), "{said}");
    let (first, second, said) = names(&["--rank-a", "3", "--rank-b", "0"]);
    assert!(first.ends_with("rank3.json") && second.ends_with("rank0.json"), "{first} {second}");
    assert!(!said.contains("names another"), "{said}");
    compare(folder.path())
        .args(["a", "b", "--rank-b", "7"])
        .assert()
        .code(2)
        .stdout("")
        .stderr(contains("no trace is of rank 7; there are: 0, 3"));
}

#[test]
fn measured_records_stand_beside_fusions() {
    let folder = pair();
    let profile = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../calibrate/profiles/calibrations/intel-xeon-2-threads.toml"
    );
    let args = ["amd.json", "nvidia.json", "--json", "--profile", profile];
    let value = json::check(&stdout(compare(folder.path()).args(args)));
    let fusions = value["fusions"].as_array().unwrap();
    let records = value["fusion_records"].as_array().unwrap();
    assert_eq!(fusions.len(), records.len());
    compare(folder.path())
        .args(["amd.json", "nvidia.json", "--profile", "no.toml"])
        .assert()
        .code(1)
        .stdout("")
        .stderr(contains("no.toml"));
}

#[test]
fn wrong_use_says_what_to_do() {
    let folder = pair();
    fs::create_dir(folder.path().join("empty")).unwrap();
    write(&folder.path().join("bag.json"), &Plan { model: Model::Bag, ..Plan::default() });
    fs::write(folder.path().join("no.json"), "{}").unwrap();
    let pair = ["amd.json", "nvidia.json"];
    for (files, args, code, message) in [
        (["amd.json", "missing.json"], &[][..], 1, "missing.json"),
        (["amd.json", "empty"], &[], 1, "empty has no traces"),
        (["no.json", "amd.json"], &[], 1, "no.json is not a profiler trace"),
        (pair, &["--phase", "sideways"], 2, "possible values: all, prefill, decode, mixed"),
        (pair, &["--phase", "diffusion"], 2, "no kernels of the phase diffusion; there are: "),
        (pair, &["--layer", "6"], 2, "has no layer 6; they are numbered from 0 to 5"),
        (["amd.json", "bag.json"], &["--layer", "0"], 2, "bag.json has no layer 0"),
        (pair, &["--table", "gap"], 2, "--table is for --format csv"),
        (pair, &["--json", "--table", "gap"], 2, "--table is for --format csv"),
        (pair, &["--format", "csv", "--table", "all"], 2, "same-kernels"),
        (pair, &["--json", "--format", "html"], 2, "cannot be used with"),
        (pair, &["--top", "0"], 2, "--top"),
        (pair, &["--output", "no/out.html"], 2, "the folder no does not exist"),
        (pair, &["--output", "empty"], 2, "empty: it is a folder"),
    ] {
        compare(folder.path())
            .args(files)
            .args(args)
            .assert()
            .code(code)
            .stdout("")
            .stderr(contains(message));
    }
    compare(folder.path()).arg("amd.json").assert().code(2).stderr(contains("<B>"));
}

#[test]
fn what_is_read_is_said_when_asked() {
    let folder = pair();
    let told = compare(folder.path()).args(["amd.json", "nvidia.json", "--verbose"]).assert();
    told.success().stderr(contains("amd.json: ").and(contains("nvidia.json: ")));
    let quiet = compare(folder.path()).args(["amd.json", "nvidia.json", "--no-index"]).assert();
    quiet.success().stderr("");
}

#[test]
fn a_page_goes_to_a_file_whole() {
    let folder = pair();
    let args = ["amd.json", "nvidia.json", "--format", "html"];
    let printed = stdout(compare(folder.path()).args(args));
    let output = compare(folder.path()).args(args).args(["-o", "gap.html"]).assert().success();
    output.stdout("").stderr(contains("wrote gap.html"));
    assert_eq!(fs::read_to_string(folder.path().join("gap.html")).unwrap(), printed);
}
