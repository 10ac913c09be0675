//! Pairs of real traces: what is known of them, and that exchanging them mirrors the result.

use crate::real;
use kernel_traces::compare::{
    Basis, CauseKind, CompareError, CompareOptions, Comparison, Side, SlotStatus, Which,
};
use kernel_traces::segment::Phase;
use kernel_traces::{Classes, Options, Segments, Trace};

struct Loaded {
    name: String,
    trace: Trace,
    classes: Classes,
    segments: Segments,
}

impl Loaded {
    fn of(name: &str) -> Self {
        let path = real::folder().join(format!("{name}.json.gz"));
        let trace = Trace::load(path, &Options::default(), &mut |_, _| {}).unwrap();
        let classes = Classes::of(&trace);
        let segments = Segments::of(&trace, &classes);
        Self { name: name.to_owned(), trace, classes, segments }
    }

    fn side(&self) -> Side<'_> {
        let Self { name, trace, classes, segments } = self;
        Side { trace, classes, segments, name }
    }
}

fn compare(first: &Loaded, second: &Loaded) -> Comparison {
    let found = Comparison::of(first.side(), second.side(), &CompareOptions::default()).unwrap();
    adds_up(&found);
    found
}

/// Everything adds up: each division of the gap, and the sums of both sides.
fn adds_up(found: &Comparison) {
    let kernels = (found.first.kernels + found.second.kernels) as f64;
    let gap = &found.gap;
    assert!(gap.rounding_ns < 1e-3 * kernels, "{}", gap.rounding_ns);
    assert_eq!(gap.gap_ns, gap.first_ns - gap.second_ns);
    let causes: f64 = gap.causes.iter().map(|cause| cause.part.gap_ns).sum();
    let classes: f64 = gap.classes.iter().map(|class| class.part.gap_ns).sum();
    for sum in [causes, classes] {
        assert!((sum - gap.gap_ns).abs() < kernels, "{sum} against {}", gap.gap_ns);
    }
    for (index, side) in [&found.first, &found.second].into_iter().enumerate() {
        assert_eq!(side.busy_ns + side.idle_ns, side.span_ns);
        let of = |part: &kernel_traces::compare::Part| {
            if index == 0 { part.first_amount } else { part.second_amount }
        };
        let counts = [
            gap.classes.iter().map(|class| of(&class.part).count).sum::<u64>(),
            gap.roles.iter().map(|role| of(&role.part).count).sum(),
            gap.causes.iter().map(|cause| of(&cause.part).count).sum(),
        ];
        assert_eq!(counts, [side.kernels; 3]);
        let own = [
            gap.classes.iter().map(|class| of(&class.part).own_ns).sum::<u64>(),
            gap.roles.iter().map(|role| of(&role.part).own_ns).sum(),
            gap.causes.iter().map(|cause| of(&cause.part).own_ns).sum(),
        ];
        assert_eq!(own, [side.busy_ns; 3]);
    }
}

/// What a comparison says, seen from the other side.
fn is_mirrored(one: &Comparison, other: &Comparison) {
    let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-6 * a.abs().max(1.0), "{a} and {b}");
    assert_eq!((&one.first, &one.second), (&other.second, &other.first));
    near(one.gap.gap_ns, -other.gap.gap_ns);
    assert_eq!(one.gap.causes.len(), other.gap.causes.len());
    for (a, b) in one.gap.causes.iter().zip(&other.gap.causes) {
        assert_eq!((a.kind, &a.name, &a.sentence), (b.kind, &b.name, &b.sentence));
        assert_eq!(a.part.first_amount, b.part.second_amount);
        near(a.part.gap_ns, -b.part.gap_ns);
    }
    for (a, b) in one.gap.roles.iter().zip(&other.gap.roles) {
        assert_eq!((a.role, a.part.first_amount), (b.role, b.part.second_amount));
    }
    assert_eq!(one.layers.aligned, other.layers.aligned);
    assert_eq!(one.layers.kinds.len(), other.layers.kinds.len());
    for (a, b) in one.layers.kinds.iter().zip(&other.layers.kinds) {
        assert_eq!((&a.numbers, a.first_layers), (&b.numbers, b.second_layers));
        assert_eq!(a.slots.len(), b.slots.len());
        for (a, b) in a.slots.iter().zip(&b.slots) {
            assert_eq!((a.role, &a.first, &a.second), (b.role, &b.second, &b.first));
            let exchanged = match b.status {
                SlotStatus::FirstOnly => SlotStatus::SecondOnly,
                SlotStatus::SecondOnly => SlotStatus::FirstOnly,
                same => same,
            };
            assert_eq!(a.status, exchanged);
        }
    }
    assert_eq!(one.fusions.len(), other.fusions.len());
    for (a, b) in one.fusions.iter().zip(&other.fusions) {
        assert_ne!(a.fused_by, b.fused_by);
        assert_eq!((&a.operation, &a.separate, a.count), (&b.operation, &b.separate, b.count));
    }
    assert_eq!(one.implementation.len(), other.implementation.len());
    for (a, b) in one.same_kernels.iter().zip(&other.same_kernels) {
        assert_eq!(a.kernel, b.kernel);
        near(a.ratio.value, 1.0 / b.ratio.value);
    }
    assert_eq!(one.warnings.len(), other.warnings.len());
}

