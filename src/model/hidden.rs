//! Arithmetic that the time of an op by itself does not show.
//!
//! An elementwise op by itself waits for memory, and its arithmetic goes on meanwhile. In a GEMM, which
//! waits for none, the same arithmetic takes a time of its own: a GELU by itself takes as long as a ReLU,
//! and behind a product of 64 terms the one takes a quarter of the GEMM and the other next to
//! nothing. So a chain that is composed by exchanging ops takes longer by a share of what one of them
//! computes more than the other: at most all of it, and no more than either takes by itself. How much,
//! is learned from chains that were measured and can be composed as well.

use super::prediction::Uncertain;
use crate::vocabulary::{Op, Pointwise, Problem, Step};

/// What an `exp`, `tanh` or `erf` of a number takes, or a random number, where one multiply-add takes
/// two: a GELU behind a GEMM of the CPU takes as long as 20 terms of each sum.
const FLOPS_OF_A_FUNCTION: f64 = 40.0;

/// How much of the hidden arithmetic a fused kernel shows where nothing was measured: chains behind
/// products showed none of it on one machine of four, 0.6, 1 and 1.5 of it on the others.
const SHOWN: Uncertain = Uncertain { value: 0.75, sd: 0.5 };

/// How much a kernel shows at most of what is counted here, which is arithmetic in round numbers.
const MOST_SHOWN: f64 = 2.0;

/// What the share of one chain differs from that of all by.
const SD_OF_A_CHAIN: f64 = 0.35;

/// An op, or some, as a part of a chain.
pub(super) struct Exchanged<'a> {
    pub(super) problem: &'a Problem,
    /// What it takes by itself.
    pub(super) ms: f64,
}

/// The arithmetic that a chain hides less than the one that it is composed of, in milliseconds at a
/// rate in flops per millisecond, beyond what the times of the ops by themselves differ by; less than
/// nothing where it is the other's. The chain takes `fused_ms`, and has the first ops, which may be none,
/// in place of the others.
pub(super) fn ms(
    wanted: &Problem,
    fused_ms: f64,
    flops_per_ms: f64,
    new: Exchanged<'_>,
    old: Option<Exchanged<'_>>,
) -> f64 {
    let ms = |problem: &Problem| arithmetic(problem) / flops_per_ms;
    let most = old.as_ref().map_or(new.ms, |old| new.ms.min(old.ms));
    let differ_by = ms(new.problem) - old.as_ref().map_or(0.0, |old| ms(old.problem));
    // Arithmetic that takes longer than memory does is seen in the op's own time.
    let seen_ms = old.map_or(0.0, |old| new.ms - old.ms);
    let hidden_ms = differ_by - seen_ms.clamp(differ_by.min(0.0), differ_by.max(0.0));
    // A kernel that waits for memory hides it as well.
    let exposed = (ms(wanted) / fused_ms).min(1.0);
    exposed * hidden_ms.clamp(-most, most)
}

/// A measured chain beside itself as composed without anything hidden.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// The hidden arithmetic, relative to the fused time.
    pub(super) hidden: f64,
    /// What the composed time was short of, in the logarithm, with the standard deviation of its parts.
    pub(super) off: Uncertain,
}

/// The share of hidden arithmetic that another chain shows.
pub(super) fn shown(seen: impl IntoIterator<Item = Seen>) -> Uncertain {
    let (mut weight, mut sum) = (SHOWN.sd.powi(-2), SHOWN.value * SHOWN.sd.powi(-2));
    for Seen { hidden, off } in seen {
        // The share of each chain is off by both.
        let variance = off.sd.powi(2) + (SD_OF_A_CHAIN * hidden).powi(2);
        if variance > 0.0 {
            weight += hidden * hidden / variance;
            sum += hidden * off.value / variance;
        }
    }
    // What was seen of less than nothing is noise, and of more than this it is not arithmetic.
    let value = (sum / weight).clamp(0.0, MOST_SHOWN);
    Uncertain { value, sd: SD_OF_A_CHAIN.hypot(weight.recip().sqrt()) }
}

/// Flops of all ops, and of what counts as one flop and takes as long as many.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn arithmetic(problem: &Problem) -> f64 {
    let of_step = |step: Step| {
        step.flops() as f64
            + functions(step.op) * FLOPS_OF_A_FUNCTION * step.output.elements() as f64
    };
    problem.steps().map(of_step).sum()
}

