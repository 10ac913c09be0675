//! What the process sets before it runs kernels: the floating-point mode of each thread, and that
//! freed memory stays mapped and has been touched.

/// Makes the calling thread flush denormals to zero.
///
/// A denormal makes a multiplication 27 times slower, and whether one occurs depends on the data:
/// a ratio of two kernels must not. Does nothing where the mode is unknown, nor under Miri, which
/// runs no assembly.
pub(crate) fn flush_denormals() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
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
    #[cfg(all(target_arch = "aarch64", not(miri)))]
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

/// Touches heap memory of the calling thread that the packing buffers of its GEMMs will come
/// from.
///
/// The C library hands out some ten places in turn before it returns to the first, because each
/// aligned block leaves a small rest that it keeps for itself. Without this, about ten of the first
/// runs would touch new pages. Call it after [`keep_freed_memory`].
pub(crate) fn touch_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// Ten times the packing buffers of most GEMMs, up to 256 KiB.
        const BYTES: usize = 4 << 20;
        /// The smallest page of any system.
        const PAGE: usize = 4 << 10;
        let mut block: Vec<u8> = Vec::with_capacity(BYTES);
        for page in block.spare_capacity_mut().chunks_mut(PAGE) {
            // Opaque to the compiler, which could otherwise drop writes that are never read.
            std::hint::black_box(page)[0].write(0);
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
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

    /// Rows that are alike have results that are alike, whichever thread computes them: also that
    /// of the caller, where another one made the backend.
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    #[test]
    fn denormals_are_flushed_by_whoever_calls() {
        use std::sync::mpsc::channel;

        use fusion_cost_model::{CacheState, Problem};

        use crate::cpu::Cpu;
        use crate::{Backend, Inputs, Variant};

        let (give, take) = channel::<Cpu>();
        // It has begun before the backend is made, and inherits nothing of that.
        let caller = std::thread::spawn(move || {
            let mut cpu = take.recv().unwrap();
            let problem: Problem = "linear_bias/f32/m512.k4.n64".parse().unwrap();
            let mut inputs = Inputs::random(&problem, 1);
            for (tensor, number) in inputs.tensors.iter_mut().zip([1e-30, 1e-10, 0.0]) {
                tensor.fill(number);
            }
            let mut prepared =
                cpu.prepare(&problem, &inputs, CacheState::Warm.into()).unwrap().unwrap();
            Variant::ALL.map(|variant| {
                prepared.poison().unwrap();
                prepared.run(variant, 1).unwrap();
                prepared.output().unwrap()
            })
        });
        give.send(Cpu::new(2).unwrap()).unwrap();
        for output in caller.join().unwrap() {
            assert!(output.iter().all(|number| number.to_bits() == 0));
        }
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn buffers_after_the_touch_have_no_new_pages() {
        use nix::sys::resource::{UsageWho, getrusage};

        /// Allocates and frees as the GEMMs do, and counts the pages that were new.
        fn faults_of_buffers() -> i64 {
            let faults = || getrusage(UsageWho::RUSAGE_THREAD).unwrap().minor_page_faults();
            let before = faults();
            for bytes in [1 << 13, 1 << 16, 1 << 18].into_iter().cycle().take(60) {
                let layout = std::alloc::Layout::from_size_align(bytes, 128).unwrap();
                // SAFETY: the block is not empty, is written within its bounds and freed once.
                unsafe {
                    let block = std::alloc::alloc(layout);
                    assert!(!block.is_null());
                    block.write_bytes(1, bytes);
                    std::hint::black_box(block);
                    std::alloc::dealloc(block, layout);
                }
            }
            faults() - before
        }
        super::keep_freed_memory();
        let thread = std::thread::spawn(|| {
            super::touch_heap();
            faults_of_buffers()
        });
        let faults = thread.join().unwrap();
        // 851 without the touch; the system moves a page at times.
        assert!(faults < 50, "{faults}");
    }
}
