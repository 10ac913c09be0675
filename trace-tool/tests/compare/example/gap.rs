//! The gap, and its causes.

use kernel_traces::compare::{
    Cause, CauseKind, ClassPart, Gap, OverlapPart, Part, PhasePart, Role, RolePart,
};
use kernel_traces::segment::Phase;

use super::{US, part};

const MS: f64 = 1e6;

fn cause(kind: CauseKind, name: &str, us: [f64; 2], sentence: &str) -> Cause {
    Cause {
        kind,
        name: name.to_owned(),
        index: matches!(kind, CauseKind::Fusion | CauseKind::Implementation).then_some(0),
        part: part([23, 23], us),
        sentence: sentence.to_owned(),
    }
}

pub(super) fn gap() -> Gap {
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
