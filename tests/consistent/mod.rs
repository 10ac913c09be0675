//! Makes a calibration that a test has changed one that does not contradict itself.

use fusion_cost_model::calibration::{
    FusionRecord, HardwareCalibration, MeasuredCeilings, Reason, ReasonCode, Verdict, Verification,
};
use fusion_cost_model::cost::Traffic;

/// Lets everything that is derived follow from the problem, the fused time, the speedup with its
/// interval and the ceilings.
pub(crate) fn make_consistent(calibration: &mut HardwareCalibration) {
    let ceilings = calibration.ceilings.clone();
    for record in &mut calibration.records {
        let traffic = Traffic::of(&record.problem);
        record.unfused_latency_ms = record.fused_latency_ms * record.speedup_factor;
        record.efficiency_improvement = record.speedup_factor - 1.0;
        let rows = record.problem.steps().last().map_or(0, |step| step.output.rows);
        record.verification.rows = rows;
        record.verification.reference_rows = record.verification.reference_rows.min(rows);
        record.verification.tolerance = Verification::single_precision(&record.problem);
        record.unfused_gflops = traffic.flops as f64 / record.unfused_latency_ms / 1e6;
        record.fused_gflops = traffic.flops as f64 / record.fused_latency_ms / 1e6;
        let of_record = (record.backend, record.dtype, record.threads, record.clock);
        let is_of_kind = |one: &MeasuredCeilings| {
            (one.backend, one.dtype, one.threads, one.clock) == of_record
                && one.cache_state == record.cache_state
        };
        let states = record.states.clone();
        let met = MeasuredCeilings::met(&ceilings, is_of_kind, &states);
        let rooflines = met.filter_map(|ceilings| ceilings.roofline(&record.problem));
        let best = rooflines.max_by(|a, b| a.speedup().total_cmp(&b.speedup()));
        record.ceiling_speedup = best.map(|time| time.speedup());
        record.bottleneck_unfused = best.map(|time| time.unfused_bottleneck);
        record.bottleneck_fused = best.map(|time| time.fused_bottleneck);
        for timing in [&mut record.unfused_timing, &mut record.fused_timing] {
            (timing.low_ms, timing.high_ms) = (None, None);
            timing.process_ms.clear();
        }
        let ends = [record.speedup_low, record.speedup_high];
        record.verdict = Verdict::by_interval(record.speedup_factor, ends, record.noise_floor);
        let limit = record.ceiling_speedup.map(|ceiling| ceiling * FusionRecord::CEILING_MARGIN);
        for (code, is_so) in [
            (ReasonCode::Undecided, record.verdict == Verdict::Ambiguous),
            (ReasonCode::StateChanged, !record.by_state.is_empty()),
            (ReasonCode::AboveCeiling, limit.is_some_and(|limit| record.speedup_factor > limit)),
        ] {
            record.reasons.retain(|reason| reason.code != code);
            if is_so {
                record.reasons.push(Reason { code, text: "changed by a test".to_owned() });
            }
        }
    }
}
