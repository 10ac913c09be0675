//! The samples around one: what the variance of a value near it follows from.
//!
//! The variance of a value given all samples is a quadratic form of their number. Given the nearest
//! few it is hardly larger, since they hide those behind them, and it is a quadratic form of eight.

use super::covariance::{Covariance, Sample};
use super::kriging::NAMED;
use super::matern::LANES;
use super::matrix;

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
        let own = &samples[sample].place;
        let mut near: Vec<(f64, usize)> = samples
            .iter()
            .enumerate()
            .map(|(index, other)| (covariance.squared_distance(own, &other.place), index))
            .collect();
        // Of several at the same place, the sample itself comes first.
        let order = |&(distance, index): &(f64, usize)| (distance, index != sample, index);
        near.sort_unstable_by(|a, b| {
            let (a, b) = (order(a), order(b));
            a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2))
        });
        near.truncate(LANES);
        let of_members: Vec<&Sample> = near.iter().map(|&(_, index)| &samples[index]).collect();
        let n = near.len();
        let factor = covariance.factor(&of_members)?;
        let mut inverse = [[0.0; 2]; PAIRS];
        let mut proportions = [0.0; LANES];
        #[expect(clippy::cast_possible_truncation, reason = "at most 1024 samples")]
        let mut members = [sample as u32; LANES];
        for (member, &(_, index)) in near.iter().enumerate() {
            #[expect(clippy::cast_possible_truncation, reason = "at most 1024 samples")]
            let named = index as u32;
            members[member] = named;
            proportions[member] = samples[index].place.proportion;
            let mut column = [0.0; LANES];
            column[member] = 1.0;
            matrix::forward(&factor, n, &mut column[..n]);
            for (row, &value) in column.iter().enumerate().skip(member) {
                inverse[first_pair(row / 2) + member][row % 2] = value;
            }
        }
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
        let explained: f64 = explained.iter().map(|one| one * one).sum();
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
