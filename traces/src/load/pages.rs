//! The memory of a mapped file: what was read need not stay in it.

use std::ops::Range;

use memmap2::Mmap;

/// The pages that some bytes are on, if they are those of a mapped file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages<'s> {
    map: Option<&'s Mmap>,
    /// Where in the mapping the bytes begin.
    start: usize,
}

impl<'s> Pages<'s> {
    /// Bytes that nobody else holds, which stay where they are.
    pub(super) const NONE: Self = Self { map: None, start: 0 };

    /// The bytes of a mapping from a place on.
    pub(super) fn of(map: &'s Mmap, start: usize) -> Self {
        Self { map: Some(map), start }
    }

    /// Gives the memory of a part back. Reading it once more takes it from the file again.
    pub(super) fn release(self, part: Range<usize>) {
        let Some(map) = self.map else { return };
        let end = self.start.saturating_add(part.end).min(map.len());
        let start = self.start.saturating_add(part.start);
        if start < end {
            release(map, start, end - start);
        }
    }
}

#[cfg(unix)]
fn release(map: &Mmap, start: usize, bytes: usize) {
    // SAFETY: the range is in the mapping, as was just seen. The mapping is read only and of a
    // file, so it has no content of its own that could be lost: whoever still borrows these bytes,
    // or borrows them later, reads the same from the file, as long as nobody changes the file,
    // which is assumed of every mapping here.
    let done =
        unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, bytes) };
    // Otherwise the memory is there until the file is closed, as without it.
    drop(done);
}

#[cfg(not(unix))]
fn release(_: &Mmap, _: usize, _: usize) {}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_was_given_back_is_read_again() {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
        file.write_all(&content).unwrap();
        // SAFETY: nobody else knows the file.
        let map = unsafe { Mmap::map(&file) }.unwrap();
        assert_eq!(*map, *content);
        let pages = Pages::of(&map, 5000);
        for part in [0..100_000, 70_000..90_001, 290_000..400_000, 7..7, 600_000..700_000] {
            pages.release(part);
            assert_eq!(*map, *content);
        }
        Pages::NONE.release(0..usize::MAX);
    }
}
