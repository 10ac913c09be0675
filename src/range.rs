//! What a figure of a file must lie between.
//!
//! Ranges are wide: a factor of a hundred and more around everything that was ever built or
//! measured. What lies outside is a figure in another unit, or a slip of the hand.

use std::ops::RangeInclusive;

use crate::place::Place;

/// What a figure must lie between, and its unit.
pub(crate) struct Range {
    least: f64,
    most: f64,
    unit: &'static str,
}

impl Range {
    /// A range, both ends included, in a unit, which is empty for what has none.
    pub(crate) const fn new(range: RangeInclusive<f64>, unit: &'static str) -> Self {
        Self { least: *range.start(), most: *range.end(), unit }
    }

    /// Whether a figure lies in it. A NaN does not.
    pub(crate) fn contains(&self, figure: f64) -> bool {
        (self.least..=self.most).contains(&figure)
    }

    /// Fails with the place of a figure that lies outside, and why.
    pub(crate) fn check(&self, place: Place, figure: f64) -> Result<(), (Place, String)> {
        if self.contains(figure) {
            return Ok(());
        }
        let Self { least, most, unit } = self;
        let figure = Shown(figure);
        let why = format!(
            "it is {figure}; it must be between {} and {} {unit}",
            Shown(*least),
            Shown(*most)
        );
        Err((place, why.trim_end().to_owned()))
    }
}

/// A figure as a person would write it: with its zeros as long as they can be counted.
struct Shown(f64);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(figure) = *self;
        let can_be_counted = figure == 0.0 || (1e-3..1e10).contains(&figure.abs());
        if can_be_counted || !figure.is_finite() {
            write!(f, "{figure}")
        } else {
            write!(f, "{figure:e}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_is_said_with_both_ends() {
        let range = Range::new(1e-7..=1e9, "ms");
        for figure in [1e-7, 1.0, 1e9] {
            assert_eq!(range.check(Place::of("ms"), figure), Ok(()));
        }
        for (figure, shown) in [
            (0.0, "0"),
            (-0.5, "-0.5"),
            (1e30, "1e30"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
            (1.1e9, "1100000000"),
            (9e-8, "9e-8"),
        ] {
            let (place, why) = range.check(Place::of("ms"), figure).unwrap_err();
            let expected = format!("it is {shown}; it must be between 1e-7 and 1000000000 ms");
            assert_eq!((place, why), (Place::of("ms"), expected));
        }
        let without_unit = Range::new(1.0..=9.0, "").check(Place::of("level"), 10.0);
        assert_eq!(without_unit.unwrap_err().1, "it is 10; it must be between 1 and 9");
    }
}
