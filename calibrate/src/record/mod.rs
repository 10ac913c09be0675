//! The fifth stage: a record of everything that is known about a measured problem.

mod calibration;
mod extended;
mod files;
mod merged;
mod steps;

use fusion_cost_model::Backend;
use fusion_cost_model::calibration::{
    FusionRecord, GpuDetails, MachineState, MeasuredCeilings, NoiseFloor, Placement, Reason,
    StateSpeedup, Timing, Verification,
};
use fusion_cost_model::cost::{PeakMemory, Traffic};

use crate::digits::rounded;
use crate::judge::{self, Case, controls_for, judge, noise_floor, span, throttle};
use crate::measure::{Estimate, SensorRange, Surroundings, Unit, VariantTime};
use crate::plan::Subject;
use crate::run::{Outcome, RunSettings};
use crate::worker::{Ladder, ProcessReport};

pub use calibration::{Run, calibration, of_nothing};
pub use extended::{extended, why_not_extended};
pub use files::Files;
pub use merged::merged;

/// What a record is made from, in addition to the reports of its processes.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// How the run was made.
    pub settings: &'a RunSettings,
    /// The A/A runs.
    pub noise: &'a [NoiseFloor],
    /// The machine's ceilings.
    pub ceilings: &'a [MeasuredCeilings],
    /// The states that the machine was in.
    pub states: &'a [MachineState],
}

impl<'a> Context<'a> {
    /// What a run left.
    #[must_use]
    pub fn of(settings: &'a RunSettings, outcome: &'a Outcome) -> Self {
        let Outcome { noise, ceilings, machine, .. } = outcome;
        Self { settings, noise, ceilings, states: machine.describe() }
    }
}

