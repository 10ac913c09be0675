//! What a journal holds: which run it belongs to, and what was measured.

use fusion_cost_model::calibration::{Check, Fingerprint};
use fusion_cost_model::{CacheState, Clock, DType};
use serde::{Deserialize, Serialize};

use crate::build_info;
use crate::machine::Machine;
use crate::measure::Procedure;
use crate::plan::Subject;
use crate::timestamp;
use crate::worker::{CeilingsReport, Device, Ladder, ProcessReport};

/// What makes the processes of two runs comparable, besides the seed: everything but the list of
/// problems.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunKey {
    /// The version of the program.
    pub tool_version: String,
    /// A digest of the program itself: another build may have other kernels.
    pub program: String,
    /// The machine.
    pub fingerprint: Fingerprint,
    /// What runs the kernels.
    pub device: Device,
    /// What the caches hold.
    pub cache: CacheState,
    /// How much is measured.
    pub procedure: Procedure,
}

/// The first line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Header<Key = RunKey> {
    /// Which run.
    #[serde(flatten)]
    pub(super) key: Key,
    /// Its seed.
    pub(super) seed: u64,
}

impl RunKey {
    /// The key of a run of this program.
    #[must_use]
    pub fn of(machine: &Machine, device: &Device, cache: CacheState, procedure: Procedure) -> Self {
        Self {
            tool_version: build_info::VERSION.to_owned(),
            program: build_info::binary_digest(),
            fingerprint: machine.fingerprint.clone(),
            device: device.for_journal(),
            cache,
            procedure,
        }
    }
}

/// A part of a run, from its start to its end or to whatever ended it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// When it began, in UTC (RFC 3339).
    pub started_at: String,
    /// Whether it went on in spite of a failed check.
    pub forced: bool,
    /// What the checks found.
    pub checks: Vec<Check>,
}

impl Part {
    /// One that begins now.
    #[must_use]
    pub fn now(forced: bool, checks: Vec<Check>) -> Self {
        Self { started_at: timestamp::now(), forced, checks }
    }

    /// What all parts of a run together were: begun with the first one, forced if one was, and
    /// with the worst that a check found.
    #[must_use]
    pub fn all(parts: &[Self]) -> Option<Self> {
        let mut parts = parts.iter().cloned();
        let first = parts.next()?;
        Some(parts.fold(first, |mut all, part| {
            all.forced |= part.forced;
            for check in part.checks {
                match all.checks.iter_mut().find(|known| known.name == check.name) {
                    Some(known) if known.status < check.status => *known = check,
                    Some(_) => {}
                    None => all.checks.push(check),
                }
            }
            all
        }))
    }
}

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Entry {
    /// What one process measured, with all its samples.
    Process {
        /// What was measured.
        subject: Subject,
        /// In which pass, from 0.
        index: u32,
        /// What came of it.
        report: Box<ProcessReport>,
    },
    /// A variant computed something wrong, which is not forgotten when the run goes on.
    Wrong {
        /// What was to be measured.
        subject: Subject,
        /// What was wrong.
        reason: String,
    },
    /// Kernels failed on a core of a GPU: both variants go on with another one, and what was measured
    /// before counts for nothing.
    Fell {
        /// What was to be measured.
        subject: Subject,
        /// Where it goes on, and what failed.
        ladder: Ladder,
    },
    /// The run was started, or started again.
    Part(Part),
    /// The ceilings of the machine, measured before a pass.
    Ceilings {
        /// For which dtype.
        dtype: DType,
        /// As which clock sees them.
        clock: Clock,
        /// Before which pass, from 0.
        pass: u32,
        /// What came of it.
        report: CeilingsReport,
    },
}

impl Entry {
    /// Reads a line of a journal or of `--samples`, but the first one.
    ///
    /// # Errors
    ///
    /// What is wrong with it: its checksum, or its contents.
    pub fn from_line(line: &str) -> Result<Self, String> {
        super::line::read(line.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::CheckStatus;

    use super::*;

    #[test]
    fn parts_are_one_run_with_the_worst_of_each() {
        let check = |name: &str, status| Check {
            name: name.to_owned(),
            status,
            found: String::new(),
            advice: None,
        };
        let part = |started_at: &str, forced, checks: &[Check]| Part {
            started_at: started_at.to_owned(),
            forced,
            checks: checks.to_vec(),
        };
        let (pass, warn, fail) = (CheckStatus::Pass, CheckStatus::Warn, CheckStatus::Fail);
        let all = Part::all(&[
            part("1", true, &[check("load", fail), check("swap", pass)]),
            part("2", false, &[check("load", pass), check("swap", warn), check("new", pass)]),
        ]);
        let checks = [check("load", fail), check("swap", warn), check("new", pass)];
        assert_eq!(all, Some(part("1", true, &checks)));
        assert_eq!(Part::all(&[]), None);
    }
}
