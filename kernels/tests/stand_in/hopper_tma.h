// TMA of sm_90a on a host, for kernels/gpu/hopper/tma.h.
//
// A copy comes as late as it may: when some thread waits for a barrier. Until then NaN lies where
// it will be, so that who reads too early, or still reads what was there, is found.
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

} // namespace emulated

inline void copy_box(u8* to, const TensorMap& map, int col, int row, int matrix, u64* barrier,
                     PORT_PLACE) {
    const emulated::Map decoded = emulated::decode(map, file, line);
    const u32 bytes = decoded.box_rows * decoded.box_cols * 2;
    if (shared_address(to, file, line) % 1024 != 0)
        host::fail("a box does not begin where the swizzle does", file, line);
    shared_address(to + bytes - 1, file, line);
    emulated::barrier_at(barrier, file, line);
    memset(to, 0xFF, bytes);
    emulated::here().copies.push_back({to, map, {col, row, matrix}, barrier});
}

inline void prefetch_map(const TensorMap& map, PORT_PLACE) {
    emulated::decode(map, file, line);
}

} // namespace port::hopper
