//! What the cost model answers.

use std::fmt;

use super::known::Answer;
use super::on_paper::Rough;
use super::prediction::{NEAREST, Prediction};
use crate::calibration::{FusionRecord, StateSpeedup, Timing};

/// Where an answer comes from, the most trusted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Evidence {
    /// The problem itself was measured.
    Measured,
    /// A chain that differs in some ops was measured at this very size; the new ops were added and the
    /// old ones subtracted, each as measured by themselves. Where the chain was measured at other sizes,
    /// the speedup is the mean with its own.
    ///
    /// Or a chain was measured there that only has more ops, behind a product, which cost a fused kernel
    /// next to nothing, such as a ReLU: their steps are taken off its unfused time. There is no mean
    /// then.
    ComposedAtSize,
    /// The chain was measured at sizes around this one, or one that only has more ops which cost a fused
    /// kernel next to nothing.
    Interpolated,
    /// As [`Self::ComposedAtSize`], where the other chain was measured at sizes around this one.
    ComposedBetween,
    /// An older calibration of the same machine says it, corrected by how far newer records are off
    /// that: see [`FusionCostModel::with_prior`](super::FusionCostModel::with_prior).
    Prior,
    /// The nearest measured sizes are [`Estimate::octaves_beyond`] away: what the time there is over
    /// its roofline is held, and so is the speedup.
    Extrapolated,
    /// Only the ceilings of the machine were measured. A policy does not decide by it unless it is
    /// [`WhenUnknown::Roofline`](super::WhenUnknown::Roofline).
    Roofline,
    /// Nothing is known about the problem on this target.
    Unknown,
}

impl Evidence {
    /// Whether it rests on measured kernels, and not on ceilings or nothing.
    #[must_use]
    pub const fn is_from_kernels(self) -> bool {
        !matches!(self, Self::Roofline | Self::Unknown)
    }

    /// The words in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::ComposedAtSize => "composed at size",
            Self::Interpolated => "interpolated",
            Self::ComposedBetween => "composed between sizes",
            Self::Prior => "prior",
            Self::Extrapolated => "extrapolated",
            Self::Roofline => "roofline",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    pub(super) const fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// Whether a value lies within.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// From a logarithm and half the width of its interval.
    fn of_logarithm([value, half_width]: [f64; 2]) -> Self {
        let value = value.exp();
        if half_width == 0.0 {
            return Self::exact(value);
        }
        let factor = half_width.exp();
        Self { value, low: value / factor, high: value * factor }
    }

    /// A measured time.
    fn of_time(value: f64, timing: &Timing) -> Self {
        // Files of older versions have no interval; quartiles of the samples are the next best.
        let (low, high) =
            (timing.low_ms.unwrap_or(timing.q1_ms), timing.high_ms.unwrap_or(timing.q3_ms));
        Self { value, low: low.min(value), high: high.max(value) }
    }
}

/// What is known about one problem on one target.
///
/// ```
/// # fn main() -> Result<(), fusion_cost_model::Error> {
/// # let text = include_str!("../../tests/data/example.toml");
/// # let calibration = fusion_cost_model::calibration::HardwareCalibration::from_toml(text)?;
/// # let model = fusion_cost_model::FusionCostModel::new(calibration);
/// use fusion_cost_model::{Evidence, Problem, Target};
///
/// // Measured at k = 512 with m = n = 512, and at m4096.k64.n256.
/// let problem: Problem = "linear_bias_relu/f32/m1024.k300.n400".parse()?;
/// let estimate = model.on(Target::cpu(2)).estimate(&problem);
/// assert_eq!(estimate.evidence(), Evidence::Interpolated);
/// if let (Some(time), Some(speedup)) = (estimate.fused_ms(), estimate.speedup()) {
///     assert!(time.low < time.value && time.value < time.high);
///     assert!(speedup.low < speedup.value && speedup.value < speedup.high);
/// }
/// for record in estimate.nearest() {
///     println!("because of {}", record.problem);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate<'m> {
    source: Source<'m>,
    /// The state of the machine that was asked about.
    state: Option<StateAsked>,
}

/// What an estimate is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Source<'m> {
    Record(&'m FusionRecord),
    Kernels(FromKernels<'m>),
    Roofline(Rough),
    Nothing,
}

/// An answer from measured kernels.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FromKernels<'m> {
    evidence: Evidence,
    /// Of the fused time in milliseconds and of the speedup, with halves of their intervals.
    logarithms: [[f64; 2]; 2],
    octaves: f64,
    nearest: [Option<&'m FusionRecord>; NEAREST],
}

/// A state of the machine that a question names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StateAsked {
    /// Its number.
    pub(super) id: u32,
    /// How far from one state to another a speedup is off on this machine, in the logarithm: what an
    /// interval is widened by where the state was not met.
    pub(super) between_states: f64,
}

impl<'m> Estimate<'m> {
    pub(super) const UNKNOWN: Self = Self { source: Source::Nothing, state: None };

    pub(super) const fn measured(record: &'m FusionRecord, state: Option<StateAsked>) -> Self {
        Self { source: Source::Record(record), state }
    }

    pub(super) fn of_kernels(
        answer: Answer,
        records: &'m [FusionRecord],
        state: Option<StateAsked>,
    ) -> Self {
        let Answer { evidence, prediction, half_widths: [of_time, of_speedup] } = answer;
        let Prediction { ln_fused, ln_speedup, octaves, nearest } = prediction;
        let kernels = FromKernels {
            evidence,
            logarithms: [[ln_fused.value, of_time], [ln_speedup.value, of_speedup]],
            octaves,
            nearest: nearest.map(|index| index.map(|index| &records[index])),
        };
        Self { source: Source::Kernels(kernels), state }
    }

