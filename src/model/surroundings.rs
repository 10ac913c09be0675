//! The samples around one: what the variance of a value near it follows from.
//!
//! The variance of a value given all samples is a quadratic form of their number. Given the nearest
//! few it is hardly larger, since they hide those behind them, and it is a quadratic form of eight.

use super::covariance::{Covariance, Sample};
use super::features::MAX_DIMENSIONS;
use super::lanes::lanes;
use super::matern::{self, LANES, Lane};
use super::matrix;

/// A sample and those nearest to it, [`LANES`] together.
#[derive(Debug)]
pub(super) struct Surroundings<const D: usize> {
    /// The sample itself first; fewer where there are fewer samples.
    members: Vec<u32>,
    /// A lane for each coordinate.
    places: [Lane; D],
    proportions: [f64; LANES],
    /// The columns of the inverse of the factor of their covariance; 0 beyond the members.
    inverse: [[f64; LANES]; LANES],
}

impl<const D: usize> Surroundings<D> {
    /// `None` where their covariance cannot be factored.
    pub(super) fn of(
        sample: usize,
        samples: &[Sample],
        covariance: &Covariance,
        centre: &[f64; MAX_DIMENSIONS],
    ) -> Option<Self> {
        let own = &samples[sample].place;
        let mut members: Vec<(f64, usize)> = samples
            .iter()
            .enumerate()
            .map(|(index, other)| (covariance.squared_distance(own, &other.place), index))
            .collect();
        // Of several at the same place, the sample itself comes first.
        let order = |&(distance, index): &(f64, usize)| (distance, index != sample, index);
        members.sort_unstable_by(|a, b| {
            let (a, b) = (order(a), order(b));
            a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2))
        });
        members.truncate(LANES);
        let near: Vec<Sample> = members.iter().map(|&(_, index)| samples[index]).collect();
        let n = near.len();
        let factor = covariance.factor(&near.iter().collect::<Vec<_>>())?;
        let mut inverse = [[0.0; LANES]; LANES];
        let mut proportions = [0.0; LANES];
        for (index, sample) in near.iter().enumerate() {
            proportions[index] = sample.place.proportion;
            inverse[index][index] = 1.0;
            matrix::forward(&factor, n, &mut inverse[index][..n]);
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 1024 samples")]
        let members = members.iter().map(|&(_, index)| index as u32).collect();
        let places = lanes(&near, covariance, centre).first().copied()?;
        Some(Self { members, places, proportions, inverse })
    }

    /// One of the samples, the nearest first.
    pub(super) fn member(&self, index: usize) -> Option<u32> {
        self.members.get(index).copied()
    }

    /// The variance of a measurement near the sample, given those around it.
    #[inline]
    pub(super) fn variance(
        &self,
        covariance: &Covariance,
        proportion: f64,
        scaled: &[f32; D],
    ) -> f64 {
        let squared = matern::squared_distances(scaled, &self.places);
        let alike = matern::correlations(squared);
        let mut explained = [0.0; LANES];
        for member in 0..LANES {
            let alike = covariance.in_common(proportion, self.proportions[member])
                + covariance.surface * f64::from(alike[member]);
            for (sum, value) in explained.iter_mut().zip(&self.inverse[member]) {
                *sum += alike * value;
            }
        }
        let explained: f64 = explained.iter().map(|one| one * one).sum();
        covariance.of_new(proportion) - explained
    }
}
