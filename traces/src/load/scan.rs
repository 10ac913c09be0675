//! The structure of JSON text, found without building anything of it.

use memchr::memchr2;

use super::block::{LANES, quote_or_backslash};
use super::digits::{DIGITS, count_digits, leading_digits};
use super::nesting::end_of_levels;

/// Why a scan did not come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The bytes end first.
    Incomplete,
    /// It is not of the form that the scan knows.
    Odd,
}

/// A place in the bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Cursor<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self::starting_at(bytes, 0)
    }

    pub(crate) fn starting_at(bytes: &'b [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// How many bytes lie behind.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    #[inline]
    pub(crate) fn peek(&self) -> Result<u8, Stop> {
        self.bytes.get(self.at).copied().ok_or(Stop::Incomplete)
    }

    /// The next bytes, if the text is long enough.
    #[inline(always)]
    pub(crate) fn first_chunk<const N: usize>(&self) -> Option<&'b [u8; N]> {
        self.bytes.get(self.at..)?.first_chunk()
    }

    #[inline(always)]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    #[inline(always)]
    pub(crate) fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    /// Goes past a byte that must be there.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), Stop> {
        if self.peek()? != byte {
            return Err(Stop::Odd);
        }
        self.at += 1;
        Ok(())
    }

    /// Goes past a text that must be there.
    #[inline(always)]
    pub(crate) fn pass(&mut self, text: &[u8]) -> Option<()> {
        let end = self.at + text.len();
        let found = self.bytes.get(self.at..end)?;
        are_equal(found, text).then(|| self.at = end)
    }

    /// Goes past a number of digits alone, of any length.
    #[inline(always)]
    pub(crate) fn pass_digits(&mut self) -> Option<()> {
        let count = self.count_digits()?;
        (count > 0 && self.expect_end_of_number().is_ok()).then_some(())
    }

    /// Goes past a number of digits, which may have a point among them.
    #[inline(always)]
    pub(crate) fn pass_decimal(&mut self) -> Option<()> {
        let mut count = self.count_digits()?;
        if self.peek() == Ok(b'.') {
            self.at += 1;
            count = self.count_digits()?;
        }
        (count > 0 && self.expect_end_of_number().is_ok()).then_some(())
    }

    /// Goes past digits: how many there were.
    #[inline(always)]
    fn count_digits(&mut self) -> Option<usize> {
        let start = self.at;
        loop {
            let count = count_digits(*self.first_chunk()?);
            self.at += count;
            if count < DIGITS {
                return Some(self.at - start);
            }
        }
    }

    /// Goes past what is before the first value of an object, or before its next one: the key, or
    /// nothing if the object ends instead. A key with escapes is odd.
    pub(crate) fn next_key(&mut self, is_first: bool) -> Result<Option<&'b [u8]>, Stop> {
        if is_first {
            self.expect(b'{')?;
        }
        self.skip_space();
        match self.peek()? {
            b'}' => {
                self.at += 1;
                return Ok(None);
            }
            b',' if !is_first => {
                self.at += 1;
                self.skip_space();
            }
            _ if is_first => {}
            _ => return Err(Stop::Odd),
        }
        let key = self.plain_string()?;
        self.skip_space();
        self.expect(b':')?;
        self.skip_space();
        Ok(Some(key))
    }

    /// Reads a key of a few bytes; a longer search would be one through text that is not a key.
    pub(crate) fn short_key(mut self) -> Result<&'b [u8], Stop> {
        let end = self.bytes.len().min(self.at + 32);
        self.bytes = self.bytes.get(..end).ok_or(Stop::Incomplete)?;
        self.plain_string()
    }

    /// Goes past a string without escapes.
    #[inline]
    pub(crate) fn plain_string(&mut self) -> Result<&'b [u8], Stop> {
        let (content, has_escapes) = self.string()?;
        if has_escapes { Err(Stop::Odd) } else { Ok(content) }
    }

    /// Goes past a string: what is between its quotes, and whether that has escapes.
    #[inline(always)]
    pub(crate) fn string(&mut self) -> Result<(&'b [u8], bool), Stop> {
        self.expect(b'"')?;
        let start = self.at;
        let (end, has_escapes) = string_end(self.bytes, start)?;
        self.at = end + 1;
        Ok((self.bytes.get(start..end).ok_or(Stop::Odd)?, has_escapes))
    }

    /// Goes past up to 18 digits, which cannot overflow: their value. A needless zero before them
    /// is odd.
    #[inline(always)]
    pub(crate) fn digits(&mut self) -> Result<u64, Stop> {
        const POWERS: [u64; DIGITS] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];
        let Some(&[first, ..]) = self.first_chunk::<{ 2 * DIGITS }>() else {
            return self.long_digits();
        };
        let mut value = 0;
        let mut used = 0;
        for word in [self.at, self.at + DIGITS] {
            let bytes = self.bytes.get(word..).and_then(|rest| rest.first_chunk());
            let (more, count) = leading_digits(*bytes.ok_or(Stop::Incomplete)?);
            if let Some(power) = POWERS.get(count) {
                used += count;
                if used == 0 || (used > 1 && first == b'0') {
                    return Err(Stop::Odd);
                }
                self.at += used;
                return Ok(value * power + more);
            }
            value = more;
            used = DIGITS;
        }
        self.long_digits()
    }

    /// The same for more than 15 digits, and for those near the end of the bytes.
    #[inline(never)]
    fn long_digits(&mut self) -> Result<u64, Stop> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let mut value = 0;
        for (used, byte) in rest.iter().enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                if used == 0 || (used > 1 && rest.first() == Some(&b'0')) {
                    return Err(Stop::Odd);
                }
                self.at += used;
                return Ok(value);
            }
            if used == 18 {
                return Err(Stop::Odd);
            }
            value = value * 10 + u64::from(digit);
        }
        Err(Stop::Incomplete)
    }

    /// Goes past a point and up to three digits behind it, if there is a point: the thousandths.
    #[inline(always)]
    pub(crate) fn thousandths(&mut self) -> Result<u64, Stop> {
        if self.peek()? != b'.' {
            return Ok(0);
        }
        self.at += 1;
        // What profilers write, before what they might.
        if let Some(&[a, b, c, ..]) = self.first_chunk::<4>()
            && let [a, b, c] = [a, b, c].map(|byte| u64::from(byte.wrapping_sub(b'0')))
            && a.max(b).max(c) <= 9
        {
            self.at += 3;
            return Ok(100 * a + 10 * b + c);
        }
        let mut value = 0;
        for place in [100, 10, 1] {
            let digit = self.peek()?.wrapping_sub(b'0');
            if digit > 9 {
                return if place == 100 { Err(Stop::Odd) } else { Ok(value) };
            }
            value += place * u64::from(digit);
            self.at += 1;
        }
        Ok(value)
    }

    /// Whether a number ends here; with other characters it has another form.
    #[inline(always)]
    pub(crate) fn expect_end_of_number(&self) -> Result<(), Stop> {
        match self.peek()? {
            b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' => Ok(()),
            _ => Err(Stop::Odd),
        }
    }

    /// What was passed since a place.
    #[inline]
    pub(crate) fn since(&self, start: usize) -> &'b [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    /// Goes past a number or a word: its bytes.
    #[inline]
    pub(crate) fn scalar(&mut self) -> Result<&'b [u8], Stop> {
        let start = self.at;
        loop {
            match self.peek()? {
                b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t' => break,
                b'"' | b'{' | b'[' | b':' => return Err(Stop::Odd),
                _ => self.at += 1,
            }
        }
        match self.bytes.get(start..self.at) {
            None | Some([]) => Err(Stop::Odd),
            Some(text) => Ok(text),
        }
    }

    /// Goes past a value of any kind.
    #[inline]
    pub(crate) fn skip_value(&mut self) -> Result<(), Stop> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' | b'[' => {
                self.at += 1;
                self.skip_to_close(1)
            }
            _ => self.scalar().map(drop),
        }
    }

    /// Goes past what closes `depth` levels of brackets.
    #[inline]
    pub(crate) fn skip_to_close(&mut self, depth: usize) -> Result<(), Stop> {
        self.at = end_of_levels(self.bytes, self.at, depth)?;
        Ok(())
    }
}

