//! What a record says of shorter chains than its own, whose kernels it ran: of the first op by itself,
//! and of the chain without ops that cost a fused kernel next to nothing.
//!
//! `linear+bias` takes as long fused as `linear+bias+relu` does, and unfused that much less as the
//! `relu` took in its place. Both variants come from the same processes, so that what differs between
//! processes cancels, as it does in a speedup that was measured.

use super::compose::LEAST_LEFT;
use super::hidden;
use super::observation::{Observation, USUAL_SD};
use super::prediction::{Prediction, Uncertain, sd_of_interval};
use crate::calibration::{FusionRecord, StepTime};
use crate::vocabulary::{Chain, Op, OperandKind, Pointwise, Problem};

/// What the first op of a sequence takes in its place beside what it takes by itself: on 113 pairs,
/// the two differed by 0.8 % in the median on one machine and by 6.5 % on another, whose memory moved
/// between two states. The step of another op is as certain.
const SD_IN_PLACE: f64 = 0.03;

/// What the logarithm of a speedup may be off by for each op that is left out: with this and their own
/// intervals, 95 % of 56 records were within two standard deviations, on four machines.
const SD_OF_SPEEDUP: f64 = 0.02;

/// And that of a fused time. Ops that are not quite free are so all in the same direction.
pub(super) const SD_OF_TIME: f64 = 0.03;

/// Where the steps add up to more or less than the unfused variant took by this, in the logarithm, what
/// they leave is not known: of chains of three ops and more in two calibrations, at most 0.18 of that
/// time was outside of its steps.
const MOST_OUTSIDE: f64 = 0.25;

/// Behind a product of little depth a bias can cost a fused kernel as much as it takes by itself: half
/// of that, as a standard deviation (decision 0213).
pub(super) const SD_OF_A_BIAS: f64 = 0.5;

/// Without more ops at a time, what is left out is certain to cost something, and a long chain would be
/// dozens of shorter ones.
const MOST_LEFT_OUT: usize = 3;

pub(super) fn is_bias(op: &Op) -> bool {
    *op == Op::Pointwise(Pointwise::Bias)
}

/// What a record says of shorter chains.
pub(super) fn observations(
    index: usize,
    record: &FusionRecord,
) -> impl Iterator<Item = Observation> + '_ {
    let steps = steps(record).unwrap_or_default();
    let without = (1..steps.len()).flat_map(move |start| {
        let ends = start + 1..=steps.len().min(start + MOST_LEFT_OUT);
        ends.filter_map(move |end| without(index, record, [start, end]))
    });
    first_op(index, record).into_iter().chain(without)
}

/// The times of the kernels of the unfused variant, where they are those of a chain.
fn steps(record: &FusionRecord) -> Option<&[StepTime]> {
    let ops = record.problem.chain().ops();
    let is_a_time = |step: &StepTime| {
        let [low, high] = ends(step);
        0.0 < low && low <= step.ms && step.ms <= high && high.is_finite()
    };
    let belongs = |(step, op): (&StepTime, &Op)| step.op == op.name() && is_a_time(step);
    let is_whole = record.steps.len() == ops.len() && ops.len() > 1;
    (is_whole && record.steps.iter().zip(ops).all(belongs)).then_some(&record.steps)
}

/// The ends of the interval of a time; without one, both are the time itself.
fn ends(step: &StepTime) -> [f64; 2] {
    [step.low_ms, step.high_ms].map(|end| end.unwrap_or(step.ms))
}

/// The first op by itself, which no other kernel of the unfused variant comes before.
fn first_op(index: usize, record: &FusionRecord) -> Option<Observation> {
    let step = steps(record)?.first()?;
    let [low, high] = ends(step);
    let has_interval = step.low_ms.is_some() && step.high_ms.is_some();
    let sd = if has_interval { sd_of_interval(low, high) } else { USUAL_SD };
    let ln_fused = Uncertain { value: step.ms.ln(), sd: sd.hypot(SD_IN_PLACE) };
    let problem = record.problem.slice(0..1)?;
    Some(Observation { record: index, problem, is_timed: true, ln_fused, ln_speedup: None })
}

