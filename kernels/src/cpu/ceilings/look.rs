//! A short look at the state that the machine is in: how long it takes to hand a kernel over, and
//! how fast memory is.

use std::time::{Duration, Instant};

use super::super::pool::Pool;
use super::super::{caches, memory};
use super::bandwidth::{Arena, ELEMENT_BYTES, FALLBACK_LIMIT_BYTES, GRAIN, Kernel, run_part};
use super::launch::launch;
use crate::backend::MachineReading;

/// Launches that are timed together, at most: hundreds of times the cost of reading the clock.
const LAUNCHES: u32 = 64;

/// Batches of launches are timed for this long: a hundred of them in the slower of the states that
/// were seen, ...
const HANDOFF_TIME: Duration = Duration::from_millis(1);

/// ... and this many in any case, each shorter where a launch takes long: with more threads than
/// processors it takes milliseconds.
const LEAST_BATCHES: u32 = 5;

/// Memory is streamed through for this long: a dozen sections even where neighbours leave only a
/// third of the bandwidth.
const TRIAD_TIME: Duration = Duration::from_millis(5);

/// Parts of the tensors that are timed one by one, so that what holds up one of them does not count:
/// a tenth of a millisecond each, or more.
const SECTIONS: usize = 32;

/// The share of the available memory that a look may take: it is there in addition to a problem that
/// was planned to fit.
const MEMORY_SHARE: u64 = 16;

/// What is kept from one look to the next, so that only the first one touches new memory.
#[derive(Debug)]
pub(crate) struct Look {
    arena: Arena,
    /// Numbers that each thread has of a tensor in a section.
    numbers: usize,
    /// The section that was touched longest ago.
    next: usize,
}

impl Look {
    /// Tensors that are twice the caches of the threads together, so that a section has left them
    /// when its turn comes again; fewer where memory is short, and `None` where there is none.
    pub(crate) fn new(pool: &Pool) -> Option<Self> {
        let limit = memory::available_bytes();
        let limit = limit.map_or(FALLBACK_LIMIT_BYTES, |bytes| bytes / MEMORY_SHARE);
        let caches = caches::last_level_bytes(pool.threads());
        Self::of_size(pool, caches.saturating_mul(2).min(limit))
    }

    fn of_size(pool: &Pool, bytes: u64) -> Option<Self> {
        let grain_bytes = (SECTIONS * GRAIN * pool.threads() * ELEMENT_BYTES) as u64;
        let numbers = usize::try_from(bytes.div_ceil(grain_bytes).max(1)).ok()? * GRAIN;
        let arena = Arena::new(pool, numbers * SECTIONS)?;
        Some(Self { arena, numbers, next: 0 })
    }

    /// Looks, for about 6 ms.
    pub(crate) fn read(&mut self, pool: &Pool) -> MachineReading {
        MachineReading { handoff_us: handoff_us(pool), triad_gb_per_s: self.triad_gb_per_s(pool) }
    }

    /// The median rate of the sections.
    fn triad_gb_per_s(&mut self, pool: &Pool) -> f64 {
        let bytes = (self.numbers * pool.threads() * ELEMENT_BYTES) as f64;
        let mut seconds = Vec::new();
        let began = Instant::now();
        while began.elapsed() < TRIAD_TIME || seconds.is_empty() {
            let start = Instant::now();
            self.add_section(pool);
            seconds.push(start.elapsed().max(crate::clock_tick()).as_secs_f64());
        }
        bytes / lowest(seconds, 2) / 1e9
    }

    /// `a = b + c` on the next section.
    fn add_section(&mut self, pool: &Pool) {
        let (arena, numbers, arch) = (&self.arena, self.numbers, pool.arch());
        let offset = self.next * numbers;
        pool.run(&|thread| {
            let tensors = arena.tensors(thread, numbers * SECTIONS);
            let section = tensors.map(|tensor| tensor.wrapping_add(offset));
            // SAFETY: the arena gives every thread tensors of its own with the numbers of all
            // sections, aligned to a line; a section has a multiple of the grain, and so begins at
            // a line too.
            unsafe { run_part(arch, Kernel::Add, section, numbers, 1) };
        });
        self.next = (self.next + 1) % SECTIONS;
    }
}

