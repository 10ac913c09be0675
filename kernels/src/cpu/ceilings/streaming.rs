//! `a = b + c` with non-temporal stores: they go around the caches, so that no line of `a` is
//! read before it is written.
//!
//! Which store to use is decided by intrinsics of each width, which `pulp` does not abstract over.

use pulp::Arch;

/// Whether there are such stores.
pub(super) const SUPPORTED: bool = cfg!(target_arch = "x86_64");

/// Adds numbers of `[a, b, c]` in several passes, and waits after each until `a` is in memory.
/// Does nothing on targets without such stores.
///
/// # Safety
///
/// The tensors must begin at a multiple of 64 bytes in valid memory, have a multiple of 64
/// numbers and not overlap, and no other thread may access `a` or write the others meanwhile.
pub(super) unsafe fn add(arch: Arch, tensors: [*mut f32; 3], numbers: usize, passes: u32) {
    #[cfg(target_arch = "x86_64")]
    match arch {
        // SAFETY: the caller guarantees the memory, and the variant that the processor has the
        // instructions.
        Arch::V4(_) => unsafe { x86::add_512(tensors, numbers, passes) },
        // SAFETY: as above.
        Arch::V3(_) => unsafe { x86::add_256(tensors, numbers, passes) },
        // SAFETY: as above; SSE is part of x86-64.
        _ => unsafe { x86::add_128(tensors, numbers, passes) },
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (arch, tensors, numbers, passes);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm_add_ps, _mm_load_ps, _mm_sfence, _mm_stream_ps, _mm256_add_ps, _mm256_load_ps,
        _mm256_stream_ps, _mm512_add_ps, _mm512_load_ps, _mm512_stream_ps,
    };

    /// Defines [`super::add`] for one width. A macro, because a function that took the
    /// instructions as closures would not inline them under the target feature.
    macro_rules! define {
        ($name:ident, $feature:literal, $lanes:literal, $load:ident, $add:ident, $stream:ident) => {
            /// # Safety
            ///
            /// As for [`super::add`], and the processor must have the instructions.
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn $name(tensors: [*mut f32; 3], numbers: usize, passes: u32) {
                for _ in 0..passes {
                    let [a, b, c] = std::hint::black_box(tensors);
                    let mut i = 0;
                    while i < numbers {
                        // SAFETY: all four vectors lie within the tensors, which have a multiple
                        // of 64 numbers, and are aligned as the tensors are.
                        unsafe {
                            let first = $add($load(b.add(i)), $load(c.add(i)));
                            let j = i + $lanes;
                            let second = $add($load(b.add(j)), $load(c.add(j)));
                            let k = j + $lanes;
                            let third = $add($load(b.add(k)), $load(c.add(k)));
                            let l = k + $lanes;
                            let fourth = $add($load(b.add(l)), $load(c.add(l)));
                            $stream(a.add(i), first);
                            $stream(a.add(j), second);
                            $stream(a.add(k), third);
                            $stream(a.add(l), fourth);
                        }
                        i += 4 * $lanes;
                    }
                    // Orders the stores before everything that follows, which they otherwise are
                    // not: another thread may read `a` next.
                    _mm_sfence();
                }
            }
        };
    }

    define!(add_512, "avx512f", 16, _mm512_load_ps, _mm512_add_ps, _mm512_stream_ps);
    define!(add_256, "avx", 8, _mm256_load_ps, _mm256_add_ps, _mm256_stream_ps);
    define!(add_128, "sse", 4, _mm_load_ps, _mm_add_ps, _mm_stream_ps);
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::cpu::Vectors;

    /// A vector of the widest kind, so that tensors are aligned.
    #[derive(Clone, Copy)]
    #[repr(C, align(64))]
    struct Line([f32; 16]);

    #[test]
    fn every_width_adds_all_numbers_and_no_more() {
        for arch in Vectors::all() {
            for lines in [4, 8, 12, 64] {
                let numbers = 16 * lines;
                // One line more, which must stay as it is.
                let mut tensors = [7.0, 1.5, 0.25].map(|x| vec![Line([x; 16]); lines + 1]);
                tensors[1][2].0[3] = -4.0;
                let pointers = tensors.each_mut().map(|tensor| tensor.as_mut_ptr().cast::<f32>());
                // SAFETY: the tensors are aligned to a line, have that many numbers and are apart.
                unsafe { add(arch, pointers, numbers, 2) };
                let sums: Vec<f32> = tensors[0].iter().flat_map(|line| line.0).collect();
                for (index, &sum) in sums.iter().enumerate() {
                    let expected = match index {
                        35 => -3.75,
                        _ if index < numbers => 1.75,
                        _ => 7.0,
                    };
                    assert_eq!(sum, expected, "{arch:?}, {index} of {numbers}");
                }
            }
        }
    }
}
