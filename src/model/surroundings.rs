//! The samples around one: what the variance of a value near it follows from.
//!
//! The variance of a value given all samples is a quadratic form of their number. Given the nearest
//! few it is hardly larger, since they hide those behind them, and it is a quadratic form of eight.

use super::covariance::{Covariance, Sample};
use super::kriging::NAMED;
use super::matern::LANES;

/// A sample and those nearest to it, [`LANES`] together.
///
/// Queries about different places read different ones of these, so that they are as small as they
/// can be.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// The samples: that itself first. Where there are fewer, it is repeated, with an inverse of 0.
    members: [u32; LANES],
    /// How many there are.
    len: u32,
    proportions: [f64; LANES],
    /// The inverse of the factor of their covariance, two rows at a time: a pair for each member up to
    /// the second of them, as there is nothing above the diagonal.
    inverse: [[f64; 2]; PAIRS],
}

/// Pairs of rows up to their diagonal: 2 + 4 + 6 + 8.
const PAIRS: usize = 20;

/// Where the pairs of two rows begin.
const fn first_pair(rows: usize) -> usize {
    rows * (rows + 1)
}

impl Surroundings {
    /// `None` where their covariance cannot be factored.
    pub(super) fn of(sample: usize, samples: &[Sample], covariance: &Covariance) -> Option<Self> {
        let near = nearest(sample, samples, covariance);
        let n = samples.len().min(LANES);
        let of_members = near.map(|index| &samples[index]);
        let mut factor = [0.0; LANES * LANES];
        if !covariance.factor_into(&of_members[..n], &mut factor[..n * n]) {
            return None;
        }
        let columns = inverse(&factor, n);
        let mut inverse = [[0.0; 2]; PAIRS];
        for (row, columns) in columns.iter().enumerate().take(n) {
            for (member, &value) in columns.iter().enumerate().take(row + 1) {
                inverse[first_pair(row / 2) + member][row % 2] = value;
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 1024 samples")]
        let members = near.map(|index| index as u32);
        let mut proportions = of_members.map(|one| one.place.proportion);
        proportions[n..].fill(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "at most LANES")]
        let len = n as u32;
        Some(Self { members, len, proportions, inverse })
    }

    /// The samples to name, the nearest first.
    pub(super) fn named(&self) -> [Option<u32>; NAMED] {
        std::array::from_fn(|index| (index < self.len as usize).then(|| self.members[index]))
    }

    /// The variance of a measurement near the sample, given those around it, from the correlations of
    /// all samples with it.
    #[inline]
    pub(super) fn variance(&self, covariance: &Covariance, proportion: f64, alike: &[f32]) -> f64 {
        let of_member = |member: usize| {
            let alike = f64::from(alike[self.members[member] as usize]);
            covariance.in_common(proportion, self.proportions[member]) + covariance.surface * alike
        };
        let explained = self.explained(&std::array::from_fn(of_member));
        // In pairs, since each sum waits for the one before.
        let [a, b, c, d] = std::array::from_fn(|pair| {
            explained[2 * pair].powi(2) + explained[2 * pair + 1].powi(2)
        });
        let explained = (a + b) + (c + d);
        covariance.of_new(proportion) - explained
    }

    /// What each member explains beyond those before it, from its covariance with the value.
    ///
    /// It is not inlined, for the same reason as the pass over all samples.
    #[inline(never)]
    fn explained(&self, alike: &[f64; LANES]) -> [f64; LANES] {
        let mut explained = [0.0; LANES];
        for rows in 0..LANES / 2 {
            let pairs = &self.inverse[first_pair(rows)..][..2 * rows + 2];
            let mut sums = [0.0; 2];
            for (alike, pair) in alike.iter().zip(pairs) {
                for row in 0..2 {
                    sums[row] += alike * pair[row];
                }
            }
            explained[2 * rows..][..2].copy_from_slice(&sums);
        }
        explained
    }
}

/// A sample and those nearest to it, nearest first; where there are fewer, it is repeated. Of several
/// at the same place, the sample itself comes first, and then the first ones.
fn nearest(sample: usize, samples: &[Sample], covariance: &Covariance) -> [usize; LANES] {
    let own = &samples[sample].place;
    let mut near = [(f64::INFINITY, sample); LANES];
    near[0].0 = 0.0;
    for (index, other) in samples.iter().enumerate() {
        let squared = covariance.squared_distance(own, &other.place);
        if squared >= near[LANES - 1].0 || index == sample {
            continue;
        }
        let at = near.partition_point(|one| one.0 <= squared);
        near.copy_within(at..LANES - 1, at + 1);
        near[at] = (squared, index);
    }
    near.map(|(_, index)| index)
}

/// The inverse of a factor of at most [`LANES`] rows: all columns at once.
fn inverse(factor: &[f64], n: usize) -> [[f64; LANES]; LANES] {
    let mut columns = [[0.0; LANES]; LANES];
    for row in 0..n {
        let values = &factor[row * n..][..=row];
        let mut own = [0.0; LANES];
        own[row] = 1.0;
        for (column, value) in columns.iter().zip(&values[..row]) {
            for lane in 0..LANES {
                own[lane] -= value * column[lane];
            }
        }
        columns[row] = own.map(|one| one / values[row]);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::covariance::{Place, Prior};
    use crate::model::features::MAX_DIMENSIONS;
    use proptest::prelude::*;

    const PRIOR: Prior = Prior { mean_sd: 0.5, slope_sd: 0.4, amplitude: 0.2 };

    /// Places on a grid, so that many are as far away as others.
    fn samples(coordinates: &[(u8, u8)]) -> Vec<Sample> {
        let of = |&(x, y): &(u8, u8)| {
            let mut at = [0.0; MAX_DIMENSIONS];
            (at[0], at[1]) = (f64::from(x), f64::from(y));
            let place = Place { at, proportion: 0.1 * f64::from(x) };
            Sample { place, value: 0.0, variance: 1e-3 }
        };
        coordinates.iter().map(of).collect()
    }

    proptest! {
        #[test]
        fn the_nearest_are_the_first_of_all_in_order(
            coordinates in prop::collection::vec((0..5_u8, 0..5_u8), 1..40),
            sample in 0_usize..40,
        ) {
            let samples = samples(&coordinates);
            let sample = sample % samples.len();
            let covariance = Covariance::usual(2, PRIOR);
            let distance = |index: usize| {
                covariance.squared_distance(&samples[sample].place, &samples[index].place)
            };
            let mut all: Vec<usize> = (0..samples.len()).collect();
            all.sort_by(|&a, &b| {
                distance(a).total_cmp(&distance(b)).then((a != sample).cmp(&(b != sample)))
            });
            all.resize(all.len().max(LANES), sample);
            prop_assert_eq!(&nearest(sample, &samples, &covariance)[..], &all[..LANES]);
        }

        #[test]
        fn the_inverse_of_a_factor_makes_it_one(
            coordinates in prop::collection::vec((0..5_u8, 0..5_u8), 1..=LANES),
        ) {
            let samples = samples(&coordinates);
            let n = samples.len();
            let members: Vec<&Sample> = samples.iter().collect();
            let factor = Covariance::usual(2, PRIOR).factor(&members).unwrap();
            let columns = inverse(&factor, n);
            for row in 0..n {
                let product = |col: usize| -> f64 {
                    (col..=row).map(|k| factor[row * n + k] * columns[k][col]).sum()
                };
                for (col, product) in (0..=row).map(product).enumerate() {
                    let expected = f64::from(u8::from(row == col));
                    prop_assert!((product - expected).abs() < 1e-9, "{row} {col} {product}");
                }
            }
        }
    }
}
