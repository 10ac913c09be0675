//! What a timed region must not contain: allocations, and pages that are touched first.
//!
//! One test, because the allocator counts for the whole process, and a test harness allocates when
//! a test ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use fused_kernels::cpu::Cpu;
use fused_kernels::{Backend, Inputs, Prepared, Variant};
use fusion_cost_model::{CacheState, Op, Problem};

/// The system's allocator, which counts on all threads.
struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);
static LARGEST: AtomicU64 = AtomicU64::new(0);

fn count_allocated(bytes: usize) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    ALLOCATED.fetch_add(bytes as u64, Ordering::Relaxed);
    LARGEST.fetch_max(bytes as u64, Ordering::Relaxed);
}

fn count_freed(bytes: usize) {
    FREED.fetch_add(bytes as u64, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_allocated(layout.size());
        // SAFETY: the caller's guarantee.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_allocated(layout.size());
        // SAFETY: the caller's guarantee.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count_freed(layout.size());
        count_allocated(new_size);
        // SAFETY: the caller's guarantee.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count_freed(layout.size());
        // SAFETY: the caller's guarantee.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What was allocated while a piece of code ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Allocations {
    calls: u64,
    bytes: u64,
    freed: u64,
    largest: u64,
}

fn allocations(code: impl FnOnce()) -> Allocations {
    for counter in [&CALLS, &ALLOCATED, &FREED, &LARGEST] {
        counter.store(0, Ordering::Relaxed);
    }
    code();
    Allocations {
        calls: CALLS.load(Ordering::Relaxed),
        bytes: ALLOCATED.load(Ordering::Relaxed),
        freed: FREED.load(Ordering::Relaxed),
        largest: LARGEST.load(Ordering::Relaxed),
    }
}

/// Pages that the calling thread has touched first since it began; `None` where the allocator may
/// return freed memory to the system, or nothing counts them.
fn page_faults() -> Option<i64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use nix::sys::resource::{UsageWho, getrusage};
        Some(getrusage(UsageWho::RUSAGE_THREAD).unwrap().minor_page_faults())
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

/// Pages that a piece of code touches first; zero where nothing counts them.
fn page_faults_of(code: impl FnOnce()) -> i64 {
    let before = page_faults();
    code();
    page_faults().zip(before).map_or(0, |(after, before)| after - before)
}

/// Whether a measurement of page faults finds none in a few tries: the system moves pages at times,
/// but what belongs to the code comes every time.
fn finds_none(mut faults: impl FnMut() -> i64) -> bool {
    (0..4).any(|_| faults() == 0)
}

const PROBLEMS: &[&str] = &[
    // Without GEMMs.
    "add_relu/f32/m64.n513",
    // An output of several huge pages.
    "add_relu/f32/m2048.n1024",
    "add_layernorm/f32/m64.n512",
    "bias+leaky_relu+dropout+add+rms_norm+mul/f32/m64.n100",
    "batch_norm+relu/f32/m300.n64",
    "softmax+scale/f32/m31.n333",
    "conv2d+bias+relu6+max_pool+add+tanh/f32/n1.c16.h14.w14.k16.r3.s3.pad1.groups16",
    // GEMMs that need packing, and such that do not.
    "linear_bias_relu/f32/m64.k64.n64",
    "linear_bias_relu/f32/m130.k65.n67",
    "linear_bias_gelu/f32/m256.k256.n256",
    "linear+bias+add+layer_norm/f32/m64.k256.n513",
    "mlp/f32/m64.k128.n256.o100",
    "conv_bn_relu/f32/n1.c16.h28.w28.k33.r3.s3.pad1",
    "conv_bn_relu_maxpool/f32/n1.c64.h28.w28.k64.r3.s3.pad1",
    "attention_scores/f32/b1.h2.q64.d32",
    "attention_head/f32/b1.h4.q256.d64",
    "multihead_linear/f32/b1.h4.q64.d64.n256",
];

/// Whether the `gemm` crate computes a part of a chain. A depthwise convolution has a kernel of its
/// own.
fn has_gemm(problem: &Problem) -> bool {
    let depthwise = problem.sizes().conv().is_some_and(|conv| conv.groups == conv.c);
    let gemm = |op: &Op| match op {
        Op::Conv2d => !depthwise,
        op => matches!(op, Op::Linear | Op::Qk | Op::Pv),
    };
    problem.chain().iter().any(gemm)
}

/// The packing buffers of a GEMM are no larger.
const LARGEST_BUFFER: u64 = 1 << 20;

/// Holds what the runs of a variant allocate to the rules, in one of a few tries: a thread of the pool
/// before, which ends meanwhile, frees what it had, but what belongs to the runs comes every time.
fn check_allocations(problem: &Problem, prepared: &mut dyn Prepared, variant: Variant, what: &str) {
    prepared.run(variant, 2).unwrap();
    let mut run = |iterations| {
        allocations(|| {
            prepared.run(variant, iterations).unwrap();
        })
    };
    let keeps_the_rules = (0..4).any(|_| {
        let (one, many) = (run(1), run(10));
        if !has_gemm(problem) {
            let none = Allocations { calls: 0, bytes: 0, freed: 0, largest: 0 };
            return (one, many) == (none, none);
        }
        // The `gemm` crate allocates its packing buffers in every call and takes none from its
        // caller. They come and go within the run, in every run the same.
        many.freed == many.bytes
            && (many.calls, many.bytes) == (10 * one.calls, 10 * one.bytes)
            && many.largest <= LARGEST_BUFFER
    });
    assert!(keeps_the_rules, "{what}: {:?}", (run(1), run(10)));
}

#[test]
fn runs_neither_allocate_nor_touch_new_pages() {
    for text in PROBLEMS {
        let problem: Problem = text.parse().unwrap();
        let inputs = Inputs::random(&problem, 1);
        for (threads, cache) in
            [(1, CacheState::Warm), (1, CacheState::Cold), (2, CacheState::Warm)]
        {
            // A cache so small that there are some hundred sets at most.
            let mut cpu = Cpu::new(threads).unwrap().with_last_level_cache(1 << 20);
            let mut prepared = cpu.prepare(&problem, &inputs, cache.into()).unwrap().unwrap();
            for variant in Variant::ALL {
                let what = format!("{problem}, {variant}, {threads} threads, {cache}");
                check_allocations(&problem, &mut *prepared, variant, &what);
                if threads > 1 {
                    // The workers' faults are not counted.
                    continue;
                }
                let faults = || {
                    page_faults_of(|| {
                        prepared.run(variant, 50).unwrap();
                    })
                };
                assert!(finds_none(faults), "{what}");
            }
            drop(prepared);
            // The first run on new memory; the code has run before.
            for variant in Variant::ALL {
                let faults = || {
                    let mut prepared =
                        cpu.prepare(&problem, &inputs, cache.into()).unwrap().unwrap();
                    page_faults_of(|| {
                        prepared.run(variant, 1).unwrap();
                    })
                };
                assert!(threads > 1 || finds_none(faults), "{problem}, {variant}, {cache}");
            }
        }
    }
}
