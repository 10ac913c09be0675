//! How alike the values of two problems are, by how far apart their sizes are.

use super::features::MAX_DIMENSIONS;
use super::likelihood::Likelihood;
use super::matern;
use super::matrix;
use super::search::minimise;

/// Where a value is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) at: [f64; MAX_DIMENSIONS],
    /// What the value may be proportional to; 0 where it is not proportional to anything.
    pub(super) proportion: f64,
}

/// A measured value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) place: Place,
    pub(super) value: f64,
    /// The variance of the measurement, where it is known.
    pub(super) variance: f64,
}

/// What is believed of values before one is seen: standard deviations, and how much they vary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prior {
    pub(super) mean_sd: f64,
    pub(super) slope_sd: f64,
    pub(super) amplitude: f64,
}

/// The covariance of two values: a common mean, a slope on what they may be proportional to, and a
/// Matern surface over the coordinates. Each value has noise of its own.
#[derive(Debug, Clone)]
pub(super) struct Covariance {
    /// One over the length scale of each coordinate.
    pub(super) inverse_scales: [f64; MAX_DIMENSIONS],
    pub(super) dimensions: usize,
    mean: f64,
    slope: f64,
    /// The variance of the surface.
    pub(super) surface: f64,
    /// The variance of two measurements of the same problem.
    pub(super) noise: f64,
}

/// The usual length scale, in octaves: a time says something about one at eight times the size.
const SCALE: f64 = 3.0;
/// The usual noise: processes of the same program differ by this.
const NOISE: f64 = 0.02;
/// Standard deviations of the logarithms of the scales, the amplitude and the noise: weak, so that
/// they decide only where there are few values.
const PRIOR_SDS: [f64; 3] = [0.8, 1.0, 0.8];
/// Parameters outside of these would make matrices that cannot be solved, or say nothing.
const SCALES: [f64; 2] = [0.2, 60.0];
const AMPLITUDES: [f64; 2] = [0.005, 5.0];
const NOISES: [f64; 2] = [0.003, 0.5];

/// Of many values a fit looks at the density of each given this many neighbours.
pub(super) const NEIGHBOURS: usize = 16;

impl Covariance {
    /// The covariance under which the values are likeliest, given the prior.
    pub(super) fn fit(samples: &[Sample], dimensions: usize, prior: Prior) -> Self {
        let first = Self::usual_logarithms(dimensions, prior);
        let start = Self::with(&first, dimensions, prior);
        let mut likelihood = Likelihood::of(samples, &start);
        let (mut covariance, mut before) = (start, first.clone());
        let found = minimise(&first, |at| {
            // A step changes one of them, and an exponential takes a while.
            for (index, (at, before)) in at.iter().zip(&mut before).enumerate() {
                if at != before {
                    covariance.set(index, *at);
                    *before = *at;
                }
            }
            if !covariance.is_within_bounds() {
                return f64::INFINITY;
            }
            let sds = (0..at.len()).map(|index| PRIOR_SDS[(index + 1).saturating_sub(dimensions)]);
            let distrust = at.iter().zip(&first).zip(sds);
            let distrust = distrust.map(|((at, first), sd)| 0.5 * ((at - first) / sd).powi(2));
            distrust.sum::<f64>() + likelihood.surprise(&covariance)
        });
        Self::with(&found, dimensions, prior)
    }

    /// The covariance that is believed in before a value is seen.
    pub(super) fn usual(dimensions: usize, prior: Prior) -> Self {
        Self::with(&Self::usual_logarithms(dimensions, prior), dimensions, prior)
    }

    /// The logarithms of the usual scales, amplitude and noise.
    fn usual_logarithms(dimensions: usize, prior: Prior) -> Vec<f64> {
        let mut usual = vec![SCALE.ln(); dimensions];
        usual.extend([prior.amplitude.ln(), NOISE.ln()]);
        usual
    }

    /// What is left of the covariances of values at some places when others are known, row by row;
    /// `None` where that cannot be computed.
    pub(super) fn left(&self, known: &[Sample], places: &[Place]) -> Option<Vec<f64>> {
        let known: Vec<&Sample> = known.iter().collect();
        let factor = self.factor(&known)?;
        let explained = |place: &Place| {
            let alike = known.iter().map(|sample| self.between(&sample.place, place));
            let mut alike: Vec<f64> = alike.collect();
            matrix::forward(&factor, known.len(), &mut alike);
            alike
        };
        let explained: Vec<Vec<f64>> = places.iter().map(explained).collect();
        let left = |(a, of_a): (&Place, &Vec<f64>)| {
            let of_pair = |(b, of_b): (&Place, &Vec<f64>)| {
                let known: f64 = of_a.iter().zip(of_b).map(|(x, y)| x * y).sum();
                self.between(a, b) - known
            };
            places.iter().zip(&explained).map(of_pair).collect::<Vec<_>>()
        };
        Some(places.iter().zip(&explained).flat_map(left).collect())
    }

