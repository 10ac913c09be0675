//! Sums over kernels, and what follows from them.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::basis::Steps;
use super::result::{Amount, Part, Ratio};

/// Sums over some kernels of a recording. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    pub(super) total_ns: u64,
    pub(super) own_ns: u64,
    pub(super) wait_ns: u64,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
    squares: f64,
}

impl Tally {
    #[expect(clippy::cast_precision_loss, reason = "squares are for a deviation")]
    pub(super) fn add(&mut self, duration_ns: u64, own_ns: u64, wait_ns: u64) {
        self.min_ns = if self.count == 0 { duration_ns } else { self.min_ns.min(duration_ns) };
        self.max_ns = self.max_ns.max(duration_ns);
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(duration_ns);
        self.own_ns = self.own_ns.saturating_add(own_ns);
        self.wait_ns = self.wait_ns.saturating_add(wait_ns);
        self.squares += (duration_ns as f64) * (duration_ns as f64);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.own_ns = self.own_ns.saturating_add(other.own_ns);
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
        self.squares += other.squares;
    }

    /// The time of the device that passed for them, with the waiting before them.
    #[expect(clippy::cast_precision_loss, reason = "exact for 104 days")]
    pub(super) fn passed_ns(&self) -> f64 {
        self.own_ns as f64 + self.wait_ns as f64
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    pub(super) fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total_ns as f64 / self.count as f64)
    }

    /// The standard deviation; none of fewer than two.
    #[expect(clippy::cast_precision_loss, reason = "a deviation")]
    pub(super) fn deviation_ns(&self) -> Option<f64> {
        let mean = self.mean_ns().filter(|_| self.count > 1)?;
        let count = self.count as f64;
        // Rounding may make the difference of two large sums negative.
        let squares = (self.squares - mean * mean * count).max(0.0);
        Some((squares / (count - 1.0)).sqrt())
    }

    pub(super) fn amount(&self) -> Amount {
        Amount { count: self.count, total_ns: self.total_ns, own_ns: self.own_ns }
    }
}

/// The shares that some kernels have of their layers: unlike their times, they do not depend on how
/// much there was to do in a step, or on how fast the device is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Shares {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Shares {
    pub(super) fn add(&mut self, share: f64) {
        self.count += 1.0;
        let off = share - self.mean;
        self.mean += off / self.count;
        self.squares += off * (share - self.mean);
    }

    /// The logarithm of the mean, and the variance of that, which one share alone does not show.
    pub(super) fn logarithm(&self) -> Option<(f64, f64)> {
        let variance = self.squares / (self.count - 1.0) / self.count / (self.mean * self.mean);
        let known = if self.count < 2.0 { f64::INFINITY } else { variance };
        (self.mean > 0.0).then(|| (self.mean.ln(), known))
    }
}

/// The times of some kernels of both sides, each in one phase, by side.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Both(pub(super) [Tally; 2]);

impl Both {
    /// What they add to a step, without the waiting before them.
    #[expect(clippy::cast_precision_loss, reason = "exact for 104 days")]
    pub(super) fn part(&self, steps: &Steps, phase: usize) -> Part {
        let [first, second] = &self.0;
        let first_ns = first.own_ns as f64 * steps.weight(0, phase);
        let second_ns = second.own_ns as f64 * steps.weight(1, phase);
        Part {
            first_amount: first.amount(),
            second_amount: second.amount(),
            first_ns,
            second_ns,
            gap_ns: first_ns - second_ns,
        }
    }

    /// The waiting before them, in a step.
    #[expect(clippy::cast_precision_loss, reason = "exact for 104 days")]
    pub(super) fn waiting(&self, steps: &Steps, phase: usize) -> Part {
        let [first_ns, second_ns] =
            [0, 1].map(|side| self.0[side].wait_ns as f64 * steps.weight(side, phase));
        Part { first_ns, second_ns, gap_ns: first_ns - second_ns, ..Part::default() }
    }

    pub(super) fn is_one_sided(&self) -> bool {
        (self.0[0].count == 0) != (self.0[1].count == 0)
    }

