//! The arithmetic of the estimates.

/// The median; the mean of the two middle values of an even number. NaN for none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
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

/// The quartiles, interpolated linearly between the values around them. NaN for none.
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
    sorted.sort_by(f64::total_cmp);
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

/// The 97.5 % quantile of Student's t, the factor of a two-sided 95 % interval; infinite for no
/// degrees of freedom.
#[must_use]
pub(super) fn t_quantile_975(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    t_quantile(degrees, &TABLE, 1.959_963_985)
}

/// The 99.5 % quantile of Student's t, the factor of a two-sided 99 % interval; infinite for no
/// degrees of freedom.
#[must_use]
pub(super) fn t_quantile_995(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012,
        2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779,
        2.771, 2.763, 2.756, 2.750,
    ];
    t_quantile(degrees, &TABLE, 2.575_829_304)
}

/// A quantile of Student's t from a table (Abramowitz and Stegun, table 26.10) up to 30 degrees of
/// freedom, beyond that by the expansion around the quantile of the normal distribution (ibid.,
/// 26.7.5), which is good to 1e-4 there.
#[expect(clippy::cast_precision_loss, reason = "a handful of values")]
fn t_quantile(degrees: usize, table: &[f64; 30], normal: f64) -> f64 {
    match degrees {
        0 => f64::INFINITY,
        1..=30 => table[degrees - 1],
        _ => {
            let n = degrees as f64;
            let (x, x3, x5) = (normal, normal.powi(3), normal.powi(5));
            x + (x3 + x) / (4.0 * n) + (5.0 * x5 + 16.0 * x3 + 3.0 * x) / (96.0 * n * n)
        }
    }
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

    #[test]
    fn the_error_of_a_mean_by_hand() {
        // Mean 2, variance 1.
        let (mean, error) = mean_and_error(&[1.0, 2.0, 3.0]);
        assert_eq!(mean, 2.0);
        assert!((error - 1.0 / 3.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(mean_and_error(&[1.0]), (1.0, f64::INFINITY));
    }

    /// The share of Student's t below `x`, by integrating its density, whose normalisation is
    /// integrated too. With `t = sqrt(n) tan(a)` the density is `cos(a)^(n - 1)`.
    fn share_below(x: f64, degrees: usize) -> f64 {
        let power = i32::try_from(degrees).unwrap() - 1;
        let integral = |to: f64| {
            const STEPS: u32 = 20_000;
            let step = to / f64::from(STEPS);
            let value = |i: u32| (step * (f64::from(i) + 0.5)).cos().powi(power);
            (0..STEPS).map(value).sum::<f64>() * step
        };
        let angle = (x / f64::from(power + 1).sqrt()).atan();
        0.5 + 0.5 * integral(angle) / integral(std::f64::consts::FRAC_PI_2)
    }

    #[test]
    fn the_quantiles_leave_the_right_share_above() {
        for degrees in (1..=40).chain([60, 100, 1000]) {
            let share = share_below(t_quantile_975(degrees), degrees);
            assert!((share - 0.975).abs() < 4e-5, "{degrees} degrees: {share}");
            let share = share_below(t_quantile_995(degrees), degrees);
            assert!((share - 0.995).abs() < 4e-5, "{degrees} degrees: {share}");
        }
        assert_eq!(t_quantile_975(0), f64::INFINITY);
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
