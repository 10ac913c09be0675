//! A number with its interval, and the ratio of two.

use serde::Serialize;

use super::student::t_95;

/// A number with its 95 % interval, if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// The number.
    pub value: f64,
    /// The ends of the interval; `None` where nobody knows how far it is off.
    pub interval: Option<[f64; 2]>,
}

impl Figure {
    /// A number without an interval.
    #[must_use]
    pub const fn bare(value: f64) -> Self {
        Self { value, interval: None }
    }

    pub(super) const fn new(value: f64, low: f64, high: f64) -> Self {
        Self { value, interval: Some([low, high]) }
    }

    /// How far it is to each end of the interval, in the logarithm.
    fn reaches(&self) -> Option<[f64; 2]> {
        let [low, high] = self.interval?;
        // What was rounded may lie a digit beyond its interval.
        Some([(self.value / low).ln().max(0.0), (high / self.value).ln().max(0.0)])
    }

    /// This number over another one. The interval is that of the MOVER method, which leaves each
    /// side's interval as it is, however uneven: what reaches down is the root of the sum of the
    /// squares of how far this one reaches down and the other one up (Zou and Donner, Statistics in
    /// Medicine, 2008).
    #[must_use]
    pub fn over(&self, other: &Self) -> Self {
        let value = self.value / other.value;
        let interval = self.reaches().zip(other.reaches()).map(|(this, other)| {
            let down = this[0].hypot(other[1]);
            let up = this[1].hypot(other[0]);
            [value * (-down).exp(), value * up.exp()]
        });
        Self { value, interval }
    }

    /// The standard error of the logarithm and its degrees of freedom, towards 1, where the interval
    /// is one over this many processes.
    fn error_towards(&self, is_down: bool, processes: u32) -> Option<[f64; 2]> {
        let reach = self.reaches()?[usize::from(!is_down)];
        let degrees = processes.checked_sub(1).filter(|degrees| *degrees >= LEAST_DEGREES)?;
        Some([reach / t_95(degrees), f64::from(degrees)])
    }
}

/// With fewer than three processes, an interval is one over the rounds of a process, and leaves out
/// what differs between processes.
pub(super) const LEAST_DEGREES: u32 = 2;

/// The chance that two numbers differ at least this much if they are the same, each with an interval
/// over some processes: Student's t with the degrees of freedom of Welch and Satterthwaite.
pub(super) fn chance(second: (&Figure, u32), first: (&Figure, u32)) -> Option<f64> {
    let difference = (second.0.value / first.0.value).ln();
    let is_down = difference > 0.0;
    let [of_second, its_degrees] = second.0.error_towards(is_down, second.1)?;
    let [of_first, degrees] = first.0.error_towards(!is_down, first.1)?;
    let variance = of_second * of_second + of_first * of_first;
    if variance == 0.0 {
        return Some(if difference == 0.0 { 1.0 } else { 0.0 });
    }
    let shares = of_second.powi(4) / its_degrees + of_first.powi(4) / degrees;
    // Rounded down, which makes the chance larger; but for what is a whole number.
    const DIGITS: f64 = 1e-9;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least one and at most the sum of two counts"
    )]
    let degrees = (variance * variance / shares + DIGITS).floor().max(1.0) as u32;
    Some(super::student::two_sided_p(difference / variance.sqrt(), degrees))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(value: f64, half: f64) -> Figure {
        Figure::new(value, value * (-half).exp(), value * half.exp())
    }

    #[test]
    fn the_half_width_is_the_root_of_the_sum_of_squares() {
        let ratio = even(1.2, 0.03).over(&even(1.0, 0.04));
        let [low, high] = ratio.interval.unwrap();
        assert!((ratio.value - 1.2).abs() < 1e-12);
        assert!(((1.2 / low).ln() - 0.05).abs() < 1e-12);
        assert!(((high / 1.2).ln() - 0.05).abs() < 1e-12);
        assert_eq!(even(1.0, 0.1).over(&Figure::bare(2.0)), Figure::bare(0.5));
    }

    #[test]
    fn uneven_intervals_stay_uneven() {
        let first = Figure::new(1.0, 0.9, 1.01);
        let [low, high] = even(1.0, 0.01).over(&first).interval.unwrap();
        assert!(low > 0.98 && high > 1.11, "{low} {high}");
    }

    #[test]
    fn as_far_apart_as_a_single_interval_reaches_is_a_chance_of_one_in_twenty() {
        // With the same error on both sides, there are twice the degrees of freedom of one.
        let error = 0.01;
        let half = error * t_95(9);
        let apart = error * 2.0_f64.sqrt() * t_95(18);
        let p = chance((&even(apart.exp(), half), 10), (&even(1.0, half), 10)).unwrap();
        assert!((p - 0.05).abs() < 1e-6, "{p}");
        assert_eq!(chance((&even(1.1, 0.01), 2), (&even(1.0, 0.01), 10)), None);
        assert_eq!(chance((&Figure::bare(1.1), 10), (&even(1.0, 0.01), 10)), None);
    }
}
