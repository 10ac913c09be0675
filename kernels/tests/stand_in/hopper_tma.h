// TMA of sm_90a on a host, for kernels/gpu/hopper/tma.h.
//
// A copy comes as late as it may: when some thread waits for a barrier. Until then NaN lies where
// it will be, so that who reads too early, or still reads what was there, is found.
//
// A store, too, reads shared memory as late as it may, when its thread waits for that, and writes
// memory when its thread waits for that. What it reads must be what lay there when it was started,
// since the hardware reads it at any time in between.
#pragma once

#include "tensor_map.h"

#include <cstring>

namespace port::hopper {
namespace emulated {

// PTX ISA, "Swizzling modes", 128 bytes: which 16 bytes of 128, exclusive or which 128 of 1024.
inline u32 swizzled(u32 address) { return address ^ (address >> 7 & 7) << 4; }

inline u8* in_shared(u32 address) { return shared() + (address - SHARED_START); }

inline void let_a_copy_come() {
    Block& block = here();
    if (block.copies.empty()) return;
    block.random ^= block.random << 13;
    block.random ^= block.random >> 7;
    block.random ^= block.random << 17;
    const size_t which = block.random % block.copies.size();
    const Copy copy = block.copies[which];
    block.copies.erase(block.copies.begin() + static_cast<i64>(which));

    const Map map = decode(copy.map);
    const u32 start = shared_address(copy.to);
    for (u32 r = 0; r < map.box_rows; r++) {
        for (u32 c = 0; c < map.box_cols; c++) {
            const i64 col = copy.at[0] + static_cast<i64>(c), row = copy.at[1] + static_cast<i64>(r);
            u16 number = 0;
            if (col >= 0 && col < map.cols && row >= 0 && row < map.rows && copy.at[2] >= 0 &&
                copy.at[2] < map.matrices) {
                const u64 index = (static_cast<u64>(copy.at[2]) * map.rows + row) * map.cols + col;
                memcpy(&number, reinterpret_cast<const u8*>(map.address) + 2 * index, 2);
            }
            memcpy(in_shared(swizzled(start + r * 128 + c * 2)), &number, 2);
        }
    }
    Barrier& barrier = barrier_at(copy.barrier);
    barrier.bytes -= map.box_rows * map.box_cols * 2;
    complete_if_done(barrier);
}

// The first of a thread's stores that have not read yet does so.
inline void let_a_store_read(PORT_PLACE) {
    Stores& stores = here().stores[thread()];
    Store& store = stores.started.front();
    if (memcmp(store.from, store.held.data(), store.held.size()) != 0)
        host::fail("what a store reads has changed while it was under way", file, line);
    stores.read.push_back(std::move(store));
    stores.started.erase(stores.started.begin());
}

inline void write(const Store& store, PORT_PLACE) {
    const Map map = decode(store.map, file, line);
    const u32 start = shared_address(store.from, file, line);
    for (u32 r = 0; r < map.box_rows; r++) {
        for (u32 c = 0; c < map.box_cols; c++) {
            const i64 col = store.at[0] + static_cast<i64>(c), row = store.at[1] + static_cast<i64>(r);
            if (col < 0 || col >= map.cols || row < 0 || row >= map.rows) continue;
            if (store.at[2] < 0 || store.at[2] >= map.matrices) continue;
            const u64 index = (static_cast<u64>(store.at[2]) * map.rows + row) * map.cols + col;
            const u32 from = swizzled(start + r * 128 + c * 2) - start;
            memcpy(reinterpret_cast<u8*>(map.address) + 2 * index, store.held.data() + from, 2);
        }
    }
}

} // namespace emulated

namespace emulated {

// To the block with this shared memory.
inline void start_copy(u8* to, const TensorMap& map, int col, int row, int matrix, u64* barrier,
                       u8* its_shared, PORT_PLACE) {
    const Map decoded = decode(map, file, line);
    const u32 bytes = decoded.box_rows * decoded.box_cols * 2;
    if (shared_address(to, file, line) % 1024 != 0)
        host::fail("a box does not begin where the swizzle does", file, line);
    shared_address(to + bytes - 1, file, line);
    Block& block = block_with(its_shared);
    u64* const its_barrier = there(barrier, its_shared);
    barrier_of(block, its_barrier, file, line);
    memset(there(to, its_shared), 0xFF, bytes);
    block.copies.push_back({there(to, its_shared), map, {col, row, matrix}, its_barrier});
}

} // namespace emulated

inline void copy_box(u8* to, const TensorMap& map, int col, int row, int matrix, u64* barrier,
                     PORT_PLACE) {
    emulated::start_copy(to, map, col, row, matrix, barrier, shared(), file, line);
}

template <int BLOCKS>
inline void copy_box_to_all(u8* to, const TensorMap& map, int col, int row, int matrix,
                            u64* barrier, PORT_PLACE) {
    for (int rank = 0; rank < BLOCKS; rank++)
        emulated::start_copy(to, map, col, row, matrix, barrier,
                             emulated::shared_of(rank, file, line), file, line);
}

inline void store_box(const TensorMap& map, int col, int row, int matrix, const u8* from,
                      PORT_PLACE) {
    const emulated::Map decoded = emulated::decode(map, file, line);
    const u32 bytes = decoded.box_rows * decoded.box_cols * 2;
    if (shared_address(from, file, line) % 1024 != 0)
        host::fail("a box does not begin where the swizzle does", file, line);
    shared_address(from + bytes - 1, file, line);
    emulated::here().stores[thread()].started.push_back(
        {from, map, {col, row, matrix}, std::vector<u8>(from, from + bytes)});
}

template <int PENDING> inline void wait_for_reads(PORT_PLACE) {
    while (emulated::here().stores[thread()].started.size() > PENDING)
        emulated::let_a_store_read(file, line);
}

inline void wait_for_stores(PORT_PLACE) {
    wait_for_reads<0>(file, line);
    emulated::Stores& stores = emulated::here().stores[thread()];
    for (const emulated::Store& store : stores.read) emulated::write(store, file, line);
    stores.read.clear();
}

inline void prefetch_map(const TensorMap& map, PORT_PLACE) {
    emulated::decode(map, file, line);
}

} // namespace port::hopper
