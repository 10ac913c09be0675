//! Stores that go around the caches (non-temporal).
//!
//! An ordinary store reads its line from memory first, so that a result which no cache can hold
//! moves twice. Going around pays only where the line is not in a cache and is not read again soon:
//! not in place, and not for small results.

use pulp::Simd;

/// Whether there are such stores. Elsewhere the functions below are ordinary ones.
pub(crate) const SUPPORTED: bool = cfg!(all(target_arch = "x86_64", not(miri)));

/// How a kernel that uses them works.
pub(crate) const NAME: &str = "one pass, non-temporal stores";

/// Numbers in a cache line, the widest vector that is stored at once.
pub(crate) const LINE: usize = 16;

/// The bytes from which on passes over memory use such stores, in both variants alike, on `threads`
/// threads with second-level caches of this size each: one and a half times what these hold.
///
/// For the chain's result it is compared with what the pass reads and writes; for an intermediate
/// one, which the next kernel reads, with the result alone. On one thread with 2 MiB they took passes
/// of 3.6 to 200 MB 0.76 to 0.81 times as long, and unfused chains with intermediate results of 4, 16
/// and 64 MiB 0.92, 0.78 and 0.78 times; with 1.2 MiB, 1.4 times.
pub(crate) fn threshold_bytes(threads: usize, second_level_bytes: u64) -> u64 {
    let held = second_level_bytes.saturating_mul(threads as u64);
    held.saturating_add(held / 2)
}

/// Writes a vector around the caches. The calling thread calls [`fence`] before others may read it.
///
/// # Safety
///
/// `target` must be valid for writes of the vector and aligned to its size.
#[inline(always)]
pub(crate) unsafe fn store<S: Simd>(target: *mut f32, vector: S::f32s) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_mm256_stream_ps, _mm512_stream_ps};
        use std::mem::transmute_copy;
        // SAFETY: `S` has vectors of this size only where the processor has the instruction; the
        // rest is the caller's guarantee.
        unsafe {
            match size_of::<S::f32s>() {
                64 => return _mm512_stream_ps(target, transmute_copy(&vector)),
                32 => return _mm256_stream_ps(target, transmute_copy(&vector)),
                _ => {}
            }
        }
    }
    // SAFETY: the caller's guarantee.
    unsafe { target.cast::<S::f32s>().write_unaligned(vector) };
}

/// Orders all stores of the calling thread before what follows, which [`store`] does not.
pub(crate) fn fence() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::CacheState;
    use pulp::{Arch, WithSimd};

    use super::*;
    use crate::cpu::{Cpu, Vectors};
    use crate::{Backend, Expected, Inputs, Variant};

    /// Writes the first of two lines, whose numbers are all 7.
    struct First(*mut f32);

    impl WithSimd for First {
        type Output = ();

        fn with_simd<S: Simd>(self, simd: S) {
            for i in (0..LINE).step_by(S::F32_LANES) {
                // SAFETY: the first line is valid, and its vectors are aligned.
                unsafe { store::<S>(self.0.add(i), simd.splat_f32s(1.5)) };
            }
            fence();
        }
    }

    #[repr(C, align(64))]
    struct Lines([f32; 2 * LINE]);

    #[test]
    fn every_width_writes_its_vectors_and_no_more() {
        let mut archs = vec![Arch::Scalar, Arch::new()];
        #[cfg(target_arch = "x86_64")]
        archs.extend(pulp::x86::V3::try_new().map(Arch::V3));
        for arch in archs {
            let mut lines = Lines([7.0; 2 * LINE]);
            arch.dispatch(First(lines.0.as_mut_ptr()));
            assert_eq!(lines.0[..LINE], [1.5; LINE], "{arch:?}");
            assert_eq!(lines.0[LINE..], [7.0; LINE], "{arch:?}");
        }
    }

    #[test]
    fn large_results_stream_unless_they_are_in_place() {
        // Anything is large: whole lines, rows that are none, and one row group and several.
        let problems = [
            "add_relu/f32/m67.n97",
            "mul_add_relu/f32/m1.n1",
            "add_layernorm/f32/m37.n64",
            "add_layernorm/f32/m37.n63",
            "add+softmax/f32/m129.n2064",
            "batch_norm+relu/f32/m65.n48",
            "add+rms_norm+mul+tanh/f32/m33.n4096",
        ];
        let cpus = [Some(Cpu::new(1)), Some(Cpu::new(3))]
            .into_iter()
            .chain([Vectors::Avx2, Vectors::Scalar].map(|vectors| Cpu::with_vectors(2, vectors)));
        for cpu in cpus.flatten() {
            let mut cpu = cpu.unwrap().with_last_level_cache(0);
            for text in problems {
                let problem = text.parse().unwrap();
                let inputs = Inputs::random(&problem, 3);
                let expected = Expected::compute(&problem, &inputs, u64::MAX);
                let setup = CacheState::Warm.into();
                let mut prepared = cpu.prepare(&problem, &inputs, setup).unwrap().unwrap();
                let unfused = prepared.kernels(Variant::Unfused);
                let fused = prepared.kernels(Variant::Fused);
                let streams = |kernel: &String| kernel.contains(NAME);
                // Rows that are no whole lines do not stream; tensors without rows always do.
                let whole = !text.ends_with("63");
                assert_eq!(streams(&unfused[0]), SUPPORTED, "{unfused:?}");
                assert!(!unfused.last().is_some_and(streams), "{unfused:?}");
                assert_eq!(streams(&fused[0]), SUPPORTED && whole, "{fused:?}");
                for variant in Variant::ALL {
                    prepared.poison().unwrap();
                    prepared.run(variant, 2).unwrap();
                    let error = expected.error(&prepared.output().unwrap());
                    assert!(error <= expected.tolerance(), "{text}, {variant}: {error:e}");
                }
            }
        }
    }

    #[test]
    fn small_results_do_not_stream() {
        let mut cpu = Cpu::new(1).unwrap();
        let problem = "add_relu/f32/m64.n64".parse().unwrap();
        let inputs = Inputs::random(&problem, 3);
        let prepared = cpu.prepare(&problem, &inputs, CacheState::Warm.into()).unwrap().unwrap();
        assert!(!prepared.kernels(Variant::Fused)[0].contains(NAME));
        assert_eq!(threshold_bytes(2, 1 << 20), 3 << 20);
    }
}
