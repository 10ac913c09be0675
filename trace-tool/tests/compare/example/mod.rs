//! A small comparison made by hand, whose parts add up: MI300X against H100.

mod gap;
mod layers;
mod work;

use fusion_cost_model::calibration::HardwareCalibration;
use kernel_traces::compare::{
    Amount, Answer, Basis, CompareWarning, Comparison, Fusion, FusionEvidence, FusionRecords,
    Headline, ImplementationDifference, ImplementationKind, KernelRow, Part, Question, Ratio, Role,
    SameKernel, Severity, SideSummary, Which, WorkAspect, WorkRate, fusion_records,
};
use kernel_traces::segment::Marker;
pub(super) use layers::{kernel, slot};
use trace_tool::report::CompareReport;

const US: f64 = 1e3;

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

/// The same work, where the first step of one side takes longer.
pub(super) fn of_usual_steps() -> Comparison {
    let mut comparison = comparison();
    let usual_ns = comparison.gap.second_ns;
    comparison.gap.ratio = None;
    let work = &mut comparison.same_work;
    work.headline = Headline::OfUsualSteps;
    work.matched.ratio = None;
    work.questions.push(Question {
        about: WorkAspect::Amount,
        phase: None,
        first: Some("a first step 20 times as long".to_owned()),
        second: None,
        answer: Answer::Different,
        evidence: "first steps beside others with the same work".to_owned(),
    });
    work.rates = vec![WorkRate {
        phase: None,
        first_units: 1.0,
        second_units: 1.0,
        first_ns: usual_ns,
        second_ns: usual_ns,
        ratio: 1.0,
    }];
    comparison
}

pub(super) fn comparison() -> Comparison {
    let gap = gap::gap();
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
        same_work: work::same_work(),
        basis: Basis::Layers,
        rates: work::rates(),
        idle: work::idle(),
        layers: layers::layers(),
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
            problem: None,
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
