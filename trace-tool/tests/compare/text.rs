//! The text.

use kernel_traces::compare::{Basis, Comparison, LayerComparison};
use trace_tool::report::{CompareReport, trace_compare};

use super::example;

#[test]
fn an_example_reads_as_it_should() {
    let comparison = example::comparison();
    let records = example::records(&comparison);
    let text = trace_compare(CompareReport { records: &records, ..example::report(&comparison) });
    insta::assert_snapshot!("compare_text", text);
}

#[test]
fn no_line_is_wider_than_a_terminal() {
    let mut comparison = example::comparison();
    let long = "a_name_without_any_place_to_break_".repeat(300);
    comparison.fusions[0].fused_kernel.clone_from(&long);
    comparison.fusions[0].evidence.clone_from(&long);
    comparison.kernels[0].kernel.clone_from(&long);
    comparison.gap.causes[0].name.clone_from(&long);
    comparison.first.name.clone_from(&long);
    comparison.layers.none_because = Some("there is no attention ".repeat(20));
    comparison.layers.kinds[0].numbers = "0,2,4,6,8,10,12,14,16,18,20,22,24,26".repeat(10);
    comparison.layers.kinds[0].slots[0].first.as_mut().unwrap().class.clone_from(&long);
    let records = example::records(&comparison);
    for top in [1, 100] {
        let text =
            trace_compare(CompareReport { records: &records, top, ..example::report(&comparison) });
        for line in text.lines() {
            assert!(line.chars().count() <= 120, "{line}");
        }
    }
}

#[test]
fn what_a_limit_leaves_out_is_said() {
    let comparison = example::comparison();
    let text = trace_compare(CompareReport { top: 2, ..example::report(&comparison) });
    assert!(text.contains("3 causes more"), "{text}");
    assert!(text.contains("and 4 classes more; --top N shows more"), "{text}");
    let whole = trace_compare(example::report(&comparison));
    assert!(!whole.contains("--top N"), "{whole}");
}

#[test]
fn a_verdict_for_every_case() {
    let line = |change: &dyn Fn(&mut Comparison)| {
        let mut comparison = example::comparison();
        change(&mut comparison);
        let text = trace_compare(example::report(&comparison));
        text.lines().next().unwrap().to_owned()
    };
    let times = |comparison: &mut Comparison, first_ns: f64, second_ns: f64| {
        let ratio = (second_ns > 0.0).then(|| first_ns / second_ns);
        let gap_ns = first_ns - second_ns;
        comparison.gap = kernel_traces::compare::Gap {
            first_ns,
            second_ns,
            gap_ns,
            ratio,
            ..comparison.gap.clone()
        };
    };
    assert_eq!(
        line(&|one| {
            times(one, 29.5e6, 32.2e6);
            one.basis = Basis::MarkedSteps;
        }),
        "MI300X takes 29.5 ms a step, H100 32.2 ms: MI300X is 1.09 times as fast"
    );
    assert_eq!(
        line(&|one| {
            times(one, 3e9, 1e9);
            one.basis = Basis::Recording;
        }),
        "MI300X takes 3.00 s in all, H100 1.00 s: H100 is 3.00 times as fast"
    );
    assert_eq!(
        line(&|one| {
            times(one, 1e6, 1.001e6);
            one.layer = Some(3);
            one.phase = Some(kernel_traces::segment::Phase::Decode);
        }),
        "In layer 3, MI300X takes 1.00 ms a decode pass, H100 1.00 ms: no difference to speak of"
    );
    assert_eq!(
        line(&|one| times(one, 1e6, 0.0)),
        "MI300X takes 1.00 ms a pass, H100 0 ns: there is nothing to compare"
    );
    assert_eq!(
        line(&|one| times(one, 0.0, 0.0)),
        "MI300X takes 0 ns a pass, H100 0 ns: there is nothing to compare"
    );
}

#[test]
fn a_comparison_without_layers_says_why() {
    let mut comparison = example::comparison();
    comparison.layers = LayerComparison {
        none_because: Some("b.json has no attention".to_owned()),
        ..LayerComparison::default()
    };
    comparison.fusions.clear();
    comparison.implementation.clear();
    comparison.warnings.clear();
    let text = trace_compare(example::report(&comparison));
    assert!(text.contains("Layers are not compared: b.json has no attention."), "{text}");
    assert!(text.contains("None was found."), "{text}");
}
