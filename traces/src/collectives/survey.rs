//! All ranks of a run.

use serde::Serialize;

use super::{RankRecord, Representative, Skew};

/// All ranks of a run, and which of them waits for which.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RankSurvey {
    /// What each of them did.
    pub records: Vec<RankRecord>,
    /// Which rank waits for which.
    pub skew: Skew,
    /// The one that stands for all.
    pub representative: Option<Representative>,
}

impl RankSurvey {
    /// Compares the ranks with each other.
    #[must_use]
    pub fn of(records: Vec<RankRecord>) -> Self {
        let skew = Skew::of(&records);
        let representative = Representative::of(&records);
        Self { records, skew, representative }
    }
}
