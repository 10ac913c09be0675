// How fast `wgmma` multiplies, apart from everything that a GEMM does beside it.
#pragma once

#include "hopper/wgmma.h"
#include "probes.h"

namespace probe {

// The widest instruction, in two warpgroups: one goes on while the other issues its next.
constexpr int WGMMA_COLS = 256;
constexpr int WARPGROUPS = 2;
// Rows of A for both, and behind them the columns of B that they share.
constexpr int ROWS = WARPGROUPS * port::hopper::WGMMA_ROWS;

// Operands stay in shared memory: a stage of the widest GEMM, as it lies there all the time.
// `repeats` times a warpgroup multiplies all of it, and waits for the time before.
template <typename T> PORT_DEVICE void multiply_by_wgmma(float* result, i64 repeats) {
    using namespace port::hopper;
    constexpr int OF_A_WARP = 16 * WGMMA_COLS * BOX_COLS;
    T* numbers = reinterpret_cast<T*>(port::shared());
    for (int i = port::thread(); i < (ROWS + WGMMA_COLS) * BOX_COLS; i += port::threads())
        numbers[i] = number<T>(i);
    // wgmma reads shared memory on another path than that on which this was written.
    fence_async_proxy();
    port::sync_block();
    const int rows = port::thread() / WARPGROUP * WGMMA_ROWS;
    const u64 a = k_major(port::shared() + rows * BOX_ROW_BYTES);
    const u64 b = k_major(port::shared() + ROWS * BOX_ROW_BYTES);
    float sums[WGMMA_COLS / 2];
#pragma unroll
    for (int i = 0; i < WGMMA_COLS / 2; ++i) sums[i] = 0.0f;
    wgmma_keep(sums);
    // Unrolled, it takes NVIDIA's assembler 16 times as long, for a branch less beside four multiplications.
#pragma unroll 1
    for (i64 repeat = 0; repeat < repeats; ++repeat) {
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < BOX_COLS / WGMMA_DEPTH; ++step)
            wgmma<T, 0>(sums, a + step * NEXT_K, b + step * NEXT_K, 1);
        wgmma_commit();
        wgmma_wait<1>();
    }
    wgmma_wait<0>();
    wgmma_keep(sums);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < WGMMA_COLS / 2; ++i) sum += sums[i];
    finish(result, OF_A_WARP, sum);
}

} // namespace probe
