//! The fifth stage: a record of everything that is known about a measured problem.

use fused_kernels::{InputSpec, Prepared, Variant};
use fusion_cost_model::calibration::{FusionRecord, Timing, Verification};
use fusion_cost_model::cost::{RooflineTime, Traffic};
use fusion_cost_model::{Backend, CacheState, Problem};

use crate::judge::{Judgement, LEAST_FLOOR};
use crate::measure::{Estimate, Measurement, Quartiles};

/// What a record is made of, beside the problem itself.
pub struct Evidence<'a> {
    /// Where it ran.
    pub backend: Backend,
    /// On how many threads.
    pub threads: u32,
    /// The kernels.
    pub prepared: &'a dyn Prepared,
    /// The samples.
    pub measurement: &'a Measurement,
    /// What they say.
    pub estimate: &'a Estimate,
    /// What that means.
    pub judgement: &'a Judgement,
    /// The noise floor that it was judged by, in the logarithm.
    pub floor: f64,
    /// The proof.
    pub verification: Verification,
    /// The roofline on the machine's limits.
    pub roofline: Option<RooflineTime>,
}

/// Digits that are kept of measured numbers: more than any measurement has, few enough to read.
const SIGNIFICANT_DIGITS: usize = 6;

/// Rounds to six significant digits.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // Through text, so that the result is the number that is nearest to its decimal digits.
    let digits = SIGNIFICANT_DIGITS - 1;
    format!("{value:.digits$e}").parse().unwrap_or(value)
}

/// Makes the record.
#[must_use]
pub fn record(problem: &Problem, evidence: &Evidence<'_>) -> FusionRecord {
    let Evidence { backend, threads, prepared, measurement, estimate, judgement, .. } = *evidence;
    let roofline = evidence.roofline;
    let traffic = Traffic::of(problem);
    let [unfused, fused] = estimate.seconds;
    let gflops = |time: &Quartiles| {
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let flops = traffic.flops as f64;
        flops / time.median / 1e9
    };
    let timing = |time: &Quartiles, iterations| Timing {
        median_ms: rounded(time.median * 1e3),
        q1_ms: rounded(time.q1 * 1e3),
        q3_ms: rounded(time.q3 * 1e3),
        inner_iterations: iterations,
    };
    let ops = problem.chain().ops();
    FusionRecord {
        problem: *problem,
        fusion_pattern: problem.chain().name(),
        operators: ops.iter().map(|op| op.name().to_owned()).collect(),
        num_operators: count(ops.len()),
        backend,
        dtype: problem.dtype(),
        threads,
        cache_state: CacheState::Warm,
        implementation: FusionRecord::NATIVE.to_owned(),
        unfused_latency_ms: rounded(unfused.median * 1e3),
        unfused_memory_bytes: traffic.unfused_bytes,
        unfused_gflops: rounded(gflops(&unfused)),
        fused_latency_ms: rounded(fused.median * 1e3),
        fused_memory_bytes: traffic.fused_bytes,
        fused_gflops: rounded(gflops(&fused)),
        speedup_factor: rounded(estimate.ratio),
        speedup_low: rounded(estimate.low),
        speedup_high: rounded(estimate.high),
        memory_reduction: rounded(traffic.memory_reduction()),
        efficiency_improvement: rounded(unfused.median / fused.median - 1.0),
        ceiling_speedup: roofline.map(|roofline| rounded(roofline.speedup())),
        input_shape: input_shape(problem),
        extra_params: problem
            .sizes()
            .iter()
            .map(|(key, value)| (key.key.to_owned(), value))
            .collect(),
        bottleneck_unfused: roofline.map(|roofline| roofline.unfused_bottleneck),
        bottleneck_fused: roofline.map(|roofline| roofline.fused_bottleneck),
        arithmetic_intensity_unfused: rounded(traffic.unfused_intensity()),
        arithmetic_intensity_fused: rounded(traffic.fused_intensity()),
        verdict: judgement.verdict,
        noise_floor: rounded(evidence.floor.max(LEAST_FLOOR.ln_1p()).exp_m1()),
        reasons: judgement.reasons.iter().map(ToString::to_string).collect(),
        interval_method: "95 % t interval over rounds of one process".to_owned(),
        launches: 1,
        rounds: count(measurement.rounds.len()),
        pairs: count(estimate.pairs),
        pairs_kept: count(estimate.pairs_kept),
        unfused_kernels: prepared.kernels(Variant::Unfused),
        fused_kernel: prepared.kernels(Variant::Fused).join("; "),
        unfused_timing: timing(&unfused, measurement.iterations[0]),
        fused_timing: timing(&fused, measurement.iterations[1]),
        verification: Verification {
            unfused_error: rounded(evidence.verification.unfused_error),
            fused_error: rounded(evidence.verification.fused_error),
            tolerance: rounded(evidence.verification.tolerance),
            ..evidence.verification
        },
    }
}

fn count(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The shape of the first input as frameworks write it: NCHW for an image, one axis per batch,
/// head, query and feature for attention, rows and columns for everything else.
fn input_shape(problem: &Problem) -> Vec<u64> {
    let sizes = problem.sizes();
    let shape = InputSpec::of(problem)[0].shape;
    if let Some(conv) = sizes.conv() {
        vec![conv.n, conv.c, conv.h, conv.w]
    } else if let Some(attention) = sizes.attention() {
        vec![attention.b, attention.h, attention.q, shape.cols]
    } else {
        vec![shape.rows, shape.cols]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_six_digits() {
        assert_eq!(rounded(1.234_567_89), 1.234_57);
        assert_eq!(rounded(0.000_123_456_789), 0.000_123_457);
        assert_eq!(rounded(123_456_789.0), 123_457_000.0);
        assert_eq!(rounded(0.0), 0.0);
        assert_eq!(rounded(f64::INFINITY), f64::INFINITY);
    }

    #[test]
    fn the_first_input_has_the_axes_of_frameworks() {
        for (text, shape) in [
            ("linear_bias/f32/m2.k3.n4", vec![2, 3]),
            ("conv_bn/f32/n1.c3.h8.w9.k4.r3.s3", vec![1, 3, 8, 9]),
            ("attention_head/f32/b1.h2.q3.kv4.d5", vec![1, 2, 3, 5]),
            ("attention_output/f32/b1.h2.q3.kv4.d5", vec![1, 2, 3, 4]),
            ("add_relu/f32/m6.n7", vec![6, 7]),
        ] {
            assert_eq!(input_shape(&text.parse().unwrap()), shape, "{text}");
        }
    }
}
