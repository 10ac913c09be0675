//! Traces of several ranks.

use std::fs;

use kernel_traces::synthetic::Oddity;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use super::program::{json, one, text, three, trace};

#[test]
fn ranks_come_in_their_order_and_are_summed_up() {
    let folder = three();
    let all = json(trace(folder.path()).args(["kernels", "ranks", "--json"]));
    let ranks: Vec<&Value> = all["ranks"].as_array().unwrap().iter().collect();
    let numbers: Vec<u64> = ranks.iter().map(|rank| rank["rank"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [2, 9, 10]);
    for key in ["kernels", "total_ns"] {
        let sum: u64 = ranks.iter().map(|rank| rank[key].as_u64().unwrap()).sum();
        assert_eq!(all[key].as_u64(), Some(sum));
    }
    let nine = json(trace(folder.path()).args(["kernels", "ranks", "--rank", "9", "--json"]));
    assert_eq!(nine["total_ns"], ranks[1]["total_ns"]);
    assert_eq!(nine["ranks"][0], *ranks[1]);
    trace(folder.path())
        .args(["kernels", "ranks", "--rank", "3"])
        .assert()
        .code(2)
        .stdout("")
        .stderr(contains("no trace is of rank 3; there are: 2, 9, 10"));
    trace(folder.path())
        .args(["info", "ranks"])
        .assert()
        .success()
        .stderr(contains("warning: missing-ranks: 3 of the 8 ranks"));
    trace(folder.path())
        .args(["info", "ranks", "ranks/rank2.json"])
        .assert()
        .success()
        .stderr(contains("warning: same-rank: rank 2 has several files"));
    fs::write(folder.path().join("ranks/labels.json"), "{}").unwrap();
    trace(folder.path())
        .args(["kernels", "ranks"])
        .assert()
        .success()
        .stderr(contains("warning: no-traces: files of the folder are not traces: ranks/labels"));
    // A rank that cannot be read is said to be missing, and ends what names it.
    fs::write(folder.path().join("ranks/rank5.json"), "").unwrap();
    trace(folder.path()).args(["kernels", "ranks"]).assert().success().stderr(contains(
        "warning: lost-ranks: traces of ranks cannot be read: ranks/rank5.json (it is empty); \
         figures are of the other ranks only",
    ));
    trace(folder.path())
        .args(["kernels", "ranks/rank5.json"])
        .assert()
        .code(1)
        .stdout("")
        .stderr(contains("rank5.json is not a profiler trace: it is empty"));
    fs::create_dir(folder.path().join("none")).unwrap();
    trace(folder.path())
        .args(["info", "none"])
        .assert()
        .code(1)
        .stderr(contains("none has no traces").and(contains(".json.gz")));
}

#[test]
fn what_a_file_is_comes_first_and_not_on_stdout() {
    let folder = one();
    fs::write(folder.path().join("last.json"), text(1, &[Oddity::MetadataLast])).unwrap();
    for file in ["t.json", "last.json"] {
        let told = trace(folder.path()).args(["kernels", file, "--verbose"]).assert().success();
        let told = told.stderr(contains("NVIDIA, 1 x NVIDIA H100, 304 multiprocessors, 192.0 GiB"));
        told.stdout(contains("multiprocessors").not());
        trace(folder.path()).args(["kernels", file]).assert().success().stderr("");
    }
}
