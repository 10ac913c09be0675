//! Calibrations of machines whose truth is known.

use fusion_cost_model::calibration::{FusionRecord, HardwareCalibration, Verdict};
use fusion_cost_model::{Problem, Target};

/// The target of every record.
pub(crate) const TARGET: Target = Target::cpu(2);

/// What is known of a problem: the fused time, the speedup, and half of its interval in the
/// logarithm.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) problem: Problem,
    pub(crate) fused_ms: f64,
    pub(crate) speedup: f64,
    pub(crate) half_width: f64,
}

/// A calibration with these records and no ceilings.
pub(crate) fn calibration(known: impl IntoIterator<Item = Known>) -> HardwareCalibration {
    let text = include_str!("../data/example.toml");
    let mut calibration = HardwareCalibration::from_toml(text).unwrap();
    let template = calibration.records[0].clone();
    calibration.records = known.into_iter().map(|known| record(&template, &known)).collect();
    calibration.num_records = calibration.records.len() as u64;
    calibration.ceilings.clear();
    calibration
}

fn record(template: &FusionRecord, known: &Known) -> FusionRecord {
    let Known { problem, fused_ms, speedup, half_width } = *known;
    let chain = problem.chain();
    FusionRecord {
        problem,
        fusion_pattern: chain.name(),
        operators: chain.iter().map(|op| op.name().to_owned()).collect(),
        num_operators: chain.len() as u32,
        dtype: problem.dtype(),
        unfused_latency_ms: fused_ms * speedup,
        fused_latency_ms: fused_ms,
        speedup_factor: speedup,
        speedup_low: speedup * (-half_width).exp(),
        speedup_high: speedup * half_width.exp(),
        verdict: Verdict::Ambiguous,
        steps: Vec::new(),
        unfused_kernels: chain.iter().map(|op| format!("{}: one pass", op.name())).collect(),
        ..template.clone()
    }
}

/// Numbers that look random and are the same on every machine (SplitMix64).
#[derive(Debug)]
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// From 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Nearly normal: the sum of twelve.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }
}
