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

/// The same to about fifteen digits, without a branch or a call, so that a loop over it becomes
/// vectors. Nearly nothing rather than nothing is left at distances of hundreds of length scales.
#[inline(always)]
pub(super) fn smooth_correlation(squared: f64) -> f64 {
    let distance = (UNITS * UNITS * squared).sqrt();
    (1.0 + std::f64::consts::LN_2 * distance) * fine_power_of_half(distance)
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
    // The first sum is the first square, whatever its sign.
    let mut squared = [-0.0; LANES];
    // By index, so that it is unrolled; and what is in memory comes first, which needs no copy of `x`.
    for dimension in 0..D {
        for lane in 0..LANES {
            let apart = points[dimension][lane] - x[dimension];
            squared[lane] += apart * apart;
        }
    }
    squared
}

/// `2^-x` for `x >= 0` with about six digits, without a branch or a call, so that a loop over it becomes
/// vectors.
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

/// The same in double precision, with about fifteen digits. Of a NaN it is one.
#[inline(always)]
fn fine_power_of_half(x: f64) -> f64 {
    /// Added to a number below 2^51 it leaves the nearest integer in the low bits.
    const TO_INTEGER: f64 = 6_755_399_441_055_744.0;
    /// Below 2^-1022 a result would have no exponent of its own.
    const LEAST: f64 = 1022.0;
    /// What is left of 2^rest beyond 1, over the rest: the polynomial that is nearest to it where the
    /// rest is at most a half.
    const POWER: [f64; 11] = [
        std::f64::consts::LN_2,
        0.240_226_506_959_100_97,
        0.055_504_108_664_821_6,
        0.009_618_129_107_606_888,
        0.001_333_355_814_641_693_6,
        0.000_154_035_304_417_360_5,
        1.525_273_382_983_612e-5,
        1.321_544_258_792_169e-6,
        1.017_806_244_584_577_4e-7,
        7.072_585_949_269_223e-9,
        4.454_960_598_186_548_6e-10,
    ];
    let x = if x > LEAST { LEAST } else { x };
    let shifted = TO_INTEGER - x;
    let rest = (TO_INTEGER - shifted) - x;
    // Even and odd powers by themselves, since each product waits for the one before.
    let square = rest * rest;
    let [mut odd, mut even] = [POWER[9], POWER[10]];
    for index in (0..5).rev() {
        even = even * square + POWER[2 * index];
        if index > 0 {
            odd = odd * square + POWER[2 * index - 1];
        }
    }
    let power = odd * rest + even;
    let whole = f64::from_bits(shifted.to_bits().wrapping_shl(52).wrapping_add(1023 << 52));
    (1.0 + rest * power) * whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_fine_power_has_fifteen_digits(x in 0.0..1022.0_f64) {
            let (found, expected) = (fine_power_of_half(x), (-x).exp2());
            prop_assert!((found / expected - 1.0).abs() < 1e-15, "{x}: {found} {expected}");
        }

        /// Both round the distance, and the power grows with that: hence the factor.
        #[test]
        fn the_smooth_correlation_is_the_plain_one(ln_squared in -80.0..12.0_f64) {
            let squared = ln_squared.exp();
            let (found, expected) = (smooth_correlation(squared), correlation(squared));
            let digits = 1e-15 * (1.0 + squared.sqrt());
            prop_assert!((found / expected - 1.0).abs() < digits, "{squared}: {found} {expected}");
        }
    }

    #[test]
    fn the_smooth_correlation_at_both_ends() {
        assert_eq!(smooth_correlation(0.0), 1.0);
        assert_eq!(fine_power_of_half(0.0), 1.0);
        assert_eq!(fine_power_of_half(1022.0), f64::MIN_POSITIVE);
        for far in [1e6, 1e300, f64::INFINITY] {
            assert!((0.0..1e-300).contains(&fine_power_of_half(far)), "{far}");
        }
        assert!(fine_power_of_half(f64::NAN).is_nan());
        assert!(smooth_correlation(f64::NAN).is_nan());
        assert!(smooth_correlation(1e12) < 1e-290);
    }

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
