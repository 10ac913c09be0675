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

impl<K: Copy + PartialEq> Layout<K> {
    /// Goes to the next value, which may have more space before it than the last time: what
    /// `read` says of the gap, which goes past it.
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
        let (len, used) = (passed.len(), (1_u64 << passed.len()).wrapping_sub(1) as u32);
        let is_it = |gap: &Gap<K>| gap.len == len && gap.text == text && gap.key == key;
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
        if let Some(next) = next {
            *next = Next { last: found, before: next.last };
        }
        *place = Place(Some(found));
        Ok(key)
    }
}
