//! Student's t distribution with a whole number of degrees of freedom.
//!
//! A comparison needs no other distribution, and these finite sums need no library, see
//! `docs/decisions/0049-comparing-calibrations.md`.

use std::f64::consts::FRAC_2_PI;

/// The chance of a value at least this far from 0, on either side: Abramowitz and Stegun, Handbook of
/// Mathematical Functions, 26.7.3 for odd degrees and 26.7.4 for even ones.
pub(super) fn two_sided_p(t: f64, degrees: u32) -> f64 {
    let degrees = degrees.max(1);
    let angle = (t.abs() / f64::from(degrees).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let is_odd = degrees % 2 == 1;
    let (mut power, mut term) = if is_odd { (1, cos) } else { (0, 1.0) };
    let mut sum = 0.0;
    while power + 2 <= degrees {
        sum += term;
        term *= cos * cos * f64::from(power + 1) / f64::from(power + 2);
        power += 2;
    }
    let within = if is_odd { FRAC_2_PI * (angle + sin * sum) } else { sin * sum };
    (1.0 - within).clamp(0.0, 1.0)
}

/// How many standard errors a 95 % interval reaches to either side.
pub(super) fn t_95(degrees: u32) -> f64 {
    let is_beyond = |t: f64| two_sided_p(t, degrees) < 0.05;
    let (mut below, mut beyond) = (0.0, 2.0);
    while !is_beyond(beyond) {
        (below, beyond) = (beyond, 2.0 * beyond);
    }
    // Each step halves the distance: 50 of them leave less than the digits of the number.
    for _ in 0..50 {
        let middle = 0.5 * (below + beyond);
        if is_beyond(middle) {
            beyond = middle;
        } else {
            below = middle;
        }
    }
    beyond
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, expected) in [
            (1, 12.706_205),
            (2, 4.302_653),
            (3, 3.182_446),
            (4, 2.776_445),
            (9, 2.262_157),
            (18, 2.100_922),
            (30, 2.042_272),
            (1000, 1.962_339),
        ] {
            assert!((t_95(degrees) - expected).abs() < 1e-6, "{degrees}: {}", t_95(degrees));
        }
    }

    #[test]
    fn chances_are_those_of_the_tables() {
        for (t, degrees, expected) in [
            (0.0, 5, 1.0),
            (1.0, 1, 0.5),
            (3.249_836, 9, 0.01),
            (-3.249_836, 9, 0.01),
            (4.780_913, 9, 0.001),
            (3.921_646, 18, 0.001),
            (6.965, 10, 3.869e-5),
        ] {
            let p = two_sided_p(t, degrees);
            assert!((p / expected - 1.0).abs() < 2e-3, "{t} {degrees}: {p}");
        }
        assert_eq!(two_sided_p(f64::INFINITY, 4), 0.0);
    }
}
