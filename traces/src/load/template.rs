//! The text of an event without its numbers.

use std::hash::{BuildHasher, Hasher};

use rustc_hash::FxBuildHasher;

use super::fast::{Number, NumberAt, time, whole};
use super::row::{Row, gradient};
use super::scan::Cursor;
use super::strays::LONGEST_NS;

/// The text of an event with gaps, which plain numbers fill.
#[derive(Debug)]
pub(super) struct Template {
    /// What is between the numbers.
    text: Box<[u8]>,
    parts: Box<[Part]>,
    /// The event that it is the text of.
    row: Row,
}

/// A part of the text, and the number behind it; none behind the last part.
#[derive(Debug, Clone, Copy)]
struct Part {
    bytes: u32,
    number: Option<Number>,
}

/// Where in the text of an event a number is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gap {
    start: usize,
    end: usize,
    number: Number,
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
            (Number::Skipped, Some(value)) => skipped(value, start, gaps),
            (_, Some(_)) => gaps.push(Gap { start, end, number }),
            (_, None) => return false,
        }
    }
    true
}

/// The whole numbers that are values of members in a value that was passed over, or are it. Those
/// in lists, such as sizes, rarely change.
fn skipped(value: &[u8], offset: usize, gaps: &mut Vec<Gap>) {
    if value.first() == Some(&b'[') {
        return;
    }
    let mut is_member = true;
    let (mut in_string, mut is_escaped) = (false, false);
    let mut at = 0;
    while let Some(byte) = value.get(at) {
        let digits =
            || value.get(at..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit());
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
                let end = at + digits().count();
                let ends = matches!(
                    value.get(end),
                    None | Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
                );
                if ends {
                    gaps.push(Gap {
                        start: offset + at,
                        end: offset + end,
                        number: Number::Skipped,
                    });
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
        let mut between = Vec::with_capacity(text.len());
        let mut parts = Vec::with_capacity(gaps.len() + 1);
        let mut at = 0;
        let ends = gaps.iter().map(|gap| (gap.start, Some(gap.number), gap.end));
        for (end, number, next) in ends.chain([(text.len(), None, text.len())]) {
            let part = text.get(at..end).unwrap_or_default();
            between.extend_from_slice(part);
            parts.push(Part { bytes: part.len() as u32, number });
            at = next;
        }
        Self { text: between.into(), parts: parts.into(), row }
    }

    /// How many bytes its text has.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The event with which a text begins, if it is one of this template, and its length.
    #[inline]
    pub(super) fn read(&self, text: &[u8]) -> Option<(Row, usize)> {
        let mut at = Cursor::new(text);
        let mut row = self.row;
        let mut rest = &*self.text;
        for part in &self.parts {
            let (expected, behind) = rest.split_at_checked(part.bytes as usize)?;
            at.pass(expected)?;
            rest = behind;
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
            }
        }
        Some((row, at.position()))
    }
}
