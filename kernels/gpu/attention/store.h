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
// `cols` are multiples of `VECTOR`.
template <int VECTOR, class Core, int COUNT, typename T, class Steps>
PORT_DEVICE void store_rows(const typename Core::C (&tiles)[COUNT], float* stage, T* target,
                            i64 stride, i64 first_row, i64 first_col, i64 rows, i64 cols,
                            const Steps& steps) {
    constexpr int STRIDE = stage_stride<Core>();
    constexpr int MOST = stage_cols<Core>() / Core::N;
#pragma unroll
    for (int first = 0; first < COUNT; first += MOST) {
        const int count = COUNT - first < MOST ? COUNT - first : MOST;
        port::sync_warp();
#pragma unroll
        for (int n = 0; n < MOST; ++n) {
            if (n >= count) break;
#pragma unroll
            for (int i = 0; i < Core::SIZE; ++i) {
                stage[Core::row(i) * STRIDE + n * Core::N + Core::col(i)] = tiles[first + n].x[i];
            }
        }
        port::sync_warp();
        const int vectors = count * Core::N / VECTOR;
#pragma unroll 4
        for (int index = port::lane(); index < Core::M * vectors; index += port::WARP) {
            const int row = index / vectors, staged_col = index % vectors * VECTOR;
            const int col = first * Core::N + staged_col;
            if (row >= rows || col >= cols) continue;
            float x[VECTOR];
            port::load<VECTOR>(stage + row * STRIDE + staged_col, x);
            steps.template apply<VECTOR>(x, first_row + row, first_col + col);
            port::store<VECTOR>(target + (first_row + row) * stride + first_col + col, x);
        }
    }
}

} // namespace attention
