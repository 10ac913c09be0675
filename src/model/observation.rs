//! What a record says of a problem in logarithms: of its own here, of others in [`super::shorter`].

use super::prediction::{NEAREST, Prediction, Uncertain, sd_of_interval, sd_of_time};
use crate::calibration::{FusionRecord, Verdict};
use crate::vocabulary::Problem;

/// What was measured of one problem, in logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Observation {
    /// The record that it comes from, by index.
    pub(super) record: usize,
    pub(super) problem: Problem,
    /// Whether it says how far estimates of it from others are off: it was timed by itself, or as a step.
    pub(super) is_timed: bool,
    /// Of the fused time in milliseconds.
    pub(super) ln_fused: Uncertain,
    /// `None` of a single op, which has no other variant.
    pub(super) ln_speedup: Option<Uncertain>,
}

/// What the logarithm of a time differs by between processes, where it has no interval.
pub(super) const USUAL_SD: f64 = 0.02;

/// Whether a record says anything: it is valid, and its times are numbers. That is certain of a file,
/// which is checked when it is read, and not of a calibration that a program makes.
pub(super) fn is_usable(record: &FusionRecord) -> bool {
    let FusionRecord { unfused_latency_ms, fused_latency_ms, .. } = *record;
    let FusionRecord { speedup_factor, speedup_low, speedup_high, .. } = *record;
    let times = [unfused_latency_ms, fused_latency_ms];
    let speedups = [speedup_factor, speedup_low, speedup_high];
    let timings = [&record.unfused_timing, &record.fused_timing];
    let ends = timings.into_iter().flat_map(|timing| [timing.low_ms, timing.high_ms]).flatten();
    let mut all = times.into_iter().chain(speedups).chain(ends);
    record.verdict != Verdict::Invalid && all.all(|one| one > 0.0 && one.is_finite())
}

impl Observation {
    /// What a record says of its problem. Without an interval the standard deviation of the time is
    /// 0: what all records of a cloud scatter by says more than a guess.
    pub(super) fn of(index: usize, record: &FusionRecord) -> Self {
        let is_single = record.problem.chain().is_single();
        Self {
            record: index,
            problem: record.problem,
            is_timed: true,
            ln_fused: Uncertain {
                value: record.fused_latency_ms.ln(),
                sd: sd_of_time(&record.fused_timing).unwrap_or(0.0),
            },
            ln_speedup: (!is_single).then(|| Uncertain {
                value: record.speedup_factor.ln(),
                sd: sd_of_interval(record.speedup_low, record.speedup_high),
            }),
        }
    }

    /// How certain it is: the standard deviation of what is asked about first.
    pub(super) fn sd(&self) -> f64 {
        self.ln_speedup.map_or(self.ln_fused.sd, |speedup| speedup.sd)
    }

    /// What is known of a part of a sum.
    pub(super) fn prediction(&self) -> Prediction {
        let sd = if self.ln_fused.sd > 0.0 { self.ln_fused.sd } else { USUAL_SD };
        let mut nearest = [None; NEAREST];
        nearest[0] = Some(self.record);
        Prediction {
            ln_fused: Uncertain { sd, ..self.ln_fused },
            ln_speedup: self.ln_speedup.unwrap_or(Uncertain::NOTHING),
            octaves: 0.0,
            nearest,
        }
    }
}
