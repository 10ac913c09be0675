//! The peak rate of arithmetic.

use std::time::Duration;

use half::{bf16, f16};
use pulp::{Arch, Simd, WithSimd};

use super::super::pool::Pool;
use super::super::{amx, fours};
use super::Effort;

const EFFORT: Effort = Effort {
    sample: Duration::from_millis(1),
    budget: Duration::from_millis(30),
    least_samples: 3,
};

/// Multiply-adds in each sum per pass.
const DEPTH: usize = 4096;

/// Numbers in a vector of AVX2.
const AVX2_LANES: usize = 8;

/// Sums that leave room for a factor.
const MOST_IN_16_REGISTERS: usize = 12;

/// Independent sums of multiply-adds, as many as the name says. With a latency of 4 cycles, 8
/// keep two units busy and 16 four.
struct MultiplyAdds<const SUMS: usize>;

impl<const SUMS: usize> WithSimd for MultiplyAdds<SUMS> {
    /// Flops done: none where the sums do not fit into registers.
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        // AVX2 has 16 registers, and what does not fit goes to memory and back.
        if S::F32_LANES == AVX2_LANES && SUMS > MOST_IN_16_REGISTERS {
            return 0.0;
        }
        let factor = simd.splat_f32s(std::hint::black_box(0.999));
        let mut sums = [simd.splat_f32s(1.0); SUMS];
        for _ in 0..DEPTH {
            let mut i = 0;
            while i < SUMS {
                // The instruction of NEON adds to its target, so that a sum in another place would be
                // copied. Without vectors it is a product and a sum, and the same product would be
                // computed once for all.
                sums[i] = if S::F32_LANES > 1 {
                    simd.mul_add_e_f32s(factor, factor, sums[i])
                } else {
                    simd.mul_add_e_f32s(sums[i], factor, factor)
                };
                i += 1;
            }
        }
        for sum in sums {
            std::hint::black_box(simd.reduce_sum_f32s(sum));
        }
        (2 * S::F32_LANES * SUMS * DEPTH) as f64
    }
}

/// What computes the GEMMs of a dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    /// Multiply-adds of f32.
    MultiplyAdds,
    /// Pairs of bf16, where [they are supported](crate::cpu::pairs::supported).
    Pairs,
    /// Fours of 8-bit integers, where [they are supported](crate::cpu::fours::supported).
    Fours,
    /// Pairs of bf16 on the matrix unit, where [it is supported](crate::cpu::amx::supported).
    Bf16OnAmx,
    /// Pairs of f16 on it, likewise.
    F16OnAmx,
    /// Fours of 8-bit integers on it, likewise.
    BytesOnAmx,
}

/// The peak rate of multiply-adds on all threads, in 10^9 flops per second: the fastest of some
/// numbers of sums.
///
/// 12 fit into 16 registers and 24 into 32; too few sums wait for each other. 32 are for code without
/// explicit vectors, where the compiler packs single numbers into the vectors that every processor of
/// the kind has, and does so from there on.
pub(super) fn peak_gflops(pool: &Pool, arithmetic: Arithmetic) -> f64 {
    let arch = pool.arch();
    match arithmetic {
        Arithmetic::MultiplyAdds => {
            let few = gflops(pool, &|| arch.dispatch(MultiplyAdds::<12>));
            let many = gflops(pool, &|| arch.dispatch(MultiplyAdds::<24>));
            let packed = if matches!(arch, Arch::Scalar) {
                gflops(pool, &|| Arch::Scalar.dispatch(MultiplyAdds::<32>))
            } else {
                0.0
            };
            few.max(many).max(packed)
        }
        Arithmetic::Pairs => gflops(pool, &pairs::<12>).max(gflops(pool, &pairs::<24>)),
        Arithmetic::Fours => gflops(pool, &|| fours::operations(arch)),
        // SAFETY: who asks for these has the unit.
        Arithmetic::Bf16OnAmx => gflops(pool, &|| unsafe { amx::operations::<bf16>() }),
        // SAFETY: as above.
        Arithmetic::F16OnAmx => gflops(pool, &|| unsafe { amx::operations::<f16>() }),
        // SAFETY: as above.
        Arithmetic::BytesOnAmx => gflops(pool, &|| unsafe { amx::operations::<u8>() }),
    }
}

/// The rate of what `flops` does, which returns how many flops that are.
fn gflops(pool: &Pool, flops: &(dyn Fn() -> f64 + Sync)) -> f64 {
    let done = flops() * pool.threads() as f64;
    if done == 0.0 {
        return 0.0;
    }
    let seconds = EFFORT.best_seconds(|iterations| {
        pool.run(&|_| {
            for _ in 0..iterations {
                std::hint::black_box(flops());
            }
        });
    });
    done / seconds / 1e9
}

/// Adds pairs of products to independent sums, and returns the flops; 0 where there is no instruction
/// for that.
fn pairs<const SUMS: usize>() -> f64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has the instructions.
        return unsafe { x86::pairs::<SUMS>() };
    }
    0.0
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use std::arch::x86_64::{_mm512_reduce_add_ps, _mm512_set1_epi32, _mm512_set1_ps};

    use super::DEPTH;
    use crate::cpu::pairs::TOGETHER;
    use crate::cpu::pairs::x86::{LANES, add_products};

    /// Two numbers a little below one, as the bits of a lane.
    const FACTORS: i32 = 0x3F7F_3F7F;

    /// See [`super::pairs`].
    ///
    /// # Safety
    ///
    /// The processor must have the instructions.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) unsafe fn pairs<const SUMS: usize>() -> f64 {
        let factors = _mm512_set1_epi32(std::hint::black_box(FACTORS));
        let mut sums = [_mm512_set1_ps(1.0); SUMS];
        for _ in 0..DEPTH {
            let mut i = 0;
            while i < SUMS {
                // SAFETY: the caller's guarantee.
                sums[i] = unsafe { add_products(sums[i], factors, factors) };
                i += 1;
            }
        }
        for sum in sums {
            std::hint::black_box(_mm512_reduce_add_ps(sum));
        }
        (2 * TOGETHER * LANES * SUMS * DEPTH) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flops_are_counted_by_lanes_sums_and_depth() {
        let flops = pulp::Arch::Scalar.dispatch(MultiplyAdds::<3>);
        assert_eq!(flops, f64::from(2 * 3 * 4096));
        let expected = if crate::cpu::pairs::supported(pulp::Arch::new()) {
            f64::from(4 * 16 * 5 * 4096)
        } else {
            0.0
        };
        assert_eq!(pairs::<5>(), expected);
        for arch in [pulp::Arch::new(), pulp::Arch::Scalar] {
            let operations = fours::operations(arch);
            assert_eq!(operations > 0.0, fours::supported(arch));
            // Whole sums of eight or sixteen lanes.
            assert_eq!(operations % f64::from(8 * 8 * 4096), 0.0);
        }
    }
}
