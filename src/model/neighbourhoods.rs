//! The densities of many values, each given the values around it.
//!
//! What decides about a value among many are those around it. Each such neighbourhood has a small
//! matrix of its own; several are factored together, one to a lane.

use super::covariance::{Covariance, NEIGHBOURS, Sample, spread_out};
use super::features::MAX_DIMENSIONS;
use super::matern::{self, LANES};

/// The density of at most this many values is looked at.
const CONDITIONED: usize = 400;

/// Neighbours, and the value itself behind them.
const SIZE: usize = NEIGHBOURS + 1;

/// Pairs of them.
const PAIRS: usize = SIZE * NEIGHBOURS / 2;

/// One number for each of [`LANES`] neighbourhoods.
type Lane = [f64; LANES];

/// Values and those around them.
pub(super) struct Neighbourhoods {
    groups: Vec<Group>,
    /// The correlation of each pair of each group at some scales.
    correlations: Vec<Lane>,
    inverse_scales: Option<[f64; MAX_DIMENSIONS]>,
}

impl Neighbourhoods {
    /// Of more samples than a neighbourhood has.
    pub(super) fn of(samples: &[Sample], metric: &Covariance) -> Self {
        let all = Self::chosen(samples, metric);
        let groups: Vec<Group> =
            all.chunks(LANES).map(|group| Group::of(group, metric.dimensions)).collect();
        let correlations = vec![[0.0; LANES]; groups.len() * PAIRS];
        Self { groups, correlations, inverse_scales: None }
    }

    /// Samples behind those nearest to them.
    pub(super) fn chosen<'s>(
        samples: &'s [Sample],
        metric: &Covariance,
    ) -> Vec<[&'s Sample; SIZE]> {
        let chosen = spread_out(samples.len(), CONDITIONED);
        chosen.map(|index| neighbourhood(index, samples, metric)).collect()
    }

    /// The negative logarithm of the densities, without its constant; infinite or a NaN where it cannot
    /// be computed.
    pub(super) fn surprise(&mut self, covariance: &Covariance) -> f64 {
        let is_same = self.inverse_scales == Some(covariance.inverse_scales);
        self.inverse_scales = Some(covariance.inverse_scales);
        let squared_scales = covariance.inverse_scales.map(|inverse| inverse * inverse);
        let mut sum = 0.0;
        for (group, correlations) in self.groups.iter().zip(self.correlations.chunks_mut(PAIRS)) {
            if !is_same {
                group.correlate(&squared_scales[..covariance.dimensions], correlations);
            }
            sum += group.surprise(covariance, correlations);
        }
        sum
    }
}

/// A sample behind those nearest to it.
fn neighbourhood<'s>(
    index: usize,
    samples: &'s [Sample],
    metric: &Covariance,
) -> [&'s Sample; SIZE] {
    let own = &samples[index];
    let with_distance =
        |sample: &'s Sample| (metric.squared_distance(&own.place, &sample.place), sample);
    let mut near: Vec<(f64, &Sample)> = samples.iter().map(with_distance).collect();
    near.swap_remove(index);
    near.select_nth_unstable_by(NEIGHBOURS, |a, b| a.0.total_cmp(&b.0));
    std::array::from_fn(|member| if member < NEIGHBOURS { near[member].1 } else { own })
}

/// [`LANES`] neighbourhoods.
struct Group {
    /// How many there are: the first one fills the lanes that are left.
    len: usize,
    /// The coordinates of each member.
    at: Vec<Lane>,
    proportions: [Lane; SIZE],
    variances: [Lane; SIZE],
    values: [Lane; SIZE],
}

impl Group {
    fn of(neighbourhoods: &[[&Sample; SIZE]], dimensions: usize) -> Self {
        let of_lane = |lane: usize| neighbourhoods.get(lane).unwrap_or(&neighbourhoods[0]);
        let lanes = |of: &dyn Fn(&Sample) -> f64| -> [Lane; SIZE] {
            std::array::from_fn(|member| std::array::from_fn(|lane| of(of_lane(lane)[member])))
        };
        let mut at = Vec::with_capacity(SIZE * dimensions);
        for member in 0..SIZE {
            at.extend((0..dimensions).map(|index| -> Lane {
                std::array::from_fn(|lane| of_lane(lane)[member].place.at[index])
            }));
        }
        Self {
            len: neighbourhoods.len(),
            at,
            proportions: lanes(&|sample| sample.place.proportion),
            variances: lanes(&|sample| sample.variance),
            values: lanes(&|sample| sample.value),
        }
    }