/// Texts up to this length are compared here, where a call would take longer.
const SHORT: usize = 4 * LANES;

/// Whether two texts of one length are the same.
#[inline(always)]
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() > SHORT {
        return one == other;
    }
    // The last bytes are looked at once more than the others, or twice.
    if let (Some(last), Some(other_last)) = (one.last_chunk::<LANES>(), other.last_chunk()) {
        let (chunks, _) = one.as_chunks::<LANES>();
        let (others, _) = other.as_chunks::<LANES>();
        return chunks.iter().zip(others).all(|(a, b)| a == b) && last == other_last;
    }
    if let (Some(last), Some(other_last)) = (one.last_chunk::<8>(), other.last_chunk()) {
        return one.first_chunk::<8>() == other.first_chunk() && last == other_last;
    }
    one.iter().zip(other).all(|(a, b)| a == b)
}

/// Where the quote is that ends a string, and whether escapes are before it.
#[inline(always)]
fn string_end(bytes: &[u8], start: usize) -> Result<(usize, bool), Stop> {
    let mut at = start;
    while let Some(lanes) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        if let Some(before) = quote_or_backslash(lanes) {
            at += before;
            return if bytes.get(at) == Some(&b'"') {
                Ok((at, false))
            } else {
                odd_string_end(bytes, at)
            };
        }
        at += LANES;
    }
    odd_string_end(bytes, at)
}

