//! Places as vectors of numbers, ready to be compared with a query's.

use super::covariance::{Covariance, Place, Sample};
use super::features::MAX_DIMENSIONS;
use super::matern::{LANES, Lane, UNITS};

/// Coordinates of padding: nothing is left of a correlation.
const FAR: f32 = 1e6;

/// The largest coordinate of a query: it is far from everything.
const FARTHEST: f64 = 1e3;

/// Dimensions of the lanes of a field: loops over as many as that are unrolled. The coordinates beyond
/// those of the field are 0.
pub(super) const FEW: usize = 4;
pub(super) const MANY: usize = MAX_DIMENSIONS;

/// The places of samples in lanes: for each block of [`LANES`] samples a lane for each of `D`
/// coordinates.
pub(super) fn lanes<const D: usize>(
    samples: &[Sample],
    covariance: &Covariance,
    centre: &[f64; MAX_DIMENSIONS],
) -> Vec<[Lane; D]> {
    let of_block = |block: &[Sample]| {
        let mut lanes = [[FAR; LANES]; D];
        for (lane, sample) in block.iter().enumerate() {
            let scaled = scaled::<D>(&sample.place, covariance, centre);
            for (places, coordinate) in lanes.iter_mut().zip(scaled) {
                places[lane] = coordinate;
            }
        }
        lanes
    };
    samples.chunks(LANES).map(of_block).collect()
}

/// A place in [`UNITS`] from the centre, where coordinates are small and have digits to spare.
#[inline]
pub(super) fn scaled<const D: usize>(
    place: &Place,
    covariance: &Covariance,
    centre: &[f64; MAX_DIMENSIONS],
) -> [f32; D] {
    std::array::from_fn(|index| {
        let scaled = (place.at[index] - centre[index]) * covariance.inverse_scales[index] * UNITS;
        #[expect(clippy::cast_possible_truncation, reason = "seven digits of a coordinate")]
        let scaled = scaled.clamp(-FARTHEST, FARTHEST) as f32;
        scaled
    })
}
