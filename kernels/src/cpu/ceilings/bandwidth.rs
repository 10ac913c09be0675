//! Bandwidth over the working set, from the first cache to memory.

use std::time::Duration;

use fusion_cost_model::cost::BandwidthPoint;
use memmap2::MmapMut;
use pulp::{Arch, Simd, WithSimd};

use super::super::kernel::Located;
use super::super::pool::Pool;
use super::super::{caches, memory};
use super::{Effort, streaming};

/// The smallest working set of the curve.
const SMALLEST_BYTES: u64 = 16 << 10;
/// The most memory that is used on systems that do not report how much there is.
pub(super) const FALLBACK_LIMIT_BYTES: u64 = 1 << 30;

/// For each kernel at each working set in each round: about 200 of them, so 1.6 s and what
/// the largest sets take longer.
const EFFORT: Effort =
    Effort { sample: Duration::from_millis(1), budget: Duration::from_millis(8), least_samples: 2 };

/// Numbers that each thread's part of a tensor is a multiple of: as many as the kernels below
/// take at once with the widest vectors.
pub(super) const GRAIN: usize = 128;

/// Bytes of the three tensors per element: the compulsory ones, as everywhere in the cost model.
pub(super) const ELEMENT_BYTES: usize = 3 * size_of::<f32>();

/// The curve, as far as it has been measured.
pub(super) struct Curve {
    effort: Effort,
    /// `None` when there is no memory for it.
    arena: Option<Arena>,
    /// Numbers of each tensor that every thread has, by point.
    parts: Vec<usize>,
    /// The best rates so far.
    points: Vec<BandwidthPoint>,
}

impl Curve {
    /// A curve that goes up to four times the caches, as far as there is memory.
    pub(super) fn new(pool: &Pool) -> Self {
        let limit = memory::available_bytes().map_or(FALLBACK_LIMIT_BYTES, |bytes| bytes / 4);
        let caches = caches::last_level_bytes(pool.threads());
        // With four times the caches, the few lines that stay in them count little.
        Self::up_to(pool, caches.saturating_mul(4).min(limit), EFFORT)
    }

    fn up_to(pool: &Pool, largest: u64, effort: Effort) -> Self {
        let parts = part_sizes(pool.threads(), largest);
        let arena = parts.last().and_then(|&numbers| Arena::new(pool, numbers));
        Self { effort, arena, parts, points: Vec::new() }
    }

    /// Measures every point and keeps what is better than before.
    pub(super) fn improve(&mut self, pool: &Pool) {
        let Some(arena) = &self.arena else { return };
        let measured: Vec<BandwidthPoint> =
            self.parts.iter().map(|&numbers| point(pool, arena, numbers, self.effort)).collect();
        if self.points.is_empty() {
            self.points = measured;
            return;
        }
        for (best, new) in self.points.iter_mut().zip(measured) {
            best.gb_per_s = best.gb_per_s.max(new.gb_per_s);
            best.nontemporal_gb_per_s = faster(best.nontemporal_gb_per_s, new.nontemporal_gb_per_s);
            best.read_gb_per_s = faster(best.read_gb_per_s, new.read_gb_per_s);
        }
    }

    /// The points, by increasing working set. Empty when there was no memory.
    pub(super) fn points(self) -> Vec<BandwidthPoint> {
        self.points
    }
}

fn faster(left: Option<f64>, right: Option<f64>) -> Option<f64> {
    left.into_iter().chain(right).reduce(f64::max)
}

/// How many numbers of each tensor every thread has, for working sets that double up to the
/// largest, which is the last one. With many threads there are no small sets.
fn part_sizes(threads: usize, largest: u64) -> Vec<usize> {
    let grain_bytes = (GRAIN * threads * ELEMENT_BYTES) as u64;
    let mut sizes: Vec<usize> =
        std::iter::successors(Some(SMALLEST_BYTES), |bytes| Some(bytes * 2))
            .take_while(|&bytes| bytes < largest)
            .chain(std::iter::once(largest))
            .map(|bytes| (bytes / grain_bytes).max(1) as usize * GRAIN)
            .collect();
    sizes.dedup();
    sizes
}