    pub(super) fn ratio(&self) -> Option<Ratio> {
        ratio(&self.0[0], &self.0[1])
    }
}

impl Part {
    pub(super) fn add(&mut self, other: &Self) {
        let sum = |a: &mut Amount, b: &Amount| {
            a.count += b.count;
            a.total_ns = a.total_ns.saturating_add(b.total_ns);
            a.own_ns = a.own_ns.saturating_add(b.own_ns);
        };
        sum(&mut self.first_amount, &other.first_amount);
        sum(&mut self.second_amount, &other.second_amount);
        self.first_ns += other.first_ns;
        self.second_ns += other.second_ns;
        self.gap_ns += other.gap_ns;
    }
}

/// The ratio of two means, with an interval of 95 %: that of the difference of their logarithms,
/// by the delta method with the degrees of freedom of Welch and Satterthwaite. It takes the
/// kernels as independent of each other. None without kernels on both sides that take time.
#[expect(clippy::cast_precision_loss, reason = "counts of kernels")]
fn ratio(first: &Tally, second: &Tally) -> Option<Ratio> {
    let is_time = |mean: &f64| *mean > 0.0;
    let means = [first.mean_ns().filter(is_time)?, second.mean_ns().filter(is_time)?];
    let value = means[0] / means[1];
    let relative = |tally: &Tally, mean: f64| {
        let deviation = tally.deviation_ns()?;
        let error = deviation / mean;
        Some((error * error / tally.count as f64, tally.count as f64 - 1.0))
    };
    let interval = || {
        let (first, first_degrees) = relative(first, means[0])?;
        let (second, second_degrees) = relative(second, means[1])?;
        let variance = first + second;
        if variance == 0.0 {
            return Some((value, value));
        }
        let degrees = variance * variance
            / (first * first / first_degrees + second * second / second_degrees);
        let student = StudentsT::new(0.0, 1.0, degrees).ok()?;
        let factor = (student.inverse_cdf(0.975) * variance.sqrt()).exp();
        Some((value / factor, value * factor))
    };
    Some(Ratio { value, interval: interval() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(durations: &[u64]) -> Tally {
        let mut tally = Tally::default();
        durations.iter().for_each(|duration| tally.add(*duration, *duration, 0));
        tally
    }

    #[test]
    fn the_interval_of_a_ratio_by_hand() {
        // Means 20 and 10, deviations 2 and 1, three each: relative errors of 1/10 over the root
        // of three, four degrees of freedom, whose quantile is 2.776445.
        let ratio = ratio(&tally(&[18, 20, 22]), &tally(&[9, 10, 11])).unwrap();
        assert_eq!(ratio.value, 2.0);
        let (low, high) = ratio.interval.unwrap();
        let factor = (2.776_445 * (2.0 * 0.01 / 3.0_f64).sqrt()).exp();
        assert!((high - 2.0 * factor).abs() < 1e-5, "{high}");
        assert!((low - 2.0 / factor).abs() < 1e-5, "{low}");
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        let one = ratio(&tally(&[5]), &tally(&[4, 6])).unwrap();
        assert_eq!((one.value, one.interval), (1.0, None));
        assert!(ratio(&tally(&[]), &tally(&[4])).is_none());
        assert!(ratio(&tally(&[1]), &tally(&[0, 0])).is_none());
        assert_eq!(ratio(&tally(&[7, 7]), &tally(&[7, 7])).unwrap().interval, Some((1.0, 1.0)));
        assert_eq!(tally(&[3]).deviation_ns(), None);
    }

    #[test]
    fn merged_sums_are_those_of_all() {
        let mut merged = tally(&[1, 5]);
        merged.merge(&tally(&[]));
        merged.merge(&tally(&[9, 2]));
        assert_eq!(merged, tally(&[1, 5, 9, 2]));
        let mut empty = tally(&[]);
        empty.merge(&tally(&[4]));
        assert_eq!(empty, tally(&[4]));
    }
}
