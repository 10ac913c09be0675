//! What both sides computed, how fast, and what they waited for.

use kernel_traces::compare::{
    Answer, Headline, IdleComparison, IdleRow, MatchedOperator, MatchedWork, Question,
    RateComparison, RateRow, SameWork, SideRate, WorkAspect,
};
use kernel_traces::idle::Cause as IdleCause;
use kernel_traces::rates::Bound;

use super::US;

/// The same work, by the sizes of all operators.
pub(super) fn same_work() -> SameWork {
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
pub(super) fn rates() -> RateComparison {
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
pub(super) fn idle() -> IdleComparison {
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
