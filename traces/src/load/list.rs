//! Reads a list of events, and goes on behind what is broken.

use super::boundary::boundary;
use super::builder::Builder;
use super::event::Event;
use super::fast::Layouts;
use super::scan::{Cursor, Stop};
use super::{fast, strict};

/// The longest event, in bytes; the longest of real traces have some hundred kilobytes. It bounds
/// the memory for a compressed file, and the work on a string that never ends.
const EVENT_LIMIT: usize = 4 << 20;

/// Why the reading of a list stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The list ended.
    ListEnd,
    /// An event begins at or after the limit.
    Limit,
    /// The bytes end within an event, or between two.
    NeedsMore,
    /// The bytes end and are all there is.
    Truncated,
    /// The one who takes what is read has enough.
    Enough,
}

/// How events are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    /// Whether no more bytes will come.
    pub(crate) is_all: bool,
    /// Whether every event goes through the strict parser.
    pub(crate) strict: bool,
    /// Where in the whole text the bytes begin.
    pub(crate) offset: u64,
}

/// Reads events from the start of `bytes`, which is between two events, up to the first one that
/// begins at or after `limit`: how far it came, and why it stopped.
pub(crate) fn read(
    bytes: &[u8],
    limit: usize,
    reading: Reading,
    builder: &mut Builder,
) -> (usize, Stopped) {
    let mut at = 0;
    let mut event = Event::NONE;
    let mut layouts = Layouts::default();
    loop {
        let Some(&byte) = bytes.get(at) else {
            return (at, if reading.is_all { Stopped::Truncated } else { Stopped::NeedsMore });
        };
        match byte {
            b',' | b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            b']' => return (at + 1, Stopped::ListEnd),
            b'{' if at >= limit => return (at, Stopped::Limit),
            _ => {
                let place = reading.offset + at as u64;
                let rest = bytes.get(at..).unwrap_or_default();
                if !reading.strict
                    && let Some(used) = builder.add_repeated(rest, place)
                {
                    at += used;
                    continue;
                }
                match one(bytes, at, reading, &mut layouts, &mut event) {
                    Ok((is_kept, used)) => {
                        let event = is_kept.then_some(&event);
                        builder.add(event, place);
                        let text = rest.get(..used).unwrap_or_default();
                        builder.learn(text, event, &layouts.numbers);
                        at += used;
                    }
                    Err(Stop::Incomplete) if !reading.is_all => return (at, Stopped::NeedsMore),
                    Err(stop) => match recover(bytes, at, stop, reading) {
                        Ok(next) => {
                            builder.broken(place, (next - at) as u64);
                            at = next;
                        }
                        Err(stopped) => return (at, stopped),
                    },
                }
            }
        }
    }
}

/// Reads the event at a place, into `event` if it is one that is kept: whether it is, and how many
/// bytes it has. Incomplete if nothing is wrong with it but that the bytes end.
fn one<'b>(
    bytes: &'b [u8],
    at: usize,
    reading: Reading,
    layouts: &mut Layouts,
    event: &mut Event<'b>,
) -> Result<(bool, usize), Stop> {
    let rest = bytes.get(at..).unwrap_or_default();
    let window = rest.get(..EVENT_LIMIT).unwrap_or(rest);
    let is_last = window.len() < EVENT_LIMIT;
    if !reading.strict {
        match fast::parse(window, layouts, event) {
            Ok(parsed) => return Ok(parsed),
            Err(Stop::Incomplete) if is_last => return Err(Stop::Incomplete),
            // What it saw so far is of no use.
            Err(_) => layouts.numbers.clear(),
        }
    }
    let mut end = Cursor::new(window);
    match end.expect(b'{').and_then(|()| end.skip_to_close(1)) {
        Ok(()) => {}
        // With all bytes there, the fast parser can distinguish a cut from a broken string.
        Err(Stop::Incomplete) if is_last && (reading.strict || !reading.is_all) => {
            return Err(Stop::Incomplete);
        }
        Err(_) => return Err(Stop::Odd),
    }
    let used = end.position();
    let parsed = window.get(..used).and_then(strict::parse).ok_or(Stop::Odd)?;
    let is_kept = parsed.is_some();
    *event = parsed.unwrap_or(Event::NONE);
    Ok((is_kept, used))
}

/// Where to go on behind what is broken, or why that cannot be said.
fn recover(bytes: &[u8], at: usize, stop: Stop, reading: Reading) -> Result<usize, Stopped> {
    if let Some(next) = other_element(bytes, at) {
        return Ok(next);
    }
    // Brackets before a cut do not end a list.
    if let Some(next) = boundary(bytes, at, reading.is_all && stop == Stop::Odd) {
        return Ok(next);
    }
    if reading.is_all {
        return Err(Stopped::Truncated);
    }
    // No boundary within the limit: skip these bytes, except what may be half of a boundary.
    let half = 256;
    if bytes.len() - at > EVENT_LIMIT { Ok(bytes.len() - half) } else { Err(Stopped::NeedsMore) }
}

/// The end of an element of the list that is a value, but no object.
fn other_element(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    if rest.first() == Some(&b'{') {
        return None;
    }
    let mut cursor = Cursor::new(rest.get(..EVENT_LIMIT).unwrap_or(rest));
    cursor.skip_value().ok()?;
    let end = at + cursor.position();
    cursor.skip_space();
    matches!(cursor.peek(), Ok(b',' | b']')).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str, is_all: bool) -> (u64, usize, Stopped) {
        let mut builder = Builder::new(true);
        let reading = Reading { is_all, strict: false, offset: 0 };
        let (at, stopped) = read(text.as_bytes(), usize::MAX, reading, &mut builder);
        (builder.events(), at, stopped)
    }

    #[test]
    fn the_end_of_a_list_or_of_the_bytes() {
        let text = r#"{"ph": "M"}, {"ph": "X"} ] more"#;
        assert_eq!(run(text, true), (2, 26, Stopped::ListEnd));
        assert_eq!(run(&text[..20], true), (1, 13, Stopped::Truncated));
        assert_eq!(run(&text[..20], false), (1, 13, Stopped::NeedsMore));
        assert_eq!(run(&text[..12], false), (1, 12, Stopped::NeedsMore));
    }

    #[test]
    fn broken_events_are_passed_over() {
        let text = r#"{"ph": "X", "name": "a "b" c"}, {"ph": "M"}, {"ph": "X", "name": "a" b"}]"#;
        assert_eq!(run(text, true), (1, text.len(), Stopped::ListEnd));
        let text = r#"{"ph": "X", "args": {"stack": "a " b"}}, {"ph": "M"}, 3, {"ph": "M"}]"#;
        assert_eq!(run(text, true).0, 2);
    }
}
