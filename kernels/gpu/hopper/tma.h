// TMA of sm_90a: copies of boxes of a matrix to shared memory.
//
// Matrices lie one behind the other, each row-major; coordinates are column, row and matrix. A
// box has 64 columns of 16-bit numbers, that is rows of 128 bytes, and is laid out with the
// 128-byte swizzle (PTX ISA, "Tensors: swizzling modes"): rows one behind the other, and of the
// address within 1024 bytes, the bits 4 to 6 (which 16 bytes of a row) are replaced by their
// exclusive or with the bits 7 to 9 (which row). So a box begins at a multiple of 1024 bytes.
// What lies outside of the matrix is written as zeros and counts as copied bytes.
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

// Gets what the TMA must know of the matrix before it is needed.
PORT_DEVICE void prefetch_map(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

} // namespace port::hopper

#endif
