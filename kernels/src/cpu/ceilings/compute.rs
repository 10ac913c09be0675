//! The peak rate of arithmetic.

use std::time::Duration;

use pulp::{Simd, WithSimd};

use super::super::pool::Pool;
use super::Effort;

const EFFORT: Effort = Effort {
    sample: Duration::from_millis(1),
    budget: Duration::from_millis(30),
    least_samples: 3,
};

/// Multiply-adds in each sum per pass.
const DEPTH: usize = 4096;

/// Independent sums of multiply-adds, as many as the name says. With a latency of 4 cycles, 8
/// keep two units busy and 16 four.
struct MultiplyAdds<const SUMS: usize>;

impl<const SUMS: usize> WithSimd for MultiplyAdds<SUMS> {
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

/// The peak rate of multiply-adds on all threads, in 10^9 flops per second: the fastest of three
/// numbers of sums.
///
/// 12 fit into 16 registers and 24 into 32; too few sums wait for each other, and too many are
/// written to memory and back. 32 are for code without explicit vectors, where the compiler packs
/// single numbers into the vectors that every processor of the kind has, and does so from there on.
pub(super) fn peak_gflops(pool: &Pool) -> f64 {
    gflops::<12>(pool).max(gflops::<24>(pool)).max(gflops::<32>(pool))
}

fn gflops<const SUMS: usize>(pool: &Pool) -> f64 {
    let arch = pool.arch();
    let flops = arch.dispatch(MultiplyAdds::<SUMS>) * pool.threads() as f64;
    let seconds = EFFORT.best_seconds(|iterations| {
        pool.run(&|_| {
            for _ in 0..iterations {
                std::hint::black_box(arch.dispatch(MultiplyAdds::<SUMS>));
            }
        });
    });
    flops / seconds / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flops_are_counted_by_lanes_sums_and_depth() {
        let flops = pulp::Arch::Scalar.dispatch(MultiplyAdds::<3>);
        assert_eq!(flops, f64::from(2 * 3 * 4096));
    }
}
