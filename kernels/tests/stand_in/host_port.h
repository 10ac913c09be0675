// The functions of kernels/gpu/port.h on a host: every GPU thread is a fiber.
//
// A kernel compiled with this runs in `fibers.cpp`, which it reaches through a table of functions,
// so that it can be loaded without being linked to anything. Every function that waits for other
// threads records where in the source it was called, and all threads that meet must have called
// it at the same place.
#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>

#define PORT_DEVICE inline
#define PORT_GRID_CONSTANT

// Where a function was called, as its last parameters.
#define PORT_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace port {

constexpr int WARP = PORT_WARP;

namespace host {

struct Place {
    const char* function;
    const char* file;
    int line;
};

// What kernels ask of the fibers that run them.
struct Table {
    // Waits for all lanes of the warp, and gives the `bytes` of each of them, lane by lane. They
    // stay until the lane has called this once more.
    const u8* (*meet_warp)(Place, const void* mine, u32 bytes);
    void (*meet_block)(Place);
    // Lets all other threads run first, those of other blocks of a cooperative launch too.
    void (*pause)(Place);
    // Something has changed that others may wait for: who comes before this thread goes on first.
    void (*changed)();
    // How often all threads of the block have met.
    u64 (*meetings)();
    // Copies 16 bytes to shared memory, or zeros from null, at any time until the thread waits.
    void (*copy)(Place, void* to, const void* from);
    void (*end_copies)();
    void (*wait_for_copies)(int groups_left);
    // Ends the launch with an error.
    void (*fail)(Place, const char* message);
};

// Blocks that run at the same time and reach each other's shared memory.
struct Cluster {
    static constexpr int MOST_BLOCKS = 8;
    u64 run; // which blocks of all that this process has run
    u8* shared[MOST_BLOCKS];
    // Threads at the barrier of all of them.
    int arrived;
    u64 generation;
};

// What a fiber knows of itself.
struct alignas(64) Fiber {
    const Table* table;
    u8* shared;
    i64 block;
    i64 blocks;
    int thread;
    int threads;
    u32 shared_bytes;
    Cluster* cluster;
    int cluster_blocks;
    int rank;
};
static_assert(sizeof(Fiber) == 64, "a line of the cache, as `fiber_offset` leaves room for");

// Stacks lie at multiples of their size, so that a fiber finds what it knows of itself from its
// stack pointer. Where exactly differs from stack to stack, or all of them would compete for the
// same lines of the caches.
constexpr u64 STACK_BYTES = 128 << 10;

constexpr u64 fiber_offset(u64 stack) {
    return STACK_BYTES - 64 * (1 + stack / STACK_BYTES % 60);
}

__attribute__((const)) inline const Fiber& self() {
    u64 here = reinterpret_cast<u64>(__builtin_frame_address(0));
    u64 stack = here & ~(STACK_BYTES - 1);
    return *reinterpret_cast<const Fiber*>(stack + fiber_offset(stack));
}

// What a launch must agree with.
struct KernelFacts {
    u32 arguments_bytes;
    u32 threads;
    u32 warp;
    const char* core; // the matrix instructions that it was written with
    u32 cluster;      // blocks
};

#if defined(PORT_CORE_WGMMA)
#define PORT_CORE_NAME "wgmma"
#elif defined(PORT_CORE_MMA)
#define PORT_CORE_NAME "mma"
#elif defined(PORT_CORE_MFMA)
#define PORT_CORE_NAME "mfma"
#elif defined(PORT_CORE_WMMA11) || defined(PORT_CORE_WMMA12)
#define PORT_CORE_NAME "wmma"
#else
#define PORT_CORE_NAME "plain"
#endif

// Every lane of the warp gives `bytes` bytes and gets those of all lanes, WARP * bytes.
inline void gather(const void* mine, size_t bytes, void* all, PORT_PLACE) {
    const u8* slots = self().table->meet_warp({"gather", file, line}, mine, u32(bytes));
    memcpy(all, slots, WARP * bytes);
}

// The same, and what every lane gets is a `T` of each.
template <class T> inline const T* gather(const T& mine, PORT_PLACE) {
    const u8* slots = self().table->meet_warp({"gather", file, line}, &mine, sizeof(T));
    return reinterpret_cast<const T*>(slots);
}

// Ends the launch with an error, for what an emulation can see and a device cannot.
inline void fail(const char* message, PORT_PLACE) {
    self().table->fail({"fail", file, line}, message);
}

} // namespace host

inline int thread() { return host::self().thread; }
inline int threads() { return host::self().threads; }
inline i64 block() { return host::self().block; }
inline i64 blocks() { return host::self().blocks; }
inline int lane() { return thread() % WARP; }
inline int warp() { return thread() / WARP; }
inline u8* shared() { return host::self().shared; }

inline void sync_block(PORT_PLACE) { host::self().table->meet_block({"sync_block", file, line}); }

inline void sync_warp(PORT_PLACE) {
    host::self().table->meet_warp({"sync_warp", file, line}, nullptr, 0);
}

inline float shuffle(float x, int lane, PORT_PLACE) {
    const host::Fiber& self = host::self();
    if (lane < 0 || lane >= WARP)
        self.table->fail({"shuffle", file, line}, "there is no such lane");
    const u8* slots = self.table->meet_warp({"shuffle", file, line}, &x, sizeof(x));
    memcpy(&x, slots + lane * sizeof(x), sizeof(x));
    return x;
}

inline float shuffle_xor(float x, int mask, PORT_PLACE) {
    return shuffle(x, lane() ^ mask, file, line);
}

// As on devices that copy while a thread goes on: what is copied is not there before the thread has
// waited for it, and what was there before is gone.
inline void copy_async16(void* to, const void* from, bool valid, PORT_PLACE) {
    host::self().table->copy({"copy_async16", file, line}, to, valid ? from : nullptr);
}
inline void copy_async_commit() { host::self().table->end_copies(); }
template <int N> inline void copy_async_wait() { host::self().table->wait_for_copies(N); }

inline void fence_device() {}

// Three processors with a clock of 1500 MHz, whatever a management library says of it, and a time in
// nanoseconds.
#define PORT_COUNTERS
inline int processor() { return static_cast<int>(block() % 3); }
inline thread_local u64 latest_ticks = 0;
inline u64 ticks() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    latest_ticks =
        static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
    return latest_ticks;
}
// Of the time that the thread has read before, or it would be another one.
inline u64 cycles() { return latest_ticks * 3 / 2; }
inline void pause(PORT_PLACE) { host::self().table->pause({"pause", file, line}); }

} // namespace port

// The head of a kernel. What follows is the body of a function of its parameters; the function
// that is called has a pointer to them, and what a launch must agree with lies next to it.
#define PORT_KERNEL(entry, Args, threads) PORT_CLUSTER_KERNEL(entry, Args, threads, 1)
#define PORT_CLUSTER_KERNEL(entry, Args, threads, cluster)                                         \
    static void body_of_##entry(const Args& args);                                                 \
    extern "C" {                                                                                   \
    PORT_EXPORTED extern const port::host::KernelFacts port_facts_of_##entry;                      \
    const port::host::KernelFacts port_facts_of_##entry = {sizeof(Args), threads, port::WARP,      \
                                                           PORT_CORE_NAME, cluster};               \
    PORT_EXPORTED void entry(const void* args) {                                                   \
        body_of_##entry(*static_cast<const Args*>(args));                                          \
    }                                                                                              \
    }                                                                                              \
    static void body_of_##entry(const Args& args)

#define PORT_EXPORTED __attribute__((visibility("default")))
