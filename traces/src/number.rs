//! Decimal text to whole numbers, without the detour over `f64`.
//!
//! A time since 1970 in microseconds with three decimals has 19 digits; an `f64` keeps 16.

/// More digits than any time or id has; what follows cannot change a rounded result.
const SIGNIFICANT_DIGITS: u32 = 30;

/// Decimal text times ten to the `scale`, rounded half away from zero. `None` for what is no
/// decimal number, or far beyond 64 bits.
pub(crate) fn scaled(text: &[u8], scale: i32) -> Option<i128> {
    let text = text.trim_ascii();
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let mut mantissa: u128 = 0;
    let mut significant = 0;
    let mut exponent = i64::from(scale);
    let (mut in_fraction, mut has_digits) = (false, false);
    let mut rest = digits;
    while let Some((&byte, tail)) = rest.split_first() {
        match byte {
            b'0'..=b'9' => {
                has_digits = true;
                if significant < SIGNIFICANT_DIGITS {
                    mantissa = mantissa * 10 + u128::from(byte - b'0');
                    significant += u32::from(mantissa != 0);
                    exponent -= i64::from(in_fraction);
                } else {
                    exponent += i64::from(!in_fraction);
                }
            }
            b'.' if !in_fraction => in_fraction = true,
            b'e' | b'E' if has_digits => {
                exponent += small_exponent(tail)?;
                break;
            }
            _ => return None,
        }
        rest = tail;
    }
    if !has_digits {
        return None;
    }
    let magnitude = shifted(mantissa, exponent)?;
    let value = i128::try_from(magnitude).ok()?;
    Some(if negative { -value } else { value })
}

/// The exponent behind an `e`, held where adding it to others cannot overflow.
fn small_exponent(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.trim_start_matches(['-', '+']);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || text.len() - digits.len() > 1 {
        return None;
    }
    let size = digits.parse().unwrap_or(i64::MAX).min(1 << 40);
    Some(if text.starts_with('-') { -size } else { size })
}

fn shifted(mantissa: u128, exponent: i64) -> Option<u128> {
    if mantissa == 0 {
        return Some(0);
    }
    if exponent >= 0 {
        let factor = 10_u128.checked_pow(u32::try_from(exponent).ok()?)?;
        return mantissa.checked_mul(factor);
    }
    let digits = u32::try_from(-exponent).unwrap_or(u32::MAX);
    // A mantissa below 10^31 is less than half of 10^32.
    let divisor =
        if digits > SIGNIFICANT_DIGITS + 1 { return Some(0) } else { 10_u128.pow(digits) };
    Some(mantissa / divisor + u128::from(mantissa % divisor * 2 >= divisor))
}

/// Microseconds as decimal text, in nanoseconds.
pub(crate) fn nanoseconds(text: &[u8]) -> Option<i64> {
    scaled(text, 3).and_then(|value| value.try_into().ok())
}

/// The same for the plain form that profilers write: some digits, and perhaps a point and up to
/// three more. `None` for any other form, which [`nanoseconds`] may know.
#[inline]
pub(crate) fn plain_nanoseconds(text: &[u8]) -> Option<i64> {
    let (whole, used) = leading_digits(text)?;
    let rest = text.get(used..)?;
    let Some((&point, decimals)) = rest.split_first() else {
        return i64::try_from(whole.checked_mul(1000)?).ok();
    };
    if point != b'.' || decimals.is_empty() || decimals.len() > 3 {
        return None;
    }
    let mut value = whole;
    for index in 0..3 {
        let digit = decimals.get(index).map_or(0, |byte| byte.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    i64::try_from(value).ok()
}

/// A whole number of the plain form.
#[inline]
pub(crate) fn plain_whole(text: &[u8]) -> Option<u64> {
    let (value, used) = leading_digits(text)?;
    (used == text.len()).then_some(value)
}

/// Up to 18 digits, which cannot overflow, without a needless leading zero.
#[inline]
fn leading_digits(text: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    let mut used = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value * 10 + u64::from(digit);
        used += 1;
        if used > 18 {
            return None;
        }
    }
    (used > 0 && (used == 1 || text.first() != Some(&b'0'))).then_some((value, used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times() {
        let cases: [(&str, Option<i64>); 17] = [
            ("2241346127176.383", Some(2_241_346_127_176_383)),
            ("1665536373729077", Some(1_665_536_373_729_077_000)),
            ("1665536373729077.123", Some(1_665_536_373_729_077_123)),
            ("1.6655363737290771e15", Some(1_665_536_373_729_077_100)),
            ("4", Some(4000)),
            ("0.0005", Some(1)),
            ("-0.0005", Some(-1)),
            ("0.00049999999999999999999999999999999999999999", Some(0)),
            ("0.0000000000000000000000000000000000000005", Some(0)),
            ("1E+2", Some(100_000)),
            ("5e-999999999999999999999", Some(0)),
            ("9223372036854775.807", Some(i64::MAX)),
            ("9223372036854775.808", None),
            ("1e999999999999999999999", None),
            ("nan", None),
            ("", None),
            ("1.2.3", None),
        ];
        for (text, expected) in cases {
            assert_eq!(nanoseconds(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn ids() {
        assert_eq!(scaled(b"18446744073709551615", 0), Some(u64::MAX.into()));
        assert_eq!(plain_whole(b"18446744073709551615"), None);
        assert_eq!(plain_whole(b"538860"), Some(538_860));
        assert_eq!(
            (plain_whole(b"007"), plain_whole(b"7.0"), plain_whole(b"")),
            (None, None, None)
        );
    }

    proptest! {
        #[test]
        fn the_plain_form_is_no_different(text in "[0-9]{0,20}(\\.[0-9]{0,5})?([eE][+-]?[0-9]{1,2})?") {
            if let Some(value) = plain_nanoseconds(text.as_bytes()) {
                prop_assert_eq!(nanoseconds(text.as_bytes()), Some(value));
            }
            if let Some(value) = plain_whole(text.as_bytes()) {
                prop_assert_eq!(scaled(text.as_bytes(), 0), Some(value.into()));
            }
        }

        #[test]
        fn a_time_comes_back(ns in 0..i64::MAX) {
            let text = format!("{}.{:03}", ns / 1000, ns % 1000);
            prop_assert_eq!(nanoseconds(text.as_bytes()), Some(ns));
        }
    }
}
