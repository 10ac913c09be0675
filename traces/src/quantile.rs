//! Which of some values is a quantile: always one of them, so that a duration in a report is one
//! that a kernel had.

/// The place, counted from one, of the smallest of ascending values that a percentage of all do not
/// exceed. At least 1, also of none.
pub(crate) fn nearest_rank(count: usize, percent: u32) -> usize {
    // A table has fewer rows than what would not fit after the division.
    (count as u128 * u128::from(percent)).div_ceil(100).max(1) as usize
}

/// That value; `None` of none.
pub(crate) fn quantile(mut values: Vec<f64>, percent: u32) -> Option<f64> {
    let place = nearest_rank(values.len(), percent) - 1;
    if place >= values.len() {
        return None;
    }
    Some(*values.select_nth_unstable_by(place, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_by_hand() {
        for (count, percent, expected) in
            [(0, 50, 1), (1, 95, 1), (2, 50, 1), (3, 50, 2), (20, 95, 19), (21, 95, 20), (4, 75, 3)]
        {
            assert_eq!(nearest_rank(count, percent), expected, "{percent} % of {count}");
        }
        assert_eq!(nearest_rank(usize::MAX, 100), usize::MAX);
    }

    #[test]
    fn a_quantile_is_one_of_the_values() {
        assert_eq!(quantile(vec![4.0, 1.0, 3.0, 2.0], 50), Some(2.0));
        assert_eq!(quantile(vec![4.0, 1.0, 3.0, 2.0], 75), Some(3.0));
        assert_eq!(quantile(Vec::new(), 50), None);
    }
}
