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

/// The bytes beyond which passes over memory use such stores, in both variants alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Thresholds {
    /// For the chain's result: compared with what the pass reads and writes.
    pub(crate) result: u64,
    /// For an intermediate result, which the next kernel reads: compared with that alone.
    pub(crate) intermediate: u64,
}

impl Thresholds {
    /// On `threads` threads with second-level caches of this size each, and with last-level caches
    /// of this size together.
    ///
    /// A pass that the last-level caches hold leaves its result there, which the variants share: one
    /// that went around them would take it away from the other, which then fetches it from memory
    /// (decision 0053). What the next kernel reads has to be larger than half of them by itself,
    /// since operands pass through them too. A last-level cache that is hardly larger than the
    /// second-level ones says little: one and a half times those is the least.
    pub(crate) fn of(threads: usize, second_level_bytes: u64, last_level_bytes: u64) -> Self {
        let held = second_level_bytes.saturating_mul(threads as u64);
        let least = held.saturating_add(held / 2);
        Self { result: least.max(last_level_bytes), intermediate: least.max(last_level_bytes / 2) }
    }

    /// The same, but none above this.
    pub(crate) fn at_most(self, bytes: u64) -> Self {
        Self { result: self.result.min(bytes), intermediate: self.intermediate.min(bytes) }
    }
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
    use pulp::WithSimd;

    use super::*;
    use crate::cpu::conforms::{conforms, cpus};
    use crate::cpu::element::Element;
    use crate::cpu::{Cpu, Vectors};

    const LINE: usize = f32::LINE;

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
        for arch in Vectors::all() {
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
            "add_relu/bf16/m67.n97",
            "add_relu/f16/m67.n97",
            "add_layernorm/f16/m37.n64",
            "add_layernorm/bf16/m37.n64",
            "add_layernorm/bf16/m37.n48",
            "add+softmax/bf16/m129.n2080",
        ];
        for cpu in cpus() {
            let mut cpu = cpu.with_last_level_cache(0);
            for text in problems {
                let [unfused, fused] = conforms(&mut cpu, text);
                let streams = |kernel: &String| kernel.contains(NAME);
                // Rows that are not whole lines do not stream; tensors without rows always do.
                let whole = !text.ends_with("63") && !text.ends_with("bf16/m37.n48");
                assert_eq!(streams(&unfused[0]), SUPPORTED, "{unfused:?}");
                assert!(!unfused.last().is_some_and(streams), "{unfused:?}");
                assert_eq!(streams(&fused[0]), SUPPORTED && whole, "{fused:?}");
            }
        }
    }

    /// Or the unfused variant would fetch from memory what a cache had held.
    #[test]
    fn what_a_cache_holds_for_the_next_kernel_does_not_stream() {
        let mut cpu = Cpu::new(1).unwrap();
        cpu.machine.stream = Thresholds { result: 4096, intermediate: 1 << 20 };
        let [unfused, fused] = conforms(&mut cpu, "mul_add_relu/f32/m64.n64");
        assert_eq!(fused[0].contains(NAME), SUPPORTED);
        assert!(unfused.iter().all(|kernel| !kernel.contains(NAME)));
    }

    #[test]
    fn small_results_do_not_stream() {
        let [_, fused] = conforms(&mut Cpu::new(1).unwrap(), "add_relu/f32/m64.n64");
        assert!(!fused[0].contains(NAME));
        let [result, intermediate] = [32 << 20, 16 << 20];
        assert_eq!(Thresholds::of(2, 1 << 20, 32 << 20), Thresholds { result, intermediate });
        // A last-level cache that is none to speak of.
        let [result, intermediate] = [3 << 20; 2];
        assert_eq!(Thresholds::of(2, 1 << 20, 2 << 20), Thresholds { result, intermediate });
    }
}
