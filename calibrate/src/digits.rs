//! How many digits measured numbers have in files.

/// Digits that are kept of measured numbers: more than any measurement has, few enough to read.
const SIGNIFICANT_DIGITS: usize = 6;

/// Rounds to six significant digits.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // Through text, so that the result is the number that is nearest to its decimal digits.
    let digits = SIGNIFICANT_DIGITS - 1;
    format!("{value:.digits$e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_six_digits() {
        assert_eq!(rounded(1.234_567_89), 1.234_57);
        assert_eq!(rounded(0.000_123_456_789), 0.000_123_457);
        assert_eq!(rounded(123_456_789.0), 123_457_000.0);
        assert_eq!(rounded(0.0), 0.0);
        assert_eq!(rounded(f64::INFINITY), f64::INFINITY);
    }
}
