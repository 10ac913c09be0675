//! Random numbers that are hashes of an element's index, by Chris Wellons' mixer `lowbias32`.
//!
//! For dropout, both variants and the reference compute them from the index alone, so they drop the
//! same elements in whatever order they run. Inputs are filled by them on all processors.

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

/// Numbers that have a key of their own, so that any of them can be drawn without those before.
pub(crate) const BLOCK: usize = 1 << 16;

/// Fills `numbers`, which begin at `first` of a stream, a multiple of [`BLOCK`], with uniform ones:
/// `offset + scale * u`, where `u` is an odd number over 2^23, between 0 and 1.
///
/// Each number follows from the seed, the stream and its index alone: a key for each block by
/// Vigna's SplitMix64, and within it the index mixed with both halves of the key. That is not a
/// generator to simulate with, but kernels cannot tell its numbers from better ones, and it is ten
/// times as fast as those.
pub(crate) fn fill(
    numbers: &mut [f32],
    (seed, stream): (u64, u64),
    first: usize,
    (scale, offset): (f32, f32),
) {
    for (block, numbers) in (first / BLOCK..).zip(numbers.chunks_mut(BLOCK)) {
        let key = split_mix(split_mix(split_mix(seed) ^ stream) ^ block as u64);
        let [low, high] = [key as u32, (key >> 32) as u32];
        // Only so that the loop is compiled for the vector unit at hand.
        pulp::Arch::new().dispatch(|| {
            for (index, number) in (0_u32..).zip(numbers.iter_mut()) {
                let mut bits = index ^ low;
                bits = (bits ^ (bits >> 16)).wrapping_mul(MIX_1);
                bits = (bits ^ (bits >> 15)).wrapping_add(high).wrapping_mul(MIX_2);
                bits ^= bits >> 16;
                // Odd, so that twice it less 1 is not 0 and a half more than it is not 1, both
                // exact in an f32.
                #[expect(clippy::cast_precision_loss, reason = "23 bits are exact")]
                let unit = ((bits >> 9) | 1) as f32 * (1.0 / 8_388_608.0);
                *number = offset + scale * unit;
            }
        });
    }
}

fn split_mix(state: u64) -> u64 {
    let mut bits = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
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

    fn filled(count: usize, seed: u64, stream: u64) -> Vec<f32> {
        let mut numbers = vec![0.0; count];
        fill(&mut numbers, (seed, stream), 0, (2.0, -1.0));
        numbers
    }

    #[test]
    fn a_block_is_the_same_whoever_fills_it() {
        let whole = filled(3 * BLOCK + 5, 7, 1);
        let mut parts = vec![0.0; whole.len()];
        for (index, part) in parts.chunks_mut(2 * BLOCK).enumerate() {
            fill(part, (7, 1), 2 * BLOCK * index, (2.0, -1.0));
        }
        assert_eq!(parts, whole);
    }

    #[test]
    fn numbers_are_uniform_and_unlike_their_neighbours_blocks_and_streams() {
        let count = 4 * BLOCK;
        let numbers = filled(count, 7, 1);
        let mean = |products: &mut dyn Iterator<Item = f32>| {
            products.map(f64::from).sum::<f64>() / count as f64
        };
        let close = |value: f64, expected: f64| (value - expected).abs() < 5.0 / 512.0;
        assert!(close(mean(&mut numbers.iter().copied()), 0.0));
        assert!(close(mean(&mut numbers.iter().map(|x| x * x)), 1.0 / 3.0));
        let correlation = |other: &[f32]| mean(&mut numbers.iter().zip(other).map(|(x, y)| x * y));
        for lag in [1, 2, 3, 4, 8, 16, 64, 256, 1024, BLOCK] {
            assert!(close(correlation(&numbers[lag..]), 0.0), "lag {lag}");
        }
        for (seed, stream) in [(7, 2), (8, 1), (1, 7), (6, 1)] {
            assert!(close(correlation(&filled(count, seed, stream)), 0.0), "{seed} {stream}");
        }
        for sixteenth in -8..8 {
            let low = sixteenth as f32 / 8.0;
            let inside = numbers.iter().filter(|x| (low..low + 0.125).contains(*x)).count();
            // Sixteen parts of 16,384; five standard deviations are 620.
            assert!(inside.abs_diff(count / 16) < 620, "{low}: {inside}");
        }
        assert!(numbers.iter().all(|x| x.abs() < 1.0 && *x != 0.0));
    }

    #[test]
    fn numbers_around_one_are_never_one() {
        let mut numbers = vec![0.0; 16 * BLOCK];
        fill(&mut numbers, (3, 0), 0, (1.0, 0.5));
        assert!(numbers.iter().all(|x| (0.5..1.5).contains(x) && *x != 1.0));
        fill(&mut numbers, (3, 0), 0, (0.0, 0.25));
        assert!(numbers.iter().all(|x| *x == 0.25));
    }
}