/// Microseconds of an empty kernel on all threads: of a fast batch, since a thread may be held up
/// in many of them. `None` with one thread.
#[expect(clippy::cast_sign_loss, reason = "a share of positive times; it saturates")]
fn handoff_us(pool: &Pool) -> Option<f64> {
    if pool.threads() == 1 {
        return None;
    }
    let timed = |launches: u32| {
        let start = Instant::now();
        launch(pool, launches);
        start.elapsed().max(crate::clock_tick()).as_secs_f64()
    };
    // The threads may have gone to sleep.
    timed(1);
    let affordable = HANDOFF_TIME.as_secs_f64() / f64::from(LEAST_BATCHES) / timed(1);
    let launches = (affordable as u32).clamp(1, LAUNCHES);
    let mut seconds = Vec::new();
    let began = Instant::now();
    while began.elapsed() < HANDOFF_TIME || seconds.len() < LEAST_BATCHES as usize {
        seconds.push(timed(launches));
    }
    Some(lowest(seconds, 4) / f64::from(launches) * 1e6)
}

/// The value below which one of `parts` parts lies: the median for 2, the lower quartile for 4.
fn lowest(mut values: Vec<f64>, parts: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / parts).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use pulp::Arch;

    use super::*;

    /// Tensors of a small size: what is read is not tested, only that it is a rate.
    const BYTES: u64 = 1 << 20;

    #[test]
    fn a_look_has_numbers_and_one_thread_hands_nothing_over() {
        for threads in [1, 2, 3] {
            let pool = Pool::new(threads, Arch::new()).unwrap();
            let mut look = Look::of_size(&pool, BYTES).unwrap();
            for _ in 0..2 {
                let MachineReading { handoff_us, triad_gb_per_s } = look.read(&pool);
                assert!(triad_gb_per_s.is_finite() && triad_gb_per_s > 0.0);
                assert_eq!(handoff_us.is_some(), threads > 1);
                assert!(handoff_us.is_none_or(|us| us.is_finite() && us > 0.0));
            }
        }
    }

    #[test]
    fn the_sections_follow_each_other_through_tensors_of_at_least_that_size() {
        let pool = Pool::new(2, Arch::new()).unwrap();
        for bytes in [0, 1, BYTES, BYTES + 1] {
            let mut look = Look::of_size(&pool, bytes).unwrap();
            assert!((look.numbers * SECTIONS * 2 * ELEMENT_BYTES) as u64 >= bytes);
            assert_eq!(look.numbers % GRAIN, 0);
            // `a` is `b + c` where a section was added, and as it was touched elsewhere.
            let all = look.numbers * SECTIONS;
            let touched = f32::from_bits(0x3D3D_3D3D);
            for done in 1..=SECTIONS {
                look.add_section(&pool);
                assert_eq!(look.next, done % SECTIONS);
                for thread in 0..2 {
                    let start = look.arena.tensors(thread, all)[0];
                    for section in 0..SECTIONS {
                        // SAFETY: the arena holds that many numbers there, and no job runs.
                        let first = unsafe { start.wrapping_add(section * look.numbers).read() };
                        assert_eq!(first == 2.0 * touched, section < done);
                    }
                }
            }
        }
    }

    #[test]
    fn the_lowest_part_ends_at_the_median_or_the_quartile() {
        let values = vec![4.0, 1.0, 3.0, 2.0, 5.0, 8.0, 7.0, 6.0];
        assert_eq!((lowest(values.clone(), 2), lowest(values, 4)), (5.0, 3.0));
        assert_eq!(lowest(vec![7.0], 2), 7.0);
    }
}
