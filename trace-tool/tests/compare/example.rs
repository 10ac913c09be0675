//! A small comparison made by hand, whose parts add up.

use fusion_cost_model::calibration::HardwareCalibration;
use kernel_traces::compare::{
    Amount, Answer, Basis, Cause, CauseKind, ClassPart, CompareWarning, Comparison, Fusion,
    FusionEvidence, FusionRecords, Gap, Headline, IdleComparison, IdleRow,
    ImplementationDifference, ImplementationKind, KernelRow, LayerComparison, LayerKind,
    LayerNumber, MatchedOperator, MatchedWork, OverlapPart, Part, PhasePart, Question,
    RateComparison, RateRow, Ratio, Role, RolePart, SameKernel, SameWork, Severity, SideRate,
    SideSummary, Slot, SlotKernel, SlotStatus, Which, WorkAspect, WorkRate, fusion_records,
};
use kernel_traces::idle::Cause as IdleCause;
use kernel_traces::rates::Bound;
use kernel_traces::segment::{Marker, Phase};
use trace_tool::report::CompareReport;

const US: f64 = 1e3;
const MS: f64 = 1e6;

/// Ten passes on the first side, twenty on the second.
const STEPS: [u64; 2] = [10, 20];

/// What a step has of something: kernels and microseconds on both sides.
pub(super) fn part(kernels: [u64; 2], us: [f64; 2]) -> Part {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
    let amount = |side: usize| {
        let total_ns = (us[side] * US) as u64 * STEPS[side];
        Amount { count: kernels[side] * STEPS[side], total_ns, own_ns: total_ns }
    };
    Part {
        first_amount: amount(0),
        second_amount: amount(1),
        first_ns: us[0] * US,
        second_ns: us[1] * US,
        gap_ns: (us[0] - us[1]) * US,
    }
}

pub(super) fn side(label: &str, vendor: &'static str, steps: f64, step_ms: u64) -> SideSummary {
    SideSummary {
        label: label.to_owned(),
        name: format!("{}.json.gz", label.to_lowercase()),
        vendor,
        gpu: format!("{vendor} {label}"),
        device: 0,
        kernels: 2_600,
        total_ns: step_ms * 9_000_000,
        span_ns: step_ms * 10_000_000,
        busy_ns: step_ms * 9_000_000,
        idle_ns: step_ms * 1_000_000,
        marked_steps: 0,
        steps,
        layers: 24,
        marker: Some(Marker::CacheWrite),
        family: "dense",
        covered_share: 0.987,
        by_class_share: 0.012,
        unclassified_share: 0.004,
    }
}

pub(super) fn kernel(class: &str, name: &str, mean_us: f64) -> SlotKernel {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
    let [min_ns, max_ns] = [0.9, 1.2].map(|times| (mean_us * US * times) as u64);
    SlotKernel {
        class: class.to_owned(),
        kernel: name.to_owned(),
        names: 1,
        count: 230,
        mean_ns: mean_us * US,
        deviation_ns: Some(0.04 * mean_us * US),
        min_ns,
        max_ns,
    }
}

/// A slot of all 23 layers of a kind.
pub(super) fn slot(role: Role, first: Option<SlotKernel>, second: Option<SlotKernel>) -> Slot {
    let mean = |kernel: &Option<SlotKernel>| kernel.as_ref().map_or(0.0, |one| one.mean_ns / US);
    let kernels = |kernel: &Option<SlotKernel>| u64::from(kernel.is_some()) * 23;
    let ratio = first.is_some() && second.is_some();
    let value = mean(&first) / mean(&second);
    Slot {
        slot: 0,
        role,
        status: match (&first, &second) {
            (Some(_), None) => SlotStatus::FirstOnly,
            (None, _) => SlotStatus::SecondOnly,
            _ => SlotStatus::Aligned,
        },
        part: part(
            [kernels(&first), kernels(&second)],
            [23.0 * mean(&first), 23.0 * mean(&second)],
        ),
        ratio: ratio.then_some(Ratio { value, interval: Some((0.98 * value, 1.02 * value)) }),
        first,
        second,
        fusion: None,
        implementation: None,
    }
}

