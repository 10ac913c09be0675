// Barriers, fences and named barriers of sm_90a on a host, for kernels/gpu/hopper/barrier.h.
//
// After the PTX ISA's "mbarrier" and "bar": a barrier in shared memory counts arrivals and bytes,
// and its phase is complete when both are zero. After "setmaxnreg", warps give registers to the pool
// of their block and wait until it has enough, and all warps of a warpgroup meet between two changes.
// Fences do nothing here, so a missing one is not found.
#pragma once

#include <map>
#include <vector>

namespace port::hopper {
namespace emulated {

// Shared memory does not begin at address 0 on a device either.
constexpr u32 SHARED_START = 1024;

struct Barrier {
    u64* at;
    u32 arrivals;
    u32 pending;
    i64 bytes;
    u32 phase;
};

struct Named {
    int count = 0;
    int arrived = 0;
    u32 waiting = 0; // a bit for each warp
    u64 generation = 0;
};

// A copy that was started and has not come yet.
struct Copy {
    u8* to;
    TensorMap map;
    int at[3];
    u64* barrier;
};

// A store that was started, and what lay then where it reads.
struct Store {
    const u8* from;
    TensorMap map;
    int at[3];
    std::vector<u8> held;
};

// A thread's stores: those that have yet to read shared memory, and those that have yet to write.
struct Stores {
    std::vector<Store> started, read;
};

// What a warp has of its block's registers.
struct Registers {
    int of_thread;
    // That its warpgroup has yet to meet since the last change, and how often its block had by then.
    bool has_changed = false;
    u64 meetings = 0;
};

// What all threads of a block share.
struct Block {
    u64 run = 0;
    u64 made = 0;
    std::map<u64, Barrier> barriers;
    Named named[16];
    std::vector<Registers> registers; // of each warp; none before the first changes
    int free_registers = 0;
    std::vector<Copy> copies;
    std::map<int, Stores> stores; // by thread
    u64 random = 0x9E3779B97F4A7C15;
};

// Found by the address of its shared memory, which an earlier block may have had.
inline Block& block_with(const u8* shared) {
    static thread_local std::map<const u8*, Block> blocks;
    Block& block = blocks[shared];
    if (const u64 run = host::self().cluster->run; block.run != run) {
        block = {};
        block.run = run;
    }
    return block;
}
inline Block& here() { return block_with(shared()); }

// The shared memory of a block of the cluster, and the same place in it.
inline u8* shared_of(int rank, PORT_PLACE) {
    const host::Fiber& self = host::self();
    if (self.cluster_blocks == 1 || rank < 0 || rank >= self.cluster_blocks)
        host::fail("there is no such block in a cluster", file, line);
    return self.cluster->shared[rank];
}
template <typename T> T* there(T* here, u8* shared_there) {
    return reinterpret_cast<T*>(shared_there + (reinterpret_cast<const u8*>(here) - shared()));
}

// What a barrier's eight bytes hold: which one it is, so that one that was overwritten is found.
constexpr u64 SIGNATURE = 0x6D62000000000000;

inline Barrier& barrier_of(Block& block, u64* at, PORT_PLACE) {
    std::map<u64, Barrier>& barriers = block.barriers;
    const auto found = barriers.find(*at);
    if (found == barriers.end() || found->second.at != at)
        host::fail("there is no barrier", file, line);
    return found->second;
}

inline Barrier& barrier_at(u64* at, PORT_PLACE) { return barrier_of(here(), at, file, line); }

inline void complete_if_done(Barrier& barrier) {
    if (barrier.pending == 0 && barrier.bytes == 0) {
        barrier.phase ^= 1;
        barrier.pending = barrier.arrivals;
        host::self().table->changed();
    }
}

inline void arrive(Barrier& barrier, PORT_PLACE) {
    if (barrier.pending == 0) host::fail("more arrivals than the phase expects", file, line);
    barrier.pending--;
    complete_if_done(barrier);
}

// Lets one of the copies come, whichever; defined where copies are.
inline void let_a_copy_come();

} // namespace emulated

inline u32 shared_address(const void* generic, PORT_PLACE) {
    const i64 offset = static_cast<const u8*>(generic) - shared();
    if (offset < 0 || offset >= host::self().shared_bytes)
        host::fail("an address outside of shared memory", file, line);
    return emulated::SHARED_START + static_cast<u32>(offset);
}

inline void barrier_init(u64* barrier, u32 arrivals, PORT_PLACE) {
    if (reinterpret_cast<u64>(barrier) % 8 != 0) host::fail("a barrier not at 8 bytes", file, line);
    shared_address(barrier, file, line);
    emulated::Block& block = emulated::here();
    if (block.barriers.count(*barrier) != 0)
        host::fail("a barrier is made where there is one", file, line);
    *barrier = emulated::SIGNATURE + ++block.made;
    block.barriers[*barrier] = {barrier, arrivals, arrivals, 0, 0};
}

inline void barrier_end(u64* barrier, PORT_PLACE) {
    emulated::barrier_at(barrier, file, line);
    for (const emulated::Copy& copy : emulated::here().copies)
        if (copy.barrier == barrier) host::fail("a copy has not come yet", file, line);
    // Who uses the block's memory for something else has no stores under way.
    for (const auto& [thread, stores] : emulated::here().stores)
        if (!stores.started.empty() || !stores.read.empty())
            host::fail("a store was not waited for", file, line);
    emulated::here().barriers.erase(*barrier);
    *barrier = ~0ull;
}

inline void publish_barriers() {}
inline void fence_async_proxy() {}
inline void fence_async_proxy_of_shared() {}

inline void barrier_arrive(u64* barrier, PORT_PLACE) {
    emulated::arrive(emulated::barrier_at(barrier, file, line), file, line);
}

inline void barrier_arrive_expect(u64* barrier, u32 bytes, PORT_PLACE) {
    emulated::Barrier& at = emulated::barrier_at(barrier, file, line);
    at.bytes += bytes;
    emulated::arrive(at, file, line);
}

inline void barrier_wait(u64* barrier, u32 parity, PORT_PLACE) {
    // The phase that is under way has the other parity when the one of `parity` is complete.
    while (emulated::barrier_at(barrier, file, line).phase == parity) {
        emulated::let_a_copy_come();
        host::self().table->pause({__func__, file, line});
    }
}

inline int cluster_rank() { return host::self().rank; }

inline void barrier_arrive_at(u64* barrier, int rank, PORT_PLACE) {
    shared_address(barrier, file, line);
    u8* const its_shared = emulated::shared_of(rank, file, line);
    emulated::Barrier& its_barrier =
        emulated::barrier_of(emulated::block_with(its_shared),
                             emulated::there(barrier, its_shared), file, line);
    emulated::arrive(its_barrier, file, line);
}

inline void sync_cluster(PORT_PLACE) {
    host::Cluster& cluster = *host::self().cluster;
    const u64 generation = cluster.generation;
    if (++cluster.arrived == host::self().cluster_blocks * threads()) {
        cluster.arrived = 0;
        cluster.generation++;
        host::self().table->changed();
    }
    while (cluster.generation == generation) host::self().table->pause({__func__, file, line});
}

namespace emulated {

constexpr int WARPS_OF_A_GROUP = 4;

// Warps have met, of which `warps` has a bit for each: those of a warpgroup may change registers again.
inline void settle(Block& block, u32 warps) {
    constexpr u32 GROUP = (1u << WARPS_OF_A_GROUP) - 1;
    for (size_t warp = 0; warp < block.registers.size(); warp++) {
        const size_t first = warp / WARPS_OF_A_GROUP * WARPS_OF_A_GROUP;
        if ((warps >> first & GROUP) == GROUP) block.registers[warp].has_changed = false;
    }
}

inline u64 arrive_named(int number, int count, bool waits, PORT_PLACE) {
    if (number < 1 || number > 15 || count % WARP != 0)
        host::fail("not a barrier of whole warps", file, line);
    Named& at = here().named[number];
    if (at.arrived > 0 && at.count != count)
        host::fail("threads expect different counts at a barrier", file, line);
    const u64 generation = at.generation;
    at.count = count;
    if (waits) at.waiting |= 1u << warp();
    if (++at.arrived == count) {
        settle(here(), at.waiting);
        at.waiting = 0;
        at.arrived = 0;
        at.generation++;
        host::self().table->changed();
    }
    return generation;
}

} // namespace emulated

// What comes after it may be late: others run first.
inline void arrive_threads(int number, int count, PORT_PLACE) {
    emulated::arrive_named(number, count, false, file, line);
    pause(file, line);
}

inline void sync_threads(int number, int count, PORT_PLACE) {
    const u64 generation = emulated::arrive_named(number, count, true, file, line);
    while (emulated::here().named[number].generation == generation)
        host::self().table->pause({__func__, file, line});
}

namespace emulated {

// What each thread begins with: its share of a processor's 64 Ki.
inline int registers_at_start() {
    const int share = (64 << 10) / threads() / 8 * 8;
    return share < 256 ? share : 256;
}

// The registers of this warp, which is about to change them.
inline Registers& change_registers(PORT_PLACE) {
    Block& block = here();
    if (block.registers.empty()) block.registers.resize(threads() / WARP, {registers_at_start()});
    Registers& mine = block.registers[warp()];
    const u64 meetings = host::self().table->meetings();
    if (mine.has_changed && mine.meetings == meetings)
        host::fail("registers change again before all warps of the group have met", file, line);
    mine.has_changed = true;
    mine.meetings = meetings;
    return mine;
}

} // namespace emulated

template <int COUNT>
inline void registers_release(PORT_PLACE) {
    static_assert(COUNT % 8 == 0 && COUNT >= 24 && COUNT <= 256, "what setmaxnreg takes");
    if (lane() == 0) {
        emulated::Registers& mine = emulated::change_registers(file, line);
        if (COUNT > mine.of_thread) host::fail("more registers than before", file, line);
        emulated::here().free_registers += (mine.of_thread - COUNT) * WARP;
        mine.of_thread = COUNT;
        host::self().table->changed();
    }
    sync_warp(file, line);
}

template <int COUNT>
inline void registers_acquire(PORT_PLACE) {
    static_assert(COUNT % 8 == 0 && COUNT >= 24 && COUNT <= 256, "what setmaxnreg takes");
    if (lane() == 0) {
        emulated::Registers& mine = emulated::change_registers(file, line);
        if (COUNT < mine.of_thread) host::fail("fewer registers than before", file, line);
        const int wanted = (COUNT - mine.of_thread) * WARP;
        while (emulated::here().free_registers < wanted)
            host::self().table->pause({__func__, file, line});
        emulated::here().free_registers -= wanted;
        mine.of_thread = COUNT;
    }
    sync_warp(file, line);
}

} // namespace port::hopper
