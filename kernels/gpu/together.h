// What several threads do together: sums and maxima of a warp, a grid barrier, copies to
// shared memory that run while their thread goes on.
#pragma once

namespace port {

// Over groups of `LANES` neighbouring lanes, a power of two up to `WARP`; every lane gets the
// result, and all lanes of the warp call together.
template <int LANES = WARP> PORT_DEVICE float lanes_sum(float x) {
#pragma unroll
    for (int mask = LANES / 2; mask > 0; mask /= 2) x += shuffle_xor(x, mask);
    return x;
}

// NaN is left out where there is a number.
template <int LANES = WARP> PORT_DEVICE float lanes_max(float x) {
#pragma unroll
    for (int mask = LANES / 2; mask > 0; mask /= 2) x = max_number(x, shuffle_xor(x, mask));
    return x;
}

#if defined(PORT_HOST)
PORT_DEVICE u32 atomic_add(u32* at, u32 amount) {
    return __atomic_fetch_add(at, amount, __ATOMIC_ACQ_REL);
}
PORT_DEVICE u32 load_acquire(const u32* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
PORT_DEVICE void store_release(u32* at, u32 value) {
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}
#endif

// The grid barrier: all blocks of a cooperative launch wait for each other, and see what the others have written
// before. `counters[0]` is how many blocks have arrived, zero again at the end; `counters[1]` is
// how often all have, and is never reset: only its change counts.
PORT_DEVICE void sync_grid(u32* counters) {
#if defined(PORT_HIP)
    // A barrier within the block need not wait until the stores of other waves have left the
    // compute unit, so each wave makes its own visible.
    fence_device();
#endif
    sync_block();
    if (thread() == 0) {
        fence_device();
        // Before arriving: afterwards the last block may change it at any time.
        const u32 generation = load_acquire(counters + 1);
        if (atomic_add(counters, 1) == static_cast<u32>(blocks()) - 1) {
            store_release(counters, 0);
            atomic_add(counters + 1, 1);
        } else {
            while (load_acquire(counters + 1) == generation) pause();
        }
        fence_device();
    }
    sync_block();
#if defined(PORT_HIP)
    fence_device();
#endif
}

#if defined(PORT_CUDA)
// The address within shared memory, as instructions that go there want it.
PORT_DEVICE u32 shared_address(const void* shared) {
    // Not as inline assembly: the compiler sees that neighbours are constants apart.
    return static_cast<u32>(__cvta_generic_to_shared(shared));
}
#endif

// Copies 16 bytes to shared memory, or writes zeros there if not `valid`; `global` is then not
// read. Both addresses are multiples of 16. What was copied is there for this thread after
// `copy_async_wait`, and for the others after a barrier behind that.
#if defined(PORT_CUDA) && __CUDA_ARCH__ >= 800
PORT_DEVICE void copy_async16(void* shared, const void* global, bool valid) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
                 "l"(global), "r"(valid ? 16 : 0)
                 : "memory");
}
// Ends a group of copies.
PORT_DEVICE void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most the `N` latest groups of this thread are still under way.
template <int N> PORT_DEVICE void copy_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#elif !defined(PORT_HOST) // which has its own, in host_port.h
PORT_DEVICE void copy_async16(void* shared, const void* global, bool valid) {
#if defined(PORT_HIP)
    // A vector: a struct that is filled on a condition would go through a thread's memory.
    using Words = u32 __attribute__((ext_vector_type(4)));
    Words words = 0;
    if (valid) words = *static_cast<const Words*>(global);
    *static_cast<Words*>(shared) = words;
#else
    struct alignas(16) Words {
        u32 x[4];
    };
    const Words zeros = {{0, 0, 0, 0}};
#if defined(PORT_CUDA)
    *static_cast<Words*>(shared) = valid ? *static_cast<const Words*>(global) : zeros;
#else
    Words words = zeros;
    if (valid) __builtin_memcpy(&words, __builtin_assume_aligned(global, 16), 16);
    __builtin_memcpy(__builtin_assume_aligned(shared, 16), &words, 16);
#endif
#endif
}
// Ends a group of copies.
PORT_DEVICE void copy_async_commit() {}
// Waits until at most the `N` latest groups of this thread are still under way.
template <int N> PORT_DEVICE void copy_async_wait() {}
#endif

} // namespace port
