// TMA of sm_90a: copies of boxes of a matrix to shared memory, and from there to memory.
//
// Matrices lie one behind the other, each row-major; coordinates are column, row and matrix. A
// box has 64 columns of 16-bit numbers, that is rows of 128 bytes, and is laid out with the
// 128-byte swizzle (PTX ISA, "Tensors: swizzling modes"): rows one behind the other, and of the
// address within 1024 bytes, the bits 4 to 6 (which 16 bytes of a row) are replaced by their
// exclusive or with the bits 7 to 9 (which row). So a box begins at a multiple of 1024 bytes.
// What lies outside of the matrix is written to shared memory as zeros and counts as copied bytes,
// and is not written to memory.
//
// A store reads shared memory at any time after it was started, on another path than ordinary
// accesses: what threads have written there comes before a `fence_async_proxy` of theirs, and what
// they write there next after a wait of the thread that started it (PTX ISA, "cp.async.bulk.tensor",
// "cp.async.bulk.wait_group").
#pragma once

#include "hopper/barrier.h"

namespace port::hopper {

// Numbers in a row of a box, and its bytes.
constexpr int BOX_COLS = 64;
constexpr int BOX_ROW_BYTES = 128;

} // namespace port::hopper

#if defined(PORT_HOST)

#include "hopper_tma.h"

#else

namespace port::hopper {

// One thread starts the copy; its bytes count for the barrier's phase.
PORT_DEVICE void copy_box(u8* to, const TensorMap& map, int col, int row, int matrix,
                          u64* barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(to)),
                 "l"(&map), "r"(col), "r"(row), "r"(matrix), "r"(shared_address(barrier))
                 : "memory");
}

// The same to the first BLOCKS blocks of the cluster, where `to` and `barrier` lie in each of them.
template <int BLOCKS>
PORT_DEVICE void copy_box_to_all(u8* to, const TensorMap& map, int col, int row, int matrix,
                                 u64* barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(
                     shared_address(to)),
                 "l"(&map), "r"(col), "r"(row), "r"(matrix), "r"(shared_address(barrier)),
                 "h"(static_cast<u16>((1 << BLOCKS) - 1))
                 : "memory");
}

// One thread starts the store of a box, and with it a group of its own.
PORT_DEVICE void store_box(const TensorMap& map, int col, int row, int matrix, const u8* from) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group "
                 "[%0, {%1, %2, %3}], [%4];\n"
                 "cp.async.bulk.commit_group;" ::"l"(&map),
                 "r"(col), "r"(row), "r"(matrix), "r"(shared_address(from))
                 : "memory");
}

// Waits until all but the last PENDING stores of this thread have read shared memory.
template <int PENDING> PORT_DEVICE void wait_for_reads() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

// Waits until all stores of this thread have written memory.
PORT_DEVICE void wait_for_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// Gets what the TMA must know of the matrix before it is needed.
PORT_DEVICE void prefetch_map(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

} // namespace port::hopper

#endif