/// Measures the kernels at one working set.
fn point(pool: &Pool, arena: &Arena, numbers: usize, effort: Effort) -> BandwidthPoint {
    let bytes = numbers * pool.threads() * ELEMENT_BYTES;
    let rate = |kernel: Kernel| {
        let seconds = effort.best_seconds(|passes| run(pool, arena, kernel, numbers, passes));
        bytes as f64 / seconds / 1e9
    };
    BandwidthPoint {
        working_set_bytes: bytes as u64,
        gb_per_s: rate(Kernel::Add),
        nontemporal_gb_per_s: streaming::SUPPORTED.then(|| rate(Kernel::AddStreaming)),
        read_gb_per_s: Some(rate(Kernel::Read).max(rate(Kernel::ReadStreams))),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    /// `a = b + c` with ordinary stores.
    Add,
    /// `a = b + c` with non-temporal stores.
    AddStreaming,
    /// The sum of as many numbers as all three have, one after the other.
    Read,
    /// The same from eight places in turn.
    ReadStreams,
}

/// Runs a kernel `passes` times on the parts of all threads.
fn run(pool: &Pool, arena: &Arena, kernel: Kernel, numbers: usize, passes: u32) {
    let arch = pool.arch();
    pool.run(&|thread| {
        let tensors = arena.tensors(thread, numbers);
        // SAFETY: the arena gives every thread tensors of its own, aligned to a line, and
        // `numbers` is a multiple of the grain.
        unsafe { run_part(arch, kernel, tensors, numbers, passes) };
    });
}

/// Runs a kernel on the part of one thread.
///
/// # Safety
///
/// The tensors must begin at a multiple of 64 bytes in valid memory, have that many numbers, a
/// multiple of [`GRAIN`], and not overlap; no other thread may access them meanwhile.
pub(super) unsafe fn run_part(
    arch: Arch,
    kernel: Kernel,
    tensors: [*mut f32; 3],
    numbers: usize,
    passes: u32,
) {
    match kernel {
        Kernel::Add => arch.dispatch(Add { tensors, numbers, passes }),
        // SAFETY: the caller guarantees the memory; the grain is a multiple of 64 numbers.
        Kernel::AddStreaming => unsafe { streaming::add(arch, tensors, numbers, passes) },
        Kernel::Read => {
            let (start, numbers) = (tensors[0].cast_const(), 3 * numbers);
            std::hint::black_box(arch.dispatch(Read::<1> { start, numbers, passes }));
        }
        Kernel::ReadStreams => {
            let (start, numbers) = (tensors[0].cast_const(), 3 * numbers);
            std::hint::black_box(arch.dispatch(Read::<8> { start, numbers, passes }));
        }
    }
}

/// Vectors that [`Add`] takes at once.
const UNROLL: usize = 4;

/// `a = b + c`. The passes are in here, so that in the first cache a pass does not cost a call.
struct Add {
    tensors: [*mut f32; 3],
    numbers: usize,
    passes: u32,
}

impl WithSimd for Add {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for _ in 0..self.passes {
            // A pass must not be merged with the next one.
            let [a, b, c] = std::hint::black_box(self.tensors);
            let mut i = 0;
            while i < self.numbers {
                let mut k = 0;
                while k < UNROLL {
                    let at = i + k * S::F32_LANES;
                    // SAFETY: as the caller of `run_part` guarantees, the vectors lie within the
                    // tensors: the grain is a multiple of what is taken at once.
                    unsafe {
                        let left = b.wrapping_add(at).cast::<S::f32s>().read_unaligned();
                        let right = c.wrapping_add(at).cast::<S::f32s>().read_unaligned();
                        a.wrapping_add(at)
                            .cast::<S::f32s>()
                            .write_unaligned(simd.add_f32s(left, right));
                    }
                    k += 1;
                }
                i += UNROLL * S::F32_LANES;
            }
        }
    }
}

/// Independent sums of [`Read`]: an addition takes up to 4 cycles, and two vectors can be read in
/// each.
const SUMS: usize = 8;

/// The sum of `numbers` numbers over `passes` passes, read from `STREAMS` places in turn.
///
/// From the first caches one place is fastest. From memory several are, by half here: a core has
/// more reads under way when its prefetchers follow several streams.
struct Read<const STREAMS: usize> {
    start: *const f32,
    numbers: usize,
    passes: u32,
}

