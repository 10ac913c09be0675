//! Several tests at once.

/// The chances of Holm's step-down method: with each of them below 0.05 called a find, there is a
/// false one among all of them in at most one of twenty comparisons, whatever they have in common
/// (Scandinavian Journal of Statistics, 1979).
pub(super) fn adjusted(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|&a, &b| chances[a].total_cmp(&chances[b]));
    let mut adjusted = vec![1.0; chances.len()];
    let mut largest = 0.0_f64;
    for (place, &index) in order.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a count of records")]
        let left = (chances.len() - place) as f64;
        largest = largest.max((left * chances[index]).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let near = |given: &[f64], expected: &[f64]| {
            let found = adjusted(given);
            let is_near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12);
            assert!(is_near && found.len() == expected.len(), "{found:?} {expected:?}");
        };
        near(&[0.01, 0.04, 0.03, 0.005], &[0.03, 0.06, 0.06, 0.02]);
        near(&[0.5, 0.9], &[1.0, 1.0]);
        near(&[], &[]);
    }
}
