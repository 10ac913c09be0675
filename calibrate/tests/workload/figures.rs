//! How a report reads.

use std::collections::BTreeMap;

use calibrate::plan::workload::Way;
use calibrate::report::Range;
use calibrate::report::partition::OpaqueNodes;
use calibrate::report::workload::{
    Apart, Gain, Known, Measurement, Memory, Operator, Question, Speed, Times, WayReport,
    WorkloadReport,
};
use cli_support::width::Width;
use fusion_cost_model::calibration::{Disturbed, Verdict};
use fusion_cost_model::{Evidence, Target};

fn range(value: f64, half: f64) -> Range {
    Range { value, low: value - half, high: value + half }
}

/// The example of the documentation, with made-up numbers.
fn report() -> WorkloadReport {
    let problem = |text: &str| text.parse().unwrap();
    let way = |way, kernels, predicted: f64, measured: f64| WayReport {
        way,
        same_as: None,
        kernels,
        predicted_ms: Some(range(predicted, 1.8)),
        measured_ms: Some(range(measured, 0.5)),
        error_pct: Some(100.0 * (predicted / measured - 1.0)),
        predicted_now_ms: Some(range(1.01 * predicted, 2.0)),
        error_now_pct: Some(100.0 * (1.01 * predicted / measured - 1.0)),
        predicted_speedup: (way != Way::Unfused).then_some(71.4 / predicted),
        speedup: (way != Way::Unfused).then(|| range(72.6 / measured, 0.009)),
        verdict: (way != Way::Unfused).then_some(Verdict::Faster),
    };
    let times = |unfused_ms: f64, best_ms: f64| {
        Some(Times { unfused_ms, best_ms, gain_ms: unfused_ms - best_ms })
    };
    let gain = |name: &str, times_in, predicted, measured| Gain {
        problems: vec![name.to_owned()],
        best: vec![name.to_owned()],
        times: times_in,
        predicted,
        measured,
    };
    let operator = |text: &str, times, evidence, predicted: f64, measured: f64| Operator {
        way: Way::BestPartition,
        problem: problem(text),
        times,
        evidence,
        predicted_ms: Some(range(predicted, 0.1)),
        measured_ms: Some(measured),
        error_pct: Some(100.0 * (predicted / measured - 1.0)),
        predicted_now_ms: Some(range(1.01 * predicted, 0.1)),
        error_now_pct: Some(100.0 * (1.01 * predicted / measured - 1.0)),
    };
    let (norm, gelu) = ("add_layernorm/f32/m128.n768", "linear_bias_gelu/f32/m128.k768.n3072");
    WorkloadReport {
        kind: "workload-report",
        schema_version: 1,
        question: Question {
            workload: "bert-base".to_owned(),
            description: Some("The encoder of BERT-base".to_owned()),
            dims: BTreeMap::from([("batch".to_owned(), 1), ("sequence".to_owned(), 128)]),
            profile: "q.toml".to_owned(),
            target: Target::cpu(2),
            threshold: 1.0,
            ops: 158,
        },
        known: Known {
            problems: 46,
            measured: 41,
            interpolated: 3,
            roofline: 0,
            unknown: 2,
            missing: vec![problem("add/f32/m128.n768")],
        },
        memory: Memory { bytes: 411_000_000, extra_ms: Some(5.1), layers: 121, by_bandwidth: 24 },
        ways: vec![
            way(Way::Unfused, 158, 71.4, 72.6),
            way(Way::AlwaysFused, 74, 70.2, 71.0),
            way(Way::BestPartition, 86, 67.9, 68.3),
        ],
        gains: vec![
            gain(norm, 25, times(24.9, 21.8), times(25.1, 21.9)),
            gain(gelu, 12, times(38.2, 37.6), times(38.5, 37.7)),
            gain("relu/f32/m128.n768", 1, None, None),
        ],
        operators: vec![
            operator(gelu, 12, Evidence::Measured, 37.6, 37.7),
            operator(norm, 25, Evidence::Interpolated, 21.8, 21.9),
        ],
        apart: vec![Apart {
            problem: problem("mlp/f32/m128.k768.n3072.o768"),
            times: 12,
            speedup: Some(range(0.95, 0.01)),
            evidence: Evidence::Measured,
        }],
        opaque: vec![OpaqueNodes {
            op: "Gather".to_owned(),
            reason: "no op of the vocabulary".to_owned(),
            nodes: 3,
        }],
        assumed: BTreeMap::new(),
        measurement: Some(Measurement {
            machine: "Example 9000".to_owned(),
            is_of_profile: true,
            processes: 10,
            pairs: 160,
            pairs_kept: 155,
            disturbed: Disturbed { run_delay: Some(4), steal: Some(2), ..Disturbed::default() },
            others_busy: Some(0.023),
            services_count: true,
            speed: Speed::of_times(&[
                (problem(gelu), [3.13, 3.1, 3.16], [3.16, 3.1, 3.2]),
                (problem(norm), [0.87, 0.86, 0.88], [0.88, 0.87, 0.89]),
            ]),
            seed: 7,
            against_itself: Some(range(1.001, 0.004)),
            noise_floor: 0.01,
            proved: 41,
            results_apart: 3.2e-6,
            states: 2,
        }),
    }
}

#[test]
fn figures_read_as_they_should() {
    let report = report();
    let narrow = report.text(2, Width::Columns(100));
    assert!(narrow.lines().all(|line| line.chars().count() <= 100), "{narrow}");
    insta::assert_snapshot!("measured_100", narrow);
    insta::assert_snapshot!("measured_80", report.text(10, Width::Columns(80)));
    insta::assert_snapshot!("measured_unlimited", report.text(10, Width::Unlimited));
    insta::assert_snapshot!("measured_markdown", report.markdown(10));
    let csv = String::from_utf8(report.sheet().csv().unwrap()).unwrap();
    insta::assert_snapshot!("measured_csv", csv);
    let apart = [report.apart.clone(), report.apart.clone()].concat();
    let two_apart = WorkloadReport { apart, ..report.clone() }.text(1, Width::Unlimited);
    assert!(two_apart.contains(", and 1 other\n"), "{two_apart}");
    let memory = Memory { extra_ms: None, by_bandwidth: 0, ..report.memory };
    let without_ceilings = WorkloadReport { memory, ..report };
    let text = without_ceilings.text(2, Width::Unlimited);
    assert!(text.contains("the profile has no ceilings that tell"), "{text}");
}
