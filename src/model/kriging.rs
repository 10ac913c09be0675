//! Values between measured ones, with the uncertainty of each: kriging, also called regression by a
//! Gaussian process.
//!
//! What a query needs is computed when a model is made. A mean is then one pass over all values.
//! Its variance would take a matrix of all of them, and is computed from the nearest ones alone,
//! which makes it a little too large.

use super::covariance::{Covariance, NEIGHBOURS, Place, Prior, Sample, spread_out};
use super::features::MAX_DIMENSIONS;
use super::lanes::{FEW, MANY, lanes, scaled};
use super::matern::{self, LANES, Lane};
use super::matrix;
use super::passes;
use super::surroundings::Surroundings;

/// As many blocks hold the values that a chain usually has.
const USUAL_BLOCKS: usize = 16;

/// Samples that a guess names.
pub(super) const NAMED: usize = 3;

/// A value between measured ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Guess {
    pub(super) mean: f64,
    /// What a measurement of it may be off by: its standard deviation.
    pub(super) sd: f64,
    /// The sample nearest to it, and others around it.
    pub(super) nearest: [Option<u32>; NAMED],
}

/// Values at measured places, and what follows for all others.
#[derive(Debug)]
pub(super) enum Field {
    /// With at most [`FEW`] dimensions.
    Few(FieldOf<FEW>),
    /// With more.
    Many(FieldOf<MANY>),
}

impl Field {
    /// What values say about all others; `None` without a value.
    pub(super) fn fit(samples: Vec<Sample>, dimensions: usize, prior: Prior) -> Option<Self> {
        Some(if dimensions <= FEW {
            Self::Few(FieldOf::fit(samples, dimensions, prior)?)
        } else {
            Self::Many(FieldOf::fit(samples, dimensions, prior)?)
        })
    }

    /// The value at a place.
    #[inline]
    pub(super) fn at(&self, place: &Place) -> Guess {
        match self {
            Self::Few(field) => field.at(place),
            Self::Many(field) => field.at(place),
        }
    }

    /// What is left of the covariances at some places, row by row, and the variance of the noise;
    /// `None` where that cannot be computed.
    pub(super) fn left(&self, places: &[Place]) -> Option<(Vec<f64>, f64)> {
        match self {
            Self::Few(field) => field.left(places),
            Self::Many(field) => field.left(places),
        }
    }

    /// Samples from all others, by index: the error of each, and its standard deviation.
    pub(super) fn left_out(&self) -> Vec<(usize, [f64; 2])> {
        match self {
            Self::Few(field) => field.left_out(),
            Self::Many(field) => field.left_out(),
        }
    }
}

/// A field with lanes for `D` coordinates.
#[derive(Debug)]
pub(super) struct FieldOf<const D: usize> {
    covariance: Covariance,
    /// Measured from here, coordinates are small.
    centre: [f64; MAX_DIMENSIONS],
    samples: Vec<Sample>,
    /// What a measurement is off by itself, beside the noise that all have: the mean of the samples'
    /// own variances.
    of_measurement: f64,
    /// The places, [`LANES`] to a block with a lane for each coordinate.
    places: Vec<[Lane; D]>,
    /// What is known before a query; `None` where the nearest samples are solved for each.
    all: Option<All>,
}

/// What a mean over all values needs.
#[derive(Debug)]
struct All {
    /// A lane for each block of places.
    weights: Vec<Lane>,
    trend: [f64; 2],
    surroundings: Vec<Surroundings>,
    /// Of each sample from all others: the error and its standard deviation.
    left_out: Vec<[f64; 2]>,
}

impl<const D: usize> FieldOf<D> {
    fn fit(samples: Vec<Sample>, dimensions: usize, prior: Prior) -> Option<Self> {
        if samples.is_empty() {
            return None;
        }
        let mut covariance = Covariance::fit(&samples, dimensions, prior);
        #[expect(clippy::cast_precision_loss, reason = "a count of samples")]
        let count = samples.len() as f64;
        let mean =
            |index: usize| samples.iter().map(|one| one.place.at[index]).sum::<f64>() / count;
        let centre = std::array::from_fn(mean);
        let of_measurement = samples.iter().map(|one| one.variance).sum::<f64>() / count;
        let mut all = None;
        // Beyond, a mean looks at the nearest [`NEIGHBOURS`].
        if samples.len() <= passes::MOST {
            let attempts = std::iter::from_fn(|| {
                let attempt = All::of(&samples, &covariance);
                if attempt.is_none() {
                    // Of rounding alone: with more noise it can be solved.
                    covariance.noise *= 4.0;
                }
                Some(attempt)
            });
            all = Some(attempts.take(MOST_ATTEMPTS).flatten().next()?);
        }
        let places = lanes(&samples, &covariance, &centre);
        Some(Self { covariance, centre, samples, of_measurement, places, all })
    }

    /// The variance of two measurements of the same problem.
    fn noise(&self) -> f64 {
        self.covariance.noise + self.of_measurement
    }

    #[inline]
    fn at(&self, place: &Place) -> Guess {
        let scaled = scaled(place, &self.covariance, &self.centre);
        match &self.all {
            Some(all) => self.by_all(all, place, &scaled),
            None => self.by_nearest(place, &scaled, None),
        }
    }

    fn left(&self, places: &[Place]) -> Option<(Vec<f64>, f64)> {
        /// Of more samples, some are enough: those far away say nothing.
        const MOST: usize = 512;
        let some: Vec<Sample>;
        let mut known = &self.samples[..];
        if known.len() > MOST {
            some = spread_out(known.len(), MOST).map(|index| known[index]).collect();
            known = &some;
        }
        Some((self.covariance.left(known, places)?, self.noise()))
    }

