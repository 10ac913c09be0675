//! What a reader must know about the ranks of a run side by side.

use std::fmt;

use serde::Serialize;

use super::record::{RankName, RankRecord};
use super::skew::{Reason, Unmatched};

/// Something about the ranks of a run that changes what their figures mean.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "code")]
pub enum SkewWarning {
    /// Not all ranks of the run are there.
    UnseenRanks {
        /// How many there are.
        found: usize,
        /// How many there were.
        world_size: u64,
    },
    /// Something ran on several devices of one rank.
    SeveralDevices {
        /// Which rank.
        #[serde(flatten)]
        name: RankName,
        /// How many devices.
        devices: usize,
        /// The one that counts.
        device: i64,
    },
    /// The ranks have different numbers of steps.
    DifferentSteps {
        /// The least number.
        least: usize,
        /// The largest number.
        most: usize,
    },
    /// Much of the communication was not matched between ranks.
    UnmatchedCollectives {
        /// The durations of those that were not, in nanoseconds.
        unmatched_ns: u64,
        /// The durations of all, in nanoseconds.
        all_ns: u64,
        /// The most frequent reason, by time.
        reason: Reason,
    },
}

/// The part of communication that is not matched from which a reader must be warned.
const MOST_UNMATCHED: f64 = 0.05;

/// The warnings of some ranks, which are in their order.
pub(super) fn of(
    records: &[&RankRecord],
    unmatched: &[Unmatched],
    has_groups: bool,
) -> Vec<SkewWarning> {
    let mut warnings = Vec::new();
    for record in records.iter().filter(|record| record.devices > 1) {
        let (name, devices) = (record.name.clone(), record.devices);
        let device = record.device.unwrap_or(-1);
        warnings.push(SkewWarning::SeveralDevices { name, devices, device });
    }
    if records.len() < 2 {
        return warnings;
    }
    let world_size = records.iter().filter_map(|record| record.world_size).max();
    if let Some(world_size) = world_size.filter(|size| has_groups && *size > records.len() as u64) {
        warnings.push(SkewWarning::UnseenRanks { found: records.len(), world_size });
    }
    let steps = || records.iter().filter_map(|record| record.steps);
    if let (Some(least), Some(most)) = (steps().min(), steps().max())
        && least != most
    {
        warnings.push(SkewWarning::DifferentSteps { least, most });
    }
    let all_ns = records.iter().fold(0_u64, |sum, one| sum.saturating_add(one.collective_ns));
    let of_reason = |wanted: Option<Reason>| {
        let of_it = unmatched.iter().filter(|one| wanted.is_none_or(|reason| one.reason == reason));
        of_it.fold(0_u64, |sum, one| sum.saturating_add(one.total_ns))
    };
    let unmatched_ns = of_reason(None);
    let longest = unmatched.iter().map(|one| one.reason).max_by_key(|one| of_reason(Some(*one)));
    if let Some(reason) = longest.filter(|_| unmatched_ns as f64 > MOST_UNMATCHED * all_ns as f64) {
        warnings.push(SkewWarning::UnmatchedCollectives { unmatched_ns, all_ns, reason });
    }
    warnings
}

impl SkewWarning {
    /// A short name that never changes, for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::UnseenRanks { .. } => "unseen-ranks",
            Self::SeveralDevices { .. } => "several-devices",
            Self::DifferentSteps { .. } => "different-steps",
            Self::UnmatchedCollectives { .. } => "unmatched-collectives",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::UnseenRanks { .. } => {
                "the last to arrive may be one of the others: waiting is at least what is shown"
            }
            Self::SeveralDevices { .. } => {
                "figures are of the device that was busy longest; `trace kernels` shows all"
            }
            Self::DifferentSteps { .. } => {
                "record the same steps on all ranks; totals of ranks are not of the same work"
            }
            Self::UnmatchedCollectives { .. } => {
                "waiting is known for the rest only; record the same steps on all ranks of one run"
            }
        }
    }
}

impl fmt::Display for SkewWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnseenRanks { found, world_size } => {
                write!(f, "{found} of the {world_size} ranks of the run are there")
            }
            Self::SeveralDevices { name, devices, device } => {
                write!(f, "{name} ran on {devices} devices; only device {device} is shown")
            }
            Self::DifferentSteps { least, most } => {
                write!(f, "the ranks have {least} to {most} steps")
            }
            Self::UnmatchedCollectives { unmatched_ns, all_ns, reason } => write!(
                f,
                "{:.1} % of the time in collectives was not matched between ranks; mostly: {}",
                100.0 * *unmatched_ns as f64 / (*all_ns).max(1) as f64,
                reason.describe()
            ),
        }
    }
}