/// Functions of each element that are computed by polynomials.
pub(super) const fn functions(op: Op) -> f64 {
    match op {
        Op::Softmax => 1.0,
        Op::Pointwise(op) => match op {
            Pointwise::Gelu
            | Pointwise::GeluTanh
            | Pointwise::Sigmoid
            | Pointwise::Silu
            | Pointwise::Tanh
            | Pointwise::Dropout => 1.0,
            Pointwise::Bias
            | Pointwise::BatchNorm
            | Pointwise::Relu
            | Pointwise::Relu6
            | Pointwise::LeakyRelu
            | Pointwise::HardSigmoid
            | Pointwise::HardSwish
            | Pointwise::OnnxHardSigmoid
            | Pointwise::Add
            | Pointwise::Mul
            | Pointwise::Scale
            | Pointwise::Requantize => 0.0,
        },
        Op::Linear | Op::Conv2d | Op::MaxPool | Op::Qk | Op::Pv | Op::LayerNorm | Op::RmsNorm => {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> Problem {
        text.parse().unwrap()
    }

    /// What is hidden of the fused time, on a machine that computes 1e8 flops in a millisecond, and on
    /// which an op by itself takes `ms`.
    fn of_exchange(depth: u64, new: &str, old: &str, ms: f64) -> f64 {
        let wanted = problem(&format!("linear+bias+{new}/f32/m1000.k{depth}.n1000"));
        let fused_ms = arithmetic(&wanted) / 1e8;
        let [new, old] = [new, old].map(|op| problem(&format!("{op}/f32/m1000.n1000")));
        let [new, old] = [&new, &old].map(|problem| Exchanged { problem, ms });
        super::ms(&wanted, fused_ms, 1e8, new, Some(old)) / fused_ms
    }

    #[test]
    fn a_function_counts_where_the_rest_is_little() {
        assert!(of_exchange(64, "gelu", "relu", 1.0) > 0.16);
        assert!(of_exchange(4096, "gelu", "relu", 1.0) < 0.008);
        assert!(of_exchange(64, "gelu", "tanh", 1.0) < 0.04);
        assert_eq!(of_exchange(64, "relu6", "relu", 1.0), 0.0);
        let less = of_exchange(64, "relu", "gelu", 1.0);
        assert!(less < -0.16, "{less}");
    }

    #[test]
    fn no_more_is_hidden_than_an_op_takes() {
        let [long, short, none] = [1.0, 0.01, 0.0].map(|ms| of_exchange(64, "gelu", "relu", ms));
        assert!(short > 0.0 && short < long / 10.0, "{short} {long}");
        assert_eq!(none, 0.0);
    }

    #[test]
    fn what_waits_for_memory_hides_it_too() {
        let [wanted, new, old] =
            ["add+gelu", "gelu", "relu"].map(|chain| problem(&format!("{chain}/f32/m1000.n1000")));
        let alone = arithmetic(&wanted) / 1e8;
        let [waits, computes] = [4.0, 1.0].map(|times| {
            let [new, old] = [&new, &old].map(|problem| Exchanged { problem, ms: 1.0 });
            super::ms(&wanted, times * alone, 1e8, new, Some(old))
        });
        assert!((4.0 * waits / computes - 1.0).abs() < 1e-12, "{waits} {computes}");
    }

    #[test]
    fn an_op_that_takes_no_others_place_hides_its_own() {
        let [wanted, new, old] = [
            "linear+bias+gelu/f32/m1000.k64.n1000",
            "gelu/f32/m1000.n1000",
            "scale/f32/m1000.n1000",
        ]
        .map(problem);
        let [new, old] = [&new, &old].map(|problem| Exchanged { problem, ms: 1.0 });
        let of = |old| super::ms(&wanted, 2.0, 1e8, Exchanged { ..new }, old);
        let (alone, beside_another) = (of(None), of(Some(old)));
        assert!(alone > beside_another && alone < 1.1 * beside_another, "{alone}");
    }

    #[test]
    fn what_an_op_takes_by_itself_is_not_hidden() {
        let wanted = problem("linear+bias+gelu/f32/m1000.k64.n1000");
        let [gelu, relu] = ["gelu", "relu"].map(|op| problem(&format!("{op}/f32/m1000.n1000")));
        let fused_ms = arithmetic(&wanted) / 1e8;
        let of = |gelu_ms: f64, relu_ms: f64| {
            let longer = || Exchanged { problem: &gelu, ms: gelu_ms };
            let shorter = || Exchanged { problem: &relu, ms: relu_ms };
            let hidden = |new, old| super::ms(&wanted, fused_ms, 1e8, new, Some(old));
            [hidden(longer(), shorter()), hidden(shorter(), longer())]
        };
        let whole = (arithmetic(&gelu) - arithmetic(&relu)) / 1e8;
        for (times, expected) in [
            ([1.0, 1.0], whole),
            ([1.1, 1.0], whole - 0.1),
            ([2.0, 1.0], 0.0),
            // That the shorter one takes longer is noise.
            ([1.0, 1.1], whole),
        ] {
            let [more, less] = of(times[0], times[1]);
            assert!((more - expected).abs() < 1e-12, "{times:?}: {more}");
            assert!((less + expected).abs() < 1e-12, "{times:?}: {less}");
        }
    }

    #[test]
    fn the_share_is_that_of_what_was_seen() {
        let seen = |share: f64, hidden: f64, sd: f64| Seen {
            hidden,
            off: Uncertain { value: share * hidden, sd },
        };
        assert!((shown([]).value - SHOWN.value).abs() < 1e-12);
        assert!((shown([]).sd - SD_OF_A_CHAIN.hypot(SHOWN.sd)).abs() < 1e-12);
        for (share, expected) in [(-3.0, 0.0), (9.0, MOST_SHOWN)] {
            assert_eq!(shown([seen(share, 0.2, 0.01); 9]).value, expected);
        }
        // From longer and from shorter chains.
        let many = (0..20).map(|index| seen(1.2, if index % 2 == 0 { 0.2 } else { -0.1 }, 0.01));
        let found = shown(many);
        assert!((found.value - 1.2).abs() < 0.03 && found.sd < 1.1 * SD_OF_A_CHAIN, "{found:?}");
        // Where nothing is hidden, and where times are vague, nothing is to be seen.
        let little = shown([seen(9.0, 0.001, 0.05), seen(9.0, 0.1, 9.0), seen(1.0, 0.0, 0.0)]);
        assert!((little.value - SHOWN.value).abs() < 0.01, "{little:?}");
        // One chain that shows much of a little is not the rule.
        let one = shown([seen(1.0, 0.2, 0.01), seen(1.0, 0.1, 0.01), seen(5.0, 0.02, 0.03)]);
        assert!(one.value < 1.5, "{one:?}");
    }
}
