//! The Matern 3/2 correlation: `(1 + sqrt(3) r) exp(-sqrt(3) r)` at a distance `r`.
//!
//! A surface with this correlation has a slope everywhere but no curvature to speak of, which suits
//! times over sizes: they rise steadily and have kinks.

/// Points that are looked at together: four to a vector of the oldest x86-64, twice.
pub(super) const LANES: usize = 8;

/// One number for each of [`LANES`] points.
pub(super) type Lane = [f32; LANES];

/// Coordinates of lanes to a length scale, so that a distance between them is the exponent to base 2
/// of its correlation: the square root of 3, over the natural logarithm of 2.
pub(super) const UNITS: f64 = 1.732_050_807_568_877_2 * std::f64::consts::LOG2_E;

/// The correlation at the square of a distance in length scales.
pub(super) fn correlation(squared: f64) -> f64 {
    let scaled = (3.0 * squared).sqrt();
    (1.0 + scaled) * (-scaled).exp()
}

/// The correlations of several points at once, by their distances in [`UNITS`], to about six digits.
///
/// A loop, since the compiler does not inline `map` for an array, and then loads all constants for each.
#[inline(always)]
pub(super) fn correlations(distances: &Lane) -> Lane {
    let mut correlations = [0.0; LANES];
    for (correlation, &distance) in correlations.iter_mut().zip(distances) {
        *correlation = (1.0 + std::f32::consts::LN_2 * distance) * power_of_half(distance);
    }
    correlations
}

/// Squared distances from `x` to several points, whose coordinates are one lane for each dimension.
#[inline(always)]
pub(super) fn squared_distances<const D: usize>(x: &[f32; D], points: &[Lane; D]) -> Lane {
    let mut squared = [0.0; LANES];
    for (dimension, (&own, others)) in x.iter().zip(points).enumerate() {
        for lane in 0..LANES {
            let apart = own - others[lane];
            let before = if dimension == 0 { -0.0 } else { squared[lane] };
            squared[lane] = before + apart * apart;
        }
    }
    squared
}

/// `2^-x` for `x >= 0`, without a branch or a call, so that a loop over it becomes vectors.
#[inline(always)]
fn power_of_half(x: f32) -> f32 {
    /// Added to a number below 2^22 it leaves the nearest integer in the low bits.
    const TO_INTEGER: f32 = 12_582_912.0;
    /// Below 2^-126 a result would have no exponent of its own.
    const LEAST: f32 = 126.0;
    let x = if x < LEAST { x } else { LEAST };
    let shifted = TO_INTEGER - x;
    let rest = (TO_INTEGER - shifted) - x;
    // 2^rest for a rest of at most a half: the polynomial that is nearest to it and 1 at 0.
    let power = 1.0
        + rest
            * (std::f32::consts::LN_2
                + rest
                    * (0.240_223_5
                        + rest * (0.055_503_81 + rest * (0.009_666_368 + rest * 0.001_338_130_3))));
    let whole = f32::from_bits(shifted.to_bits().wrapping_shl(23).wrapping_add(127 << 23));
    power * whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_power_has_six_digits() {
        for step in 0..12_600 {
            let x = 0.01 * step as f32;
            let found = f64::from(power_of_half(x));
            let expected = (-f64::from(x)).exp2();
            assert!((found / expected - 1.0).abs() < 1e-6, "{x}: {found} {expected}");
        }
        assert!(power_of_half(1e30) < 1e-37 && power_of_half(1e30) > 0.0);
        assert_eq!(power_of_half(0.0), 1.0);
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
            let expected = expected / (UNITS * UNITS);
            let found = f64::from(correlations(&squared.map(f32::sqrt))[lane]);
            assert!((found - correlation(expected)).abs() < 1e-6, "{found}");
        }
        assert_eq!(correlation(0.0), 1.0);
    }
}
