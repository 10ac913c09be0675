//! Comparisons of calibrations whose truth is known.

mod alarms;
mod any;
mod sides;

use crate::made::{self, Known, Numbers};
use fusion_cost_model::calibration::{HardwareCalibration, Verdict};
use fusion_cost_model::compare::{CompareOptions, Comparison, Side, SideTarget};
use fusion_cost_model::{DType, LinearSizes, Problem};

/// Processes of every record.
const PROCESSES: u32 = 10;

/// The 97.5 % quantile of Student's t with nine degrees of freedom.
const T: f64 = 2.262_157;

/// What a record's interval never claims to resolve: 1 %.
const RESOLUTION: f64 = 0.009_950_33;

fn problem(index: u64) -> Problem {
    let chain = ["linear_bias", "linear_bias_relu", "linear_bias_gelu"][index as usize % 3];
    let sizes = LinearSizes { m: 64 + index, k: 256, n: 128 };
    Problem::linear(chain.parse().unwrap(), DType::F32, sizes).unwrap()
}

/// What is true of a record.
#[derive(Debug, Clone, Copy)]
struct Truth {
    problem: Problem,
    fused_ms: f64,
    speedup: f64,
    /// How far processes lie apart, in the logarithm.
    spread: f64,
}

fn truths(count: u64, numbers: &mut Numbers) -> Vec<Truth> {
    let truth = |index| Truth {
        problem: problem(index),
        fused_ms: 0.05 * (4.0 * numbers.share()).exp(),
        speedup: 0.9 + numbers.share(),
        spread: 0.004 * (2.5 * numbers.share()).exp(),
    };
    (0..count).map(truth).collect()
}

/// A run that measures each record in ten processes.
fn run(truths: &[Truth], resolution: f64, numbers: &mut Numbers) -> HardwareCalibration {
    let known = truths.iter().map(|truth| {
        let drawn: Vec<f64> = (0..PROCESSES).map(|_| truth.spread * numbers.normal()).collect();
        let count = f64::from(PROCESSES);
        let mean = drawn.iter().sum::<f64>() / count;
        let squares: f64 = drawn.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        Known {
            problem: truth.problem,
            fused_ms: truth.fused_ms * (0.5 * truth.spread * numbers.normal()).exp(),
            speedup: truth.speedup * mean.exp(),
            half_width: (T * error).hypot(resolution),
        }
    });
    let mut calibration = made::calibration(known.collect::<Vec<_>>());
    for record in &mut calibration.records {
        record.processes = PROCESSES;
        record.noise_floor = 0.01;
        record.reasons.clear();
        record.verdict = Verdict::by_interval(
            record.speedup_factor,
            [record.speedup_low, record.speedup_high],
            record.noise_floor,
        );
        for (timing, ms) in [
            (&mut record.unfused_timing, record.unfused_latency_ms),
            (&mut record.fused_timing, record.fused_latency_ms),
        ] {
            (timing.low_ms, timing.high_ms) = (Some(0.97 * ms), Some(1.03 * ms));
            timing.process_ms.clear();
        }
    }
    calibration
}

fn side(label: &str, calibration: &HardwareCalibration) -> Side {
    let (target, _) = SideTarget::all_of(calibration)[0];
    Side::of(label, format!("{label}.toml"), calibration, target)
}

fn compare(first: &HardwareCalibration, second: &HardwareCalibration) -> Comparison {
    Comparison::of(&side("A", first), &[side("B", second)], &CompareOptions::default())
}

fn alarms(comparison: &Comparison) -> usize {
    comparison.pairs.iter().filter(|pair| pair.verdict.differs()).count()
}
