//! How fast kernels were.

use serde::Serialize;

use crate::RankFile;
use crate::rates::Rates;

/// The rates of the traces of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RanksRates {
    /// The traces.
    pub ranks: Vec<RankRates>,
}

/// The rates of one trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RankRates {
    /// The file.
    pub file: String,
    /// The rank, if it is known.
    pub rank: Option<u64>,
    /// Its rates.
    #[serde(flatten)]
    pub rates: Rates,
}

impl RanksRates {
    /// Those of a run.
    #[must_use]
    pub const fn new(ranks: Vec<RankRates>) -> Self {
        Self { ranks }
    }
}

impl RankRates {
    /// Those of a file.
    #[must_use]
    pub fn new(file: &RankFile, rates: Rates) -> Self {
        Self { file: file.named.display().to_string(), rank: file.rank, rates }
    }
}
