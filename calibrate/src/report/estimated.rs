//! Answers of the cost model as words and keys.

use cli_support::sheet::number;
use cli_support::units::milliseconds;
use fusion_cost_model::{Decision, Evidence, Interval};
use serde::Serialize;

/// Every evidence, the most trusted first.
pub(super) const EVIDENCE: [Evidence; 8] = [
    Evidence::Measured,
    Evidence::ComposedAtSize,
    Evidence::Interpolated,
    Evidence::ComposedBetween,
    Evidence::Prior,
    Evidence::Extrapolated,
    Evidence::Roofline,
    Evidence::Unknown,
];

/// A decision in words, and as programs read it.
#[must_use]
pub fn decision_words(decision: &Decision<'_>) -> [&'static str; 2] {
    match decision {
        Decision::Fuse(_) => ["fuse", "fuse"],
        Decision::Keep(_) => ["keep apart", "keep"],
        Decision::TooClose { .. } => ["too close to the threshold to matter", "too_close"],
        _ => ["unknown", "unknown"],
    }
}

/// The evidence in a table, whose lines have little room.
pub(super) const fn short(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::ComposedAtSize => "at size",
        Evidence::ComposedBetween => "between sizes",
        other => other.name(),
    }
}

/// A value with its 95 % interval, as it is in files.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// The value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl From<Interval> for Range {
    fn from(Interval { value, low, high, .. }: Interval) -> Self {
        Self { value, low, high }
    }
}

impl Range {
    /// Its cells in CSV, which are empty where nothing is known.
    pub(super) fn cells(range: Option<Self>) -> [String; 3] {
        let of = |part: fn(Self) -> f64| number(range.map(part));
        [of(|range| range.value), of(|range| range.low), of(|range| range.high)]
    }

    /// A time in milliseconds with its interval.
    pub(super) fn time(self) -> String {
        if self.low == self.high {
            return signed(self.value);
        }
        format!("{} {}", signed(self.value), self.ends())
    }

    /// The interval of a time in milliseconds.
    pub(super) fn ends(self) -> String {
        format!("[{}, {}]", signed(self.low), signed(self.high))
    }
}

/// A time in milliseconds that may be negative.
pub(super) fn signed(ms: f64) -> String {
    if ms == 0.0 {
        return "0".to_owned();
    }
    let sign = if ms < 0.0 { "-" } else { "" };
    format!("{sign}{}", milliseconds(ms.abs()))
}
