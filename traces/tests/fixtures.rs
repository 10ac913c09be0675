//! The traces and the comparison in `tests/data`: everything that is known of them is found.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kernel_traces::classify::Class;
use kernel_traces::compare::{CompareOptions, Comparison, FusionEvidence, Side, SlotStatus, Which};
use kernel_traces::predicted::{
    Comparison as Prediction, Measured, ModelTrace, OpMap, Passes, Rules, Status,
};
use kernel_traces::segment::{Marker, Phase};
use kernel_traces::{Classes, Options, Segments, Trace, Vendor};

struct Toy {
    trace: Trace,
    classes: Classes,
    segments: Segments,
    name: &'static str,
}

impl Toy {
    fn load(name: &'static str) -> Self {
        let trace = Trace::load(data(name), &Options::default(), &mut |_, _| {}).unwrap();
        let classes = Classes::of(&trace);
        let segments = Segments::of(&trace, &classes);
        Self { trace, classes, segments, name }
    }

    fn nvidia() -> Self {
        Self::load("toy_nvidia.json")
    }

    fn amd() -> Self {
        Self::load("toy_amd.json")
    }

    fn side(&self) -> Side<'_> {
        let Self { trace, classes, segments, name } = self;
        Side { trace, classes, segments, name }
    }

    /// How many kernels each class has.
    fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for row in 0..self.trace.kernels.len() {
            *counts.entry(self.classes.get(row).main.name()).or_default() += 1;
        }
        counts
    }
}

fn data(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")).join(name)
}

#[test]
fn both_layouts_are_read_without_a_warning() {
    for (toy, vendor, kernels, launches, ops) in
        [(Toy::nvidia(), Vendor::Nvidia, 82, 85, 162), (Toy::amd(), Vendor::Amd, 70, 73, 150)]
    {
        assert_eq!(toy.trace.vendor(), vendor);
        let tables = [toy.trace.kernels.len(), toy.trace.launches.len(), toy.trace.ops.len()];
        assert_eq!(tables, [kernels, launches, ops], "{}", toy.name);
        assert!(toy.trace.warnings.is_empty(), "{:?}", toy.trace.warnings);
        let strict = Options { strict: true, ..Options::default() };
        let text = std::fs::read(data(toy.name)).unwrap();
        assert_eq!(Trace::from_json(&text, &strict).unwrap(), toy.trace, "{}", toy.name);
    }
}

#[test]
fn every_kernel_has_its_class() {
    let shared = [
        ("ACT", 6),
        ("ATTN", 6),
        ("COPY", 2),
        ("EMBED_INDEX", 2),
        ("GEMM", 26),
        ("KVCACHE", 6),
        ("REDUCE", 2),
        ("ROPE", 6),
    ];
    let (nvidia, amd) = (Toy::nvidia().counts(), Toy::amd().counts());
    for (class, count) in shared {
        assert_eq!((nvidia[class], amd[class]), (count, count), "{class}");
    }
    assert_eq!((nvidia["NORM"], nvidia["ELEMENTWISE"]), (14, 12));
    assert_eq!((amd["NORM"], amd.get("ELEMENTWISE")), (14, None));
    assert_eq!((nvidia.len(), amd.len()), (shared.len() + 2, shared.len() + 1));
}

#[test]
fn steps_have_their_phases() {
    for toy in [Toy::nvidia(), Toy::amd()] {
        let steps = &toy.segments.steps;
        let phases: Vec<_> = steps.list.iter().map(|step| step.phase).collect();
        assert_eq!(phases, [Some(Phase::Prefill), Some(Phase::Decode)], "{}", toy.name);
        let kernels = toy.trace.kernels.len();
        let of = |phase| (0..kernels).filter(|&row| steps.phase(row) == Some(phase)).count();
        assert_eq!([of(Phase::Prefill), of(Phase::Decode)], [kernels / 2; 2], "{}", toy.name);
        assert_eq!(steps.assignments.launch as usize, kernels, "{}", toy.name);
    }
}

