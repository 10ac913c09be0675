//! Places as vectors of numbers, ready to be compared with a query's.

use super::covariance::{Covariance, Place, Sample};
use super::features::MAX_DIMENSIONS;
use super::matern::{LANES, Lane};

/// Coordinates of padding, in length scales: nothing is left of a correlation.
const FAR: f32 = 1e6;

/// The largest coordinate of a query, in length scales: it is far from everything.
const FARTHEST: f64 = 1e3;

/// The places of samples in lanes: for each block of [`LANES`] samples a lane for each coordinate.
pub(super) fn lanes(
    samples: &[Sample],
    covariance: &Covariance,
    centre: &[f64; MAX_DIMENSIONS],
) -> Vec<Lane> {
    let mut all = Vec::new();
    for block in samples.chunks(LANES) {
        let start = all.len();
        all.resize(start + covariance.dimensions, [FAR; LANES]);
        for (lane, sample) in block.iter().enumerate() {
            let scaled = scaled(&sample.place, covariance, centre);
            for (places, coordinate) in all[start..].iter_mut().zip(scaled) {
                places[lane] = coordinate;
            }
        }
    }
    all
}

/// A place in length scales from the centre, where coordinates are small and have digits to spare.
pub(super) fn scaled(
    place: &Place,
    covariance: &Covariance,
    centre: &[f64; MAX_DIMENSIONS],
) -> [f32; MAX_DIMENSIONS] {
    std::array::from_fn(|index| {
        let scaled = (place.at[index] - centre[index]) * covariance.inverse_scales[index];
        #[expect(clippy::cast_possible_truncation, reason = "seven digits of a coordinate")]
        let scaled = scaled.clamp(-FARTHEST, FARTHEST) as f32;
        scaled
    })
}