const PAIRS: [(&str, &str, u32); 4] = [
    ("mi300x_qwen1.5-0.5b_eager", "h100_qwen1.5-0.5b_eager", 24),
    ("mi300x_bert-small_eager", "h100_bert-small_eager", 4),
    ("mi300x_timesformer_eager", "h100_timesformer_eager", 12),
    ("a100_dlrm_train_control", "v100_dlrm_train_test", 0),
];

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn pairs_in_either_order() {
    for (first, second, layers) in PAIRS {
        let (first, second) = (Loaded::of(first), Loaded::of(second));
        let one = compare(&first, &second);
        assert_eq!(one.layers.aligned, layers, "{}", first.name);
        is_mirrored(&one, &compare(&second, &first));
        // Every layer of these runs separate kernels on both sides.
        assert_eq!(one.fusions, [], "{}", first.name);
    }
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn a_trace_against_itself() {
    let one = Loaded::of("mi300x_gpt-oss-20b_vllm_prefilldecode");
    let found = compare(&one, &one);
    assert_eq!(found.gap.gap_ns, 0.0);
    assert!(found.gap.causes.iter().all(|cause| cause.part.gap_ns == 0.0));
    assert_eq!(found.layers.aligned, 24);
    assert_eq!((found.fusions.len(), found.implementation.len()), (0, 0));
    let slots = found.layers.kinds.iter().flat_map(|kind| &kind.slots);
    assert!(slots.clone().count() > 17);
    assert!(slots.clone().all(|slot| slot.status == SlotStatus::Aligned));
    assert!(found.same_kernels.iter().all(|same| same.ratio.value == 1.0));
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn the_layers_of_one_model_on_two_makers_devices() {
    let [first, second] = ["mi300x_qwen1.5-0.5b_eager", "h100_qwen1.5-0.5b_eager"].map(Loaded::of);
    let found = compare(&first, &second);
    assert_eq!(found.basis, Basis::Layers);
    assert_eq!((found.first.label.as_str(), found.second.label.as_str()), ("MI300X", "H100"));
    for side in [&found.first, &found.second] {
        assert!(side.covered_share >= 0.95, "{}", side.covered_share);
        assert!(side.unclassified_share == 0.0);
    }
    // 35 of 24 layers ran on the one, 34 on the other.
    assert!((found.first.steps - 35.0 / 24.0).abs() < 1e-12);
    assert!((found.second.steps - 34.0 / 24.0).abs() < 1e-12);
    let codes: Vec<&str> = found.warnings.iter().map(|warning| warning.code).collect();
    assert!(codes.contains(&"different-steps") && codes.contains(&"cut-passes"), "{codes:?}");
    // cuBLAS clears a buffer before the GEMMs, and hipBLASLt does not.
    let only_second = found.implementation.iter().filter(|one| one.run_by == Which::Second);
    assert!(only_second.clone().count() >= 4);
    assert!(only_second.clone().all(|one| one.class == "FILL"), "{:?}", found.implementation);
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn a_pair_of_one_maker_without_layers() {
    let [first, second] = ["a100_dlrm_train_control", "v100_dlrm_train_test"].map(Loaded::of);
    let found = compare(&first, &second);
    assert_eq!(found.basis, Basis::MarkedSteps);
    assert_eq!((found.first.steps, found.second.steps), (6.0, 6.0));
    assert!(found.layers.none_because.is_some() && found.layers.kinds.is_empty());
    assert!(found.gap.causes.iter().any(|cause| cause.kind == CauseKind::OutsideSteps));
    assert!(found.same_kernels.len() > 20, "{}", found.same_kernels.len());
    assert!(found.same_kernels.iter().any(|same| same.kernel.contains("ncclKernel_AllReduce")));
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn what_is_not_there() {
    let [first, second] =
        ["mi300x_gpt-oss-20b_vllm_prefilldecode", "mi300x_qwen3-8b_sglang_decode_graph"]
            .map(Loaded::of);
    let with = |phase, layer| {
        let options = CompareOptions { phase, layer };
        Comparison::of(first.side(), second.side(), &options).unwrap_err()
    };
    let error = with(Some(Phase::Prefill), None);
    assert!(matches!(error, CompareError::NoPhase { .. }), "{error}");
    assert_eq!(
        with(None, Some(30)).to_string(),
        "mi300x_gpt-oss-20b_vllm_prefilldecode has no layer 30; they are numbered from 0 to 23"
    );
    let options = CompareOptions { phase: None, layer: Some(3) };
    let found = Comparison::of(first.side(), first.side(), &options).unwrap();
    adds_up(&found);
    assert_eq!(found.layers.aligned, 1);
    assert_eq!(found.first.kernels, 17);
}

#[test]
#[ignore = "needs the public traces in ../shared/traces"]
fn traces_of_different_work_are_warned_of() {
    let [first, second] = ["mi300x_torch_compile_triton", "a100_triton_example"].map(Loaded::of);
    let has = |found: &Comparison| {
        found.warnings.iter().filter(|warning| warning.code == "little-in-common").count()
    };
    let found = compare(&first, &second);
    assert_eq!(has(&found), 1, "{:?}", found.warnings);
    is_mirrored(&found, &compare(&second, &first));
    for (first, second, _) in PAIRS {
        let (first, second) = (Loaded::of(first), Loaded::of(second));
        assert_eq!(has(&compare(&first, &second)), 0);
    }
}