    fn left_out(&self) -> Vec<(usize, [f64; 2])> {
        /// Of more, some are looked at: far more than a quantile needs.
        const MOST: usize = 400;
        if let Some(all) = &self.all {
            return all.left_out.iter().copied().enumerate().collect();
        }
        let of_sample = |index: usize| {
            let Sample { place, value, .. } = &self.samples[index];
            let scaled = scaled(place, &self.covariance, &self.centre);
            let guess = self.by_nearest(place, &scaled, Some(index));
            (index, [value - guess.mean, guess.sd])
        };
        spread_out(self.samples.len(), MOST).map(of_sample).collect()
    }

    fn by_all(&self, all: &All, place: &Place, scaled: &[f32; D]) -> Guess {
        // Room for more blocks than there are would take longer to clear than the others to compute.
        if self.places.len() <= USUAL_BLOCKS {
            self.by_blocks::<USUAL_BLOCKS>(all, place, scaled)
        } else {
            self.by_blocks::<{ passes::MOST_BLOCKS }>(all, place, scaled)
        }
    }

    /// The value from all samples, which are at most `B` blocks.
    fn by_blocks<const B: usize>(&self, all: &All, place: &Place, scaled: &[f32; D]) -> Guess {
        let mut alike = [[0.0; LANES]; B];
        let found = passes::over_all(scaled, &self.places, &all.weights, &mut alike);
        let [mean, slope] = all.trend;
        let surroundings = &all.surroundings[found.nearest()];
        let variance =
            surroundings.variance(&self.covariance, place.proportion, alike.as_flattened());
        Guess {
            mean: mean + slope * place.proportion + found.sum(),
            sd: (variance.max(self.covariance.noise) + self.of_measurement).sqrt(),
            nearest: surroundings.named(),
        }
    }

    /// The value from the nearest samples but `without` one.
    fn by_nearest(&self, place: &Place, scaled: &[f32; D], without: Option<usize>) -> Guess {
        const N: usize = NEIGHBOURS;
        let near = self.nearest(scaled, without);
        let mut matrix = [0.0; N * N];
        let mut alike = [0.0; N];
        let mut values = [0.0; N];
        for (row, a) in near.iter().map(|&index| &self.samples[index as usize]).enumerate() {
            for (col, b) in
                near[..row].iter().map(|&index| &self.samples[index as usize]).enumerate()
            {
                matrix[row * N + col] = self.covariance.between(&a.place, &b.place);
            }
            matrix[row * N + row] = self.covariance.of_new(a.place.proportion) + a.variance;
            alike[row] = self.covariance.between(&a.place, place);
            values[row] = a.value;
        }
        let nearest = std::array::from_fn(|index| Some(near[index]));
        let of_new = self.covariance.of_new(place.proportion);
        if !matrix::factor(&mut matrix, N) {
            // Of rounding alone. The nearest value, as uncertain as one that nothing is known of.
            return Guess { mean: values[0], sd: (of_new + self.of_measurement).sqrt(), nearest };
        }
        matrix::forward(&matrix, N, &mut alike);
        matrix::forward(&matrix, N, &mut values);
        let mean = alike.iter().zip(&values).map(|(a, b)| a * b).sum();
        let explained: f64 = alike.iter().map(|a| a * a).sum();
        let variance = (of_new - explained).max(self.covariance.noise);
        Guess { mean, sd: (variance + self.of_measurement).sqrt(), nearest }
    }

    /// The nearest samples but `without` one, nearest first. There are always more than that: fewer
    /// are looked at all together.
    fn nearest(&self, scaled: &[f32; D], without: Option<usize>) -> [u32; NEIGHBOURS] {
        let mut found = [(f32::INFINITY, 0_u32); NEIGHBOURS];
        for (block, places) in (0_u32..).zip(&self.places) {
            let squared = matern::squared_distances(scaled, places);
            for (lane, &squared) in (0_u32..).zip(&squared) {
                if squared >= found[NEIGHBOURS - 1].0 {
                    continue;
                }
                let sample = block * LANES as u32 + lane;
                if without == Some(sample as usize) {
                    continue;
                }
                let at = found.partition_point(|one| one.0 <= squared);
                found.copy_within(at..NEIGHBOURS - 1, at + 1);
                found[at] = (squared, sample);
            }
        }
        found.map(|one| one.1)
    }
}

/// The noise of matrices that rounding made unsolvable is raised this often, to a million times.
const MOST_ATTEMPTS: usize = 10;

impl All {
    /// `None` where the covariance cannot be factored.
    fn of(samples: &[Sample], covariance: &Covariance) -> Option<Self> {
        let n = samples.len();
        let factor = covariance.factor(&samples.iter().collect::<Vec<_>>())?;
        let mut solved: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        matrix::forward(&factor, n, &mut solved);
        matrix::backward(&factor, n, &mut solved);
        let diagonal = matrix::inverse_diagonal(&factor, n);
        let left_out =
            solved.iter().zip(&diagonal).map(|(w, d)| [w / d, d.sqrt().recip()]).collect();
        let proportions = samples.iter().map(|sample| sample.place.proportion);
        let trend = covariance.trend(solved.iter().copied().zip(proportions));
        let mut weights = vec![[0.0; LANES]; n.div_ceil(LANES)];
        for (index, weight) in solved.iter().enumerate() {
            #[expect(clippy::cast_possible_truncation, reason = "seven digits of a weight")]
            let weight = (covariance.surface * weight) as f32;
            weights[index / LANES][index % LANES] = weight;
        }
        let surroundings = (0..n).map(|index| Surroundings::of(index, samples, covariance));
        Some(Self { weights, trend, surroundings: surroundings.collect::<Option<_>>()?, left_out })
    }
}
