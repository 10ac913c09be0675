//! What a record says of a problem: of its own, and of the first op of its chain by itself.

use super::prediction::{NEAREST, Prediction, Uncertain, sd_of_interval, sd_of_time};
use crate::calibration::{FusionRecord, StepTime, Verdict};
use crate::vocabulary::Problem;

/// What was measured of one problem, in logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Observation {
    /// The record that it comes from, by index.
    pub(super) record: usize,
    pub(super) problem: Problem,
    /// Of the fused time in milliseconds.
    pub(super) ln_fused: Uncertain,
    /// `None` of a single op, which has no other variant.
    pub(super) ln_speedup: Option<Uncertain>,
}

/// What the first op of a sequence takes in its place beside what it takes by itself: on 113 pairs,
/// the two differed by 0.8 % in the median on one machine and by 6.5 % on another, whose memory moved
/// between two states.
const SD_IN_PLACE: f64 = 0.03;

/// What the logarithm of a time differs by between processes, where it has no interval.
const USUAL_SD: f64 = 0.02;

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

    /// What it says of the first op by itself, which no other kernel of the unfused variant comes
    /// before: the time of its first step. `None` of a single op, and where steps were not timed or
    /// cannot be those of the chain.
    pub(super) fn of_first_step(index: usize, record: &FusionRecord) -> Option<Self> {
        let chain = record.problem.chain();
        let problem = record.problem.slice(0..1).filter(|_| !chain.is_single())?;
        let is_whole = record.steps.len() == chain.len();
        let StepTime { op, ms, low_ms, high_ms } = record.steps.first().filter(|_| is_whole)?;
        let [low, high] = [low_ms, high_ms].map(|end| end.unwrap_or(*ms));
        let is_a_time = 0.0 < low && low <= *ms && *ms <= high && high.is_finite();
        if !is_a_time || op != chain[0].name() {
            return None;
        }
        let has_interval = low_ms.is_some() && high_ms.is_some();
        let sd = if has_interval { sd_of_interval(low, high) } else { USUAL_SD };
        let ln_fused = Uncertain { value: ms.ln(), sd: sd.hypot(SD_IN_PLACE) };
        Some(Self { record: index, problem, ln_fused, ln_speedup: None })
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