impl<const STREAMS: usize> WithSimd for Read<STREAMS> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f32 {
        let length = self.numbers / STREAMS;
        let mut sums = [simd.splat_f32s(0.0); SUMS];
        for _ in 0..self.passes {
            let start = std::hint::black_box(self.start);
            let mut i = 0;
            while i < length {
                let mut k = 0;
                while k < SUMS {
                    let at = (k % STREAMS) * length + i + (k / STREAMS) * S::F32_LANES;
                    // SAFETY: as for `Add`; the length of a stream is a multiple of what is taken
                    // of it at once.
                    let vector =
                        unsafe { start.wrapping_add(at).cast::<S::f32s>().read_unaligned() };
                    sums[k] = simd.add_f32s(sums[k], vector);
                    k += 1;
                }
                i += SUMS / STREAMS * S::F32_LANES;
            }
        }
        let mut total = sums[0];
        let mut k = 1;
        while k < SUMS {
            total = simd.add_f32s(total, sums[k]);
            k += 1;
        }
        simd.reduce_sum_f32s(total)
    }
}

/// Bytes of a huge page: the parts of the threads do not share one.
const HUGE_PAGE: usize = 2 << 20;
/// Numbers in a cache line.
const LINE: usize = 16;
/// Cache lines in a page.
const PAGE_LINES: usize = 64;

/// Memory in which every thread has a part of its own, which it touched first and which is the
/// same at every working set: on machines with several memories it lies in the nearest one.
#[derive(Debug)]
pub(super) struct Arena {
    _map: MmapMut,
    base: Located,
    /// From one thread's part to the next.
    part: usize,
}

impl Arena {
    /// Memory for three tensors with this many numbers for each thread, all of them ordinary.
    pub(super) fn new(pool: &Pool, numbers: usize) -> Option<Self> {
        let part_bytes = (3 * stride(numbers) * size_of::<f32>()).next_multiple_of(HUGE_PAGE);
        let bytes = part_bytes.checked_mul(pool.threads())?.checked_add(HUGE_PAGE)?;
        let mut map = MmapMut::map_anon(bytes).ok()?;
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        let start = map.as_mut_ptr();
        let base = start.wrapping_add(start.align_offset(HUGE_PAGE)).cast::<f32>();
        let part = part_bytes / size_of::<f32>();
        let arena = Self { _map: map, base: Located::at_address(base), part };
        pool.run(&|thread| {
            // SAFETY: the part of this thread lies within the map, and no other thread accesses it.
            unsafe { arena.base.at(thread * part).write_bytes(0x3D, 3 * stride(numbers)) };
        });
        Some(arena)
    }

    /// A thread's part of three tensors, when it has this many numbers of each.
    pub(super) fn tensors(&self, thread: usize, numbers: usize) -> [*mut f32; 3] {
        [0, 1, 2].map(|index| self.base.at(thread * self.part + index * stride(numbers)))
    }
}

