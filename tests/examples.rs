//! The examples run, and answer as the calibration that they read says.

use fusion_cost_model::{FusionCostModel, Policy, Target, WhenUnknown};

#[allow(dead_code, reason = "a test does not start `main`")]
#[path = "../examples/gains.rs"]
mod gains;
#[allow(dead_code, reason = "a test does not start `main`")]
#[path = "../examples/partitioner.rs"]
mod partitioner;

fn model() -> FusionCostModel {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/example.toml");
    FusionCostModel::load(file).unwrap()
}

#[test]
fn the_partitioner_fuses_what_was_measured_to_gain() {
    let model = model();
    let graph = partitioner::graph().unwrap();
    let kernels = |when_unknown, threshold| {
        let policy = Policy::new(when_unknown).with_threshold(threshold);
        let best = model.on(Target::cpu(2)).partition_graph(&graph, &policy).unwrap();
        best.segments.iter().map(|it| it.problem.unwrap().to_string()).collect::<Vec<_>>()
    };
    let measured = [
        "linear_bias_relu/f32/m4096.k64.n256",
        "linear/f32/m4096.k256.n1024",
        "add_relu/f32/m4096.n1024",
    ];
    assert_eq!(kernels(WhenUnknown::Conservative, 1.0), measured);
    // No gain is that large.
    assert_eq!(kernels(WhenUnknown::Conservative, 9.0).len(), 6);
    // An optimist fuses the unknown too, where that does not cost what is known to gain.
    assert_eq!(kernels(WhenUnknown::Optimistic, 1.0), measured);
    assert_eq!(kernels(WhenUnknown::Optimistic, 9.0).len(), 1);
}

#[test]
fn the_table_shows_gains_with_their_evidence() {
    let model = model();
    let table = gains::table("linear_bias_relu".parse().unwrap(), model.on(Target::cpu(2)));
    let table = table.unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "linear_bias_relu on cpu, 2 threads, warm caches");
    assert_eq!(lines.len(), 9, "{table}");
    let line = |size: &str| lines.iter().find(|line| line.trim().starts_with(size)).unwrap();
    assert!(line("512 ").contains("1.02 (0.99 to 1.04)   measured "), "{table}");
    assert!(line("4096 ").contains(" extrapolated "), "{table}");
}
