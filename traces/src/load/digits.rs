//! Decimal digits, eight at once.

/// How many digits are read at once.
pub(super) const DIGITS: usize = 8;

const ZEROS: u64 = u64::from_le_bytes([b'0'; DIGITS]);

/// How many digits the bytes begin with.
#[inline(always)]
pub(super) fn count_digits(bytes: [u8; DIGITS]) -> usize {
    count(u64::from_le_bytes(bytes) ^ ZEROS)
}

/// How many bytes, from the lowest on, are at most nine.
#[inline(always)]
fn count(digits: u64) -> usize {
    const LOW_BITS: u64 = u64::from_le_bytes([0x7f; DIGITS]);
    const HIGH_BITS: u64 = u64::from_le_bytes([0x80; DIGITS]);
    // Takes a byte above nine to its highest bit, and no byte into the next.
    const ABOVE_NINE: u64 = u64::from_le_bytes([0x80 - 10; DIGITS]);
    let others = (((digits & LOW_BITS) + ABOVE_NINE) | digits) & HIGH_BITS;
    others.trailing_zeros() as usize / 8
}

/// The value of the digits with which the bytes begin, and how many there are.
#[inline(always)]
pub(super) fn leading_digits(bytes: [u8; DIGITS]) -> (u64, usize) {
    let digits = u64::from_le_bytes(bytes) ^ ZEROS;
    let count = count(digits);
    // As the last of eight, with zeros before them.
    let padded = digits.checked_shl(64 - 8 * count as u32).unwrap_or(0);
    (eight_digits(padded), count)
}

/// The number that eight digits form, the first in the lowest byte. Each multiplication puts the
/// pairs' sum of the higher times ten, a hundred, ten thousand and the lower between the two.
#[inline(always)]
fn eight_digits(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(1 + (10 << 8)) >> 8;
    let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul(1 + (100 << 16)) >> 16;
    (fours & 0x0000_ffff_0000_ffff).wrapping_mul(1 + (10_000 << 32)) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_digits_before_any_byte() {
        let digits = b"90817263";
        for count in 0..=DIGITS {
            for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
                for rest in [b'5', 0, u8::MAX] {
                    let mut bytes = [rest; DIGITS];
                    bytes[..count].copy_from_slice(&digits[..count]);
                    if let Some(next) = bytes.get_mut(count) {
                        *next = byte;
                    }
                    let text = std::str::from_utf8(&digits[..count]).unwrap();
                    let value = text.parse().unwrap_or(0);
                    assert_eq!(leading_digits(bytes), (value, count), "{bytes:?}");
                    assert_eq!(count_digits(bytes), count, "{bytes:?}");
                }
            }
        }
    }
}
