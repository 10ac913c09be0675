//! The end of an object or a list, found by its brackets outside strings.

use super::block::{BLOCK, Block};
use super::scan::Stop;

/// Text with more open brackets is odd, as it is to serde_json by default: of events that all lack a
/// bracket, each would be searched for it through those that follow.
const DEEPEST: usize = 128;

/// The place behind the bracket that closes `depth` levels.
///
/// A quote that is not escaped turns strings inside out. It shows soon, because what follows a
/// string is then the beginning of one, and rarely looks like the rest of an object.
pub(super) fn end_of_levels(bytes: &[u8], from: usize, depth: usize) -> Result<usize, Stop> {
    let mut nesting = Nesting::new(depth);
    let mut at = from;
    while nesting.depth > 0 {
        let rest = bytes.get(at..).unwrap_or_default();
        let used = match rest.first_chunk() {
            Some(block) => nesting.read_block(block)?,
            None => nesting.read_bytes(rest)?.ok_or(Stop::Incomplete)?,
        };
        at += used;
    }
    Ok(at)
}

/// What is open at a place in the text.
struct Nesting {
    /// Brackets that must still be closed.
    depth: usize,
    in_string: bool,
    /// The byte before is a backslash that escapes the next.
    is_escaped: bool,
    /// The byte before ends a string.
    is_behind_string: bool,
}

impl Nesting {
    fn new(depth: usize) -> Self {
        Self { depth, in_string: false, is_escaped: false, is_behind_string: false }
    }

    #[inline(always)]
    fn open(&mut self) -> Result<(), Stop> {
        self.depth += 1;
        if self.depth > DEEPEST { Err(Stop::Odd) } else { Ok(()) }
    }

    /// Reads a block, up to the bracket that closes the last level: how many bytes that is.
    #[inline(always)]
    fn read_block(&mut self, bytes: &[u8; BLOCK]) -> Result<usize, Stop> {
        let block = Block::of(bytes);
        if block.backslashes != 0 || self.is_escaped {
            return Ok(self.read_bytes(bytes)?.unwrap_or(BLOCK));
        }
        let strings = block.strings(self.in_string);
        let ends = block.quotes & !strings;
        let behind = ends << 1 | u64::from(self.is_behind_string);
        let mut odd = behind & !(block.closing | block.separators);
        // What is left is space, or wrong.
        while odd != 0 && bytes.get(odd.trailing_zeros() as usize).is_some_and(may_follow_string) {
            odd &= odd - 1;
        }
        let mut brackets = (block.opening | block.closing) & !strings;
        while brackets != 0 {
            let place = brackets & brackets.wrapping_neg();
            if block.opening & place != 0 {
                self.open()?;
            } else {
                self.depth -= 1;
                if self.depth == 0 {
                    // Nothing before it may be odd.
                    let is_odd = odd & (place - 1) != 0;
                    return if is_odd { Err(Stop::Odd) } else { Ok(used(place)) };
                }
            }
            brackets ^= place;
        }
        if odd != 0 {
            return Err(Stop::Odd);
        }
        self.in_string = strings >> (BLOCK - 1) != 0;
        self.is_behind_string = ends >> (BLOCK - 1) != 0;
        Ok(BLOCK)
    }

    /// The same byte by byte; nothing if the last level is not closed.
    fn read_bytes(&mut self, bytes: &[u8]) -> Result<Option<usize>, Stop> {
        for (index, byte) in bytes.iter().enumerate() {
            if self.is_behind_string && !may_follow_string(byte) {
                return Err(Stop::Odd);
            }
            self.is_behind_string = false;
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'"' => {
                    self.is_behind_string = self.in_string;
                    self.in_string = !self.in_string;
                }
                b'\\' => self.is_escaped = self.in_string,
                b'{' | b'[' if !self.in_string => self.open()?,
                b'}' | b']' if !self.in_string => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Ok(Some(index + 1));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

/// The bytes up to the one of a bit.
fn used(place: u64) -> usize {
    place.trailing_zeros() as usize + 1
}

#[inline(always)]
fn may_follow_string(byte: &u8) -> bool {
    matches!(byte, b',' | b':' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn byte_by_byte(bytes: &[u8], depth: usize) -> Result<usize, Stop> {
        Nesting::new(depth).read_bytes(bytes)?.ok_or(Stop::Incomplete)
    }

    #[test]
    fn levels() {
        let text = br#"1, "a]\\": "}\"{", [[]]} , "b" : 2]  "#;
        for space in 0..130 {
            let text = [&vec![b' '; space], text.as_slice(), &[b' '; 70]].concat();
            assert_eq!(end_of_levels(&text, 0, 1), Ok(space + 24));
            assert_eq!(end_of_levels(&text, 0, 2), Ok(space + 35));
            assert_eq!(end_of_levels(&text, 0, 3), Err(Stop::Incomplete));
            assert_eq!(end_of_levels(&text, space + 24, 1), Ok(space + 35));
            assert_eq!(end_of_levels(&text, text.len() + 1, 1), Err(Stop::Incomplete));
        }
    }

    #[test]
    fn a_quote_that_is_not_escaped() {
        for space in 0..130 {
            let text = format!("{}\"a \"b\" c\" }}{}", " ".repeat(space), " ".repeat(70));
            assert_eq!(end_of_levels(text.as_bytes(), 0, 1), Err(Stop::Odd));
            // Behind the end, it is of no interest.
            assert_eq!(end_of_levels(format!("}}{text}").as_bytes(), 0, 1), Ok(1));
        }
    }

    #[test]
    fn what_nobody_closes_is_not_searched_to_the_end() {
        for space in 0..70 {
            let opening = |levels: usize| " ".repeat(space) + &"[".repeat(levels);
            let end = "]".repeat(DEEPEST) + &" ".repeat(70);
            let whole = opening(DEEPEST - 1) + &end;
            let used = space + 2 * DEEPEST - 1;
            assert_eq!(end_of_levels(whole.as_bytes(), 0, 1), Ok(used));
            assert_eq!(byte_by_byte(whole.as_bytes(), 1), Ok(used));
            // Whatever follows, if anything does.
            for end in [end.as_str(), ""] {
                let deeper = opening(DEEPEST) + end;
                assert_eq!(end_of_levels(deeper.as_bytes(), 0, 1), Err(Stop::Odd));
                assert_eq!(byte_by_byte(deeper.as_bytes(), 1), Err(Stop::Odd));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn blocks_make_no_difference(
            text in "([a-z]{0,40}|[\"{}\\[\\],: \\\\\n\r\t]|\"[a-z]{0,9}\"[,:}\\] ]){0,60}",
            depth in 1_usize..5,
        ) {
            prop_assert_eq!(
                end_of_levels(text.as_bytes(), 0, depth),
                byte_by_byte(text.as_bytes(), depth)
            );
        }
    }
}
