//! Arithmetic that the time of an op by itself does not show.
//!
//! An elementwise op by itself waits for memory, and its arithmetic goes on meanwhile. In a GEMM, which
//! waits for none, the same arithmetic takes a time of its own: a GELU by itself takes as long as a ReLU,
//! and behind a product of 64 terms the one takes a quarter of the GEMM and the other next to
//! nothing. So a chain that is composed by exchanging ops may be off by what one of them waits longer
//! than the other. That is less than the time of either, and than the difference of their arithmetic.

use crate::vocabulary::{Op, Pointwise, Problem, Step};

/// What an `exp`, `tanh` or `erf` of a number takes, or a random number, where one multiply-add takes
/// two: a GELU behind a GEMM of the CPU takes as long as 20 terms of each sum.
const FLOPS_OF_A_FUNCTION: f64 = 40.0;

/// How much of the hidden arithmetic a fused kernel shows is not known: anything from none to all, which
/// is within two of these.
const SD_OF_A_SHARE: f64 = 0.5;

/// An op, or some, as a part of a chain.
pub(super) struct Exchanged<'a> {
    pub(super) problem: &'a Problem,
    /// What it takes by itself.
    pub(super) ms: f64,
}

/// What the fused time of a chain may be off by, relative to itself: one standard deviation. It is
/// composed of that of another chain, with some ops in place of others, and has a rate of arithmetic
/// in flops per millisecond.
pub(super) fn sd(
    wanted: &Problem,
    fused_ms: f64,
    flops_per_ms: f64,
    [new, old]: [Exchanged<'_>; 2],
) -> f64 {
    let ms = |problem: &Problem| arithmetic(problem) / flops_per_ms;
    let hidden_ms = (ms(new.problem) - ms(old.problem)).abs().min(new.ms).min(old.ms);
    // A kernel that waits for memory hides it as well.
    let exposed = (ms(wanted) / fused_ms).min(1.0);
    SD_OF_A_SHARE * exposed * hidden_ms / fused_ms
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

    /// On a machine that computes 1e8 flops in a millisecond, and on which an op by itself takes
    /// `ms`.
    fn of_exchange(depth: u64, new: &str, old: &str, ms: f64) -> f64 {
        let wanted = problem(&format!("linear+bias+{new}/f32/m1000.k{depth}.n1000"));
        let fused_ms = arithmetic(&wanted) / 1e8;
        let parts = [new, old].map(|op| problem(&format!("{op}/f32/m1000.n1000")));
        sd(&wanted, fused_ms, 1e8, [0, 1].map(|part| Exchanged { problem: &parts[part], ms }))
    }

    #[test]
    fn a_function_counts_where_the_rest_is_little() {
        assert!(of_exchange(64, "gelu", "relu", 1.0) > 0.08);
        assert!(of_exchange(4096, "gelu", "relu", 1.0) < 0.004);
        assert!(of_exchange(64, "gelu", "tanh", 1.0) < 0.02);
        assert_eq!(of_exchange(64, "relu6", "relu", 1.0), 0.0);
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
            let parts = [&new, &old].map(|problem| Exchanged { problem, ms: 1.0 });
            sd(&wanted, times * alone, 1e8, parts)
        });
        assert!((16.0 * waits / computes - 1.0).abs() < 1e-12, "{waits} {computes}");
    }
}
