//! What stands between the values of objects, learned from the objects before.
//!
//! A profiler writes all its events in one way: behind the number of the process comes
//! `, "tid": `, with the same spaces each time. To see that it is there again takes one
//! comparison, where to read a separator, a key and a colon takes many. Whatever stands there
//! instead is read in full, and expected the next time.

use super::block::{LANES, equal_bytes};
use super::scan::{Cursor, Stop};

/// The longest gap that is learned, in bytes.
const LONGEST: usize = 2 * LANES;

/// No more gaps than this are learned: objects with ever new keys have no layout.
const MOST: usize = 64;

/// The text from the end of a value, or from the brace of the object, to the next value or the end
/// of the object.
#[derive(Debug, Clone)]
struct Gap<K> {
    text: [u8; LONGEST],
    /// A bit for each byte of the text.
    used: u32,
    len: usize,
    key: K,
    /// What comes after it.
    next: Next,
}

/// The two gaps that came last after another: objects of two kinds often alternate.
#[derive(Debug, Clone, Copy)]
struct Next {
    last: usize,
    before: usize,
}

impl Next {
    /// Nothing is known.
    const NONE: Self = Self { last: MOST, before: MOST };
}

/// The gaps of objects of one kind.
#[derive(Debug, Clone)]
pub(super) struct Layout<K> {
    gaps: Vec<Gap<K>>,
    /// With which gaps objects begin.
    first: Next,
}

/// A gap of a [`Layout`] behind which a value stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place(Option<usize>);

impl Place {
    /// At the brace with which an object begins.
    pub(super) const START: Self = Self(None);

    pub(super) fn is_start(self) -> bool {
        self.0.is_none()
    }
}

impl<K> Default for Layout<K> {
    fn default() -> Self {
        Self { gaps: Vec::new(), first: Next::NONE }
    }
}

impl<K: Copy> Layout<K> {
    /// Goes to the next value, which may have more space before it than the last time: what
    /// `read` says of the gap, which goes past it. It must say the same of the same text.
    #[inline(always)]
    pub(super) fn pass(
        &mut self,
        at: &mut Cursor<'_>,
        place: &mut Place,
        read: fn(&mut Cursor<'_>, Place) -> Result<K, Stop>,
    ) -> Result<K, Stop> {
        if let Some(bytes) = at.first_chunk() {
            let next = place
                .0
                .map_or(self.first, |last| self.gaps.get(last).map_or(Next::NONE, |gap| gap.next));
            for index in [next.last, next.before] {
                if let Some(gap) = self.gaps.get(index)
                    && equal_bytes(bytes, &gap.text) & gap.used == gap.used
                {
                    at.advance(gap.len);
                    *place = Place(Some(index));
                    return Ok(gap.key);
                }
            }
        }
        self.learn(at, place, read)
    }

    #[inline(never)]
    fn learn(
        &mut self,
        at: &mut Cursor<'_>,
        place: &mut Place,
        read: fn(&mut Cursor<'_>, Place) -> Result<K, Stop>,
    ) -> Result<K, Stop> {
        let start = at.position();
        let key = read(at, *place)?;
        let passed = at.since(start);
        let mut text = [0; LONGEST];
        let Some(room) = text.get_mut(..passed.len()) else {
            // The place is as unknown as one in which nothing was learned.
            *place = Place(Some(MOST));
            return Ok(key);
        };
        room.copy_from_slice(passed);
        let (len, used) = (passed.len(), ((1_u64 << passed.len()) - 1) as u32);
        let is_it = |gap: &Gap<K>| gap.len == len && gap.text == text;
        let found = self.gaps.iter().position(is_it).unwrap_or_else(|| {
            if self.gaps.len() < MOST {
                self.gaps.push(Gap { text, used, len, key, next: Next::NONE });
                return self.gaps.len() - 1;
            }
            MOST
        });
        let next = match place.0 {
            None => Some(&mut self.first),
            Some(last) => self.gaps.get_mut(last).map(|gap| &mut gap.next),
        };
        if let Some(next) = next.filter(|next| next.last != found) {
            *next = Next { last: found, before: next.last };
        }
        *place = Place(Some(found));
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of an object whose values are one digit each, and what is left behind it.
    fn keys<'b>(layout: &mut Layout<u8>, text: &'b str) -> Result<(Vec<u8>, &'b str), Stop> {
        let mut at = Cursor::new(text.as_bytes());
        let mut place = Place::START;
        let mut keys = Vec::new();
        loop {
            let key = layout.pass(&mut at, &mut place, |at, place| {
                let key = at.next_key(place.is_start())?;
                Ok(key.map_or(b'}', |key| key.first().copied().unwrap_or(b'-')))
            })?;
            if key == b'}' {
                return Ok((keys, &text[at.position()..]));
            }
            at.skip_space();
            keys.push(key);
            at.advance(1);
        }
    }

    /// Enough that the end of the text is not a reason not to look at what was learned.
    const REST: &str = "  0123456789 0123456789 0123456789";

    #[test]
    fn what_was_learned_changes_nothing() {
        let objects = [
            r#"{"a": 1, "b": 2, "c": 3}"#,
            r#"{"a": 1, "b": 2}"#,
            r#"{"a":  1,"b": 2 ,"c":3  }"#,
            r#"{"a": 1, "c": 3, "b": 2}"#,
            r#"{ "a": 1, "b": 2, "b": 3}"#,
            r#"{"a": 1, "bb": 2, "c  a very long key that is longer than what is learned": 3, "d": 4}"#,
            r#"{"": 1}"#,
            "{}",
            r#"{"a": 1, "b" 2}"#,
            r#"{"a": 1; "b": 2}"#,
        ];
        let mut layout = Layout::default();
        for round in 1..=objects.len() {
            for index in 0..40 {
                let text = format!("{}{REST}", objects[index * round % objects.len()]);
                assert_eq!(keys(&mut layout, &text), keys(&mut Layout::default(), &text), "{text}");
            }
        }
    }

    #[test]
    fn every_object_has_a_new_key() {
        let mut layout = Layout::default();
        for key in 0..3 * MOST {
            let text = format!("{{\"a\": 1, \"{key}\": 2, \"z\": 3}}{REST}");
            let first = key.to_string().as_bytes()[0];
            assert_eq!(keys(&mut layout, &text), Ok((vec![b'a', first, b'z'], REST)));
        }
        assert_eq!(layout.gaps.len(), MOST);
    }

    #[test]
    fn what_repeats_is_not_read_again() {
        let mut layout = Layout::default();
        let text = format!("{{\"a\": 1, \"b\": 2}}{REST}");
        let learned = keys(&mut layout, &text);
        let mut at = Cursor::new(text.as_bytes());
        let never = |_: &mut Cursor<'_>, _| Err(Stop::Odd);
        let mut place = Place::START;
        assert_eq!(layout.pass(&mut at, &mut place, never), Ok(b'a'));
        at.advance(1);
        assert_eq!(layout.pass(&mut at, &mut place, never), Ok(b'b'));
        at.advance(1);
        assert_eq!(layout.pass(&mut at, &mut place, never), Ok(b'}'));
        assert_eq!(learned, Ok((vec![b'a', b'b'], &text[at.position()..])));
    }
}
