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

/// The mean of independent values and the half-width of its 95 % interval by Student's t.
///
/// The half-width of fewer than two values is infinite.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a handful of values")]
pub fn mean_interval(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, f64::INFINITY);
    }
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let standard_error = (squares / (count - 1.0) / count).sqrt();
    (mean, t_quantile_975(values.len() - 1) * standard_error)
}

/// The 97.5 % quantile of Student's t, the factor of a two-sided 95 % interval.
///
/// Tabulated (Abramowitz and Stegun, table 26.10) up to 30 degrees of freedom, beyond that by the
/// expansion around the normal quantile (ibid., 26.7.5), which is good to 1e-5 there.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a handful of values")]
pub fn t_quantile_975(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    /// The 97.5 % quantile of the normal distribution.
    const NORMAL: f64 = 1.959_963_985;
    match degrees {
        0 => f64::INFINITY,
        1..=30 => TABLE[degrees - 1],
        _ => {
            let n = degrees as f64;
            let (x, x3, x5) = (NORMAL, NORMAL.powi(3), NORMAL.powi(5));
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
    fn the_interval_of_a_mean_by_hand() {
        // Mean 2, variance 1, standard error 1/sqrt(3), t with 2 degrees 4.303.
        let (mean, half_width) = mean_interval(&[1.0, 2.0, 3.0]);
        assert_eq!(mean, 2.0);
        assert!((half_width - 4.303 / 3.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(mean_interval(&[1.0]).1, f64::INFINITY);
    }

    #[test]
    fn the_table_meets_the_expansion_and_the_normal_quantile() {
        assert!((t_quantile_975(40) - 2.0211).abs() < 1e-4);
        assert!((t_quantile_975(120) - 1.9799).abs() < 1e-4);
        assert!(
            (1..500).all(|degrees| t_quantile_975(degrees) > t_quantile_975(degrees + 1) - 1e-9)
        );
        assert!((t_quantile_975(1_000_000) - 1.959_964).abs() < 1e-5);
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
