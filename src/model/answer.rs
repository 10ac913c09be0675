//! What the cost model answers.

use std::fmt;

use crate::calibration::FusionRecord;

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

/// A value with the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Times and speedup of a problem.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured<'m> {
    /// Median and quartiles of the unfused time, in milliseconds.
    pub unfused_ms: Interval,
    /// Median and quartiles of the fused time, in milliseconds.
    pub fused_ms: Interval,
    /// Unfused time over fused time with its 95 % interval.
    pub speedup: Interval,
    /// The record that this comes from, with everything else that is known.
    pub record: &'m FusionRecord,
}

/// The answer to a question about one problem.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate<'m> {
    /// Where the answer comes from.
    pub evidence: Evidence,
    /// Times and speedup; `None` exactly when the evidence is [`Evidence::Unknown`].
    pub measured: Option<Measured<'m>>,
}

impl<'m> Estimate<'m> {
    pub(super) const UNKNOWN: Self = Self { evidence: Evidence::Unknown, measured: None };

    pub(super) fn measured(record: &'m FusionRecord) -> Self {
        let time = |timing: &crate::calibration::Timing| Interval {
            value: timing.median_ms,
            low: timing.q1_ms,
            high: timing.q3_ms,
        };
        Self {
            evidence: Evidence::Measured,
            measured: Some(Measured {
                unfused_ms: time(&record.unfused_timing),
                fused_ms: time(&record.fused_timing),
                speedup: Interval {
                    value: record.speedup_factor,
                    low: record.speedup_low,
                    high: record.speedup_high,
                },
                record,
            }),
        }
    }

    /// The speedup with its interval, if anything is known.
    #[must_use]
    pub fn speedup(&self) -> Option<Interval> {
        self.measured.map(|measured| measured.speedup)
    }
}
