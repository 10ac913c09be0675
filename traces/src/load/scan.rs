//! The structure of JSON text, found without building anything of it.

use memchr::memchr2;

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

/// Words of this many bytes are looked at before the search for longer strings starts up.
const WORD: usize = 8;

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

    #[inline]
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

    /// Goes past a key and its colon. A key with escapes is odd.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<&'b [u8], Stop> {
        let key = self.plain_string()?;
        // What profilers write, before what they might.
        if self.bytes.get(self.at..self.at + 2) == Some(b": ") {
            self.at += 2;
        } else {
            self.skip_space();
            self.expect(b':')?;
        }
        self.skip_space();
        Ok(key)
    }

    /// Goes past a separator: whether another member follows.
    #[inline]
    pub(crate) fn next_member(&mut self) -> Result<bool, Stop> {
        self.skip_space();
        match self.peek()? {
            b',' => {
                self.at += 1;
                self.skip_space();
                Ok(true)
            }
            b'}' => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(Stop::Odd),
        }
    }

    /// Reads a key of a few bytes; a longer search would be one through text that is no key.
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

    /// Goes past what closes so many levels of brackets.
    ///
    /// A quote that is not escaped turns strings inside out. It shows soon, because what follows
    /// a string is then the beginning of one, and rarely looks like the rest of an object.
    pub(crate) fn skip_to_close(&mut self, mut depth: usize) -> Result<(), Stop> {
        let bytes = self.bytes;
        let mut at = self.at;
        while depth > 0 {
            let rest = bytes.get(at..).unwrap_or_default();
            at += rest.iter().position(|&byte| is_structure(byte)).ok_or(Stop::Incomplete)?;
            match bytes.get(at) {
                Some(b'"') => {
                    at = string_end(bytes, at + 1)?.0 + 1;
                    match bytes.get(at).ok_or(Stop::Incomplete)? {
                        b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => at += 1,
                        b']' | b'}' => {}
                        _ => return Err(Stop::Odd),
                    }
                }
                Some(b'{' | b'[') => {
                    depth += 1;
                    at += 1;
                }
                _ => {
                    depth -= 1;
                    at += 1;
                }
            }
        }
        self.at = at;
        Ok(())
    }
}

/// Whether a byte outside strings is a bracket or a quote.
#[inline(always)]
fn is_structure(byte: u8) -> bool {
    const IS_STRUCTURE: [bool; 256] = {
        let mut table = [false; 256];
        table[b'"' as usize] = true;
        table[b'{' as usize] = true;
        table[b'}' as usize] = true;
        table[b'[' as usize] = true;
        table[b']' as usize] = true;
        table
    };
    IS_STRUCTURE[usize::from(byte)]
}

/// Where the quote is that ends a string, and whether escapes are before it.
#[inline(always)]
fn string_end(bytes: &[u8], start: usize) -> Result<(usize, bool), Stop> {
    let mut at = start;
    // Most strings are keys: shorter than what starting up a vector search costs.
    for _ in 0..2 {
        let Some(word) = bytes.get(at..at + WORD).and_then(|word| word.try_into().ok()) else {
            break;
        };
        let word = u64::from_le_bytes(word);
        let quotes = equal_bytes(word, b'"');
        let found = quotes | equal_bytes(word, b'\\');
        if found != 0 {
            at += found.trailing_zeros() as usize / 8;
            if quotes.trailing_zeros() != found.trailing_zeros() {
                break;
            }
            return Ok((at, false));
        }
        at += WORD;
    }
    long_string_end(bytes, at)
}

/// The same, if no quote and no backslash is before `at`.
#[inline(never)]
fn long_string_end(bytes: &[u8], mut at: usize) -> Result<(usize, bool), Stop> {
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

/// The bytes of a word that equal `byte`, as their highest bits. Bytes above the lowest that is
/// equal may be wrong.
#[inline]
fn equal_bytes(word: u64, byte: u8) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
    let zero_where_equal = word ^ (ONES * u64::from(byte));
    zero_where_equal.wrapping_sub(ONES) & !zero_where_equal & HIGHS
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
