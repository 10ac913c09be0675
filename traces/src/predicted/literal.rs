//! A small, strict parser of Python literals: how the time of an operator is split over its
//! kernels is written as Python prints a list of pairs, `[('MatMulV2', 22.77), ('Add', 8.29)]`.
//!
//! It knows lists, tuples, strings, numbers and constants, in the forms in which Python prints
//! them; what it does not know (sets, prefixed or triple-quoted strings, sums) is an error.

/// Why a split cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LiteralError {
    /// It is not a Python literal of a known form.
    #[error("at byte {at}: expected {expected}")]
    Syntax {
        /// The byte, from 0.
        at: usize,
        /// What would have been right.
        expected: &'static str,
    },
    /// It is one, but no list of pairs.
    #[error("it is not a list of pairs of a kernel and a duration")]
    NotPairs,
}

/// Reads a list of kernels and their durations in microseconds. Durations are finite; they may be
/// negative.
///
/// # Errors
///
/// When the text is not a Python list of pairs of a string and a number.
pub fn sub_kernel_durations(text: &str) -> Result<Vec<(String, f64)>, LiteralError> {
    let mut parser = Parser { bytes: text.as_bytes(), at: 0 };
    parser.skip_space();
    let value = parser.value(0)?;
    parser.skip_space();
    if parser.peek().is_some() {
        return Err(parser.expected("the end"));
    }
    let Value::List(items) = value else { return Err(LiteralError::NotPairs) };
    items.into_iter().map(|item| pair(item).ok_or(LiteralError::NotPairs)).collect()
}

fn pair(item: Value) -> Option<(String, f64)> {
    let (Value::List(parts) | Value::Tuple(parts)) = item else { return None };
    match <[Value; 2]>::try_from(parts) {
        Ok([Value::Text(name), Value::Number(duration)]) => Some((name, duration)),
        _ => None,
    }
}

enum Value {
    List(Vec<Value>),
    Tuple(Vec<Value>),
    Text(String),
    Number(f64),
    /// `None`, `True` or `False`.
    Constant,
}

/// Deepest nesting of lists that is read: nothing real has more than two levels.
const DEEPEST: usize = 16;

