//! Calibrations of a Monday, a Tuesday and another machine.

use calibrate::report::CompareReport;
use fusion_cost_model::calibration::{
    FusionRecord, HardwareCalibration, Reason, ReasonCode, Verdict,
};
use fusion_cost_model::compare::{CompareOptions, Comparison, Side, SideTarget};

pub(crate) const EXAMPLE: &str = include_str!("../../../tests/data/example.toml");

/// Problems of every family, each with a speedup and half of its interval in the logarithm.
const RECORDS: [(&str, f64, f64); 12] = [
    ("linear_bias/f32/m512.k512.n512", 1.000, 0.012),
    ("linear_bias/f32/m4096.k64.n256", 1.042, 0.010),
    ("linear_bias_relu/f32/m512.k512.n512", 1.015, 0.021),
    ("linear_bias_relu/f32/m4096.k64.n256", 1.134, 0.012),
    ("mlp/f32/m512.k512.n2048.o512", 0.975, 0.014),
    ("conv_bn_relu/f32/n1.c64.h56.w56.k64.r3.s3.pad1", 1.009, 0.010),
    (
        "conv_bn_relu_maxpool/f32/n1.c3.h224.w224.k64.r7.s7.stride2.pad3.pool3.pstride2.ppad1",
        1.304,
        0.030,
    ),
    ("attention_head/f32/b1.h8.q512.d64", 1.151, 0.050),
    ("add_relu/f32/m4096.n1024", 1.333, 0.011),
    ("add_layernorm/f32/m64.n1024", 1.250, 0.040),
    ("relu/f32/m4096.n1024", 1.0, 0.0),
    ("add/f32/m4096.n1024", 1.0, 0.0),
];

fn record(like: &FusionRecord, (problem, speedup, half): (&str, f64, f64)) -> FusionRecord {
    let mut record = FusionRecord {
        problem: problem.parse().unwrap(),
        unfused_latency_ms: like.fused_latency_ms * speedup,
        speedup_factor: speedup,
        speedup_low: speedup * (-half).exp(),
        speedup_high: speedup * half.exp(),
        processes: 10,
        verdict: Verdict::Ambiguous,
        reasons: Vec::new(),
        ..like.clone()
    };
    if record.problem.chain().is_single() {
        record.verdict = Verdict::Single;
    }
    for (timing, ms) in [
        (&mut record.unfused_timing, record.unfused_latency_ms),
        (&mut record.fused_timing, record.fused_latency_ms),
    ] {
        (timing.low_ms, timing.high_ms) = (Some(ms * 0.98), Some(ms * 1.02));
    }
    record
}

pub(crate) fn monday() -> HardwareCalibration {
    let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    let like = calibration.records[0].clone();
    calibration.records = RECORDS.iter().map(|one| record(&like, *one)).collect();
    calibration
}

fn slower(record: &mut FusionRecord, factor: f64) {
    record.unfused_latency_ms *= factor;
    record.fused_latency_ms *= factor;
    for timing in [&mut record.unfused_timing, &mut record.fused_timing] {
        timing.low_ms = timing.low_ms.map(|ms| ms * factor);
        timing.high_ms = timing.high_ms.map(|ms| ms * factor);
    }
}

/// The same machine later: everything takes 3 % longer, one record 30 %, and one gains less.
pub(crate) fn tuesday() -> HardwareCalibration {
    let mut calibration = monday();
    calibration.fingerprint.microcode = Some("0x2".to_owned());
    "2026-11-22T03:59:25Z".clone_into(&mut calibration.tool.started_at);
    for record in &mut calibration.records {
        slower(record, 1.03);
    }
    slower(&mut calibration.records[5], 1.3);
    let like = calibration.records[0].clone();
    calibration.records[8] = record(&like, ("add_relu/f32/m4096.n1024", 1.2, 0.011));
    calibration
}

/// Another machine, where fusion gains more of what moves bytes.
pub(crate) fn other() -> HardwareCalibration {
    let mut calibration = monday();
    "AMD EPYC 9654".clone_into(&mut calibration.hardware.name);
    "AMD EPYC 9654 96-Core Processor".clone_into(&mut calibration.fingerprint.cpu_model);
    for ceilings in &mut calibration.ceilings {
        ceilings.ceilings.peak_gflops *= 3.0;
    }
    for (index, record) in calibration.records.iter_mut().enumerate() {
        slower(record, 0.6);
        let factor = if matches!(index, 3 | 8) { 1.1 } else { 1.002 };
        if !record.problem.chain().is_single() {
            record.speedup_factor *= factor;
            record.speedup_low *= factor;
            record.speedup_high *= factor;
            record.ceiling_speedup = record.ceiling_speedup.map(|ceiling| ceiling * factor);
        }
    }
    let disturbed = &mut calibration.records[7];
    disturbed.verdict = Verdict::Invalid;
    let text = "made up".to_owned();
    disturbed.reasons = vec![Reason { code: ReasonCode::MostlyDisturbed, text }];
    calibration.records.remove(9);
    let mut of_one_thread = calibration.records[0].clone();
    of_one_thread.threads = 1;
    calibration.records.push(of_one_thread);
    calibration
}

fn side(label: &str, calibration: &HardwareCalibration) -> Side {
    let target = SideTarget::of(&calibration.records[0]);
    Side::of(label, format!("{}.toml", label.to_lowercase()), calibration, target)
}

pub(crate) fn compare(first: &HardwareCalibration, others: &[&HardwareCalibration]) -> Comparison {
    let others = others.iter().zip(["B", "C"]).map(|(one, label)| side(label, one));
    let options = CompareOptions { threshold: 1.2, ..CompareOptions::default() };
    Comparison::of(&side("A", first), &others.collect::<Vec<_>>(), &options)
}

pub(crate) fn report(comparison: &Comparison) -> CompareReport<'_> {
    CompareReport { comparison, top: 10, fail_on: None }
}
