//! What the cost model answers.

use std::fmt;

use crate::calibration::{FusionRecord, StateSpeedup};

/// Where an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Evidence {
    /// The problem itself was measured.
    Measured,
    /// Nothing is known about the problem on this target.
    Unknown,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Measured => "measured",
            Self::Unknown => "unknown",
        })
    }
}

/// A value with its 95 % confidence interval.
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

/// What is known about one problem on one target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate<'m> {
    record: Option<&'m FusionRecord>,
    /// The state of the machine that was asked about.
    state: Option<StateAsked>,
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
    pub(super) const UNKNOWN: Self = Self { record: None, state: None };

    pub(super) const fn measured(record: &'m FusionRecord, state: Option<StateAsked>) -> Self {
        Self { record: Some(record), state }
    }

    /// Where the answer comes from.
    #[must_use]
    pub const fn evidence(&self) -> Evidence {
        match self.record {
            Some(_) => Evidence::Measured,
            None => Evidence::Unknown,
        }
    }

    /// Unfused time over fused time with its interval; `None` when nothing is known.
    ///
    /// Where the machine was in several states and the speedup depends on it, the interval holds the
    /// speedups of all of them, unless one was asked for with
    /// [`OnTarget::in_state`](super::OnTarget::in_state).
    #[must_use]
    pub fn speedup(&self) -> Option<Interval> {
        let record = self.record?;
        let FusionRecord { speedup_factor: value, speedup_low: low, speedup_high: high, .. } =
            *record;
        let over_states = Interval { value, low, high };
        let Some(asked) = self.state else { return Some(over_states) };
        if let Some(of_state) = record.by_state.iter().find(|one| one.state == asked.id) {
            let StateSpeedup { speedup_factor, speedup_low, speedup_high, .. } = *of_state;
            return Some(Interval { value: speedup_factor, low: speedup_low, high: speedup_high });
        }
        if record.states.contains(&asked.id) {
            return Some(over_states);
        }
        let wider = asked.between_states.exp();
        Some(Interval { value, low: low / wider, high: high * wider })
    }

    /// The time of the unfused kernels together, in milliseconds; `None` when nothing is known.
    #[must_use]
    pub fn unfused_ms(&self) -> Option<f64> {
        self.record.map(|record| record.unfused_latency_ms)
    }

    /// The time of the fused kernel, in milliseconds; `None` when nothing is known.
    #[must_use]
    pub fn fused_ms(&self) -> Option<f64> {
        self.record.map(|record| record.fused_latency_ms)
    }

    /// The record of exactly this problem, with everything else that was measured; `None` unless
    /// the evidence is [`Evidence::Measured`].
    #[must_use]
    pub const fn record(&self) -> Option<&'m FusionRecord> {
        self.record
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
