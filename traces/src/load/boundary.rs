//! Where events begin and end, found without knowing what is in a string: to cut a list into
//! pieces, and to go on behind what is broken.

use super::scan::Cursor;

/// The keys that an event may begin with.
const EVENT_KEYS: [&[u8]; 10] =
    [b"ph", b"cat", b"name", b"pid", b"tid", b"ts", b"dur", b"args", b"id", b"bp"];

/// The keys that follow the events in what the profiler writes.
const TOP_KEYS: [&[u8]; 12] = [
    b"traceName",
    b"displayTimeUnit",
    b"baseTimeNanoseconds",
    b"deviceProperties",
    b"schemaVersion",
    b"distributedInfo",
    b"trace_id",
    b"with_stack",
    b"record_shapes",
    b"roctracer_version",
    b"cupti_version",
    b"metadata",
];

/// Where an event ends, found without knowing what is in a string: the comma or the bracket after
/// a brace, if another event or the end of the list follows. A trace without broken strings has
/// such a place inside an event only where an event's arguments list objects like events.
pub(crate) fn boundary(bytes: &[u8], from: usize, is_all: bool) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr(b'}', bytes.get(at..)?)? + 1;
        let mut cursor = Cursor::starting_at(bytes, at);
        cursor.skip_space();
        let place = cursor.position();
        let is_end = match cursor.peek() {
            Ok(b',') => begins_event(Cursor::starting_at(bytes, place + 1)),
            Ok(b']') => ends_list(Cursor::starting_at(bytes, place + 1), is_all),
            _ => false,
        };
        if is_end {
            return Some(place);
        }
    }
}

/// The first event that begins at or after a byte: where its brace is.
pub(crate) fn event_after(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let place = boundary(bytes, at, true)?;
        if bytes.get(place) == Some(&b',') {
            let mut cursor = Cursor::starting_at(bytes, place + 1);
            cursor.skip_space();
            return Some(cursor.position());
        }
        at = place;
    }
}

fn begins_event(mut cursor: Cursor<'_>) -> bool {
    let mut key = || {
        cursor.skip_space();
        cursor.expect(b'{')?;
        cursor.skip_space();
        cursor.short_key()
    };
    key().is_ok_and(|key| EVENT_KEYS.contains(&key))
}

/// Whether a list of events ends before the cursor: what follows distinguishes it from a list in
/// the arguments of an event.
fn ends_list(mut cursor: Cursor<'_>, is_all: bool) -> bool {
    cursor.skip_space();
    if cursor.expect(b',').is_ok() {
        cursor.skip_space();
        return cursor.short_key().is_ok_and(|key| TOP_KEYS.contains(&key));
    }
    // A bare list needs no brace.
    if cursor.expect(b'}').is_ok() {
        cursor.skip_space();
    }
    is_all && cursor.peek().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries() {
        let text = br#"{"ph": "X", "args": {}}, {"x": 1}, { "name": "a"}], "traceName": ""}"#;
        assert_eq!(boundary(text, 0, true), Some(33));
        assert_eq!(boundary(text, 34, true), Some(49));
        assert_eq!(event_after(text, 0), Some(35));
        assert_eq!(event_after(text, 34), None);
        assert_eq!(boundary(b"{}]}", 0, true), Some(2));
        assert_eq!(boundary(b"{}]}", 0, false), None);
        assert_eq!(boundary(br#"{"a": [{}], "b": 1}"#, 0, true), None);
    }
}