    pub(super) const fn of_roofline(rough: Rough) -> Self {
        Self { source: Source::Roofline(rough), state: None }
    }

    /// Where the answer comes from.
    #[must_use]
    pub const fn evidence(&self) -> Evidence {
        match &self.source {
            Source::Record(_) => Evidence::Measured,
            Source::Kernels(kernels) => kernels.evidence,
            Source::Roofline(_) => Evidence::Roofline,
            Source::Nothing => Evidence::Unknown,
        }
    }

    /// Unfused time over fused time with its interval; `None` when nothing is known. It is exactly 1
    /// for a chain of a single op.
    ///
    /// Where the machine was in several states and the speedup depends on it, the interval holds the
    /// speedups of all of them, unless one was asked for with
    /// [`OnTarget::in_state`](super::OnTarget::in_state).
    #[must_use]
    pub fn speedup(&self) -> Option<Interval> {
        let wider = |Interval { value, low, high }, asked: &StateAsked| {
            let factor = asked.between_states.exp();
            Interval { value, low: low / factor, high: high * factor }
        };
        let record = match &self.source {
            Source::Record(record) => record,
            Source::Kernels(kernels) => {
                let [_, [value, half_width]] = kernels.logarithms;
                let speedup = Interval::of_logarithm([value, half_width]);
                let asked = self.state.filter(|_| half_width > 0.0);
                return Some(asked.map_or(speedup, |asked| wider(speedup, &asked)));
            }
            Source::Roofline(rough) => return Some(Interval::of_logarithm(rough.speedup)),
            Source::Nothing => return None,
        };
        let FusionRecord { speedup_factor: value, speedup_low: low, speedup_high: high, .. } =
            **record;
        let over_states = Interval { value, low, high };
        let Some(asked) = self.state else { return Some(over_states) };
        if let Some(of_state) = record.by_state.iter().find(|one| one.state == asked.id) {
            let StateSpeedup { speedup_factor, speedup_low, speedup_high, .. } = *of_state;
            return Some(Interval { value: speedup_factor, low: speedup_low, high: speedup_high });
        }
        if record.states.contains(&asked.id) || record.problem.chain().len() == 1 {
            return Some(over_states);
        }
        Some(wider(over_states, &asked))
    }

    /// The time of the unfused kernels together, in milliseconds; `None` when nothing is known.
    ///
    /// Of a problem that was not measured it is the fused time times the speedup: what differs between
    /// two runs of a program is in both variants alike, so their ratio is known better than either.
    #[must_use]
    pub fn unfused_ms(&self) -> Option<Interval> {
        let [[fused, of_fused], [speedup, of_speedup]] = match &self.source {
            Source::Record(record) => {
                let FusionRecord { unfused_latency_ms, unfused_timing, .. } = record;
                return Some(Interval::of_time(*unfused_latency_ms, unfused_timing));
            }
            Source::Kernels(kernels) => kernels.logarithms,
            Source::Roofline(rough) => return Some(Interval::of_logarithm(rough.unfused)),
            Source::Nothing => return None,
        };
        Some(Interval::of_logarithm([fused + speedup, of_fused.hypot(of_speedup)]))
    }

    /// The time of the fused kernel, in milliseconds; `None` when nothing is known.
    #[must_use]
    pub fn fused_ms(&self) -> Option<Interval> {
        Some(match &self.source {
            Source::Record(record) => {
                Interval::of_time(record.fused_latency_ms, &record.fused_timing)
            }
            Source::Kernels(kernels) => Interval::of_logarithm(kernels.logarithms[0]),
            Source::Roofline(rough) => Interval::of_logarithm(rough.fused),
            Source::Nothing => return None,
        })
    }

    /// How far beyond the measured sizes the problem lies, in octaves of the size that is farthest
    /// away; 0 unless the evidence is [`Evidence::Extrapolated`].
    #[must_use]
    pub fn octaves_beyond(&self) -> f64 {
        match &self.source {
            Source::Kernels(kernels) if kernels.evidence == Evidence::Extrapolated => {
                kernels.octaves
            }
            _ => 0.0,
        }
    }

    /// The record of exactly this problem, with everything else that was measured; `None` unless
    /// the evidence is [`Evidence::Measured`].
    #[must_use]
    pub const fn record(&self) -> Option<&'m FusionRecord> {
        match self.source {
            Source::Record(record) => Some(record),
            _ => None,
        }
    }

    /// The records that the answer rests on most, for a person who asks why: the record itself, the
    /// one nearest in size and others around that, or, of a composed answer, the one nearest to each
    /// of its parts.
    pub fn nearest(&self) -> impl Iterator<Item = &'m FusionRecord> + use<'m> {
        let nearest = match self.source {
            Source::Record(record) => {
                let mut nearest = [None; NEAREST];
                nearest[0] = Some(record);
                nearest
            }
            Source::Kernels(kernels) => kernels.nearest,
            Source::Roofline(_) | Source::Nothing => [None; NEAREST],
        };
        nearest.into_iter().flatten()
    }
}

/// The speedups of a chain over all sizes at which it was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SpeedupRange {
    /// Their geometric mean.
    pub mean: f64,
    /// The least of them.
    pub least: f64,
    /// The largest of them.
    pub largest: f64,
    /// How many sizes there are.
    pub sizes: usize,
}
