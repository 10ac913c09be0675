// What threads of sm_90a wait for: barriers in shared memory that also count the bytes of TMA
// copies, barriers of a part of the block, and how many registers a warpgroup has.
//
// A barrier in shared memory (PTX ISA, "Parallel Synchronization and Communication Instructions:
// mbarrier") goes from phase to phase. A phase is complete when all expected arrivals have come
// and all expected bytes have been copied. The phases of a new barrier are 0, 1, 0, 1 and so on;
// waiting for parity p returns when the last phase of that parity is complete, and what comes
// before the first phase counts as a complete phase of parity 1.
#pragma once

#include "port.h"

#if defined(PORT_HOST)

#include "hopper_barriers.h"

#else

namespace port::hopper {

// One thread makes a barrier; all others may use it after `publish_barriers` and a
// synchronisation of the block.
PORT_DEVICE void barrier_init(u64* barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}

// The memory of a barrier may be used for something else from here on.
PORT_DEVICE void barrier_end(u64* barrier) {
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// The TMA, too, sees the barriers that this thread has made.
PORT_DEVICE void publish_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

PORT_DEVICE void barrier_arrive(u64* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
                 : "memory");
}

// An arrival, after which the phase also waits for `bytes` bytes of TMA copies.
PORT_DEVICE void barrier_arrive_expect(u64* barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

// `try_wait` itself waits for a time that the hardware chooses.
PORT_DEVICE void barrier_wait(u64* barrier, u32 parity) {
    const u32 address = shared_address(barrier);
    u32 complete;
    do {
        asm volatile("{\n"
                     ".reg .pred complete;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, complete;\n"
                     "}"
                     : "=r"(complete)
                     : "r"(address), "r"(parity)
                     : "memory");
    } while (complete == 0);
}

// Of a cluster's blocks, which this one is.
PORT_DEVICE int cluster_rank() {
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// All threads of a cluster's blocks wait for each other, warps as a whole, and see the barriers that
// were published before. Other accesses are in no order by it.
PORT_DEVICE void sync_cluster() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// An arrival at the barrier that lies in another block where this one lies in ours, or in ours.
PORT_DEVICE void barrier_arrive_at(u64* barrier, int rank) {
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
                 "}" ::"r"(shared_address(barrier)),
                 "r"(rank)
                 : "memory");
}

// Puts this thread's ordinary accesses before later ones of the TMA and of wgmma
// (PTX ISA, "Async proxy"): they go to memory on another path.
PORT_DEVICE void fence_async_proxy() { asm volatile("fence.proxy.async;" ::: "memory"); }
// The same for accesses of this block's shared memory alone.
PORT_DEVICE void fence_async_proxy_of_shared() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Waits until `count` threads of the block, whole warps, have come to the barrier of this number:
// 1 to 15, since 0 is that of `sync_block`.
PORT_DEVICE void sync_threads(int number, int count) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(count) : "memory");
}

// The same for one that does not wait.
PORT_DEVICE void arrive_threads(int number, int count) {
    asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(count) : "memory");
}

// A warpgroup gives registers back to the block, or waits until the block has more for it: a
// multiple of 8 from 24 to 256 for each thread (PTX ISA, "setmaxnreg"). All of its warps call, and
// meet at a barrier before any of them calls again.
template <int COUNT>
PORT_DEVICE void registers_release() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT>
PORT_DEVICE void registers_acquire() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

} // namespace port::hopper

#endif

namespace port::hopper {

// The grid barrier between phases of which one copies by TMA what another has written: its ordinary
// accesses come before the barrier, and the copies after it. A kernel of one phase has none of it.
PORT_DEVICE void sync_phases(u32* counters) {
    fence_async_proxy();
    sync_grid(counters);
    fence_async_proxy();
}

} // namespace port::hopper
