//! Measures the limits of the CPU: its peak rate, its bandwidth over the working set, and what
//! starting a kernel costs.

use std::time::{Duration, Instant};

use fusion_cost_model::cost::{BandwidthPoint, Ceilings};
use memmap2::MmapMut;
use pulp::{Simd, WithSimd};

use super::kernel::Located;
use super::pool::Pool;
use super::product::share;

/// The smallest working set of the bandwidth curve.
const SMALLEST_BYTES: u64 = 16 << 10;
/// The largest working set. Beyond four times the last-level cache the curve is flat; where that
/// is more than this, the machine's neighbours use most of the cache anyway.
const LARGEST_BYTES: u64 = 256 << 20;
/// A measurement lasts at least this long.
const SAMPLE: Duration = Duration::from_millis(4);
/// The best of so many samples is the ceiling: nothing can make a loop faster than the machine, and
/// much can make it slower.
const SAMPLES: usize = 25;
/// Fewer for each point of the bandwidth curve, since there are many.
const CURVE_SAMPLES: usize = 7;

/// The limits for f32 on all threads of the pool.
pub(crate) fn measure(pool: &mut Pool) -> Ceilings {
    Ceilings {
        peak_gflops: peak_gflops(pool),
        launch_us: launch_us(pool),
        bandwidth: bandwidth(pool),
    }
}

/// The shortest of some samples of a job that runs `iterations` times, in seconds per iteration.
fn best_seconds(samples: usize, mut job: impl FnMut(u32)) -> f64 {
    let mut iterations = 1;
    let mut timed = |iterations: u32| {
        let start = Instant::now();
        job(iterations);
        start.elapsed()
    };
    // Also the warm-up.
    while timed(iterations) < SAMPLE {
        iterations *= 2;
    }
    let samples = (0..samples).map(|_| timed(iterations).as_secs_f64() / f64::from(iterations));
    samples.fold(f64::INFINITY, f64::min)
}

/// Independent sums of multiply-adds: enough to hide a latency of 4 cycles on two units (8), few
/// enough for 16 registers.
const SUMS: usize = 12;
/// Multiply-adds in each sum per iteration.
const DEPTH: usize = 4096;

struct MultiplyAdds;

impl WithSimd for MultiplyAdds {
    /// Flops done.
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let factor = simd.splat_f32s(std::hint::black_box(0.999));
        let mut sums = [simd.splat_f32s(1.0); SUMS];
        for _ in 0..DEPTH {
            let mut i = 0;
            while i < SUMS {
                sums[i] = simd.mul_add_e_f32s(sums[i], factor, factor);
                i += 1;
            }
        }
        for sum in sums {
            std::hint::black_box(simd.reduce_sum_f32s(sum));
        }
        (2 * S::F32_LANES * SUMS * DEPTH) as f64
    }
}

fn peak_gflops(pool: &mut Pool) -> f64 {
    let arch = pool.arch();
    let flops = arch.dispatch(MultiplyAdds) * pool.threads() as f64;
    let seconds = best_seconds(SAMPLES, |iterations| {
        pool.run(&|_| {
            for _ in 0..iterations {
                std::hint::black_box(arch.dispatch(MultiplyAdds));
            }
        });
    });
    flops / seconds / 1e9
}

/// Time to start an empty kernel on all threads and wait for them.
fn launch_us(pool: &mut Pool) -> f64 {
    let seconds = best_seconds(SAMPLES, |iterations| {
        for _ in 0..iterations {
            pool.run(&|thread| {
                std::hint::black_box(thread);
            });
        }
    });
    seconds * 1e6
}

/// `a = b + c` on a range of numbers.
struct Add<'a> {
    tensors: &'a [Located; 3],
    range: std::ops::Range<usize>,
}

