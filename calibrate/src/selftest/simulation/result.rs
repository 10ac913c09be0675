//! What came of calibrating scripted machines.

use serde::Serialize;

use super::Disturbance;
use crate::selftest::{Answer, share};

/// What the runs on machines with one disturbance gave.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulated {
    /// What was wrong with the machines.
    pub disturbance: Disturbance,
    /// Problems of each run.
    pub problems: u32,
    /// Simulated calibrations of one problem.
    pub calibrations: usize,
    /// Those whose 95 % interval contained the truth.
    pub contained: usize,
    /// Those whose record says that the state of the machine changed. Their interval is the one over
    /// all states.
    pub state_changed: usize,
    /// Half the width of the intervals, in the logarithm, in the mean.
    pub half_width: f64,
    /// Processes per problem, in the mean.
    pub processes: f64,
    /// Share of the pairs that were dropped, in the mean.
    pub dropped: f64,
    /// Whether the user stopped it before all were made.
    pub interrupted: bool,
}

impl Simulated {
    /// Whether the intervals keep their promise.
    #[must_use]
    pub fn answer(&self) -> Answer {
        if self.interrupted {
            return Answer::Undecided;
        }
        Answer::of_share(self.contained, self.calibrations, self.disturbance.least_coverage())
    }

    /// Share of the intervals that contained the truth.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        share(self.contained, self.calibrations)
    }
}
