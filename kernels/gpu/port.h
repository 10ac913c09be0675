// What kernels are written in: a subset of CUDA C++ that NVRTC, hiprtc, clang and a host compiler
// all take.
//
// Kernels use nothing but what is declared here and in the other headers of this folder, and no
// vendor's headers. Two rules keep them right on every device: the number of threads that run in
// step is `port::WARP`, never a number in a kernel, and what several threads of a block do with
// shared memory is separated by `port::sync_block()`.
//
// Options of the compiler: PORT_WARP, and one of PORT_CUDA, PORT_HIP, PORT_HOST. With PORT_HOST,
// "host_port.h" gives the same functions for an emulation that runs every thread as a fiber.
// What needs no more than these is in "functions.h", on numbers, and in "together.h", on what
// several threads do together; every kernel has both.
#pragma once

using i64 = long long;
using u64 = unsigned long long;
using u32 = unsigned int;
using u16 = unsigned short;
using u8 = unsigned char;

// What the TMA of sm_90a must know of a matrix; the driver fills it in.
struct alignas(64) TensorMap {
    u64 words[16];
};

#if defined(PORT_HOST)

#include "host_port.h"

#else

#define PORT_DEVICE __device__ __forceinline__

#if defined(PORT_CUDA)
#define PORT_GRID_CONSTANT __grid_constant__
#else
#define PORT_GRID_CONSTANT
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#endif

// The head of a kernel: its body follows, and reads its parameters from `args`. On sm_90a, `blocks`
// neighbouring blocks of a PORT_CLUSTER_KERNEL run at the same time and reach each other's shared
// memory.
#if defined(PORT_CUDA)
#define PORT_CLUSTER_KERNEL(entry, Args, threads, blocks)                                          \
    extern "C" __global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(threads)           \
        entry(PORT_GRID_CONSTANT const Args args)
#define PORT_KERNEL(entry, Args, threads)                                                          \
    extern "C" __global__ void __launch_bounds__(threads) entry(PORT_GRID_CONSTANT const Args args)
#else
#define PORT_KERNEL(entry, Args, threads)                                                          \
    extern "C" __global__ void __attribute__((amdgpu_flat_work_group_size(threads, threads)))      \
        entry(const Args args)
#endif

namespace port {

constexpr int WARP = PORT_WARP;

#if defined(PORT_CUDA)
PORT_DEVICE int thread() { return threadIdx.x; }
PORT_DEVICE int threads() { return blockDim.x; }
PORT_DEVICE i64 block() { return blockIdx.x; }
PORT_DEVICE i64 blocks() { return gridDim.x; }
PORT_DEVICE void sync_block() { __syncthreads(); }
PORT_DEVICE void sync_warp() { __syncwarp(); }
PORT_DEVICE float shuffle_xor(float x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
PORT_DEVICE float shuffle(float x, int lane) { return __shfl_sync(~0u, x, lane); }
PORT_DEVICE void fence_device() { __threadfence(); }
// Where and when a thread runs: its multiprocessor, the cycles that that has counted, and the device's
// own time, in nanoseconds.
#define PORT_COUNTERS
PORT_DEVICE int processor() {
    int number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}
PORT_DEVICE u64 cycles() {
    u64 count;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(count));
    return count;
}
PORT_DEVICE u64 ticks() {
    u64 time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}
PORT_DEVICE void pause() { asm volatile("nanosleep.u32 32;"); }
// Adds, and returns what was there. Orders memory accesses before and after, for all blocks.
PORT_DEVICE u32 atomic_add(u32* at, u32 amount) {
    u32 before;
    asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(at), "r"(amount)
                 : "memory");
    return before;
}
PORT_DEVICE u32 load_acquire(const u32* at) {
    u32 value;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
PORT_DEVICE void store_release(u32* at, u32 value) {
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}
#else
PORT_DEVICE int thread() { return __builtin_amdgcn_workitem_id_x(); }
PORT_DEVICE int threads() { return __builtin_amdgcn_workgroup_size_x(); }
PORT_DEVICE i64 block() { return __builtin_amdgcn_workgroup_id_x(); }
PORT_DEVICE i64 blocks() {
    return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
}
PORT_DEVICE void sync_block() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// The lanes of a wave run in step; only the compiler must be kept from moving memory accesses.
PORT_DEVICE void sync_warp() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
PORT_DEVICE float shuffle(float x, int lane) {
    return __builtin_bit_cast(
        float, __builtin_amdgcn_ds_bpermute(lane * 4, __builtin_bit_cast(int, x)));
}
PORT_DEVICE float shuffle_xor(float x, int mask);
PORT_DEVICE void fence_device() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
PORT_DEVICE void pause() { __builtin_amdgcn_s_sleep(1); }
#if defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) ||    \
    defined(__gfx942__) || defined(__gfx950__)
// The same as on NVIDIA, where counters have 64 bits. The device's time goes as fast as HIP says.
#define PORT_COUNTERS
PORT_DEVICE int processor() {
    // Which register, its first bit, and how many bits but one: the compute unit with its array and
    // engine, in HW_ID, and the die, in XCC_ID.
    constexpr int ON_DIE = 4 | 8 << 6 | 7 << 11, DIE = 20 | 0 << 6 | 3 << 11;
#if defined(__gfx908__) || defined(__gfx90a__)
    return __builtin_amdgcn_s_getreg(ON_DIE);
#else
    return __builtin_amdgcn_s_getreg(DIE) << 8 | __builtin_amdgcn_s_getreg(ON_DIE);
#endif
}
PORT_DEVICE u64 cycles() { return __builtin_amdgcn_s_memtime(); }
PORT_DEVICE u64 ticks() { return __builtin_amdgcn_s_memrealtime(); }
#endif
// Adds, and returns what was there. Orders memory accesses before and after, for all blocks.
PORT_DEVICE u32 atomic_add(u32* at, u32 amount) {
    return __hip_atomic_fetch_add(at, amount, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
}
PORT_DEVICE u32 load_acquire(const u32* at) {
    return __hip_atomic_load(at, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT);
}
PORT_DEVICE void store_release(u32* at, u32 value) {
    __hip_atomic_store(at, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}
#endif

// The thread within those that run in step, and which of those groups of the block it is in.
PORT_DEVICE int lane() { return thread() % WARP; }
PORT_DEVICE int warp() { return thread() / WARP; }

#if defined(PORT_HIP)
PORT_DEVICE float shuffle_xor(float x, int mask) { return shuffle(x, lane() ^ mask); }
#endif

// All shared memory of the block, aligned to 1024 bytes; its size is that of the launch.
PORT_DEVICE u8* shared() {
    extern __shared__ u8 port_shared_memory[] __attribute__((aligned(1024)));
    return port_shared_memory;
}

} // namespace port

#endif

#include "functions.h"
#include "together.h"