/// From one tensor to the next, in numbers: the first distance that is a third of a page more
/// than whole pages. At whole pages, a processor that compares only the lowest bits of addresses
/// would take a read for one of what it has just written.
fn stride(numbers: usize) -> usize {
    let lines = numbers.div_ceil(LINE);
    let third = PAGE_LINES / 3;
    (lines.saturating_sub(third).next_multiple_of(PAGE_LINES) + third) * LINE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Vectors;

    #[test]
    fn working_sets_grow_and_fit_for_any_number_of_threads() {
        let largest = 420_u64 << 20;
        for threads in 1..=1024 {
            let sizes = part_sizes(threads, largest);
            let bytes: Vec<u64> =
                sizes.iter().map(|size| (size * threads * ELEMENT_BYTES) as u64).collect();
            assert!(bytes.is_sorted_by(|a, b| a < b), "{threads} threads: {bytes:?}");
            assert!(sizes.iter().all(|size| *size > 0 && size % GRAIN == 0));
            let last = bytes[bytes.len() - 1];
            assert!(last <= largest && last > largest - largest / 50, "{threads}: {last}");
            // Doubling, apart from rounding to the grain.
            assert!(bytes.windows(2).all(|pair| pair[1] <= 3 * pair[0]), "{bytes:?}");
            assert!(sizes.len() > 8, "{threads} threads: {bytes:?}");
        }
        assert_eq!(part_sizes(2, largest).len(), 16);
        assert_eq!(part_sizes(1, 16 << 10), [1280]);
        // However little memory there is, one point remains.
        assert_eq!(part_sizes(8, 0), [GRAIN]);
    }

    #[test]
    fn tensors_do_not_begin_at_the_same_place_in_a_page() {
        for numbers in (GRAIN..100_000).step_by(GRAIN) {
            let stride = stride(numbers);
            assert!(stride >= numbers && stride < numbers + PAGE_LINES * LINE);
            assert_eq!(stride % (PAGE_LINES * LINE), 21 * LINE);
        }
    }

    #[test]
    fn parts_are_aligned_apart_and_touched() {
        let pool = Pool::new(3, Arch::new()).unwrap();
        let arena = Arena::new(&pool, 5 * GRAIN).unwrap();
        let mut starts = Vec::new();
        for numbers in [GRAIN, 5 * GRAIN] {
            for thread in 0..3 {
                let tensors = arena.tensors(thread, numbers);
                assert_eq!(tensors[0] as usize % HUGE_PAGE, 0);
                assert!(tensors.iter().all(|&tensor| (tensor as usize).is_multiple_of(64)));
                starts.push(tensors.map(|tensor| tensor as usize));
            }
        }
        assert_eq!(starts[0][0], starts[3][0]);
        let mut ranges: Vec<(usize, usize)> = starts[3..]
            .iter()
            .flatten()
            .map(|&start| (start, start + 5 * GRAIN * size_of::<f32>()))
            .collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ranges:x?}");
        for tensor in arena.tensors(2, 5 * GRAIN) {
            // SAFETY: the arena holds that many numbers there.
            let numbers = unsafe { std::slice::from_raw_parts(tensor, 5 * GRAIN) };
            assert!(numbers.iter().all(|x| x.to_bits() == 0x3D3D_3D3D));
        }
    }

    #[test]
    fn the_kernels_do_what_they_are_credited_for() {
        for arch in Vectors::all() {
            let pool = Pool::new(2, arch).unwrap();
            let numbers = 3 * GRAIN;
            let arena = Arena::new(&pool, numbers + LINE).unwrap();
            let slice = |thread: usize, index: usize| {
                // SAFETY: the arena holds a line more than that many numbers there, and the slices
                // are used one after the other.
                unsafe {
                    let start = arena.tensors(thread, numbers)[index];
                    std::slice::from_raw_parts_mut(start, numbers)
                }
            };
            for kernel in [Kernel::Add, Kernel::AddStreaming] {
                if kernel == Kernel::AddStreaming && !streaming::SUPPORTED {
                    continue;
                }
                for thread in 0..2 {
                    for (index, value) in [(0, -1.0), (1, 2.0), (2, 0.5)] {
                        slice(thread, index).fill(value);
                    }
                    slice(thread, 1)[numbers - 1] = 8.0;
                }
                run(&pool, &arena, kernel, numbers, 3);
                for thread in 0..2 {
                    let (last, rest) = slice(thread, 0).split_last().unwrap();
                    assert!(*last == 8.5 && rest.iter().all(|&x| x == 2.5), "{arch:?} {kernel:?}");
                    assert!(slice(thread, 2).iter().all(|&x| x == 0.5));
                }
            }
            // Halves and few of them, so that the sum is exact, and different in every place.
            let tensors = arena.tensors(1, numbers);
            // SAFETY: the arena holds three tensors of that many numbers from there on.
            let all = unsafe { std::slice::from_raw_parts_mut(tensors[0], 3 * numbers) };
            for (index, number) in all.iter_mut().enumerate() {
                *number = index as f32 / 2.0;
            }
            let (start, count) = (tensors[0].cast_const(), 3 * numbers);
            let expected = 2.0 * (count * (count - 1) / 4) as f32;
            let one = arch.dispatch(Read::<1> { start, numbers: count, passes: 2 });
            let eight = arch.dispatch(Read::<8> { start, numbers: count, passes: 2 });
            assert_eq!([one, eight], [expected; 2], "{arch:?}");
        }
    }

    #[test]
    fn a_curve_has_a_point_for_each_size_and_only_rises() {
        let pool = Pool::new(1, Arch::new()).unwrap();
        let quick = Effort { sample: Duration::ZERO, budget: Duration::ZERO, least_samples: 1 };
        let mut curve = Curve::up_to(&pool, 64 << 10, quick);
        let mut before = [0.0; 3];
        for _ in 0..20 {
            curve.improve(&pool);
            let bytes: Vec<u64> =
                curve.points.iter().map(|point| point.working_set_bytes).collect();
            assert_eq!(bytes, [15_360, 32_256, 64_512]);
            let rates = [0, 1, 2].map(|index| curve.points[index].fastest_gb_per_s());
            assert!(rates.iter().zip(before).all(|(&now, before)| now >= before && now > 0.0));
            before = rates;
        }
    }
}
