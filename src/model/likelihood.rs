//! How likely values are, asked of many covariances one after the other.
//!
//! What does not depend on the covariance is computed once, what depends on the length scales alone is
//! kept until they change, and nothing is allocated for a covariance.

use super::covariance::{Covariance, Sample};
use super::features::MAX_DIMENSIONS;
use super::matern::{self, LANES};
use super::matrix;
use super::neighbourhoods::Neighbourhoods;

/// Up to this many values a fit looks at their joint density, at the cost of a matrix of all of them
/// for each step. Beyond that it looks at the density of some, each given its neighbours.
const MOST_JOINT: usize = 96;

/// Values whose density is asked for.
pub(super) enum Likelihood {
    Joint(Joint),
    Conditional(Neighbourhoods),
}

impl Likelihood {
    /// Of measured values; where there are many, a metric says which are neighbours.
    pub(super) fn of(samples: &[Sample], metric: &Covariance) -> Self {
        if samples.len() <= MOST_JOINT {
            Self::Joint(Joint::of(samples, metric.dimensions))
        } else {
            Self::Conditional(Neighbourhoods::of(samples, metric))
        }
    }

    /// The negative logarithm of their density, without its constant; infinite or a NaN where it cannot
    /// be computed.
    pub(super) fn surprise(&mut self, covariance: &Covariance) -> f64 {
        match self {
            Self::Joint(joint) => joint.surprise(covariance),
            Self::Conditional(neighbourhoods) => neighbourhoods.surprise(covariance),
        }
    }
}

/// A few values, all together.
pub(super) struct Joint {
    dimensions: usize,
    /// The squared differences of pairs, [`LANES`] pairs at a time with a lane for each coordinate. Pairs
    /// are those below the diagonal of a matrix, row by row.
    apart: Vec<[f64; LANES]>,
    /// The correlation of each pair at some scales.
    correlations: Vec<[f64; LANES]>,
    inverse_scales: Option<[f64; MAX_DIMENSIONS]>,
    proportions: Vec<f64>,
    variances: Vec<f64>,
    values: Vec<f64>,
    /// Rows of the matrix below: one for each value, one that holds the values, and what fills a tile.
    rows: usize,
    /// Room for the covariances and their factor. Behind the factor, the row of the values becomes what
    /// is left of each when those before it are known.
    matrix: Vec<f64>,
}

impl Joint {
    fn of(samples: &[Sample], dimensions: usize) -> Self {
        let mut rows = samples.len() + 1;
        // One row behind whole tiles takes less than a tile, more of them take more.
        if samples.len() % matrix::TILE != 0 {
            rows = rows.next_multiple_of(matrix::TILE);
        }
        let mut matrix = vec![0.0; rows * rows];
        matrix.iter_mut().step_by(rows + 1).for_each(|diagonal| *diagonal = 1.0);
        let pairs: Vec<[&Sample; 2]> = samples
            .iter()
            .enumerate()
            .flat_map(|(row, a)| samples[..row].iter().map(move |b| [a, b]))
            .collect();
        let mut apart = Vec::with_capacity(pairs.len().div_ceil(LANES) * dimensions);
        for pairs in pairs.chunks(LANES) {
            apart.extend((0..dimensions).map(|index| {
                let mut lanes = [0.0; LANES];
                for (lane, [a, b]) in lanes.iter_mut().zip(pairs) {
                    let apart = a.place.at[index] - b.place.at[index];
                    *lane = apart * apart;
                }
                lanes
            }));
        }
        Self {
            dimensions,
            apart,
            correlations: vec![[0.0; LANES]; pairs.len().div_ceil(LANES)],
            inverse_scales: None,
            proportions: samples.iter().map(|sample| sample.place.proportion).collect(),
            variances: samples.iter().map(|sample| sample.variance).collect(),
            values: samples.iter().map(|sample| sample.value).collect(),
            rows,
            matrix,
        }
    }

    fn surprise(&mut self, covariance: &Covariance) -> f64 {
        if self.inverse_scales != Some(covariance.inverse_scales) {
            self.correlate(covariance);
        }
        self.fill(covariance);
        if !matrix::factor(&mut self.matrix, self.rows) {
            return f64::INFINITY;
        }
        let (factor, left) = self.matrix.split_at(self.values.len() * self.rows);
        let squares: f64 = left[..self.values.len()].iter().map(|one| one * one).sum();
        0.5 * squares + matrix::ln_diagonal(factor, self.rows)
    }

    /// The correlations at the scales of a covariance.
    fn correlate(&mut self, covariance: &Covariance) {
        self.inverse_scales = Some(covariance.inverse_scales);
        if self.dimensions == 0 {
            self.correlations.fill([1.0; LANES]);
            return;
        }
        let squared_scales = covariance.inverse_scales.map(|inverse| inverse * inverse);
        let apart = self.apart.chunks_exact(self.dimensions);
        for (correlations, apart) in self.correlations.iter_mut().zip(apart) {
            let mut squared = [0.0; LANES];
            for (apart, scale) in apart.iter().zip(squared_scales) {
                for lane in 0..LANES {
                    squared[lane] += apart[lane] * scale;
                }
            }
            for lane in 0..LANES {
                correlations[lane] = matern::smooth_correlation(squared[lane]);
            }
        }
    }