/// The chain without some ops, where they are free and it is a product with at least one op behind it.
fn without(index: usize, record: &FusionRecord, left_out: [usize; 2]) -> Option<Observation> {
    let [start, end] = left_out;
    let ops = record.problem.chain().ops();
    let steps = steps(record)?;
    let others = ops.len() - (end - start);
    if !is_product(ops[0]) || others < 2 || !ops[start..end].iter().all(|op| is_free(*op)) {
        return None;
    }
    // Without the run one op further on, the chain is the same.
    if ops.get(end) == Some(&ops[start]) {
        return None;
    }
    let mut kept = [Op::Linear; Chain::MAX_OPS];
    kept[..start].copy_from_slice(&ops[..start]);
    kept[start..others].copy_from_slice(&ops[end..]);
    let chain = Chain::new(&kept[..others]).ok()?;
    let problem = Problem::new(chain, record.problem.dtype(), *record.problem.sizes()).ok()?;
    let ms = |steps: &[StepTime]| steps.iter().map(|step| step.ms).sum::<f64>();
    let share = ms(&steps[start..end]) / ms(steps);
    let is_whole = (ms(steps) / record.unfused_latency_ms).ln().abs() < MOST_OUTSIDE;
    let left = 1.0 - share;
    if left < LEAST_LEFT || !is_whole {
        return None;
    }
    // A time without an interval is as uncertain as times usually are.
    let Prediction { ln_fused, ln_speedup, .. } = Observation::of(index, record).prediction();
    #[expect(clippy::cast_precision_loss, reason = "a count of ops")]
    let count = (end - start) as f64;
    // What is left of the unfused time is off by as much as what was taken away.
    let of_steps = SD_IN_PLACE * share / left;
    let left_out = steps[start..end].iter().zip(&ops[start..end]);
    let biases: f64 = left_out.filter(|(_, op)| is_bias(op)).map(|(step, _)| step.ms).sum();
    let of_ops = SD_OF_SPEEDUP * count + SD_OF_A_BIAS * biases / ms(steps);
    let of_time = SD_OF_TIME * count + SD_OF_A_BIAS * biases / record.fused_latency_ms;
    Some(Observation {
        record: index,
        problem,
        is_timed: false,
        ln_fused: Uncertain { sd: ln_fused.sd.hypot(of_time), ..ln_fused },
        ln_speedup: Some(Uncertain {
            value: ln_speedup.value + left.ln(),
            sd: ln_speedup.sd.hypot(of_steps).hypot(of_ops),
        }),
    })
}

fn is_product(op: Op) -> bool {
    matches!(op, Op::Linear | Op::Conv2d | Op::Qk | Op::Pv)
}

/// Whether a chain is a product with at least one op behind it.
pub(super) fn has_a_tail(ops: &[Op]) -> bool {
    ops.len() > 1 && is_product(ops[0])
}

/// Whether an op costs next to nothing behind a product: it reads no tensor, and computes no function.
fn is_free(op: Op) -> bool {
    reads_little(op) && hidden::functions(op) == 0.0
}

