//! Two passes over all samples of a field: how far each is from a place, and what it says there.
//!
//! They are two, since a processor waits for the next blocks longer the more that is computed one after
//! the other for each. Neither is inlined: beside code that takes lanes apart, the compiler fills its
//! vectors by halves. Results go to a place that the caller names, and are sums of their own until then:
//! what is returned is kept in memory meanwhile, where each block waits for the one before.

use super::matern::{self, LANES, Lane};

/// As many samples can be looked at together.
pub(super) const MOST: usize = 1024;

/// As many blocks of samples hold them.
pub(super) const MOST_BLOCKS: usize = MOST / LANES;

/// The last bits of a number: the number of any block of samples fits into them.
const BLOCKS: u32 = MOST_BLOCKS as u32 - 1;
const LANE_BITS: u32 = LANES.trailing_zeros();

/// What passes over all samples found.
pub(super) struct Passes {
    /// For each lane, the least distance of all blocks, squared, with the number of its block in its last
    /// digits.
    least: Lane,
    /// For each lane, the sum of the weighted correlations over all blocks.
    sums: Lane,
}

/// Looks at all samples, and leaves the correlation of each in `alike`.
#[inline]
pub(super) fn over_all<const D: usize>(
    scaled: &[f32; D],
    places: &[[Lane; D]],
    weights: &[Lane],
    alike: &mut [Lane],
) -> Passes {
    let mut found = Passes { least: [0.0; LANES], sums: [0.0; LANES] };
    distances(scaled, places, alike, &mut found.least);
    weighted(weights, alike, &mut found.sums);
    found
}

impl Passes {
    /// The nearest sample. Of several at about the same distance, the one in the first block.
    #[inline]
    pub(super) fn nearest(&self) -> usize {
        // Distances are not negative, so that their bits have their order. The lane comes behind.
        let marked: [u64; LANES] = std::array::from_fn(|lane| {
            (u64::from(self.least[lane].to_bits()) << LANE_BITS) | lane as u64
        });
        let [a, b, c, d] = std::array::from_fn(|lane| marked[lane].min(marked[lane + LANES / 2]));
        let nearest = a.min(b).min(c.min(d));
        let (lane, block) = (nearest % LANES as u64, (nearest >> LANE_BITS) & u64::from(BLOCKS));
        #[expect(clippy::cast_possible_truncation, reason = "at most MOST")]
        let nearest = block as usize * LANES + lane as usize;
        nearest
    }

    /// What all samples say together.
    #[inline]
    pub(super) fn sum(&self) -> f64 {
        let sums = self.sums.map(f64::from);
        ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
    }
}

/// The distance of each sample, and [`Passes::least`].
#[inline(never)]
fn distances<const D: usize>(
    scaled: &[f32; D],
    places: &[[Lane; D]],
    distances: &mut [Lane],
    found: &mut Lane,
) {
    let mut least = [f32::INFINITY; LANES];
    for (block, (places, distances)) in (0_u32..).zip(places.iter().zip(distances)) {
        let squared = matern::squared_distances(scaled, places);
        for lane in 0..LANES {
            distances[lane] = squared[lane].sqrt();
            let marked = f32::from_bits((squared[lane].to_bits() & !BLOCKS) | block);
            least[lane] = if marked < least[lane] { marked } else { least[lane] };
        }
    }
    *found = least;
}

/// The correlation of each sample in place of its distance, and [`Passes::sums`].
#[inline(never)]
fn weighted(weights: &[Lane], distances: &mut [Lane], found: &mut Lane) {
    let mut sums = [0.0_f32; LANES];
    for (weights, alike) in weights.iter().zip(distances) {
        *alike = matern::correlations(alike);
        for lane in 0..LANES {
            sums[lane] += alike[lane] * weights[lane];
        }
    }
    *found = sums;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As many samples as blocks have, in lanes.
    fn in_lanes<const D: usize>(samples: &[[f32; D]]) -> Vec<[Lane; D]> {
        let mut places = vec![[[1e6; LANES]; D]; samples.len().div_ceil(LANES)];
        for (index, sample) in samples.iter().enumerate() {
            for (lanes, &coordinate) in places[index / LANES].iter_mut().zip(sample) {
                lanes[index % LANES] = coordinate;
            }
        }
        places
    }

    fn apart(one: &[f32], other: &[f32]) -> f64 {
        let squares = one.iter().zip(other).map(|(a, b)| f64::from(a - b).powi(2));
        squares.sum::<f64>().sqrt()
    }

    proptest! {
        /// Against one sample after the other in double precision.
        #[test]
        fn all_samples_are_seen(
            samples in prop::collection::vec((prop::array::uniform3(-9.0..9.0_f32), -2.0..2.0_f32), 1..200),
            at in prop::array::uniform3(-12.0..12.0_f32),
        ) {
            let (coordinates, of_samples): (Vec<[f32; 3]>, Vec<f32>) = samples.into_iter().unzip();
            let places = in_lanes(&coordinates);
            let mut weights = vec![[0.0; LANES]; places.len()];
            weights.as_flattened_mut()[..of_samples.len()].copy_from_slice(&of_samples);
            let mut alike = vec![[0.0; LANES]; places.len()];
            let found = over_all(&at, &places, &weights, &mut alike);

            let distances: Vec<f64> = coordinates.iter().map(|one| apart(one, &at)).collect();
            let least = distances.iter().copied().fold(f64::INFINITY, f64::min);
            // The last bits of a squared distance are those of a block's number.
            prop_assert!(distances[found.nearest()] <= least * (1.0 + 1e-4));
            let correlations = distances
                .iter()
                .map(|distance| (1.0 + std::f64::consts::LN_2 * distance) * (-distance).exp2());
            let mut sum = 0.0;
            for ((expected, &found), &weight) in
                correlations.zip(alike.as_flattened()).zip(&of_samples)
            {
                prop_assert!((f64::from(found) - expected).abs() < 1e-5, "{found} {expected}");
                sum += expected * f64::from(weight);
            }
            prop_assert!((found.sum() - sum).abs() < 1e-4, "{} {sum}", found.sum());
        }
    }
}
