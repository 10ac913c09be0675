//! `calibrate selftest`: does the procedure keep its promise?
//!
//! Two answers: on this machine, kernels measured against themselves (`against_itself`), where the
//! truth is 1 or a planted difference; and on scripted machines with one kind of disturbance each
//! (`simulation`), where the truth is whatever the script says. Both go through the same passes,
//! processes, rounds, estimate and stopping rule as a calibration.

pub mod against_itself;
pub mod simulation;

use fusion_cost_model::Implementation;
use fusion_cost_model::calibration::{Check, Fingerprint};
use serde::Serialize;

use crate::measure::normal_quantile;
use against_itself::AgainstItself;
use simulation::Simulated;

/// The least share of intervals that must contain the truth. Of nominal 95 % intervals a few more
/// may miss, since noise is not normal and the stopping rule looks at the result.
pub const LEAST_COVERAGE: f64 = 0.93;

/// The same where what disturbs the machine changes too slowly for the processes of a problem to be
/// independent.
pub const LEAST_COVERAGE_OF_SLOW_CHANGES: f64 = 0.85;

/// The largest share of A/A runs that may be called FASTER or SLOWER.
pub const MOST_FALSE_VERDICTS: f64 = 0.03;

/// The least share of planted differences that must be found.
pub const LEAST_FOUND: f64 = 0.9;

/// What the test found.
#[derive(Debug, Clone, Serialize)]
pub struct SelfTest {
    /// The version of the program.
    pub tool_version: String,
    /// The machine.
    pub fingerprint: Fingerprint,
    /// The checks before the run.
    pub checks: Vec<Check>,
    /// Threads of the kernels.
    pub threads: u32,
    /// Whose kernels were measured against themselves.
    pub implementation: Implementation,
    /// The seed.
    pub seed: u64,
    /// Kernels against themselves, by what their second side is; empty if none was asked for, or the
    /// user stopped it.
    pub against_itself: Vec<AgainstItself>,
    /// The simulation; empty if none was asked for.
    pub simulation: Vec<Simulated>,
    /// What that means.
    pub result: Answer,
}

/// Why no decision is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyUndecided {
    /// Not everything was done.
    NotFinished,
    /// Most runs of a kernel against itself were AMBIGUOUS or INVALID.
    TooNoisy,
    /// A share is not what is wanted, but so few runs could show that by chance.
    TooFewRuns,
}

impl WhyUndecided {
    /// The reason of a test with these results, whose answer is undecided.
    #[must_use]
    pub fn of(scripted: &[Simulated], measured: &[AgainstItself]) -> Self {
        let interrupted = scripted.iter().any(|one| one.interrupted)
            || measured.iter().any(|one| one.interrupted || one.runs == 0);
        let answers = scripted.iter().map(Simulated::answer);
        let mut answers = answers.chain(measured.iter().map(AgainstItself::answer));
        // Where all that was done is decided, something was not done.
        if interrupted || !answers.any(|answer| answer == Answer::Undecided) {
            Self::NotFinished
        } else if measured.iter().any(AgainstItself::is_mostly_undecided) {
            Self::TooNoisy
        } else {
            Self::TooFewRuns
        }
    }
}

/// Whether the procedure keeps its promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It does.
    Passed,
    /// No decision is possible: [`WhyUndecided`].
    Undecided,
    /// It does not.
    Failed,
}

impl Answer {
    /// Whether a share of at least `least` is what `count` of `whole` show. A share below it that
    /// so few could show by chance leaves it undecided.
    #[must_use]
    pub fn of_share(count: usize, whole: usize, least: f64) -> Self {
        if whole == 0 {
            Self::Undecided
        } else if share(count, whole) >= least {
            Self::Passed
        } else if upper_bound(count, whole) >= least {
            Self::Undecided
        } else {
            Self::Failed
        }
    }

    /// The answer to several questions: the worst, and undecided if there are none.
    #[must_use]
    pub fn of_all(answers: impl Iterator<Item = Self>) -> Self {
        answers.max().unwrap_or(Self::Undecided)
    }
}

/// The least share of A/A runs that must be decided. AMBIGUOUS and INVALID are right answers on a
/// noisy machine, but a procedure that gave no others would be good for nothing.
pub const LEAST_DECIDED: f64 = 0.5;

/// The upper end of the one-sided 95 % interval of a share, after Wilson (1927).
fn upper_bound(count: usize, whole: usize) -> f64 {
    let z = normal_quantile(0.95);
    let (share, whole) = (share(count, whole), share(whole, 1));
    let spread = (share * (1.0 - share) / whole + z * z / (4.0 * whole * whole)).sqrt();
    (share + z * z / (2.0 * whole) + z * spread) / (1.0 + z * z / whole)
}

/// A share of a count.
#[must_use]
pub(crate) fn share(part: usize, whole: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a count of runs")]
    let share = part as f64 / whole as f64;
    share
}

#[cfg(test)]
mod tests {
    use super::Answer::{Failed, Passed, Undecided};
    use super::*;

    #[test]
    fn a_share_below_what_is_wanted_fails_only_where_chance_does_not_explain_it() {
        assert_eq!(Answer::of_share(56, 60, 0.93), Passed);
        assert_eq!(Answer::of_share(55, 60, 0.93), Undecided);
        assert_eq!(Answer::of_share(50, 60, 0.93), Failed);
        assert_eq!(Answer::of_share(930, 1000, 0.93), Passed);
        assert_eq!(Answer::of_share(915, 1000, 0.93), Failed);
        assert_eq!(Answer::of_share(0, 0, 0.93), Undecided);
        // By hand: 0.9 of 100, z = 1.645.
        assert!((upper_bound(90, 100) - 0.9393).abs() < 1e-4);
        assert!((upper_bound(100, 100) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_worst_answer_counts_and_none_is_undecided() {
        assert_eq!(Answer::of_all([Passed, Passed].into_iter()), Passed);
        assert_eq!(Answer::of_all([Passed, Undecided].into_iter()), Undecided);
        assert_eq!(Answer::of_all([Failed, Undecided, Passed].into_iter()), Failed);
        assert_eq!(Answer::of_all([].into_iter()), Undecided);
    }
}