fn slots() -> Vec<Slot> {
    let both = |role, class: &str, names: [&str; 2], us: [f64; 2]| {
        slot(role, Some(kernel(class, names[0], us[0])), Some(kernel(class, names[1], us[1])))
    };
    let mut slots = vec![
        both(
            Role::Attention,
            "KVCACHE",
            ["reshape_and_cache_kernel", "reshape_and_cache_flash_kernel"],
            [12.0, 9.0],
        ),
        both(
            Role::Attention,
            "ATTN",
            ["kernel_unified_attention_2d", "flash_fwd_splitkv_kernel"],
            [180.0, 120.0],
        ),
        slot(Role::Attention, None, Some(kernel("ATTN", "flash_fwd_splitkv_combine_kernel", 20.0))),
        both(
            Role::Out,
            "GEMM",
            ["Cijk_Ailk_Bljk_BBS_BH_MT128x128x64", "nvjet_tst_128x256_64x4_h_bz_coopA_TNT"],
            [100.0, 90.0],
        ),
        slot(Role::FeedForwardNorm, Some(kernel("ELEMENTWISE", "vectorized_add", 30.0)), None),
        slot(
            Role::FeedForwardNorm,
            Some(kernel("NORM", "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*)", 40.0)),
            Some(kernel(
                "ADD+NORM",
                "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16 const*, float, int, int)",
                25.0,
            )),
        ),
        both(Role::GateUp, "GEMM", ["Cijk_Alik_Bljk_up", "nvjet_tst_up"], [310.0, 200.0]),
        both(Role::Activation, "ACT", ["act_and_mul_kernel", "act_and_mul_kernel"], [22.0, 20.0]),
    ];
    for (at, slot) in slots.iter_mut().enumerate() {
        slot.slot = at;
    }
    slots[2].implementation = Some(0);
    slots[4].fusion = Some(0);
    slots[5].fusion = Some(0);
    slots[7].status = SlotStatus::Moved;
    slots
}

fn cause(kind: CauseKind, name: &str, us: [f64; 2], sentence: &str) -> Cause {
    Cause {
        kind,
        name: name.to_owned(),
        index: matches!(kind, CauseKind::Fusion | CauseKind::Implementation).then_some(0),
        part: part([23, 23], us),
        sentence: sentence.to_owned(),
    }
}

fn gap() -> Gap {
    let causes = vec![
        cause(
            CauseKind::Class,
            "GEMM: gate_up",
            [7_130.0, 4_600.0],
            "GEMM in gate_up: MI300X takes 310 us, H100 200 us, 23 times a pass: 2.53 ms longer.",
        ),
        cause(
            CauseKind::Idle,
            "idle",
            [500.0, 1_900.0],
            "Nothing runs for 500 us a pass on MI300X, and for 1.90 ms on H100.",
        ),
        cause(
            CauseKind::Fusion,
            "ADD+NORM: feed_forward_norm",
            [1_610.0, 575.0],
            "H100 fuses ADD+NORM and saves 1.03 ms a pass.",
        ),
        cause(
            CauseKind::Implementation,
            "split attention",
            [0.0, 460.0],
            "H100 runs a combining kernel behind its attention.",
        ),
        cause(CauseKind::Communication, "all_reduce", [200.0, 200.0], "Communication is the same."),
    ];
    let sum = |of: fn(&Part) -> f64| causes.iter().map(|cause| of(&cause.part)).sum::<f64>();
    let (first_ns, second_ns) = (sum(|part| part.first_ns), sum(|part| part.second_ns));
    let class = |class: &str, us| {
        let (part, ratio) = (part([23, 23], us), Some(us[0] / us[1]).filter(|one| one.is_finite()));
        ClassPart { class: class.to_owned(), part, ratio }
    };
    let role = |role, us| RolePart { role, part: part([23, 23], us) };
    Gap {
        first_ns,
        second_ns,
        gap_ns: first_ns - second_ns,
        ratio: Some(first_ns / second_ns),
        classes: vec![
            class("GEMM", [7_130.0, 4_600.0]),
            ClassPart {
                class: "IDLE".to_owned(),
                part: part([0, 0], [500.0, 1_900.0]),
                ratio: None,
            },
            ClassPart {
                class: "NORM".to_owned(),
                part: part([23, 0], [1_610.0, 0.0]),
                ratio: None,
            },
            ClassPart {
                class: "ADD+NORM".to_owned(),
                part: part([0, 23], [0.0, 575.0]),
                ratio: None,
            },
            class("ATTN", [0.0, 460.0]),
            class("COMM", [200.0, 200.0]),
        ],
        roles: vec![
            role(Role::Attention, [0.0, 460.0]),
            role(Role::FeedForwardNorm, [1_610.0, 575.0]),
            role(Role::GateUp, [7_130.0, 4_600.0]),
            role(Role::Outside, [700.0, 2_100.0]),
        ],
        phases: vec![PhasePart {
            phase: Phase::Decode,
            first_steps: 10.0,
            second_steps: 20.0,
            first_ns: Some(9.4 * MS),
            second_ns: None,
        }],
        communication: OverlapPart {
            first_exposed_ns: 200.0 * US,
            first_overlapped_ns: 50.0 * US,
            second_exposed_ns: 200.0 * US,
            second_overlapped_ns: 0.0,
        },
        copies: OverlapPart::default(),
        fills: OverlapPart::default(),
        rounding_ns: 0.0,
        causes,
    }
}

