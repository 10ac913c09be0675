//! What the process sets before it runs kernels: the floating-point mode of each thread, and that
//! freed memory stays mapped.

/// Makes the calling thread flush denormals to zero.
///
/// A denormal makes a multiplication 27 times slower, and whether one occurs depends on the data:
/// a ratio of two kernels must not. Does nothing where the mode is unknown.
pub(crate) fn flush_denormals() {
    #[cfg(target_arch = "x86_64")]
    {
        /// Flush-to-zero (bit 15) and denormals-are-zero (bit 6) of MXCSR.
        const FLUSH: u32 = (1 << 15) | (1 << 6);
        let mut mode: u32 = 0;
        // SAFETY: SSE is part of x86_64; the instructions read and write the control register
        // through a valid pointer, and only the two mode bits change.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mode, options(nostack));
            mode |= FLUSH;
            std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack, readonly));
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        /// Flush-to-zero (FZ, bit 24) of FPCR.
        const FLUSH: u64 = 1 << 24;
        let mut mode: u64;
        // SAFETY: FPCR may be read and written in user mode; only the mode bit changes.
        unsafe {
            std::arch::asm!("mrs {}, fpcr", out(reg) mode, options(nomem, nostack));
            mode |= FLUSH;
            std::arch::asm!("msr fpcr, {}", in(reg) mode, options(nomem, nostack));
        }
    }
}

/// Tells the C library's allocator to keep freed memory instead of returning it to the system.
///
/// The `gemm` crate allocates its packing buffers in every call; returned memory would be touched
/// anew in each, page by page, inside the timed region. Does nothing with other allocators.
pub(crate) fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// Allocations up to this size come from the heap and not from a mapping of their own;
        /// the largest value that glibc accepts.
        const MMAP_THRESHOLD: libc::c_int = 32 << 20;
        /// The heap is trimmed only above this.
        const TRIM_THRESHOLD: libc::c_int = 1 << 30;
        // SAFETY: these only set parameters of the allocator.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
            libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD);
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[test]
    fn denormals_become_zero_in_the_thread_that_asked() {
        let product = |flush: bool| {
            std::thread::spawn(move || {
                if flush {
                    super::flush_denormals();
                }
                let small = std::hint::black_box(f32::MIN_POSITIVE);
                std::hint::black_box(small * std::hint::black_box(0.5))
            })
            .join()
            .unwrap()
        };
        assert!(product(false).to_bits() != 0);
        assert_eq!(product(true).to_bits(), 0);
    }
}
