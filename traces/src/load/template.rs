//! The text of an event without its numbers.

use std::hash::{BuildHasher, Hasher};

use rustc_hash::FxBuildHasher;

use super::fast::{Number, NumberAt, time, whole};
use super::row::{Row, gradient};
use super::scan::Cursor;
use super::strays::LONGEST_NS;

/// The text of an event with gaps, which plain numbers fill.
///
/// Numbers that the parser passed over, and those of devices and streams, are taken for text until
/// they are seen to vary: the registers of a kernel are the same each time, and longer texts are
/// compared faster than short ones.
#[derive(Debug)]
pub(super) struct Template {
    /// The event that it was learned from, as the file has it.
    text: Box<[u8]>,
    gaps: Box<[Gap]>,
    parts: Box<[Part]>,
    /// The event that it is the text of.
    row: Row,
}

/// A part of the text, and the number behind it; none behind the last part.
#[derive(Debug, Clone, Copy)]
struct Part {
    start: u32,
    end: u32,
    number: Option<Number>,
}

/// Where in the text of an event a number is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gap {
    start: usize,
    end: usize,
    number: Number,
    /// Whether it may be another one in the next event.
    varies: bool,
}

impl Gap {
    fn new(start: usize, end: usize, number: Number) -> Self {
        let is_often_the_same =
            matches!(number, Number::Skipped | Number::Passed | Number::Device | Number::Stream);
        Self { start, end, number, varies: !is_often_the_same }
    }
}

/// Looks for the numbers that may be others in the next event: those that the parser read, and
/// those in what it passed over. False if they are not one after another.
pub(super) fn find_gaps(text: &[u8], numbers: &[NumberAt], gaps: &mut Vec<Gap>) -> bool {
    gaps.clear();
    for &NumberAt { start, end, number } in numbers {
        if gaps.last().is_some_and(|last| last.end > start) {
            return false;
        }
        match (number, text.get(start..end)) {
            (Number::Skipped | Number::Passed, Some(value)) => {
                passed_over(value, start, number, gaps);
            }
            (_, Some(_)) => gaps.push(Gap::new(start, end, number)),
            (_, None) => return false,
        }
    }
    true
}

/// The numbers that are values of members in a value that was passed over, or are it: whole ones, and
/// in events that are not kept also times. Those in lists, such as sizes, rarely change.
fn passed_over(value: &[u8], offset: usize, number: Number, gaps: &mut Vec<Gap>) {
    if value.first() == Some(&b'[') {
        return;
    }
    let digits = |from: usize| {
        let rest = value.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut is_member = true;
    let (mut in_string, mut is_escaped) = (false, false);
    let mut at = 0;
    while let Some(byte) = value.get(at) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => {
                in_string = !in_string;
                is_member = false;
            }
            _ if in_string => {}
            b':' => is_member = true,
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b'0'..=b'9' if is_member => {
                let mut end = at + digits(at);
                if number == Number::Passed && value.get(end) == Some(&b'.') {
                    end += 1 + digits(end + 1);
                }
                let ends = matches!(
                    value.get(end),
                    None | Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
                );
                if ends {
                    gaps.push(Gap::new(offset + at, offset + end, number));
                }
                is_member = false;
                at = end - 1;
            }
            _ => is_member = false,
        }
        at += 1;
    }
}

/// Of the text between the gaps, and of what these are for.
pub(super) fn hash(text: &[u8], gaps: &[Gap]) -> u64 {
    let mut hasher = FxBuildHasher.build_hasher();
    let mut at = 0;
    for gap in gaps {
        hasher.write(text.get(at..gap.start).unwrap_or_default());
        hasher.write_u8(gap.number as u8);
        at = gap.end;
    }
    hasher.write(text.get(at..).unwrap_or_default());
    hasher.finish()
}

impl Template {
    /// The template of an event.
    pub(super) fn of(text: &[u8], gaps: &[Gap], row: Row) -> Self {
        let gaps: Box<[Gap]> = gaps.into();
        let parts = parts(text.len(), &gaps);
        Self { text: text.into(), gaps, parts, row }
    }

    /// How many bytes its text has.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Sees which numbers vary, by another event with the same text between its gaps.
    pub(super) fn vary(&mut self, text: &[u8], gaps: &[Gap]) {
        let is_same = |own: &Gap, other: &Gap| {
            self.text.get(own.start..own.end) == text.get(other.start..other.end)
        };
        let vary: Vec<bool> =
            self.gaps.iter().zip(gaps).map(|(own, other)| !is_same(own, other)).collect();
        for (gap, varies) in self.gaps.iter_mut().zip(vary) {
            gap.varies |= varies;
        }
        self.parts = parts(self.text.len(), &self.gaps);
    }

    /// How the text begins, and which of 16 bytes that is, if it begins with as many before a number.
    pub(super) fn head(&self) -> Option<Head> {
        let first = self.parts.first()?;
        let text = self.text.get(..(first.end as usize).min(HEAD))?;
        let mut bytes = [0; HEAD];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        let bits = 8 * (HEAD - text.len()) as u32;
        let mask = u128::MAX.checked_shr(bits).unwrap_or(0);
        Some(Head { bytes: u128::from_le_bytes(bytes), mask })
    }

    /// The event with which a text begins, if it is one of this template, and its length.
    #[inline]
    pub(super) fn read(&self, text: &[u8]) -> Option<(Row, usize)> {
        let mut at = Cursor::new(text);
        let mut row = self.row;
        for part in &self.parts {
            at.pass(self.text.get(part.start as usize..part.end as usize)?)?;
            let Some(number) = part.number else { break };
            match number {
                Number::Start => row.start_ns = time(&mut at).ok()?,
                // One that is negative or cannot be is for the parser to count.
                Number::Duration => {
                    let duration = u64::try_from(time(&mut at).ok()?).ok();
                    row.duration_ns = duration.filter(|ns| *ns <= LONGEST_NS)?;
                }
                Number::Device => row.lane.device = i64::try_from(whole(&mut at).ok()?).ok()?,
                Number::Stream => row.lane.stream = i64::try_from(whole(&mut at).ok()?).ok()?,
                Number::Correlation => row.correlation = whole(&mut at).ok()?,
                Number::ExternalId => row.external_id = whole(&mut at).ok()?,
                Number::GraphNode => row.graph_node = whole(&mut at).ok()?,
                Number::Gradient => row.gradient = gradient(whole(&mut at).ok()?),
                Number::Skipped => at.pass_digits()?,
                Number::Passed => at.pass_decimal()?,
            }
        }
        Some((row, at.position()))
    }
}

/// The text between the numbers that vary.
fn parts(length: usize, gaps: &[Gap]) -> Box<[Part]> {
    let mut at = 0;
    let ends = gaps.iter().filter(|gap| gap.varies);
    let ends = ends.map(|gap| (gap.start, Some(gap.number), gap.end));
    let part = |(end, number, next): (usize, Option<Number>, usize)| {
        let part = Part { start: at as u32, end: end as u32, number };
        at = next;
        part
    };
    ends.chain([(length, None, length)]).map(part).collect()
}

/// The bytes that a [`Head`] looks at.
const HEAD: usize = 16;

/// How a text begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    bytes: u128,
    mask: u128,
}

impl Head {
    #[inline]
    pub(super) fn is_of(self, text: &[u8]) -> bool {
        let first = text.first_chunk().map(|first| u128::from_le_bytes(*first));
        first.is_some_and(|first| first & self.mask == self.bytes)
    }
}
