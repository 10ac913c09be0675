//! What trials say together.

use serde::Serialize;

use super::super::policy::Policy;
use super::Trial;

/// How good estimates and decisions are.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Accuracy {
    /// Of how many records.
    pub records: usize,
    /// How far fused times are off; `None` where nothing is known of any.
    pub time: Option<Errors>,
    /// How far speedups are off; `None` also where all are single ops.
    pub speedup: Option<Errors>,
    /// What decisions cost; `None` where there is nothing to decide.
    pub regret: Option<Regret>,
}

/// How far values are off, and how often they are in their intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Errors {
    /// Of how many values.
    pub count: usize,
    /// Half of the errors are at most this: the logarithm of estimated over measured, without its
    /// sign, which is nearly the relative error.
    pub median: f64,
    /// Nine tenths of them are at most this.
    pub p90: f64,
    /// The share of measured values that are in the 95 % interval of their estimate.
    pub covered: f64,
}

/// What decisions cost: the time of the variant that was chosen over that of the faster one, less
/// one, as both were measured; the mean over all problems.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Regret {
    /// Of how many decisions.
    pub count: usize,
    /// Of the decisions by the estimates.
    pub decided: f64,
    /// Of always fusing.
    pub always: f64,
    /// Of never fusing.
    pub never: f64,
    /// Of one who knows every speedup and obeys the threshold: nothing at a threshold of 1.
    pub oracle: f64,
}

impl Accuracy {
    /// Of some trials, which were decided by this policy.
    #[must_use]
    pub fn of<'t, 'm: 't>(
        trials: impl IntoIterator<Item = &'t Trial<'m>>,
        policy: &Policy,
    ) -> Self {
        let trials: Vec<&Trial<'_>> = trials.into_iter().collect();
        let time =
            trials.iter().filter_map(|trial| Some((trial.time_error()?, trial.covers_time()?)));
        let speedup = trials
            .iter()
            .filter_map(|trial| Some((trial.speedup_error()?, trial.covers_speedup()?)));
        Self {
            records: trials.len(),
            time: Errors::of(time),
            speedup: Errors::of(speedup),
            regret: Regret::of(&trials, policy.threshold),
        }
    }
}

impl Errors {
    /// From errors, and whether each value is in its interval.
    fn of(values: impl Iterator<Item = (f64, bool)>) -> Option<Self> {
        let (mut errors, covered): (Vec<f64>, Vec<bool>) =
            values.map(|(error, is_covered)| (error.abs(), is_covered)).unzip();
        errors.sort_unstable_by(f64::total_cmp);
        let covered = covered.into_iter().filter(|is_covered| *is_covered).count();
        Some(Self {
            count: errors.len(),
            median: median(&errors)?,
            p90: at_share(&errors, 0.9)?,
            covered: share(covered, errors.len()),
        })
    }
}

impl Regret {
    fn of(trials: &[&Trial<'_>], threshold: f64) -> Option<Self> {
        let decisions = || trials.iter().filter_map(|trial| Some((trial, trial.fuse?)));
        let count = decisions().count();
        let mean = |fuses: &dyn Fn(f64, bool) -> bool| {
            let regrets = decisions().map(|(trial, decided)| {
                let speedup = trial.record.speedup_factor;
                regret(speedup, fuses(speedup, decided))
            });
            // Sums are rounded, and trials come in the order of their file.
            let mut regrets: Vec<f64> = regrets.collect();
            regrets.sort_unstable_by(f64::total_cmp);
            regrets.iter().sum::<f64>() / as_f64(count)
        };
        (count > 0).then(|| Self {
            count,
            decided: mean(&|_, decided| decided),
            always: mean(&|_, _| true),
            never: mean(&|_, _| false),
            oracle: mean(&|speedup, _| speedup >= threshold),
        })
    }
}

/// The time of a variant over that of the faster one, less one.
fn regret(speedup: f64, fuse: bool) -> f64 {
    let over_fused = if fuse { 1.0 } else { speedup };
    over_fused / speedup.min(1.0) - 1.0
}

/// The middle of sorted values; of an even number of them, the mean of the two in the middle.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// The value of sorted ones that a share of them do not exceed.
fn at_share(sorted: &[f64], share: f64) -> Option<f64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank")]
    let rank = (share * as_f64(sorted.len())).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

fn share(part: usize, whole: usize) -> f64 {
    as_f64(part) / as_f64(whole)
}

#[expect(clippy::cast_precision_loss, reason = "a count of records")]
fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_variant_is_regretted() {
        assert_eq!(regret(1.25, true), 0.0);
        assert_eq!(regret(1.25, false), 0.25);
        assert_eq!(regret(0.8, false), 0.0);
        assert_eq!(regret(0.8, true), 0.25);
        assert_eq!(regret(1.0, true), 0.0);
    }

    #[test]
    fn errors_have_no_sign() {
        let errors = (1..=10).map(|index| {
            let error = 0.01 * f64::from(index);
            (if index % 2 == 0 { error } else { -error }, index <= 9)
        });
        let found = Errors::of(errors).unwrap();
        assert_eq!((found.count, found.median, found.p90), (10, 0.055, 0.09));
        assert_eq!(found.covered, 0.9);
        assert_eq!(Errors::of(std::iter::empty()), None);
        assert_eq!(Errors::of([(0.3, false)].into_iter()).unwrap().p90, 0.3);
    }

    #[test]
    fn nothing_is_known_of_no_trials() {
        let policy = Policy::new(super::super::super::policy::WhenUnknown::Conservative);
        assert_eq!(Accuracy::of([], &policy), Accuracy::default());
    }
}
