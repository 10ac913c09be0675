//! The counters of prepared problems, and that reading them disturbs nothing: a thread that
//! allocates between samples changes what the next one finds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use fused_kernels::cpu::Cpu;
use fused_kernels::{Backend, Inputs, Variant};
use fusion_cost_model::{CacheState, Problem};

/// The allocator of the system, which counts the calls of threads other than the testing one.
struct Counting;

static ELSEWHERE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static TESTING: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: the allocator of the system does all the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !TESTING.get() {
            ELSEWHERE.fetch_add(1, Ordering::SeqCst);
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// One test, since the allocations of another one would be counted too.
#[test]
fn every_thread_is_counted_and_none_allocates() {
    TESTING.set(true);
    let problem: Problem = "linear_bias_relu/f32/m64.k64.n64".parse().unwrap();
    let inputs = Inputs::random(&problem, 1);
    let threads = 3;
    let mut cpu = Cpu::new(threads).unwrap();
    assert_eq!(cpu.pinned(), None);
    let mut prepared = cpu.prepare(&problem, &inputs, CacheState::Warm.into()).unwrap().unwrap();
    // The first call opens files.
    let first = prepared.counters();
    assert_eq!(first.len(), threads);
    let elsewhere = ELSEWHERE.load(Ordering::SeqCst);
    let mut last = first.clone();
    for _ in 0..20 {
        last = prepared.counters();
    }
    // The other threads of the test runner only wait.
    assert_eq!(ELSEWHERE.load(Ordering::SeqCst), elsewhere);
    prepared.run(Variant::Fused, 100).unwrap();
    let after = prepared.counters();
    for ((first, last), after) in first.iter().zip(&last).zip(&after) {
        assert!(last.page_faults >= first.page_faults);
        assert!(after.run_delay >= last.run_delay);
        if cfg!(target_os = "linux") {
            assert!(after.involuntary_switches.is_some() && after.page_faults.is_some());
            assert!(after.processor.is_some());
            assert!(after.processor_time > first.processor_time);
        }
    }
}