impl WithSimd for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let [a, b, c] = *self.tensors;
        let mut i = self.range.start;
        while i + S::F32_LANES <= self.range.end {
            // SAFETY: the vector ends within the range, which lies within the tensors and belongs
            // to this thread.
            unsafe {
                let left = b.at(i).cast::<S::f32s>().read_unaligned();
                let right = c.at(i).cast::<S::f32s>().read_unaligned();
                a.at(i).cast::<S::f32s>().write_unaligned(simd.add_f32s(left, right));
            }
            i += S::F32_LANES;
        }
    }
}

/// Bandwidth of `a = b + c` from the first cache to memory: 12 bytes per element, the compulsory
/// ones, as everywhere in the cost model.
fn bandwidth(pool: &mut Pool) -> Vec<BandwidthPoint> {
    let Ok(mut arena) = MmapMut::map_anon(LARGEST_BYTES as usize) else {
        return Vec::new();
    };
    #[cfg(target_os = "linux")]
    let _ = arena.advise(memmap2::Advice::HugePage);
    // First touch, and ordinary numbers.
    arena.fill(0x3D);
    let base = arena.as_mut_ptr().cast::<f32>();
    let (arch, threads) = (pool.arch(), pool.threads());
    let mut points = Vec::new();
    for numbers in tensor_sizes(threads) {
        let tensors =
            [0, 1, 2].map(|index| Located::at_address(base.wrapping_add(index * numbers)));
        let seconds = best_seconds(CURVE_SAMPLES, |iterations| {
            pool.run(&|thread| {
                let range = share(numbers / GRAIN, thread, threads);
                let range = range.start * GRAIN..range.end * GRAIN;
                for _ in 0..iterations {
                    arch.dispatch(Add { tensors: &tensors, range: range.clone() });
                    std::hint::black_box(&tensors);
                }
            });
        });
        let moved = (3 * size_of::<f32>() * numbers) as u64;
        points.push(BandwidthPoint {
            working_set_bytes: moved,
            gb_per_s: moved as f64 / seconds / 1e9,
        });
    }
    points
}

/// Numbers that a thread's share of a tensor is a multiple of: whole vectors, whole lines.
const GRAIN: usize = 64;

/// How many numbers each of the three tensors has, for working sets that double: a multiple of
/// [`GRAIN`] for every thread. With many threads there are no small sets.
fn tensor_sizes(threads: usize) -> Vec<usize> {
    let step = GRAIN * threads;
    let largest = LARGEST_BYTES as usize / (3 * size_of::<f32>());
    let mut sizes: Vec<usize> =
        std::iter::successors(Some(SMALLEST_BYTES), |bytes| Some(bytes * 2))
            .take_while(|bytes| *bytes <= LARGEST_BYTES)
            .map(|bytes| (bytes as usize / (3 * size_of::<f32>()) / step).max(1) * step)
            .filter(|numbers| *numbers <= largest)
            .collect();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_sets_grow_and_fit_for_any_number_of_threads() {
        for threads in 1..=1024 {
            let sizes = tensor_sizes(threads);
            assert!(sizes.is_sorted_by(|a, b| a < b), "{threads} threads: {sizes:?}");
            assert!(sizes[0] > 0 && sizes.iter().all(|numbers| numbers % (GRAIN * threads) == 0));
            assert!(sizes[sizes.len() - 1] * 12 <= LARGEST_BYTES as usize);
            assert!(sizes.len() > 5, "{threads} threads: {sizes:?}");
        }
    }

    #[test]
    fn ceilings_are_positive_and_ordered() {
        let mut pool = Pool::new(2, pulp::Arch::new()).unwrap();
        let ceilings = measure(&mut pool);
        assert!(ceilings.peak_gflops > 0.1 && ceilings.peak_gflops.is_finite());
        assert!(ceilings.launch_us > 0.0);
        assert!(ceilings.bandwidth.len() > 10);
        assert!(ceilings.bandwidth.is_sorted_by(|a, b| a.working_set_bytes < b.working_set_bytes));
        assert!(ceilings.bandwidth.iter().all(|point| point.gb_per_s > 0.0));
    }
}