/// The same for strings with escapes and for those near the end of the bytes, if no quote and no
/// backslash is before `at`.
#[inline(never)]
fn odd_string_end(bytes: &[u8], mut at: usize) -> Result<(usize, bool), Stop> {
    let mut has_escapes = false;
    loop {
        let rest = bytes.get(at..).ok_or(Stop::Incomplete)?;
        at += memchr2(b'"', b'\\', rest).ok_or(Stop::Incomplete)?;
        if bytes.get(at) == Some(&b'"') {
            return Ok((at, has_escapes));
        }
        has_escapes = true;
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_of(text: &str) -> Result<usize, Stop> {
        let mut cursor = Cursor::new(text.as_bytes());
        cursor.skip_value().map(|()| cursor.position())
    }

    #[test]
    fn values() {
        assert_eq!(end_of(r#"{"a": [1, "}]\"", {}], "b\\": {}} rest"#), Ok(33));
        assert_eq!(end_of(r#"["x", -1.5e3, null]"#), Ok(19));
        assert_eq!(end_of(r#""a long string without an end that goes on"#), Err(Stop::Incomplete));
        assert_eq!(end_of(r#""\"#), Err(Stop::Incomplete));
        assert_eq!(end_of(r#"{"a": "say "hello" to"}"#), Err(Stop::Odd));
        assert_eq!(end_of("12, "), Ok(2));
        assert_eq!(end_of(","), Err(Stop::Odd));
        assert_eq!(end_of(""), Err(Stop::Incomplete));
    }

    #[test]
    fn a_string_of_any_length() {
        for length in 0..70 {
            let text = format!("\"{}\" ", "é".repeat(length));
            assert_eq!(end_of(&text), Ok(2 + 2 * length));
            let text = format!("\"{}\\\"{}\" ", "x".repeat(length), "y".repeat(length / 2));
            assert_eq!(end_of(&text), Ok(4 + length + length / 2));
        }
    }
}