    /// The covariances of the values, and these.
    fn fill(&mut self, covariance: &Covariance) {
        /// More than what is taken from the last diagonal, whose root is of no use.
        const MUCH: f64 = 1e300;
        let n = self.values.len();
        let mut correlations = self.correlations.as_flattened();
        for (row, filled) in self.matrix.chunks_exact_mut(self.rows).take(n).enumerate() {
            let own = self.proportions[row];
            let (of_row, rest) = correlations.split_at(row);
            correlations = rest;
            let of_pairs = of_row.iter().zip(&self.proportions);
            for (value, (correlation, other)) in filled.iter_mut().zip(of_pairs) {
                *value = covariance.in_common(own, *other) + covariance.surface * correlation;
            }
            filled[row] = covariance.of_new(own) + self.variances[row];
        }
        let last = &mut self.matrix[n * self.rows..][..=n];
        last[..n].copy_from_slice(&self.values);
        last[n] = MUCH;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::covariance::{Place, Prior};
    use proptest::prelude::*;

    const PRIOR: Prior = Prior { mean_sd: 0.5, slope_sd: 0.4, amplitude: 0.2 };

    /// A covariance with the logarithms of its scales, amplitude and noise moved.
    fn covariance(dimensions: usize, moved: &[f64]) -> Covariance {
        let mut covariance = Covariance::usual(dimensions, PRIOR);
        for (scale, moved) in covariance.inverse_scales[..dimensions].iter_mut().zip(moved) {
            *scale *= moved.exp();
        }
        covariance.surface *= moved[MAX_DIMENSIONS].exp();
        covariance.noise *= moved[MAX_DIMENSIONS + 1].exp();
        covariance
    }

    /// Places in octaves, several of them twice, with values.
    fn samples(count: usize, numbers: &[f64]) -> Vec<Sample> {
        let number = |index: usize| numbers[index % numbers.len()];
        let of = |index: usize| {
            let at =
                std::array::from_fn(|dimension| (16.0 * number(7 * index + dimension)).round());
            let place = Place { at, proportion: number(5 * index + 3) };
            Sample { place, value: number(3 * index), variance: 1e-4 * number(index) }
        };
        (0..count).map(of).collect()
    }

    /// The negative logarithm of the density of the last of some values given the others, from their
    /// covariances one by one.
    fn of_last(samples: &[&Sample], covariance: &Covariance) -> f64 {
        let n = samples.len();
        let mut rows: Vec<Vec<f64>> = Vec::new();
        for (row, a) in samples.iter().enumerate() {
            let mut own: Vec<f64> =
                samples[..row].iter().map(|b| covariance.between(&a.place, &b.place)).collect();
            own.push(covariance.of_new(a.place.proportion) + a.variance);
            rows.push(own);
        }
        rows.push(samples.iter().map(|sample| sample.value).collect());
        for col in 0..n {
            for row in col..=n {
                let known: f64 = (0..col).map(|k| rows[row][k] * rows[col][k]).sum();
                let left = rows[row][col] - known;
                rows[row][col] = if row == col { left.sqrt() } else { left / rows[col][col] };
            }
        }
        0.5 * rows[n][n - 1].powi(2) + rows[n - 1][n - 1].ln()
    }

    fn moves() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-1.0..1.0_f64, MAX_DIMENSIONS + 2)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// One after the other, so that what is kept is used again.
        #[test]
        fn a_joint_density_is_that_of_each_value_given_those_before(
            count in 0_usize..40,
            dimensions in 0_usize..=MAX_DIMENSIONS,
            numbers in prop::collection::vec(0.0..1.0_f64, 401),
            moves in prop::collection::vec(moves(), 3),
        ) {
            let samples = samples(count, &numbers);
            let all: Vec<&Sample> = samples.iter().collect();
            let mut likelihood = Likelihood::of(&samples, &Covariance::usual(dimensions, PRIOR));
            for moved in moves {
                let mut covariance = covariance(dimensions, &moved);
                for noise in [1.0, 2.0] {
                    covariance.noise *= noise;
                    let expected: f64 =
                        (1..=count).map(|count| of_last(&all[..count], &covariance)).sum();
                    let found = likelihood.surprise(&covariance);
                    let off = (found - expected).abs();
                    prop_assert!(off < 1e-9 * expected.abs().max(1.0), "{found} {expected}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        /// With a last group that has all its lanes, and with one that lacks some.
        #[test]
        fn of_many_values_it_is_that_of_each_given_its_neighbours(
            count in prop::sample::select(vec![97_usize, 104, 131, 431]),
            dimensions in 1_usize..=MAX_DIMENSIONS,
            numbers in prop::collection::vec(0.0..1.0_f64, 4001),
            moves in prop::collection::vec(moves(), 2),
        ) {
            let samples = samples(count, &numbers);
            let metric = Covariance::usual(dimensions, PRIOR);
            let neighbourhoods = Neighbourhoods::chosen(&samples, &metric);
            let mut likelihood = Likelihood::of(&samples, &metric);
            for moved in moves {
                let mut covariance = covariance(dimensions, &moved);
                for noise in [1.0, 2.0] {
                    covariance.noise *= noise;
                    let expected: f64 =
                        neighbourhoods.iter().map(|near| of_last(near, &covariance)).sum();
                    let found = likelihood.surprise(&covariance);
                    let off = (found - expected).abs();
                    prop_assert!(off < 1e-9 * expected.abs().max(1.0), "{found} {expected}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_is_surprising() {
        let numbers: Vec<f64> =
            (0..997_u32).map(|index| f64::from(index * 611 % 997) / 997.0).collect();
        for count in [1, 20, 150] {
            let mut samples = samples(count, &numbers);
            samples[0].place.at[0] = f64::NAN;
            samples[0].variance = f64::NAN;
            let covariance = Covariance::usual(2, PRIOR);
            let found = Likelihood::of(&samples, &covariance).surprise(&covariance);
            assert!(!found.is_finite(), "{count} {found}");
        }
    }
}