fn layers() -> LayerComparison {
    let slots = slots();
    let sum = |of: fn(&Slot) -> &Option<SlotKernel>| {
        slots.iter().filter_map(|slot| of(slot).as_ref()).map(|one| one.mean_ns).sum::<f64>()
    };
    let (first_mean_ns, second_mean_ns) = (sum(|slot| &slot.first), sum(|slot| &slot.second));
    let kind = |kind: usize, numbers: &str, layers: u64| {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let times = layers as f64 / US;
        LayerKind {
            kind,
            phase: (kind == 0).then_some(Phase::Decode),
            is_backward: false,
            is_outside: numbers.is_empty(),
            numbers: numbers.to_owned(),
            first_layers: layers * STEPS[0],
            second_layers: layers * STEPS[1],
            first_mean_ns,
            second_mean_ns,
            part: part([8 * layers, 8 * layers], [first_mean_ns * times, second_mean_ns * times]),
            slots: slots.clone(),
        }
    };
    let number = |layer, second_layers| LayerNumber {
        layer,
        is_backward: false,
        first_layers: STEPS[0],
        second_layers,
        part: part([8, u64::from(second_layers > 0) * 8], [694.0, 484.0]),
    };
    LayerComparison {
        aligned: 24,
        none_because: None,
        kinds: vec![kind(0, "0-22", 23), kind(1, "", 1)],
        numbers: vec![number(0, STEPS[1]), number(1, STEPS[1]), number(2, 0)],
    }
}

/// MI300X against H100.
/// The same work, by the sizes of all operators.
fn same_work() -> SameWork {
    let question = |about, both: &str, evidence: &str| Question {
        about,
        phase: None,
        first: Some(both.to_owned()),
        second: Some(both.to_owned()),
        answer: Answer::Same,
        evidence: evidence.to_owned(),
    };
    SameWork {
        headline: Headline::OfAStep,
        questions: vec![
            question(WorkAspect::Model, "24 layers, dense", "sizes of weights"),
            question(WorkAspect::Tokens, "32", "marks of steps, mean of a step"),
            question(WorkAspect::Dtype, "bf16", "operands"),
        ],
        rates: Vec::new(),
        matched: MatchedWork {
            first_share: 0.61,
            second_share: 0.58,
            ratio: Some(1.25),
            operators: vec![MatchedOperator {
                operator: "mm".to_owned(),
                sizes: "[32x1024, 1024x2816]".to_owned(),
                first_calls: 230,
                second_calls: 460,
                first_mean_ns: 310_000.0,
                second_mean_ns: 200_000.0,
                ratio: Some(1.55),
            }],
        },
    }
}

/// GEMMs that reach a quarter and a half of their rooflines, and attention without peaks.
fn rates() -> RateComparison {
    let side = |us: f64, tflop_per_s: f64, of_roofline: Option<f64>| {
        Some(SideRate {
            step_ns: us * US,
            known_ns: 10_000_000,
            flops: tflop_per_s * 1e10,
            bytes: 1e9,
            tflop_per_s: Some(tflop_per_s),
            gb_per_s: Some(100.0),
            of_peak: of_roofline,
            of_bandwidth: of_roofline.map(|_| 0.02),
            bound: of_roofline.map(|_| Bound::Compute),
            of_roofline,
        })
    };
    RateComparison {
        first_machine: Some("AMD Instinct MI300X".to_owned()),
        second_machine: Some("NVIDIA H100 SXM".to_owned()),
        first_known_share: 0.8,
        second_known_share: 0.7,
        rows: vec![
            RateRow {
                class: "GEMM".to_owned(),
                dtype: Some("bf16"),
                first: side(7_130.0, 325.0, Some(0.25)),
                second: side(4_600.0, 500.0, Some(0.5)),
            },
            RateRow {
                class: "ATTN".to_owned(),
                dtype: Some("bf16"),
                first: side(180.0, 100.0, None),
                second: None,
            },
        ],
    }
}

/// The first side's host is busy.
fn idle() -> IdleComparison {
    let row = |cause, first_us: f64, second_us: f64, doing: Option<&str>| IdleRow {
        cause,
        first_ns: first_us * US,
        second_ns: second_us * US,
        gap_ns: (first_us - second_us) * US,
        first_gaps: 40,
        second_gaps: 60,
        first_doing: doing.map(str::to_owned),
        second_doing: None,
    };
    IdleComparison {
        rows: vec![
            row(IdleCause::Host, 700.0, 100.0, Some("sampler.py(31): forward")),
            row(IdleCause::Queued, 60.0, 90.0, None),
        ],
    }
}