struct Parser<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Takes a byte if it is the next one.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expected(&self, expected: &'static str) -> LiteralError {
        LiteralError::Syntax { at: self.at, expected }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0c)) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, LiteralError> {
        match self.peek() {
            Some(b'[' | b'(') if depth == DEEPEST => Err(self.expected("fewer lists in lists")),
            Some(b'[') => Ok(Value::List(self.items(b']', depth)?.0)),
            Some(b'(') => {
                let (mut items, has_comma) = self.items(b')', depth)?;
                match items.pop() {
                    // Parentheses around a value do not make a tuple.
                    Some(only) if items.is_empty() && !has_comma => Ok(only),
                    last => {
                        items.extend(last);
                        Ok(Value::Tuple(items))
                    }
                }
            }
            Some(b'\'' | b'"') => self.text().map(Value::Text),
            Some(b'+' | b'-' | b'.' | b'0'..=b'9') => self.number().map(Value::Number),
            _ => self.constant(),
        }
    }

    /// The values up to a closing bracket, and whether there was a comma.
    fn items(&mut self, close: u8, depth: usize) -> Result<(Vec<Value>, bool), LiteralError> {
        self.at += 1;
        let mut items = Vec::new();
        let (mut has_comma, mut needs_comma) = (false, false);
        loop {
            self.skip_space();
            if self.take(close) {
                return Ok((items, has_comma));
            }
            if needs_comma {
                return Err(self.expected("a comma or the end of the list"));
            }
            items.push(self.value(depth + 1)?);
            self.skip_space();
            needs_comma = !self.take(b',');
            has_comma |= !needs_comma;
        }
    }

    fn constant(&mut self) -> Result<Value, LiteralError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let word = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
        let length = word.count();
        match rest.get(..length) {
            Some(b"None" | b"True" | b"False") => {
                self.at += length;
                Ok(Value::Constant)
            }
            _ => Err(self.expected("a list, a string or a number")),
        }
    }

    fn number(&mut self) -> Result<f64, LiteralError> {
        let start = self.at;
        if !self.take(b'-') {
            self.take(b'+');
        }
        let whole = self.digits();
        let has_point = self.take(b'.');
        let fraction = if has_point { self.digits() } else { 0 };
        let has_digits = whole + fraction > 0;
        let mut has_exponent = false;
        if has_digits && (self.take(b'e') || self.take(b'E')) {
            has_exponent = true;
            if !self.take(b'-') {
                self.take(b'+');
            }
            if self.digits() == 0 {
                return Err(self.expected("digits of the exponent"));
            }
        }
        if !has_digits {
            return Err(self.expected("digits"));
        }
        let text = self.bytes.get(start..self.at).and_then(|text| std::str::from_utf8(text).ok());
        let digits = text.unwrap_or_default().trim_start_matches(['-', '+']);
        let is_float = has_point || has_exponent;
        let has_leading_zero = digits.len() > 1 && digits.starts_with('0');
        if !is_float && has_leading_zero && digits.bytes().any(|digit| digit != b'0') {
            self.at = start;
            return Err(self.expected("a number without leading zeros"));
        }
        let number: Option<f64> = text.and_then(|text| text.parse().ok());
        number.filter(|number| number.is_finite()).ok_or_else(|| {
            self.at = start;
            self.expected("a number that is not too large")
        })
    }

    /// How many digits are next.
    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn text(&mut self) -> Result<String, LiteralError> {
        let start = self.at;
        let quote = self.peek().unwrap_or_default();
        self.at += 1;
        let mut text = Vec::new();
        loop {
            let byte = self.peek().filter(|byte| !matches!(byte, b'\n' | b'\r'));
            let byte = byte.ok_or_else(|| self.expected("the end of the string"))?;
            self.at += 1;
            if byte == quote {
                break;
            }
            if byte == b'\\' { self.escape(&mut text)? } else { text.push(byte) }
        }
        // Three quotes would begin a string over several lines; two are an empty string.
        if text.is_empty() && self.peek() == Some(quote) {
            self.at = start;
            return Err(self.expected("a string in single or double quotes"));
        }
        // The text is whole characters of a text, and whole escapes.
        String::from_utf8(text).map_err(|_| self.expected("characters"))
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), LiteralError> {
        let byte = self.peek().ok_or_else(|| self.expected("an escape"))?;
        self.at += 1;
        let code = match byte {
            b'\n' => return Ok(()),
            b'\\' | b'\'' | b'"' => u32::from(byte),
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => 0x0a,
            b'r' => 0x0d,
            b't' => 0x09,
            b'v' => 0x0b,
            b'x' => self.hexadecimal(2)?,
            b'u' => self.hexadecimal(4)?,
            b'U' => self.hexadecimal(8)?,
            b'0'..=b'7' => self.octal(byte),
            _ => {
                self.at -= 1;
                return Err(self.expected("an escape that Python prints"));
            }
        };
        let character = char::from_u32(code).ok_or_else(|| self.expected("a character"))?;
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<u32, LiteralError> {
        let text = self.bytes.get(self.at..self.at + digits);
        let text = text.filter(|text| text.iter().all(u8::is_ascii_hexdigit));
        let text = text.and_then(|text| std::str::from_utf8(text).ok());
        let code = text.and_then(|text| u32::from_str_radix(text, 16).ok());
        let code = code.ok_or_else(|| self.expected("hexadecimal digits"))?;
        self.at += digits;
        Ok(code)
    }

    /// Up to two more octal digits.
    fn octal(&mut self, first: u8) -> u32 {
        let mut code = u32::from(first - b'0');
        for _ in 0..2 {
            let Some(digit @ b'0'..=b'7') = self.peek() else { break };
            code = code * 8 + u32::from(digit - b'0');
            self.at += 1;
        }
        code
    }
}
