//! Where devices wait.

use serde::Serialize;

use crate::RankFile;
use crate::idle::IdleTimes;

/// The idle times of the traces of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RanksIdle {
    /// The traces.
    pub ranks: Vec<RankIdle>,
}

/// The idle times of one trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RankIdle {
    /// The file.
    pub file: String,
    /// The rank, if it is known.
    pub rank: Option<u64>,
    /// Its idle times.
    #[serde(flatten)]
    pub idle: IdleTimes,
}

impl RanksIdle {
    /// Those of a run.
    #[must_use]
    pub const fn new(ranks: Vec<RankIdle>) -> Self {
        Self { ranks }
    }
}

impl RankIdle {
    /// Those of a file.
    #[must_use]
    pub fn new(file: &RankFile, idle: IdleTimes) -> Self {
        Self { file: file.named.display().to_string(), rank: file.rank, idle }
    }
}
