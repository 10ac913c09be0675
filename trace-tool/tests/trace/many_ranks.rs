//! Many ranks as rows that DuckDB adds up, with the queries of the documentation.

use std::collections::BTreeMap;
use std::fs;

use kernel_traces::synthetic::{self, Communication, Plan};
use serde_json::Value;

use super::program::{json, trace};
use crate::duckdb;

const RANKS: u64 = 64;

const PAGE: &str = include_str!("../../../docs/trace-ranks.md");

/// The queries of the page, in their order.
fn queries() -> Vec<&'static str> {
    let blocks = PAGE.split("```sql\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap()).collect()
}

#[test]
fn totals_over_a_folder_are_those_of_the_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let (traces, rows) = (folder.path().join("traces"), folder.path().join("rows"));
    fs::create_dir(&traces).unwrap();
    fs::create_dir(&rows).unwrap();
    let plan = Plan {
        layers: 3,
        communication: Communication::OwnStream,
        copies: true,
        frames: 0,
        ..Plan::default()
    };
    let ranks = synthetic::write_ranks(&plan, &traces, RANKS).unwrap();
    // One file for each rank, as machines that share no memory write them.
    for (path, _) in &ranks {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let output = format!("rows/{name}.parquet");
        let args = ["--rows", "--format", "parquet", "--output", &output];
        trace(folder.path()).arg("kernels").arg(path).args(args).assert().success();
    }
    let queries = queries();
    let [by_class, by_rank] = queries[..] else { panic!("{} queries", queries.len()) };
    let Some(classes) = duckdb::ask(folder.path(), by_class) else { return };
    let Some(totals) = duckdb::ask(folder.path(), by_rank) else { return };

    // What the tool says of the folder.
    let all = json(trace(folder.path()).args(["kernels", "traces", "--json"]));
    let group = |one: &Value| (one["name"].clone(), one["count"].clone(), one["total_ns"].clone());
    let expected: BTreeMap<String, _> = all["by_class"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].to_string(), group(one)))
        .collect();
    let found: BTreeMap<String, _> = classes
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row[0].to_string(), (row[0].clone(), row[1].clone(), row[2].clone())))
        .collect();
    assert!(expected.len() > 5);
    assert_eq!(found, expected);

    // What the generator knows of each rank.
    let totals = totals.as_array().unwrap();
    assert_eq!(totals.len(), RANKS as usize);
    for (rank, ((_, truth), row)) in ranks.iter().zip(totals).enumerate() {
        let of = |class: Option<&str>| -> u64 {
            let kernels = truth.kernels.iter();
            let kernels = kernels.filter(|one| class.is_none_or(|class| one.class.name() == class));
            kernels.map(|one| one.duration_ns).sum()
        };
        let expected = [rank as u64, truth.counts.kernels, of(Some("COMM")), of(None)];
        assert!(expected[2] > 0 && expected[3] > expected[2]);
        assert_eq!(*row, Value::from(expected.to_vec()));
    }
}
