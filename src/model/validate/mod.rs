//! How well the records of a file estimate each other: each is asked about as if it had not been
//! measured.

mod accuracy;

use std::sync::atomic::{AtomicUsize, Ordering};

use rustc_hash::FxHashMap;

use super::answer::{Estimate, Interval};
use super::on_target::OnTarget;
use super::policy::Policy;
use crate::calibration::FusionRecord;
use crate::error::Error;
use crate::vocabulary::{DType, Problem, Sizes};

pub use accuracy::{Accuracy, Errors, Regret};

/// What is left out at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaveOut {
    /// All records of the same sizes and dtype, of whatever chain, and those of longer chains whose
    /// first op by itself has these sizes: what is left says what a size costs that nobody measured.
    Shape,
    /// One record: what is left says what a chain costs that nobody measured, at a size at which
    /// others were.
    Problem,
}

/// A record, and what the others say of it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Trial<'m> {
    /// What was measured.
    pub record: &'m FusionRecord,
    /// What the records say of it that were not left out.
    pub estimate: Estimate<'m>,
    /// Whether a policy fuses by that estimate; `None` of a single op.
    pub fuse: Option<bool>,
}

impl Trial<'_> {
    /// The logarithm of the estimated over the measured fused time; `None` where nothing is known.
    #[must_use]
    pub fn time_error(&self) -> Option<f64> {
        Some((self.estimate.fused_ms()?.value / self.record.fused_latency_ms).ln())
    }

    /// The same of the speedup; `None` of a single op too.
    #[must_use]
    pub fn speedup_error(&self) -> Option<f64> {
        Some((self.speedup()?.value / self.record.speedup_factor).ln())
    }

    /// Whether the measured fused time is in the interval of the estimate.
    #[must_use]
    pub fn covers_time(&self) -> Option<bool> {
        Some(self.estimate.fused_ms()?.contains(self.record.fused_latency_ms))
    }

    /// The same of the speedup.
    #[must_use]
    pub fn covers_speedup(&self) -> Option<bool> {
        Some(self.speedup()?.contains(self.record.speedup_factor))
    }

    fn speedup(&self) -> Option<Interval> {
        self.estimate.speedup().filter(|_| !self.record.problem.chain().is_single())
    }
}

impl<'m> OnTarget<'m> {
    /// Estimates of all records of the target, each made without it: how good estimates are for a
    /// question that is like what was measured. The clouds of what is left out are fitted anew, on all
    /// processors, which takes milliseconds for each, and a fifth of a second where a cloud has a
    /// hundred records. An older calibration is not asked: how far it is off was found with all
    /// records.
    ///
    /// ```
    /// # fn main() -> Result<(), fusion_cost_model::Error> {
    /// # let text = include_str!("../../../tests/data/example.toml");
    /// # let calibration = fusion_cost_model::calibration::HardwareCalibration::from_toml(text)?;
    /// # let model = fusion_cost_model::FusionCostModel::new(calibration);
    /// use fusion_cost_model::{Accuracy, LeaveOut, Policy, Target, WhenUnknown};
    ///
    /// let policy = Policy::new(WhenUnknown::Roofline);
    /// let trials = model.on(Target::cpu(2)).validate(LeaveOut::Shape, &policy)?;
    /// let accuracy = Accuracy::of(&trials, &policy);
    /// if let (Some(speedup), Some(regret)) = (accuracy.speedup, accuracy.regret) {
    ///     println!("speedups are off by {:.1} %", 100.0 * speedup.median);
    ///     println!("decisions lose {:.2} % of the time", 100.0 * regret.decided);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Only when nothing is known about a record but perhaps a roofline, and the policy is not to
    /// guess: [`Error::is_undecided`].
    pub fn validate(&self, leave_out: LeaveOut, policy: &Policy) -> Result<Vec<Trial<'m>>, Error> {
        let Some(known) = self.known() else { return Ok(Vec::new()) };
        let records = self.records();
        let mut together: FxHashMap<Left, Vec<usize>> = FxHashMap::default();
        let mut first_ops: FxHashMap<Left, Vec<usize>> = FxHashMap::default();
        for &index in known.indices() {
            let problem = &records[index].problem;
            let left = Left::of(leave_out, problem);
            together.entry(left).or_default().push(index);
            let first = problem.slice(0..1).map(|first| Left::of(leave_out, &first));
            if let Some(first) =
                first.filter(|first| leave_out == LeaveOut::Shape && *first != left)
            {
                first_ops.entry(first).or_default().push(index);
            }
        }
        let groups: Vec<(Left, Vec<usize>)> = together.into_iter().collect();
        let trials_of = |(left, asked): &(Left, Vec<usize>)| {
            // The first step of a longer chain is as good as a record at these sizes.
            let first_ops = first_ops.get(left).into_iter().flatten();
            let left_out: Vec<usize> = asked.iter().chain(first_ops).copied().collect();
            let others = known.without(records, &left_out, |dtype| self.ceilings(dtype));
            let trial = |&index: &usize| {
                let record = &records[index];
                let estimate = self.estimate_from(Some(&others), None, &record.problem);
                let fuse = if record.problem.chain().is_single() {
                    None
                } else {
                    let decision =
                        self.decide_from(Some(&others), estimate, &record.problem, policy)?;
                    Some(decision.should_fuse())
                };
                Ok((index, Trial { record, estimate, fuse }))
            };
            asked.iter().map(trial).collect::<Result<Vec<_>, Error>>()
        };
        let mut trials = Vec::with_capacity(known.indices().len());
        for found in on_all_processors(&groups, trials_of) {
            trials.extend(found?);
        }
        trials.sort_unstable_by_key(|(index, _)| *index);
        Ok(trials.into_iter().map(|(_, trial)| trial).collect())
    }
}

/// What becomes of each item, in any order; the items are dealt among the processors.
fn on_all_processors<I: Sync, T: Send>(items: &[I], make: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || -> Vec<T> {
        std::iter::from_fn(|| items.get(next.fetch_add(1, Ordering::Relaxed)).map(&make)).collect()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    std::thread::scope(|scope| {
        // The first one is this thread itself. One that the system refuses is done without.
        let others: Vec<_> = (1..threads)
            .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut made = work();
        for other in others {
            made.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        made
    })
}

/// What records have in common that are left out together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Left {
    Shape(DType, Sizes),
    Problem(Problem),
}

impl Left {
    fn of(leave_out: LeaveOut, problem: &Problem) -> Self {
        match leave_out {
            LeaveOut::Shape => Self::Shape(problem.dtype(), *problem.sizes()),
            LeaveOut::Problem => Self::Problem(*problem),
        }
    }
}