/// Judges a subject and makes its record. Of a single op, both variants are the one kernel that was
/// measured against its copy. The record of another A/A run is for its own evaluation: what it says
/// of the unfused and the fused variant are two measurements of the same one.
#[must_use]
pub fn record(
    subject: &Subject,
    processes: &[ProcessReport],
    estimate: &Estimate,
    context: &Context<'_>,
) -> FusionRecord {
    let Context { settings, noise, ceilings, states } = *context;
    let problem = &subject.problem;
    let own_control = judge::control(subject, estimate, settings.backend, settings.threads);
    let of_one_kernel = problem.chain().is_single().then(|| estimate.of_one_kernel());
    let estimate = of_one_kernel.as_ref().unwrap_or(estimate);
    let variants = subject.comparison.variants();
    let noise = &controls_for(noise, subject)[..];
    let kind = (problem.dtype(), settings.cache, subject.clock);
    let is_of_kind = |one: &MeasuredCeilings| (one.dtype, one.cache_state, one.clock) == kind;
    let met = MeasuredCeilings::met(ceilings, is_of_kind, &estimate.states);
    let rooflines = met.filter_map(|ceilings| ceilings.roofline(problem));
    // In the state of the machine in which most is to be gained.
    let roofline = rooflines.max_by(|a, b| a.speedup().total_cmp(&b.speedup()));
    let sensors = sensors(processes);
    let kernels: Vec<_> = processes.iter().map(|report| report.kernels.clone()).collect();
    let ladder = processes.first().map(|report| report.ladder.clone()).unwrap_or_default();
    let wrong = processes.iter().find_map(|report| report.wrong_after.as_ref());
    let surroundings: Vec<Surroundings> =
        processes.iter().map(|report| report.surroundings).collect();
    let least = judge::least_time(subject, estimate, ceilings);
    let judgement = judge(&Case {
        problem: *problem,
        estimate,
        planned_processes: settings.procedure.processes,
        own_control: own_control.as_ref(),
        controls: noise,
        ceiling: roofline.map(|time| time.speedup()),
        variants,
        least: least.as_ref(),
        kernels: &kernels,
        wrong: wrong.map(ToString::to_string).as_deref(),
        clock: subject.clock,
        throttled: &throttle::complaints(
            settings.backend,
            sensors.throttle_reasons.unwrap_or_default(),
        ),
        core: ladder.core,
        failed_cores: &ladder.failed,
        surroundings: &surroundings,
        states,
    });

    let (traffic, peak) = (Traffic::of(problem), PeakMemory::of(problem));
    let scratch = processes.first().map(|report| report.scratch_bytes);
    let [unfused, fused] = estimate.times;
    let gflops = |time: &VariantTime| {
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let flops = traffic.flops as f64;
        flops / time.seconds / 1e9
    };
    let iterations = processes.first().map_or([1; 2], |report| report.samples.iterations);
    let timing = |time: &VariantTime, variant: usize| Timing {
        median_ms: rounded(time.samples.median * 1e3),
        q1_ms: rounded(time.samples.q1 * 1e3),
        q3_ms: rounded(time.samples.q3 * 1e3),
        low_ms: Some(rounded(time.low * 1e3)),
        high_ms: Some(rounded(time.high * 1e3)),
        inner_iterations: iterations[variant],
        process_ms: estimate.by_process.iter().map(|one| rounded(one[variant] * 1e3)).collect(),
    };
    let steps = steps::of(problem, processes);
    let steps = steps::that_can_be(steps, least.as_ref());
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
        rewrite: subject.rewrite,
        unfused_latency_ms: rounded(unfused.seconds * 1e3),
        unfused_memory_bytes: traffic.unfused_bytes,
        unfused_peak_bytes: Some(peak.unfused_bytes),
        unfused_scratch_bytes: scratch.map(|[unfused, _]| unfused),
        unfused_gflops: rounded(gflops(&unfused)),
        fused_latency_ms: rounded(fused.seconds * 1e3),
        fused_memory_bytes: traffic.fused_bytes,
        fused_peak_bytes: Some(peak.fused_bytes),
        fused_scratch_bytes: scratch.map(|[_, fused]| fused),
        fused_gflops: rounded(gflops(&fused)),
        speedup_factor: rounded(estimate.ratio),
        speedup_low: rounded(estimate.low),
        speedup_high: rounded(estimate.high),
        memory_reduction: rounded(traffic.memory_reduction()),
        efficiency_improvement: rounded(estimate.ratio - 1.0),
        ceiling_speedup: roofline.map(|roofline| rounded(roofline.speedup())),
        input_shape: problem.input_shape(),
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
            Unit::Processes if estimate.by_state.is_empty() => "95 % t interval over processes",
            Unit::Processes => "95 % t intervals over processes, over states of the machine",
            Unit::Rounds => "95 % t interval over rounds",
        }
        .to_owned(),
        process_correlation: (estimate.unit == Unit::Processes)
            .then(|| rounded(estimate.correlation)),
        span_s: span(&surroundings).map(rounded),
        states: estimate.states.iter().copied().filter(|state| *state > 0).collect(),
        processes: count(estimate.processes),
        rounds: count(estimate.rounds),
        pairs: count(estimate.pairs),
        pairs_kept: count(estimate.pairs_kept),
        sample_ticks: estimate.ticks,
        order_sensitivity: estimate.order_sensitivity.map(|off| rounded(off.exp_m1())),
        share_outside_steps: steps::share_outside(&steps, rounded(unfused.seconds * 1e3)),
        unfused_kernels,
        fused_kernel: fused_kernels.join("; "),
        unfused_timing: timing(&unfused, 0),
        fused_timing: timing(&fused, 1),
        steps,
        disturbed: estimate.disturbed,
        placement: placement(processes),
        verification: verification(processes),
        gpu: (settings.backend != Backend::Cpu)
            .then(|| gpu_details(settings, processes, sensors, ladder, estimate)),
        by_state: estimate
            .by_state
            .iter()
            .map(|one| StateSpeedup {
                state: one.state,
                processes: count(one.processes),
                speedup_factor: rounded(one.ratio),
                speedup_low: rounded(one.low),
                speedup_high: rounded(one.high),
            })
            .collect(),
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
    Ladder { core, failed: failed_cores, .. }: Ladder,
    estimate: &Estimate,
) -> GpuDetails {
    let [unfused_kernels, fused_kernels] =
        processes.first().map(|report| report.gpu_kernels.clone()).unwrap_or_default();
    GpuDetails {
        core,
        failed_cores,
        lowest_clock_mhz: sensors.clock_mhz.map(|[lowest, _]| lowest),
        highest_clock_mhz: sensors.clock_mhz.map(|[_, highest]| highest),
        device_clock_mhz: sensors.device_clock_mhz,
        clock_changes: estimate.disturbed.clock_change.map(|_| estimate.clock_changes.map(count)),
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
