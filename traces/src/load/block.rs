//! Where characters of JSON's structure are, in many bytes at once.

use wide::u8x16;

/// How many bytes a [`Block`] is about.
pub(super) const BLOCK: usize = 64;

/// How many bytes one comparison is about; every processor with vectors has them of this size.
pub(super) const LANES: usize = 16;

/// Where what is in 64 bytes: the lowest bit is for the first byte.
pub(super) struct Block {
    pub(super) quotes: u64,
    pub(super) backslashes: u64,
    /// `{` and `[`.
    pub(super) opening: u64,
    /// `}` and `]`.
    pub(super) closing: u64,
    /// `,` and `:`.
    pub(super) separators: u64,
}

impl Block {
    #[inline(always)]
    pub(super) fn of(bytes: &[u8; BLOCK]) -> Self {
        // The two kinds of brackets differ in this bit alone, and no other character falls in
        // with them.
        let kind = u8x16::splat(b'{' ^ b'[');
        Self {
            quotes: bits(bytes, |lanes| equal(lanes, b'"')),
            backslashes: bits(bytes, |lanes| equal(lanes, b'\\')),
            opening: bits(bytes, |lanes| equal(lanes | kind, b'{')),
            closing: bits(bytes, |lanes| equal(lanes | kind, b'}')),
            separators: bits(bytes, |lanes| equal(lanes, b',') | equal(lanes, b':')),
        }
    }

    /// From each quote that opens a string up to the one before which it ends, if all of its
    /// quotes are such. `in_string` says whether the first byte is in one.
    #[inline(always)]
    pub(super) fn strings(&self, in_string: bool) -> u64 {
        // The parity of the number of quotes up to each place.
        let mut parity = self.quotes;
        for shift in [1, 2, 4, 8, 16, 32] {
            parity ^= parity << shift;
        }
        if in_string { !parity } else { parity }
    }
}

/// The first quote or backslash: how many bytes are before it, if it is in these.
#[inline(always)]
pub(super) fn quote_or_backslash(bytes: &[u8; LANES]) -> Option<usize> {
    let lanes = u8x16::from(*bytes);
    let found = (equal(lanes, b'"') | equal(lanes, b'\\')).to_bitmask();
    (found != 0).then_some(found.trailing_zeros() as usize)
}

/// Which bytes of the one are those of the other: the lowest bit is for the first byte.
#[inline(always)]
pub(super) fn equal_bytes(one: &[u8; 2 * LANES], other: &[u8; 2 * LANES]) -> u32 {
    let ((one, _), (other, _)) = (one.as_chunks::<LANES>(), other.as_chunks::<LANES>());
    one.iter().zip(other).enumerate().fold(0, |bits, (index, (one, other))| {
        bits | u8x16::from(*one).simd_eq(u8x16::from(*other)).to_bitmask() << (index * LANES)
    })
}

#[inline(always)]
fn equal(lanes: u8x16, byte: u8) -> u8x16 {
    lanes.simd_eq(u8x16::splat(byte))
}

#[inline(always)]
fn bits(bytes: &[u8; BLOCK], test: impl Fn(u8x16) -> u8x16) -> u64 {
    let (quarters, _) = bytes.as_chunks::<LANES>();
    quarters.iter().enumerate().fold(0, |bits, (index, quarter)| {
        bits | u64::from(test(u8x16::from(*quarter)).to_bitmask()) << (index * LANES)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_in_every_place() {
        for place in 0..BLOCK {
            for byte in 0..=u8::MAX {
                let mut bytes = [b'x'; BLOCK];
                bytes[place] = byte;
                let block = Block::of(&bytes);
                let expected = |of: &[u8]| u64::from(of.contains(&byte)) << place;
                assert_eq!(block.quotes, expected(b"\""));
                assert_eq!(block.backslashes, expected(b"\\"));
                assert_eq!(block.opening, expected(b"{["), "{byte}");
                assert_eq!(block.closing, expected(b"}]"), "{byte}");
                assert_eq!(block.separators, expected(b",:"));
            }
        }
    }

    #[test]
    fn strings() {
        let mut bytes = [b' '; BLOCK];
        bytes[..9].copy_from_slice(b"1 \"ab\" \"c");
        let block = Block::of(&bytes);
        assert_eq!(block.strings(false), u64::MAX << 7 | 0b1_1100);
        assert_eq!(block.strings(true), !block.strings(false));
    }

    #[test]
    fn differences() {
        let one: [u8; 32] = std::array::from_fn(|index| index as u8);
        let mut other = one;
        assert_eq!(equal_bytes(&one, &other), u32::MAX);
        other[17] = 0;
        other[0] = 1;
        assert_eq!(equal_bytes(&one, &other), !(1 << 17 | 1));
    }

    #[test]
    fn the_first_quote_or_backslash() {
        assert_eq!(quote_or_backslash(b"0123456789abcdef"), None);
        assert_eq!(quote_or_backslash(b"0123456789abcde\""), Some(15));
        assert_eq!(quote_or_backslash(b"01\\\"456789abcde\""), Some(2));
    }
}
