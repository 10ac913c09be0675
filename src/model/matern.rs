//! The Matern 3/2 correlation: `(1 + sqrt(3) r) exp(-sqrt(3) r)` at a distance `r`.
//!
//! A surface with this correlation has a slope everywhere but no curvature to speak of, which suits
//! times over sizes: they rise steadily and have kinks.

/// Points that are looked at together: four to a vector of the oldest x86-64, twice.
pub(super) const LANES: usize = 8;

/// One number for each of [`LANES`] points.
pub(super) type Lane = [f32; LANES];

/// The correlation at the square of a distance.
pub(super) fn correlation(squared: f64) -> f64 {
    let scaled = (3.0 * squared).sqrt();
    (1.0 + scaled) * (-scaled).exp()
}

/// The same for several points at once, to about seven digits.
#[inline]
pub(super) fn correlations(squared: Lane) -> Lane {
    let mut result = [0.0; LANES];
    for lane in 0..LANES {
        let scaled = (3.0 * squared[lane]).sqrt();
        result[lane] = (1.0 + scaled) * exp_of_negative(scaled);
    }
    result
}

/// Squared distances from `x` to several points, whose coordinates are one lane for each dimension.
#[inline]
pub(super) fn squared_distances(x: &[f32], points: &[Lane]) -> Lane {
    let mut squared = [0.0; LANES];
    for (&own, others) in x.iter().zip(points) {
        for lane in 0..LANES {
            let apart = own - others[lane];
            squared[lane] += apart * apart;
        }
    }
    squared
}

/// `exp(-x)` for `x >= 0`, without a branch or a call, so that a loop over it becomes vectors.
#[inline]
fn exp_of_negative(x: f32) -> f32 {
    /// Added to a number below 2^22 it leaves the nearest integer in the low bits.
    const TO_INTEGER: f32 = 12_582_912.0;
    // Below 2^-126 a result would have no exponent of its own.
    let exponent = (-x * std::f32::consts::LOG2_E).max(-126.0);
    let shifted = exponent + TO_INTEGER;
    let rest = exponent - (shifted - TO_INTEGER);
    // 2^rest for a rest of at most a half: its Taylor series.
    let power = 1.0
        + rest
            * (std::f32::consts::LN_2
                + rest
                    * (0.240_226_5
                        + rest
                            * (0.055_504_11
                                + rest
                                    * (0.009_618_129
                                        + rest * (0.001_333_355_8 + rest * 0.000_154_035_3)))));
    let whole = f32::from_bits(shifted.to_bits().wrapping_shl(23).wrapping_add(127 << 23));
    power * whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_has_five_digits() {
        for step in 0..8_700 {
            let x = 0.01 * f64::from(step);
            #[expect(clippy::cast_possible_truncation, reason = "the argument as it is given")]
            let found = f64::from(exp_of_negative(x as f32));
            let expected = (-f64::from(x as f32)).exp();
            assert!((found / expected - 1.0).abs() < 1e-5, "{x}: {found} {expected}");
        }
        assert!(exp_of_negative(1e30) < 1e-37 && exp_of_negative(1e30) > 0.0);
        assert_eq!(exp_of_negative(0.0), 1.0);
    }

    #[test]
    fn lanes_agree_with_one_at_a_time() {
        let points: [Lane; 2] =
            [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1e4, -1.0], [0.0, 1.0, -2.0, 0.5, 9.0, 0.0, 1e4, 0.1]];
        let squared = squared_distances(&[0.5, 0.25], &points);
        for lane in 0..LANES {
            let apart = [0.5 - points[0][lane], 0.25 - points[1][lane]].map(f64::from);
            let expected = apart[0] * apart[0] + apart[1] * apart[1];
            assert!((f64::from(squared[lane]) / expected - 1.0).abs() < 1e-6);
            let found = f64::from(correlations(squared)[lane]);
            assert!((found - correlation(expected)).abs() < 1e-6, "{found}");
        }
        assert_eq!(correlation(0.0), 1.0);
    }
}
