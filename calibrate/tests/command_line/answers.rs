//! What answers and refusals name.

use predicates::prelude::*;
use predicates::str::contains;

use super::program::{EXAMPLE, calibrate, folder};

#[test]
fn an_answer_names_what_was_asked_for() {
    let folder = folder();
    std::fs::write(folder.path().join("e.toml"), EXAMPLE).unwrap();
    let query = |args: &[&str]| {
        let mut command = calibrate(folder.path());
        command.args(["query", "e.toml", "--problem"]).args(args);
        command.assert()
    };
    let conv = "conv_bn_relu/f32/n1.c4.h8.w8.k4.r3.s3";
    query(&[conv, "--rewrite", "bn_folded"])
        .success()
        .stdout(contains("rewrite     bn_folded").and(contains("--threads 2 --rewrite bn_folded")));
    query(&[conv, "--rewrite", "bn_folded", "--json"])
        .success()
        .stdout(contains("\"rewrite\": \"bn_folded\""));
    query(&["add_relu/f32/m4.n4", "--rewrite", "bn_folded"])
        .success()
        .stdout(contains("to measure  not possible: add+relu has nothing that is bn_folded"));
    query(&["add_relu/f32/m4.n4", "--implementation", "vendor"]).success().stdout(
        contains("cpu, 2 threads, vendor kernels, warm caches")
            .and(contains("calibrate runs no vendor kernels on a cpu")),
    );
    query(&["add_relu/f32/m4.n4", "--clock", "device"])
        .code(2)
        .stderr(contains("--clock device is for GPUs"));
    query(&["add_relu/f32/m4.n4", "--backend", "cuda", "--clock", "host"])
        .code(2)
        .stderr(contains("--clock host is for the cpu backend"));
    calibrate(folder.path())
        .args(["validate", "e.toml", "--implementation", "vendor"])
        .assert()
        .code(2)
        .stderr(contains("no records of cpu, 2 threads, vendor kernels, warm caches"));
}

/// The example with records of cold caches instead of warm ones, without what follows from ceilings,
/// which it has none of for these.
fn cold() -> String {
    let text = EXAMPLE.replace("cache_state = \"warm\"\nimpl", "cache_state = \"cold\"\nimpl");
    let follows = ["ceiling_speedup = ", "bottleneck_unfused = ", "bottleneck_fused = "];
    let lines = text.lines().filter(|line| !follows.iter().any(|key| line.starts_with(key)));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_comparison_says_what_keeps_two_files_apart() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("warm.toml", EXAMPLE);
    write("cold.toml", &cold());
    // Two threads of each core, which share its caches.
    let threads = [
        ("logical_cores = 2", "logical_cores = 4"),
        ("\nthreads = 2\nsource", "\nthreads = 4\nsource"),
        ("shared_by = 2", "shared_by = 4"),
        ("shared_by = 1", "shared_by = 2"),
        ("2 processors usable", "4 processors usable"),
    ];
    let threads =
        threads.iter().fold(EXAMPLE.to_owned(), |text, (from, to)| text.replace(from, to));
    write("threads.toml", &threads);
    calibrate(folder.path()).args(["compare", "warm.toml", "cold.toml"]).assert().code(2).stderr(
        contains("A has warm caches and B has cold, and records are compared with the same"),
    );
    calibrate(folder.path())
        .args(["compare", "warm.toml", "threads.toml", "--fail-on-regression", "5%"])
        .assert()
        .code(2)
        .stderr(contains("they differ in logical cores 2 and 4"));
    // A file of both has records that only it has, and says where the other one has them.
    let both = EXAMPLE.replacen("cache_state = \"warm\"\nimpl", "cache_state = \"cold\"\nimpl", 1);
    let (head, record) = both.split_once("ceiling_speedup = 1.02491\n").unwrap();
    let record = record.replacen(
        "bottleneck_unfused = \"compute\"\nbottleneck_fused = \"compute\"\n",
        "",
        1,
    );
    write("both.toml", &format!("{head}{record}"));
    calibrate(folder.path())
        .args(["compare", "warm.toml", "both.toml", "--table", "not-compared"])
        .assert()
        .success()
        .stdout(
            contains("with warm caches only in A; B has it cold")
                .and(contains("with cold caches only in B; A has it warm")),
        );
}