/// Whether an op reads no tensor, and stores what was stored without it.
pub(super) fn reads_little(op: Op) -> bool {
    let is_little =
        |kind| matches!(kind, OperandKind::PerChannel | OperandKind::Scalar | OperandKind::Random);
    op.is_pointwise()
        && op != Op::Pointwise(Pointwise::Requantize)
        && op.operands().iter().all(|operand| is_little(operand.kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::HardwareCalibration;

    /// A record of a chain at a size, whose kernels take these times one after the other, and whose
    /// fused kernel takes a half of all of them.
    fn record(problem: &str, steps: &[f64]) -> FusionRecord {
        let text = include_str!("../../tests/data/example.toml");
        let example = HardwareCalibration::from_toml(text).unwrap();
        let mut record = example.records[0].clone();
        record.problem = problem.parse().unwrap();
        let ops = record.problem.chain().ops();
        let step = |(op, ms): (&Op, &f64)| StepTime {
            op: op.name().to_owned(),
            ms: *ms,
            low_ms: None,
            high_ms: None,
        };
        record.steps = ops.iter().zip(steps).map(step).collect();
        record.unfused_latency_ms = steps.iter().sum();
        record.fused_latency_ms = record.unfused_latency_ms / 2.0;
        record.speedup_factor = 2.0;
        (record.speedup_low, record.speedup_high) = (1.96, 2.04);
        record
    }

    /// The chains that a record tells of, with their speedups, in their order.
    fn told(record: &FusionRecord) -> Vec<(String, f64)> {
        let of = |one: Observation| {
            let speedup = one.ln_speedup.map_or(1.0, |speedup| speedup.value.exp());
            (one.problem.chain().to_string(), speedup)
        };
        observations(7, record).map(of).collect()
    }

    #[test]
    fn a_chain_without_its_free_ops() {
        let record = record("linear_bias_relu/f32/m8.k16.n4", &[8.0, 1.0, 1.0]);
        let expected = [("linear", 1.0), ("linear+relu", 1.8), ("linear+bias", 1.8)];
        let told = told(&record);
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for ((chain, speedup), (name, of_it)) in told.iter().zip(expected) {
            assert_eq!(chain, name);
            assert!((speedup - of_it).abs() < 1e-12, "{chain}: {speedup}");
        }
        let shorter = observations(7, &record).last().unwrap();
        assert!((shorter.ln_fused.value.exp() - 5.0).abs() < 1e-12);
        assert_eq!(shorter.record, 7);
        assert_eq!(shorter.problem.to_string(), "linear_bias/f32/m8.k16.n4");
        let own = Observation::of(7, &record).ln_speedup.unwrap();
        assert!(shorter.ln_speedup.unwrap().sd > own.sd && !shorter.is_timed);
        let mut vague = record.clone();
        (vague.fused_timing.low_ms, vague.fused_timing.high_ms) = (None, None);
        let sd = observations(7, &vague).last().unwrap().ln_fused.sd;
        assert!((sd - USUAL_SD.hypot(SD_OF_TIME)).abs() < 1e-12, "{sd}");
    }

    /// Measured of 1001 x 37 x 129: without its bias, the chain gained 1.00 instead of the 0.93 that a
    /// bias without cost would leave, and took 35.6 us instead of 41.5.
    #[test]
    fn a_bias_may_cost_what_it_takes_by_itself() {
        let mut record = record("linear_bias_gelu/f32/m1001.k37.n129", &[27.6, 6.8, 11.0]);
        (record.unfused_latency_ms, record.fused_latency_ms) = (45.4, 41.5);
        record.speedup_factor = 45.4 / 41.5;
        let told = observations(0, &record).last().unwrap();
        assert_eq!(told.problem.chain().to_string(), "linear+gelu");
        let speedup = told.ln_speedup.unwrap();
        assert!(1.002_f64.ln() < speedup.value + 2.0 * speedup.sd, "{speedup:?}");
        assert!(35.6_f64.ln() > told.ln_fused.value - 2.0 * told.ln_fused.sd, "{told:?}");
    }

    #[test]
    fn of_a_long_chain_a_few_ops_are_left_out() {
        let told = |ops: &str| {
            let record = record(&format!("linear+{ops}/f32/m8.k16.n4"), &[1.0; Chain::MAX_OPS]);
            let others = observations(0, &record).skip(1);
            others.map(|one| one.problem.chain().len()).collect::<Vec<_>>()
        };
        let different = told(&["bias", "relu", "scale", "relu6"].repeat(3)[1..].join("+"));
        assert_eq!(different.iter().min(), Some(&(Chain::MAX_OPS - MOST_LEFT_OUT)));
        assert_eq!(different.len(), 11 + 10 + 9);
        // Each shorter chain once.
        assert_eq!(told(&["relu"; Chain::MAX_OPS - 1].join("+")), [9, 10, 11]);
    }

    #[test]
    fn ops_that_cost_something_stay() {
        for (problem, steps, expected) in [
            ("linear_bias_gelu/f32/m8.k16.n4", 3, vec!["linear", "linear+gelu"]),
            ("linear+add+relu/f32/m8.k16.n4", 3, vec!["linear", "linear+add"]),
            ("linear+bias+dropout/f32/m8.k16.n4", 3, vec!["linear", "linear+dropout"]),
            ("linear+bias+requantize/i8/m8.k16.n4", 3, vec!["linear", "linear+requantize"]),
            ("linear+bias/f32/m8.k16.n4", 2, vec!["linear"]),
            // Pointwise ops by themselves may be as fast as their arithmetic allows.
            ("mul_add_relu/f32/m8.n4", 3, vec!["mul"]),
            (
                "conv_bn_relu_maxpool/f32/n1.c3.h8.w8.k4.r3.s3",
                4,
                vec![
                    "conv2d",
                    "conv2d+relu+max_pool",
                    "conv2d+max_pool",
                    "conv2d+batch_norm+max_pool",
                ],
            ),
            ("qk+scale+softmax+pv/f32/b1.h2.q8.d4", 4, vec!["qk", "qk+softmax+pv"]),
        ] {
            let record = record(problem, &vec![1.0; steps]);
            let told = told(&record);
            let chains: Vec<&str> = told.iter().map(|(chain, _)| chain.as_str()).collect();
            assert_eq!(chains, expected, "{problem}");
        }
    }

    #[test]
    fn steps_that_are_not_those_of_the_chain_say_nothing() {
        let right = record("linear_bias_relu/f32/m8.k16.n4", &[8.0, 1.0, 1.0]);
        let wrong: [fn(&mut FusionRecord); 5] = [
            |record| record.steps.truncate(2),
            |record| record.steps[2].op = "gelu".to_owned(),
            |record| record.steps[1].ms = f64::NAN,
            |record| record.steps[1].ms = 0.0,
            |record| record.steps[2].high_ms = Some(0.5),
        ];
        for change in wrong {
            let mut record = right.clone();
            change(&mut record);
            assert_eq!(told(&record), []);
        }
        assert_eq!(told(&record("relu/f32/m8.n4", &[1.0])), []);
        // Nothing is left of a sum that is the free ops'.
        let hollow = told(&record("linear_bias_relu/f32/m8.k16.n4", &[1e-30, 1e-30, 1.0]));
        let chains: Vec<&str> = hollow.iter().map(|(chain, _)| chain.as_str()).collect();
        assert_eq!(chains, ["linear", "linear+relu"]);
        let mut waits = right;
        waits.unfused_latency_ms *= 1.5;
        assert_eq!(told(&waits).len(), 1);
    }
}