    /// The correlations of all pairs, those below the diagonal of a matrix row by row. They are computed
    /// from the coordinates each time: the squared differences of all pairs would not stay in a cache.
    fn correlate(&self, squared_scales: &[f64], correlations: &mut [Lane]) {
        let dimensions = squared_scales.len();
        let member = |index: usize| &self.at[index * dimensions..][..dimensions];
        let pairs = (0..SIZE).flat_map(|row| (0..row).map(move |col| (row, col)));
        for ((row, col), correlations) in pairs.zip(correlations) {
            let mut squared = [0.0; LANES];
            for ((a, b), scale) in member(row).iter().zip(member(col)).zip(squared_scales) {
                for lane in 0..LANES {
                    let apart = a[lane] - b[lane];
                    squared[lane] += apart * apart * scale;
                }
            }
            for lane in 0..LANES {
                correlations[lane] = matern::smooth_correlation(squared[lane]);
            }
        }
    }

    fn surprise(&self, covariance: &Covariance, correlations: &[Lane]) -> f64 {
        let mut matrix = Matrix::of(self, covariance, correlations);
        let Some([left, variance]) = matrix.last_given_others() else { return f64::INFINITY };
        let of_lane =
            |lane: usize| 0.5 * (left[lane] * left[lane] / variance[lane] + variance[lane].ln());
        (0..self.len).map(of_lane).sum()
    }
}

/// Where a row of a matrix begins that has nothing above its diagonal.
const fn row(index: usize) -> usize {
    index * (index + 1) / 2
}

/// The covariances of the members of neighbourhoods, row by row up to the diagonal, and their values as
/// a further row.
struct Matrix([Lane; row(SIZE) + SIZE]);

impl Matrix {
    fn of(group: &Group, covariance: &Covariance, correlations: &[Lane]) -> Self {
        let mut matrix = [[0.0; LANES]; row(SIZE) + SIZE];
        let mut correlations = correlations.iter();
        for (index, own) in group.proportions.iter().enumerate() {
            let filled = &mut matrix[row(index)..][..=index];
            for (filled, other) in filled.iter_mut().zip(&group.proportions[..index]) {
                // As many as there are pairs.
                let Some(correlation) = correlations.next() else { break };
                for lane in 0..LANES {
                    filled[lane] = covariance.in_common(own[lane], other[lane])
                        + covariance.surface * correlation[lane];
                }
            }
            for lane in 0..LANES {
                filled[index][lane] = covariance.of_new(own[lane]) + group.variances[index][lane];
            }
        }
        matrix[row(SIZE)..].copy_from_slice(&group.values);
        Self(matrix)
    }

    /// What is left of the last value when all others are known, and its variance then; `None` where a
    /// matrix is not positive definite.
    ///
    /// A Cholesky factor whose columns are not divided by the roots of the pivots, so that only one
    /// division for each column waits for the one before.
    fn last_given_others(&mut self) -> Option<[Lane; 2]> {
        let mut inverse = [[0.0; LANES]; SIZE];
        let mut scaled = [[0.0; LANES]; SIZE];
        let mut pivot = [0.0; LANES];
        for col in 0..SIZE {
            let (above, below) = self.0.split_at_mut(row(col + 1));
            let own = &above[row(col)..];
            pivot = own[col];
            for (((scaled, own), inverse), _) in
                scaled.iter_mut().zip(own).zip(&inverse).zip(0..col)
            {
                for lane in 0..LANES {
                    scaled[lane] = own[lane] * inverse[lane];
                    pivot[lane] -= own[lane] * scaled[lane];
                }
            }
            // Also false of a NaN.
            if !pivot.iter().all(|pivot| *pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            inverse[col] = pivot.map(f64::recip);
            for index in col + 1..=SIZE {
                let (known, rest) = below[row(index) - row(col + 1)..].split_at_mut(col);
                let mut value = rest[0];
                for (known, scaled) in known.iter().zip(&scaled) {
                    for lane in 0..LANES {
                        value[lane] -= known[lane] * scaled[lane];
                    }
                }
                rest[0] = value;
            }
        }
        Some([self.0[row(SIZE) + NEIGHBOURS], pivot])
    }
}
