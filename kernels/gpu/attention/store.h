// What a warp has in fragments to rows in memory: through shared memory, so that lanes store many
// neighbouring numbers.
#pragma once

#include "number.h"
#include "port.h"

namespace attention {

PORT_DEVICE constexpr int largest(int a, int b) { return a > b ? a : b; }

// Columns that are stored at a time: 128 bytes of a row, or more where a tile is wider.
template <class Core>
PORT_DEVICE constexpr int stage_cols() { return Core::SCRATCH_STRIDE > 0 ? Core::N : largest(Core::N, 64); }

// Rows are padded, so that the same column of neighbouring rows is in other banks.
template <class Core> PORT_DEVICE constexpr int stage_stride() { return stage_cols<Core>() + 4; }

// Shared memory that a warp needs for it.
template <class Core> PORT_DEVICE constexpr int stage_bytes() {
    return Core::M * stage_stride<Core>() * static_cast<int>(sizeof(float));
}

// Applies pointwise steps to a row of tiles and stores it at (`first_row`, `first_col`) of a matrix
// with rows of `stride` numbers; only `rows` and `cols` of it are there. `stride`, `first_col` and
// `cols` are multiples of `VECTOR`. `FIRST` is the first tile that is stored: a template argument,
// since what is in registers must not be found by a variable.
template <int VECTOR, class Core, int FIRST = 0, int COUNT, typename T, class Steps>
PORT_DEVICE void store_rows(const typename Core::C (&tiles)[COUNT], float* stage, T* target,
                            i64 stride, i64 first_row, i64 first_col, i64 rows, i64 cols,
                            const Steps& steps) {
    constexpr int STRIDE = stage_stride<Core>();
    constexpr int MOST = stage_cols<Core>() / Core::N;
    constexpr int TILES = COUNT - FIRST < MOST ? COUNT - FIRST : MOST;
    constexpr int VECTORS = TILES * Core::N / VECTOR;
    port::sync_warp();
#pragma unroll
    for (int n = 0; n < TILES; ++n) {
#pragma unroll
        for (int i = 0; i < Core::SIZE; ++i) {
            stage[Core::row(i) * STRIDE + n * Core::N + Core::col(i)] = tiles[FIRST + n].x[i];
        }
    }
    port::sync_warp();
#pragma unroll 4
    for (int index = port::lane(); index < Core::M * VECTORS; index += port::WARP) {
        const int row = index / VECTORS, staged_col = index % VECTORS * VECTOR;
        const int col = FIRST * Core::N + staged_col;
        if (row >= rows || col >= cols) continue;
        float x[VECTOR];
        port::load<VECTOR>(stage + row * STRIDE + staged_col, x);
        steps.template apply<VECTOR>(x, first_row + row, first_col + col);
        port::store<VECTOR>(target + (first_row + row) * stride + first_col + col, x);
    }
    if constexpr (FIRST + TILES < COUNT) {
        store_rows<VECTOR, Core, FIRST + TILES>(tiles, stage, target, stride, first_row, first_col,
                                                rows, cols, steps);
    }
}

} // namespace attention
