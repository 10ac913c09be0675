//! The arithmetic of the estimates.
//!
//! Quantiles of distributions come from `statrs`. Quantiles of samples do not: it interpolates by
//! another rule (type 8 of Hyndman and Fan) than NumPy, R and Criterion, which use type 7.

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

/// The median; the mean of the two middle values of an even number. NaN for none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
}

/// The value that a share of the values is below.
#[must_use]
pub(super) fn quantile_of(values: &[f64], share: f64) -> f64 {
    quantile(&sorted(values), share)
}

/// The interval of the median that the values in their order give, whatever they are distributed
/// like: the innermost two of them that cover at least 95 % (the sign test). `None` for fewer than
/// six values, all of which cover less.
#[must_use]
pub fn median_interval(values: &[f64]) -> Option<[f64; 2]> {
    let (sorted, count) = (sorted(values), values.len());
    // The chance that at most this many of the values lie on one side of the median.
    let (mut below, mut ways, mut chance) = (0, 1.0, 0.5_f64.powf(count_of(count)));
    if 2.0 * chance > 0.05 {
        return None;
    }
    loop {
        ways *= count_of(count - below) / count_of(below + 1);
        let next = chance + ways * 0.5_f64.powf(count_of(count));
        if 2.0 * next > 0.05 {
            return Some([sorted[below], sorted[count - 1 - below]]);
        }
        (below, chance) = (below + 1, next);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a handful of values")]
const fn count_of(values: usize) -> f64 {
    values as f64
}

/// The median with the quartiles around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quartiles {
    /// A quarter of the values is below.
    pub q1: f64,
    /// Half of the values is below.
    pub median: f64,
    /// Three quarters of the values are below.
    pub q3: f64,
}

/// The quartiles, interpolated linearly between the values around them (type 7 of Hyndman and Fan,
/// the default of NumPy and R). NaN for none.
#[must_use]
pub fn quartiles(values: &[f64]) -> Quartiles {
    let sorted = sorted(values);
    Quartiles {
        q1: quantile(&sorted, 0.25),
        median: quantile(&sorted, 0.5),
        q3: quantile(&sorted, 0.75),
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a position in a slice"
)]
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let position = share * last as f64;
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    below + (above - below) * position.fract()
}

/// The mean; NaN for none.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a handful of values")]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean of independent values and its standard error, which is infinite for fewer than two.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a handful of values")]
pub(super) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let (count, mean) = (values.len() as f64, mean(values));
    if values.len() < 2 {
        return (mean, f64::INFINITY);
    }
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (count - 1.0) / count).sqrt())
}

/// The factor of the standard error in a two-sided interval that covers a share of Student's t:
/// 0.95 gives its 97.5 % quantile. Infinite for no degrees of freedom.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a handful of values")]
pub(crate) fn t_factor(degrees: usize, covered: f64) -> f64 {
    // Only a number of degrees that is not positive is refused.
    StudentsT::new(0.0, 1.0, degrees as f64)
        .map_or(f64::INFINITY, |student| student.inverse_cdf(0.5 + 0.5 * covered))
}

/// The number that a share of the standard normal distribution does not exceed.
#[must_use]
pub(crate) fn normal_quantile(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}

/// The number that a share of the chi-squared distribution with this many degrees of freedom does not
/// exceed; infinite for no degrees.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a handful of controls")]
pub(crate) fn chi_squared_quantile(degrees: usize, share: f64) -> f64 {
    ChiSquared::new(degrees as f64).map_or(f64::INFINITY, |chi| chi.inverse_cdf(share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_by_hand() {
        assert!(median(&[]).is_nan());
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        let quartiles = quartiles(&[5.0, 1.0, 2.0, 4.0, 3.0]);
        assert_eq!((quartiles.q1, quartiles.median, quartiles.q3), (2.0, 3.0, 4.0));
    }

    /// Conover, Practical Nonparametric Statistics, table A3: with ten values the second and the
    /// ninth cover 97.9 %, with twenty the sixth and the fifteenth 95.9 %.
    #[test]
    fn the_interval_of_a_median_by_a_table() {
        let values = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        for (count, expected) in [
            (0, None),
            (5, None),
            (6, Some([1.0, 6.0])),
            (8, Some([1.0, 8.0])),
            (9, Some([2.0, 8.0])),
            (10, Some([2.0, 9.0])),
            (20, Some([6.0, 15.0])),
        ] {
            assert_eq!(median_interval(&values(count)), expected, "{count}");
        }
    }

    #[test]
    fn the_error_of_a_mean_by_hand() {
        // Mean 2, variance 1.
        let (mean, error) = mean_and_error(&[1.0, 2.0, 3.0]);
        assert_eq!(mean, 2.0);
        assert!((error - 1.0 / 3.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(mean_and_error(&[1.0]), (1.0, f64::INFINITY));
    }

    /// Abramowitz and Stegun, table 26.10, for 1 to 30 degrees of freedom.
    const A_AND_S_975: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    const A_AND_S_995: [f64; 30] = [
        63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012,
        2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779,
        2.771, 2.763, 2.756, 2.750,
    ];

    #[test]
    fn the_factors_are_those_of_the_published_tables() {
        for (covered, table) in [(0.95, A_AND_S_975), (0.99, A_AND_S_995)] {
            for (degrees, expected) in (1..).zip(table) {
                let factor = t_factor(degrees, covered);
                assert!((factor - expected).abs() < 6e-4, "{degrees} degrees: {factor}");
            }
        }
        assert_eq!(t_factor(0, 0.95), f64::INFINITY);
    }

    /// Cornish and Fisher's expansion around the quantile of the normal distribution (Abramowitz
    /// and Stegun, 26.7.5), which is good to 1e-4 beyond 30 degrees of freedom.
    #[test]
    fn the_factors_of_many_degrees_approach_the_normal_distribution() {
        for covered in [0.95, 0.99] {
            let x = normal_quantile(0.5 + 0.5 * covered);
            let (x3, x5, x7) = (x.powi(3), x.powi(5), x.powi(7));
            for degrees in (31..400).chain([1_000, 10_000]) {
                let n = degrees as f64;
                let expected = x
                    + (x3 + x) / (4.0 * n)
                    + (5.0 * x5 + 16.0 * x3 + 3.0 * x) / (96.0 * n * n)
                    + (3.0 * x7 + 19.0 * x5 + 17.0 * x3 - 15.0 * x) / (384.0 * n * n * n);
                let factor = t_factor(degrees, covered);
                assert!((factor - expected).abs() < 1e-4, "{degrees} degrees: {factor}");
            }
        }
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-12);
        assert!((normal_quantile(0.95) - 1.644_853_626_951_472).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn the_quartiles_are_ordered_and_among_the_values(
            values in proptest::collection::vec(-1e6..1e6_f64, 1..50),
        ) {
            let Quartiles { q1, median, q3 } = quartiles(&values);
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(least <= q1 && q1 <= median && median <= q3 && q3 <= largest);
        }
    }
}
