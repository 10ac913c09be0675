//! A short form of an output, by which another one is known to be the same bit for bit.

use serde::{Deserialize, Serialize};

/// Two outputs with the same digest are the same bit for bit: where they differ in one number, the
/// digests always do, and else but for one chance in 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputDigest([u64; LANES]);

/// Independent chains of multiplications, so that one does not wait for another.
const LANES: usize = 4;

/// Odd, with its bits spread evenly: the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

impl OutputDigest {
    /// The digest of some numbers.
    #[must_use]
    pub fn of(numbers: &[f32]) -> Self {
        let mut lanes = [1_u64, 2, 3, 4].map(|lane| add(numbers.len() as u64, lane));
        let mut blocks = numbers.chunks_exact(2 * LANES);
        for block in &mut blocks {
            for (lane, pair) in lanes.iter_mut().zip(block.chunks_exact(2)) {
                let word = u64::from(pair[0].to_bits()) | u64::from(pair[1].to_bits()) << 32;
                *lane = add(*lane, word);
            }
        }
        for (index, number) in blocks.remainder().iter().enumerate() {
            let lane = &mut lanes[index % LANES];
            *lane = add(*lane, u64::from(number.to_bits()));
        }
        Self(lanes)
    }
}

/// Mixes a word into a lane: one to one in both of them, so that no difference is lost later on.
fn add(lane: u64, word: u64) -> u64 {
    (lane ^ word).wrapping_mul(FACTOR).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_number_its_place_and_their_count_matter() {
        let numbers: Vec<f32> = (0..37).map(|x| x as f32 / 7.0).collect();
        let digest = OutputDigest::of(&numbers);
        assert_eq!(digest, OutputDigest::of(&numbers.clone()));
        for index in 0..numbers.len() {
            for flaw in [f32::NAN, 0.5, f32::from_bits(numbers[index].to_bits() ^ 1)] {
                let mut other = numbers.clone();
                other[index] = flaw;
                assert_ne!(OutputDigest::of(&other), digest, "{index} {flaw}");
            }
            let mut swapped = numbers.clone();
            swapped.swap(index, (index + 1) % numbers.len());
            assert_ne!(OutputDigest::of(&swapped), digest, "{index}");
            assert_ne!(OutputDigest::of(&numbers[..index]), digest, "{index}");
        }
        let zeros = vec![0.0; 100];
        let lengths: HashSet<_> = (0..100).map(|n| OutputDigest::of(&zeros[..n]).0).collect();
        assert_eq!(lengths.len(), 100);
        assert_ne!(OutputDigest::of(&[0.0]), OutputDigest::of(&[-0.0]));
    }
}
