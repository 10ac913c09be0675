//! The block of memory that all tensors of a prepared problem lie in.

use std::ops::Range;

use memmap2::MmapMut;

use super::huge_pages;
use super::pool::Pool;

/// Bytes of a huge page on x86-64, and on aarch64 with pages of 4 KiB. Miri has none, and takes
/// seconds to fill one.
const HUGE_PAGE: usize = if cfg!(miri) { 8 << 10 } else { 2 << 20 };

/// Bytes of the smallest page of any system; every one of them is touched once.
const SMALLEST_PAGE: usize = 4 << 10;

/// Whole huge pages, each of which has been touched: no kernel that runs in it meets a page that
/// the system has yet to provide.
#[derive(Debug)]
pub(crate) struct Arena {
    /// Longer than the arena by a huge page, so that the arena can start at one. What lies before
    /// and behind it is never touched and takes no memory.
    map: MmapMut,
    /// Where in the map the arena lies.
    range: Range<usize>,
}

impl Arena {
    /// Bytes of an arena that holds at least `bytes`.
    pub(crate) fn bytes_for(bytes: u64) -> u64 {
        bytes.max(1).checked_next_multiple_of(HUGE_PAGE as u64).unwrap_or(u64::MAX)
    }

    /// An arena of zeros, touched by the threads of the pool.
    ///
    /// # Errors
    ///
    /// The error of the system when it has no room for that many bytes.
    pub(crate) fn new(bytes: u64, pool: &Pool) -> std::io::Result<Self> {
        let bytes = usize::try_from(Self::bytes_for(bytes)).map_err(std::io::Error::other)?;
        let mapped = bytes.checked_add(HUGE_PAGE).ok_or(std::io::ErrorKind::OutOfMemory)?;
        let map = MmapMut::map_anon(mapped)?;
        let address = map.as_ptr() as usize;
        let start = address.next_multiple_of(HUGE_PAGE) - address;
        // Huge pages make a streaming kernel up to a sixth faster and its time steadier. The
        // system may refuse; the tensors work all the same.
        #[cfg(all(target_os = "linux", not(miri)))]
        let _ = map.advise_range(memmap2::Advice::HugePage, start, bytes);
        let mut arena = Self { map, range: start..start + bytes };
        arena.touch(pool);
        Ok(arena)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.range.clone()]
    }

    /// Writes to every page, so that all memory is there before anything is timed.
    fn touch(&mut self, pool: &Pool) {
        pool.share(self.bytes_mut(), HUGE_PAGE, &|_, part| {
            for page in part.chunks_mut(SMALLEST_PAGE) {
                // Opaque to the compiler, which could otherwise drop a write of a zero to fresh
                // memory.
                std::hint::black_box(page)[0] = 0;
            }
        });
    }

    /// Its first byte, at a huge page, and so at a cache line.
    pub(crate) fn base(&self) -> *mut u8 {
        self.map.as_ptr().wrapping_add(self.range.start).cast_mut()
    }

    /// Bytes that it holds.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.range.len()
    }

    /// Fills it with a byte.
    pub(crate) fn fill(&mut self, byte: u8, pool: &Pool) {
        pool.share(self.bytes_mut(), SMALLEST_PAGE, &|_, part| part.fill(byte));
    }

    /// The share of it that lies in huge pages; `None` where the system does not report it.
    pub(crate) fn huge_page_share(&self) -> Option<f64> {
        let first = self.base() as u64;
        huge_pages::share(first..first + self.range.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use pulp::Arch;

    use super::*;

    fn pool() -> Pool {
        Pool::new(2, Arch::new()).unwrap()
    }

    #[test]
    fn an_arena_is_whole_huge_pages() {
        let huge = HUGE_PAGE as u64;
        for bytes in [0, 1, huge - 1, huge, huge + 1, 4 * huge + huge / 2] {
            let mut arena = Arena::new(bytes, &pool()).unwrap();
            assert_eq!(arena.bytes() as u64, Arena::bytes_for(bytes));
            assert!(arena.bytes() as u64 >= bytes && arena.bytes() > 0);
            assert_eq!(arena.base() as usize % HUGE_PAGE, 0);
            assert_eq!(arena.bytes() % HUGE_PAGE, 0);
            arena.fill(7, &pool());
            assert!(arena.bytes_mut().iter().all(|&byte| byte == 7));
        }
    }

    #[cfg_attr(miri, ignore = "Miri ends where memory does")]
    #[test]
    fn a_size_that_no_system_has_is_an_error() {
        assert!(Arena::new(u64::MAX, &pool()).is_err());
        assert!(Arena::new(1 << 62, &pool()).is_err());
    }

    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "Miri has no huge pages")]
    #[test]
    fn the_system_tells_the_share_in_huge_pages() {
        let share = Arena::new(16 << 20, &pool()).unwrap().huge_page_share().unwrap();
        assert!((0.0..=1.0).contains(&share), "{share}");
        let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        if setting.is_ok_and(|setting| setting.contains("[never]")) {
            assert_eq!(share, 0.0);
        }
    }
}
