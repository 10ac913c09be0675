//! The fifth stage: a record of everything that is known about a measured problem.

mod calibration;
mod files;

use fused_kernels::InputSpec;
use fusion_cost_model::calibration::{
    FusionRecord, GpuDetails, MeasuredCeilings, NoiseFloor, Placement, Reason, Timing, Verification,
};
use fusion_cost_model::cost::Traffic;
use fusion_cost_model::{Backend, Clock, Problem};

use crate::digits::rounded;
use crate::judge::{Case, judge, noise_floor, of_clock, throttle};
use crate::measure::{Estimate, Quartiles, SensorRange, Unit};
use crate::plan::Subject;
use crate::run::RunSettings;
use crate::worker::ProcessReport;

pub use calibration::{Run, calibration};
pub use files::Files;

/// What a record is made from, in addition to the reports of its processes.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// How the run was made.
    pub settings: &'a RunSettings,
    /// The A/A runs.
    pub noise: &'a [NoiseFloor],
    /// The machine's ceilings.
    pub ceilings: &'a [MeasuredCeilings],
}

/// Judges a subject and makes its record. That of an A/A run is for its own evaluation: what it
/// says of the unfused and the fused variant are two measurements of the same one.
#[must_use]
pub fn record(
    subject: &Subject,
    processes: &[ProcessReport],
    estimate: &Estimate,
    context: &Context<'_>,
) -> FusionRecord {
    let Context { settings, noise, ceilings } = *context;
    let problem = &subject.problem;
    let variants = subject.comparison.variants();
    let noise = &of_clock(noise, subject.clock)[..];
    let ceilings = |clock| {
        let is_it = |one: &&MeasuredCeilings| (one.dtype, one.clock) == (problem.dtype(), clock);
        ceilings.iter().find(is_it).map(|measured| &measured.ceilings)
    };
    let roofline = ceilings(subject.clock).and_then(|ceilings| ceilings.roofline(problem));
    // A kernel costs a full launch only where it is launched by itself. Behind another one it costs
    // what the device needs for it, which is thus the bound by either clock of a GPU.
    let bound_by = if subject.clock.is_host() { Clock::Host } else { Clock::Device };
    let sensors = sensors(processes);
    let kernels: Vec<_> = processes.iter().map(|report| report.kernels.clone()).collect();
    let wrong = processes.iter().find_map(|report| report.wrong_after.as_ref());
    let judgement = judge(&Case {
        estimate,
        planned_processes: settings.procedure.processes,
        controls: noise,
        ceiling: roofline.map(|time| time.speedup()),
        variants,
        least: ceilings(bound_by).and_then(|ceilings| ceilings.least_time(problem)),
        kernels: &kernels,
        wrong: wrong.map(ToString::to_string).as_deref(),
        clock: subject.clock,
        throttled: &throttle::complaints(
            settings.backend,
            sensors.throttle_reasons.unwrap_or_default(),
        ),
    });

    let traffic = Traffic::of(problem);
    let [unfused, fused] = estimate.seconds;
    let gflops = |time: &Quartiles| {
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let flops = traffic.flops as f64;
        flops / time.median / 1e9
    };
    let iterations = processes.first().map_or([1; 2], |report| report.samples.iterations);
    let timing = |time: &Quartiles, inner_iterations| Timing {
        median_ms: rounded(time.median * 1e3),
        q1_ms: rounded(time.q1 * 1e3),
        q3_ms: rounded(time.q3 * 1e3),
        inner_iterations,
    };
    let ops = problem.chain().ops();
    let [unfused_kernels, fused_kernels] = kernels.into_iter().next().unwrap_or_default();
    FusionRecord {
        problem: *problem,
        fusion_pattern: problem.chain().name(),
        operators: ops.iter().map(|op| op.name().to_owned()).collect(),
        num_operators: count(ops.len()),
        backend: settings.backend,
        dtype: problem.dtype(),
        threads: settings.threads,
        cache_state: settings.cache,
        clock: subject.clock,
        implementation: subject.implementation,
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
        noise_floor: rounded(noise_floor(noise).exp_m1()),
        interval_method: match estimate.unit {
            Unit::Processes => "95 % t interval over processes",
            Unit::Rounds => "95 % t interval over rounds",
        }
        .to_owned(),
        processes: count(estimate.processes),
        rounds: count(estimate.rounds),
        pairs: count(estimate.pairs),
        pairs_kept: count(estimate.pairs_kept),
        sample_ticks: estimate.ticks,
        order_sensitivity: estimate.order_sensitivity.map(|off| rounded(off.exp_m1())),
        unfused_kernels,
        fused_kernel: fused_kernels.join("; "),
        unfused_timing: timing(&unfused, iterations[0]),
        fused_timing: timing(&fused, iterations[1]),
        disturbed: estimate.disturbed,
        placement: placement(processes),
        verification: verification(processes),
        gpu: (settings.backend != Backend::Cpu).then(|| gpu_details(settings, processes, sensors)),
        reasons: judgement
            .reasons
            .iter()
            .map(|reason| Reason { code: reason.code(), text: reason.to_string() })
            .collect(),
    }
}

/// What the device reported in all processes.
fn sensors(processes: &[ProcessReport]) -> SensorRange {
    let reported = processes.iter().filter_map(|report| report.samples.sensors);
    reported.reduce(SensorRange::with).unwrap_or_default()
}

fn gpu_details(
    settings: &RunSettings,
    processes: &[ProcessReport],
    sensors: SensorRange,
) -> GpuDetails {
    let [unfused_kernels, fused_kernels] =
        processes.first().map(|report| report.gpu_kernels.clone()).unwrap_or_default();
    GpuDetails {
        lowest_clock_mhz: sensors.clock_mhz.map(|[lowest, _]| lowest),
        highest_clock_mhz: sensors.clock_mhz.map(|[_, highest]| highest),
        throttle_reasons: sensors
            .throttle_reasons
            .map(|reasons| throttle::names(settings.backend, reasons)),
        unfused_kernels,
        fused_kernels,
    }
}

/// The proof of all processes: the largest errors, and the rows of the most thorough one.
fn verification(processes: &[ProcessReport]) -> Verification {
    let none = Verification {
        reference_rows: 0,
        rows: 0,
        unfused_error: 0.0,
        fused_error: 0.0,
        tolerance: 0.0,
    };
    processes.iter().map(|report| report.verification).fold(none, |all, one| Verification {
        reference_rows: all.reference_rows.max(one.reference_rows),
        rows: one.rows,
        unfused_error: rounded(all.unfused_error.max(one.unfused_error)),
        fused_error: rounded(all.fused_error.max(one.fused_error)),
        tolerance: rounded(one.tolerance),
    })
}

/// Where all processes were: every processor that one of them used, and the smallest share of huge
/// pages.
fn placement(processes: &[ProcessReport]) -> Placement {
    let mut processors: Vec<u32> =
        processes.iter().flat_map(|report| &report.processors).copied().collect();
    processors.sort_unstable();
    processors.dedup();
    let shares = processes.iter().filter_map(|report| report.huge_page_share);
    Placement {
        pinned: !processes.is_empty() && processes.iter().all(|report| report.pinned),
        processors,
        huge_page_share: shares.reduce(f64::min).map(rounded),
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