    /// From the logarithms of the scales, the amplitude and the noise.
    fn with(parameters: &[f64], dimensions: usize, prior: Prior) -> Self {
        let mut covariance = Self {
            inverse_scales: [0.0; MAX_DIMENSIONS],
            dimensions,
            mean: prior.mean_sd * prior.mean_sd,
            slope: prior.slope_sd * prior.slope_sd,
            surface: 0.0,
            noise: 0.0,
        };
        for (index, logarithm) in parameters.iter().enumerate() {
            covariance.set(index, *logarithm);
        }
        covariance
    }

    /// Changes one of them.
    fn set(&mut self, parameter: usize, logarithm: f64) {
        if parameter < self.dimensions {
            self.inverse_scales[parameter] = (-logarithm).exp();
        } else if parameter == self.dimensions {
            self.surface = (2.0 * logarithm).exp();
        } else {
            self.noise = (2.0 * logarithm).exp();
        }
    }

    fn is_within_bounds(&self) -> bool {
        let within = |value: f64, [low, high]: [f64; 2]| (low..=high).contains(&value);
        let mut scales = self.inverse_scales[..self.dimensions].iter();
        scales.all(|inverse| within(1.0 / inverse, SCALES))
            && within(self.surface.sqrt(), AMPLITUDES)
            && within(self.noise.sqrt(), NOISES)
    }

    /// The square of a distance, in length scales.
    pub(super) fn squared_distance(&self, a: &Place, b: &Place) -> f64 {
        let mut squared = 0.0;
        for index in 0..self.dimensions {
            let apart = (a.at[index] - b.at[index]) * self.inverse_scales[index];
            squared += apart * apart;
        }
        squared
    }

    /// What two places have in common whatever lies between them.
    pub(super) fn in_common(&self, a: f64, b: f64) -> f64 {
        self.mean + self.slope * a * b
    }

    /// The covariance of two different values.
    pub(super) fn between(&self, a: &Place, b: &Place) -> f64 {
        self.in_common(a.proportion, b.proportion)
            + self.surface * matern::correlation(self.squared_distance(a, b))
    }

    /// The variance of a value that nothing is known of, when it is measured.
    pub(super) fn of_new(&self, proportion: f64) -> f64 {
        self.in_common(proportion, proportion) + self.surface + self.noise
    }

    /// The mean and the slope that weights of values stand for.
    pub(super) fn trend(&self, weighted: impl Iterator<Item = (f64, f64)>) -> [f64; 2] {
        let mut trend = [0.0; 2];
        for (weight, proportion) in weighted {
            trend[0] += self.mean * weight;
            trend[1] += self.slope * weight * proportion;
        }
        trend
    }

    /// The factor of the covariance matrix of measured values, row by row; `None` where it cannot be
    /// factored.
    pub(super) fn factor(&self, samples: &[&Sample]) -> Option<Vec<f64>> {
        let mut matrix = vec![0.0; samples.len() * samples.len()];
        self.factor_into(samples, &mut matrix).then_some(matrix)
    }

    /// The same in a matrix of the caller.
    pub(super) fn factor_into(&self, samples: &[&Sample], matrix: &mut [f64]) -> bool {
        let n = samples.len();
        for (row, a) in samples.iter().enumerate() {
            let others = &samples[..row];
            let own = &mut matrix[row * n..][..=row];
            for (value, b) in own.iter_mut().zip(others) {
                *value = self.squared_distance(&a.place, &b.place);
            }
            // By itself, so that it becomes vectors.
            for value in own.iter_mut() {
                *value = self.surface * matern::smooth_correlation(*value);
            }
            for (value, b) in own.iter_mut().zip(others) {
                *value += self.in_common(a.place.proportion, b.place.proportion);
            }
            own[row] = self.of_new(a.place.proportion) + a.variance;
        }
        matrix::factor(matrix, n)
    }
}

/// At most `most` of the numbers below `count`, in no regular order: records are sorted by size, and
/// every tenth of them might have the same one.
pub(super) fn spread_out(count: usize, most: usize) -> impl Iterator<Item = usize> {
    // A large prime, so that no number comes twice.
    const STRIDE: u64 = 982_451_653;
    #[expect(clippy::cast_possible_truncation, reason = "below `count`")]
    (1..=count.min(most) as u64).map(move |index| (index * STRIDE % count as u64) as usize)
}