/// The same times of steps with other numbers of tokens.
pub(super) fn of_other_tokens() -> Comparison {
    let mut comparison = comparison();
    let work = &mut comparison.same_work;
    work.headline = Headline::ForAToken;
    work.questions[1].second = Some("64".to_owned());
    work.questions[1].answer = Answer::Different;
    let [first_ns, second_ns] = [comparison.gap.first_ns / 32.0, comparison.gap.second_ns / 64.0];
    work.rates = vec![WorkRate {
        phase: None,
        first_units: 32.0,
        second_units: 64.0,
        first_ns,
        second_ns,
        ratio: first_ns / second_ns,
    }];
    comparison.gap.ratio = None;
    comparison
}

pub(super) fn comparison() -> Comparison {
    let gap = gap();
    let row = |side, kernel: &str, class: &str, us: f64, share| {
        let amount = part([23, 23], [us, us]).first_amount;
        KernelRow {
            side,
            kernel: kernel.to_owned(),
            class: class.to_owned(),
            amount,
            step_ns: us * US,
            share,
        }
    };
    Comparison {
        first: side("MI300X", "AMD", 10.0, 9),
        second: side("H100", "NVIDIA", 20.0, 8),
        phase: None,
        layer: None,
        same_work: same_work(),
        basis: Basis::Layers,
        rates: rates(),
        idle: idle(),
        layers: layers(),
        fusions: vec![Fusion {
            fused_by: Which::Second,
            operation: "ADD+NORM".to_owned(),
            fused_kernel: "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>".to_owned(),
            separate: vec!["ELEMENTWISE".to_owned(), "NORM".to_owned()],
            separate_kernels: vec!["vectorized_add".to_owned(), "rms_norm_kernel".to_owned()],
            role: Role::FeedForwardNorm,
            per_step: 23.0,
            count: 460,
            part: part([46, 23], [1_610.0, 575.0]),
            confidence: 0.95,
            by: FusionEvidence::Name,
            excess: None,
            evidence: "the name of the kernel says that it adds and normalises".to_owned(),
        }],
        implementation: vec![ImplementationDifference {
            kind: ImplementationKind::SplitAttention,
            run_by: Which::Second,
            class: "ATTN".to_owned(),
            role: Role::Attention,
            kernel: "flash_fwd_splitkv_combine_kernel".to_owned(),
            per_step: 23.0,
            part: part([0, 23], [0.0, 460.0]),
            sentence: "H100 brings the parts of its attention together in a kernel of its own."
                .to_owned(),
        }],
        same_kernels: vec![SameKernel {
            kernel: "act_and_mul_kernel".to_owned(),
            class: "ACT".to_owned(),
            part: part([23, 23], [506.0, 460.0]),
            first_mean_ns: 22.0 * US,
            second_mean_ns: 20.0 * US,
            ratio: Ratio { value: 1.1, interval: Some((1.08, 1.12)) },
        }],
        kernels: vec![
            row(Which::First, "Cijk_Alik_Bljk_up", "GEMM", 7_130.0, 0.62),
            row(Which::First, "rms_norm_kernel", "NORM", 1_610.0, 0.2),
            row(Which::Second, "nvjet_tst_up", "GEMM", 4_600.0, 0.55),
        ],
        warnings: vec![
            CompareWarning {
                code: "no-phases",
                severity: Severity::Warning,
                file: Some("mi300x.json.gz".to_owned()),
                message: "no step tells its phase".to_owned(),
                advice: "record with the annotations of the server".to_owned(),
            },
            CompareWarning {
                code: "step-is-a-pass",
                severity: Severity::Info,
                file: None,
                message: "the recordings have 10 and 20 passes".to_owned(),
                advice: String::new(),
            },
        ],
        gap,
    }
}

/// The calibration that the project has of a processor.
pub(super) fn records(comparison: &Comparison) -> Vec<FusionRecords> {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../calibrate/profiles/calibrations/intel-xeon-2-threads.toml"
    );
    let calibration = HardwareCalibration::load(file).unwrap();
    fusion_records(&comparison.fusions, "xeon.toml", &calibration)
}

pub(super) fn report(comparison: &Comparison) -> CompareReport<'_> {
    CompareReport { comparison, records: &[], ranks: [None; 2], top: 10 }
}

#[test]
fn the_causes_add_up() {
    let gap = comparison().gap;
    let sum: f64 = gap.causes.iter().map(|cause| cause.part.gap_ns).sum();
    assert!((sum - gap.gap_ns).abs() < 1.0, "{sum} {}", gap.gap_ns);
}
