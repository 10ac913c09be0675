//! Idle time.

use super::program::{json, served, stdout, trace};

#[test]
fn idle_time_reads_as_it_should_and_adds_up() {
    let folder = served();
    let shown = stdout(trace(folder.path()).args(["idle", "served.json", "--top", "4"]));
    insta::assert_snapshot!("trace_idle", shown);
    let help = stdout(trace(folder.path()).args(["idle", "--help"]));
    insta::assert_snapshot!("trace_idle_help", help);
    let idle = json(trace(folder.path()).args(["idle", "served.json", "--json"]));
    let kernels = json(trace(folder.path()).args(["kernels", "served.json", "--json"]));
    let device = &idle["ranks"][0]["devices"][0];
    // What `kernels` says of the device.
    let known = &kernels["ranks"][0]["devices"][0];
    assert_eq!(device["idle_ns"], known["idle"]["total_ns"]);
    assert_eq!(device["span_ns"], known["span_ns"]);
    let causes = device["by_cause"].as_array().unwrap();
    let sum: u64 = causes.iter().map(|cause| cause["total_ns"].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), device["idle_ns"].as_u64());
}
