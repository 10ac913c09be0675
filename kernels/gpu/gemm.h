// A tile of a GEMM, C[m, n] = A[m, k] B[k, n], by one block.
//
// Numbers go from memory to shared memory in steps of BK along k, in STAGES buffers, from there to
// the registers of matrix cores, and the sums back through shared memory, where each lane takes
// neighbouring numbers of a row: what follows the GEMM, and the access to memory, are then the
// same for every core. Sizes need not be multiples of anything: what lies beyond an edge is read as
// zero and not written. Nothing is split along k between blocks.
#pragma once

#include "gemm/operands.h"
#include "matrix_core.h"
#include "number.h"
#include "port.h"

namespace port {

// A block of BM by BN numbers of C by WARPS_M by WARPS_N warps.
template <class T_, class Core_, int BM_, int BN_, int BK_, int WARPS_M_, int WARPS_N_, int STAGES_,
          int SHARED_BYTES_>
struct GemmTile {
    using T = T_;
    using Core = Core_;
    static constexpr int BM = BM_, BN = BN_, BK = BK_, STAGES = STAGES_;
    // What the launch asks for.
    static constexpr int SHARED_BYTES = SHARED_BYTES_;
    static constexpr int WARPS_M = WARPS_M_, WARPS_N = WARPS_N_;
    static constexpr int THREADS = WARPS_M * WARPS_N * WARP;
    // Of a warp, in cores.
    static constexpr int CORES_M = BM / WARPS_M / Core::M, CORES_N = BN / WARPS_N / Core::N;
    static_assert(CORES_M * WARPS_M * Core::M == BM && CORES_N * WARPS_N * Core::N == BN, "whole");
    // Rows are a power of two and this much: neighbouring ones lie in different banks.
    static constexpr int PAD = Core::PADDING / int(sizeof(T));
    // Of these rows, in bytes.
    static constexpr int ALIGNMENT = PAD * int(sizeof(T)) == 8 ? 8 : 16;
};

// Which tile: tiles go down eight rows of them before they go on to the next column, so that the
// blocks that run at the same time share parts of both operands in the cache.
struct GemmPlace {
    i64 batch, row, col;
};
template <class Tile> PORT_DEVICE GemmPlace gemm_place(i64 tile, i64 m, i64 n) {
    constexpr i64 GROUP = 8;
    const i64 down = (m + Tile::BM - 1) / Tile::BM, across = (n + Tile::BN - 1) / Tile::BN;
    const i64 batch = quotient(tile, down * across);
    tile -= batch * down * across;
    const i64 group = quotient(tile, GROUP * across);
    const i64 first = group * GROUP;
    const i64 size = down - first < GROUP ? down - first : GROUP;
    tile -= group * GROUP * across;
    const i64 col = quotient(tile, size);
    return {batch, (first + tile - col * size) * Tile::BM, col * Tile::BN};
}

// The sums of a warp as they lie in shared memory for what follows: rows of f32, so far apart that
// lanes write to different banks. A wide core's go there in two parts, since all of them would take
// more memory than the operands.
template <class Tile> struct Staging {
    using Core = typename Tile::Core;
    static constexpr int PARTS = IS_WIDE<Core> ? 2 : 1;
    static_assert(PARTS == 1 || Tile::CORES_N == 1, "the parts of a core lie side by side");
    static constexpr int ROWS = Core::M;
    static constexpr int COLS = Tile::CORES_N * Core::N / PARTS;
    static constexpr int OF_A_CORE = Core::SIZE / PARTS;
    static constexpr int STRIDE = COLS + (Core::RUN == 2 ? 8 : 4);
    static constexpr int BYTES = Tile::WARPS_M * Tile::WARPS_N * ROWS * STRIDE * 4;
};

// The tile at `place`. `finish.template rows<ROWS, COLS>(staged, stride, row, col)` gets rows of
// sums, for one warp to take what follows from there.
template <class Tile, Given GIVEN, class SourceA, class SourceB, class Finish>
PORT_DEVICE void gemm(GemmPlace place, i64 depth, const SourceA& source_a,
                         const SourceB& source_b, const Finish& finish) {
    using T = typename Tile::T;
    using Core = typename Tile::Core;
    constexpr bool TRANSPOSE = GIVEN == Given::ROWS && !Core::LOADS_ROWS_OF_B;
    using A = OperandA<Tile, SourceA>;
    using B = OperandB<Tile, SourceB, GIVEN, TRANSPOSE>;
    constexpr int STAGES = Tile::STAGES, BK = Tile::BK;
    constexpr int STAGE = A::NUMBERS + B::NUMBERS;
    static_assert(STAGES * STAGE * int(sizeof(T)) <= Tile::SHARED_BYTES &&
                      Staging<Tile>::BYTES <= Tile::SHARED_BYTES,
                  "shared memory has room for the buffers, and then for the sums");
    T* const buffers = reinterpret_cast<T*>(shared());
    A a(source_a, place.row);
    B b(source_b, place.col);

    const int warp_row = warp() / Tile::WARPS_N * (Tile::CORES_M * Core::M);
    const int warp_col = warp() % Tile::WARPS_N * (Tile::CORES_N * Core::N);
    typename Core::C sums[Tile::CORES_M][Tile::CORES_N];
#pragma unroll
    for (int i = 0; i < Tile::CORES_M; i++)
#pragma unroll
        for (int j = 0; j < Tile::CORES_N; j++)
#pragma unroll
            for (int x = 0; x < Core::SIZE; x++)
                sums[i][j].x[x] = 0;

    const int warp_a = A::offset(warp_row, 0), warp_b = A::NUMBERS + B::offset(0, warp_col);
    const auto multiply = [&](const T* stage) {
        const T* const stage_a = stage + warp_a;
        const T* const stage_b = stage + warp_b;
#pragma unroll Core::UNROLL
        for (int k = 0; k < BK; k += Core::K) {
            typename Core::A as[Tile::CORES_M];
            typename Core::B bs[Tile::CORES_N];
#pragma unroll
            for (int i = 0; i < Tile::CORES_M; i++)
                A::load(as[i], stage_a, i * Core::M, k);
#pragma unroll
            for (int j = 0; j < Tile::CORES_N; j++)
                B::load(bs[j], stage_b + B::offset(k, j * Core::N));
#pragma unroll
            for (int i = 0; i < Tile::CORES_M; i++)
#pragma unroll
                for (int j = 0; j < Tile::CORES_N; j++)
                    Core::multiply(sums[i][j], as[i], bs[j]);
        }
    };

    const int steps = int((depth + BK - 1) / BK);
    const auto fetch = [&](T* stage, int step) {
        if (step < steps) {
            a.fetch(stage, i64(step) * BK);
            b.fetch(stage + A::NUMBERS, i64(step) * BK);
        }
    };
    const auto put = [&](T* stage, int step) {
        if (step < steps) {
            a.put(stage);
            b.put(stage + A::NUMBERS);
        }
    };
    if constexpr (STAGES == 1) {
        // One buffer, and the next step in registers: several blocks fit on a processor, and one
        // computes while another one waits.
        fetch(buffers, 0);
        for (int step = 0; step < steps; step++) {
            put(buffers, step);
            sync_block();
            fetch(buffers, step + 1);
            multiply(buffers);
            sync_block();
        }
    } else {
#pragma unroll
        for (int step = 0; step < STAGES - 1; step++) {
            fetch(buffers + step * STAGE, step);
            copy_async_commit();
            put(buffers + step * STAGE, step);
        }
        int current = 0, next = STAGES - 1;
        for (int step = 0; step < steps; step++) {
            copy_async_wait<STAGES - 2>();
            // Now everybody's copies of this step are there, and nobody reads the buffer any more
            // that the next copies go to.
            sync_block();
            fetch(buffers + next * STAGE, step + STAGES - 1);
            copy_async_commit();
            multiply(buffers + current * STAGE);
            put(buffers + next * STAGE, step + STAGES - 1);
            current = current + 1 == STAGES ? 0 : current + 1;
            next = next + 1 == STAGES ? 0 : next + 1;
        }
        copy_async_wait<0>();
        sync_block();
    }

    using Staged = Staging<Tile>;
    float* const staged =
        reinterpret_cast<float*>(shared()) + warp() * (Staged::ROWS * Staged::STRIDE);
#pragma unroll
    for (int i = 0; i < Tile::CORES_M; i++) {
#pragma unroll
        for (int part = 0; part < Staged::PARTS; part++) {
#pragma unroll
            for (int j = 0; j < Tile::CORES_N; j++)
#pragma unroll
                for (int at = 0; at < Staged::OF_A_CORE; at += Core::RUN) {
                    const int x = part * Staged::OF_A_CORE + at;
                    const int col = j * Core::N + Core::col(x) - part * Staged::COLS;
                    float run[Core::RUN];
#pragma unroll
                    for (int y = 0; y < Core::RUN; y++)
                        run[y] = sums[i][j].x[x + y];
                    store<Core::RUN>(staged + Core::row(x) * Staged::STRIDE + col, run);
                }
            sync_warp();
            finish.template rows<Staged::ROWS, Staged::COLS, Staged::STRIDE>(
                staged, place.row + warp_row + i * Core::M,
                place.col + warp_col + part * Staged::COLS);
            sync_warp();
        }
    }
    // The next tile begins with copies to where this one's sums lie.
    sync_block();
}

// Scales the sums, applies what follows, and writes them V at a time; the output's columns and the
// first one of each batch are multiples of V then.
template <class T, int V, class Tail> struct StoreGemm {
    T* output;
    // Of the batch: its rows and columns, and where they begin in the output.
    i64 rows_count, cols_count, first_row, first_col;
    // Numbers between rows of the output.
    i64 stride;
    float scale;
    const Tail& tail;

    template <int ROWS, int COLS, int STRIDE>
    PORT_DEVICE void rows(const float* staged, i64 row, i64 col) const {
        constexpr int PER_ROW = COLS / V, COUNT = ROWS * PER_ROW;
#pragma unroll 2
        for (int i = lane(); i < COUNT; i += WARP) {
            const int r = i / PER_ROW, c = i % PER_ROW * V;
            if (row + r >= rows_count || col + c >= cols_count) continue;
            float x[V];
            load<V>(staged + r * STRIDE + c, x);
#pragma unroll
            for (int v = 0; v < V; v++)
                x[v] *= scale;
            const i64 at_row = first_row + row + r, at_col = first_col + col + c;
            tail.template apply<V>(x, at_row, at_col);
            store<V>(output + at_row * stride + at_col, x);
        }
    }
};

} // namespace port