#[test]
fn each_step_has_three_layers() {
    for (toy, norms) in [(Toy::nvidia(), 2), (Toy::amd(), 1)] {
        let layers = &toy.segments.layers;
        assert_eq!((layers.count, layers.list.len()), (3, 6), "{}", toy.name);
        assert_eq!(layers.marker, Some(Marker::CacheWrite), "{}", toy.name);
        assert_eq!(layers.modules, Some(("ToyDecoderLayer".to_owned(), 3)), "{}", toy.name);
        // From one cache write to the next: two residual additions with their norms, four GEMMs,
        // and five others. The last layer of a pass lacks the beginning of a next one.
        let whole = layers.patterns.iter().find(|pattern| !pattern.ends_pass).unwrap();
        assert_eq!((whole.count, whole.classes.len()), (4, 8 + 2 * norms), "{}", toy.name);
        let of = |class| whole.classes.iter().filter(|&&one| one == class).count();
        assert_eq!([of(Class::Gemm), of(Class::Norm), of(Class::Attn)], [4, 2, 1], "{}", toy.name);
    }
}

#[test]
fn the_comparison_finds_the_planted_fusion_and_no_other() {
    let (amd, nvidia) = (Toy::amd(), Toy::nvidia());
    let found = Comparison::of(amd.side(), nvidia.side(), &CompareOptions::default()).unwrap();
    assert_eq!((found.first.kernels, found.second.kernels), (70, 82));
    let fused: Vec<_> = found
        .fusions
        .iter()
        .map(|one| (one.fused_by, one.operation.as_str(), one.by, one.separate.join(" ")))
        .collect();
    assert!(!fused.is_empty());
    for one in &fused {
        let planted = (Which::First, "ADD+NORM", FusionEvidence::Name, "ELEMENTWISE NORM".into());
        assert_eq!(*one, planted);
    }
    let count: u64 = found.fusions.iter().map(|one| one.count).sum();
    assert_eq!(count, 12, "{:?}", found.fusions);
    // Nothing else is on one side only.
    let slots = found.layers.kinds.iter().flat_map(|kind| &kind.slots);
    for slot in slots.filter(|slot| slot.fusion.is_none()) {
        assert_eq!(slot.status, SlotStatus::Aligned, "{slot:?}");
    }
    let causes: f64 = found.gap.causes.iter().map(|cause| cause.part.gap_ns).sum();
    assert!((causes - found.gap.gap_ns).abs() < 200.0, "{causes} {}", found.gap.gap_ns);
}

#[test]
fn predicted_against_measured() {
    let folder = data("predicted");
    let model = ModelTrace::load(folder.join("model.json"), None).unwrap();
    let map = OpMap::load(folder.join("op_mapping.yaml"), Rules::Own).unwrap();
    let measured = Measured::load(folder.join("measured.csv"), None, Rules::Own).unwrap();
    let found = Prediction::of(&model, &map, &measured, Passes::new(2), Rules::Own);
    let row = |name: &str| {
        let row = found.rows.iter().find(|row| row.kernel_type == name).unwrap();
        (row.status, row.predicted_us, row.measured_us, row.measured_count)
    };
    assert_eq!(row("MatMulV2"), (Status::Partial, 51.0, 45.0, 2.0));
    assert_eq!(row("SwiGlu"), (Status::Hit, 5.0, 5.25, 1.0));
    // The two rows that start in the same microsecond are one collective.
    assert_eq!(row("hcom_allReduce_"), (Status::Miss, 10.0, 13.0, 1.0));
    assert_eq!(row("RmsNorm"), (Status::Unmodelled, 0.0, 3.0, 1.0));
    assert_eq!(row("toy.rms_norm.default"), (Status::Miss, 4.0, 0.0, 0.0));
    assert_eq!(found.rows.len(), 5);
    assert_eq!(found.zero_cost_events, 1);
    assert_eq!((found.totals.predicted_us, found.totals.measured_us), (70.0, 66.25));
    // 6, 0.25, 3, 3 and 4 microseconds of errors.
    let wmape = found.totals.wmape_pct.unwrap();
    assert!((wmape - 100.0 * 16.25 / 66.25).abs() < 1e-9, "{wmape}");
}
