//! The random numbers of dropout: a hash of the element's index.
//!
//! Both variants and the reference compute them from the index alone, so they drop the same
//! elements in whatever order they run. The mixer is Chris Wellons' `lowbias32`.

/// Stirred into the index, so that the first elements are not those of the bare hash.
pub(crate) const DROPOUT_SEED: u32 = 0x9E37_79B9;
pub(crate) const MIX_1: u32 = 0x7FEB_352D;
pub(crate) const MIX_2: u32 = 0x846C_A68B;

/// The bits of 1.0; with 23 random bits below they are a number in [1, 2).
pub(crate) const ONE_BITS: u32 = 0x3F80_0000;

/// A uniform number in [0, 1) with 23 bits for the element at `index`.
#[must_use]
pub(crate) fn uniform(index: u32) -> f32 {
    let mut bits = index ^ DROPOUT_SEED;
    bits = (bits ^ (bits >> 16)).wrapping_mul(MIX_1);
    bits = (bits ^ (bits >> 15)).wrapping_mul(MIX_2);
    bits ^= bits >> 16;
    f32::from_bits((bits >> 9) | ONE_BITS) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_numbers_is_below_a_tenth() {
        let count = 1_000_000;
        let below = (0..count).filter(|&index| uniform(index) < 0.1).count();
        // Five standard deviations of a binomial with a million draws: 1,500.
        assert!((98_500..101_500).contains(&below), "{below}");
        assert!((0..count).all(|index| (0.0..1.0).contains(&uniform(index))));
    }
}
