// Fused multiply-adds of the lanes: f32 everywhere, f16 and bf16 where nothing better is.
#pragma once

#include "number.h"
#include "port.h"

namespace port {

// The lanes of a warp form a grid with 8 columns, and each has 4 by 4 elements of C. Four such
// MMAs by two each are 64 multiply-adds of a lane for every 4 loads of 16 bytes, which is what
// keeps the multipliers and not shared memory busy.
template <class T> struct PlainCore {
    static constexpr int LANE_COLS = 8;
    static constexpr int LANE_ROWS = WARP / LANE_COLS;
    static constexpr int M = 4 * LANE_ROWS, N = 4 * LANE_COLS, K = 4;
    static constexpr int SIZE = 16;
    static constexpr int ROWS = 4;
    static constexpr int RUN = 4;
    static constexpr int PADDING = 16;
#if defined(PORT_HIP)
    // Each MMA is long enough by itself, and clang would load the operands of all of them
    // first, into more registers than there are.
    static constexpr int UNROLL = 1;
#else
    // More would be in flight, but not all in registers where those of a thread are 128.
    static constexpr int UNROLL = 2;
#endif
    // Whether `load_b` is as fast as `load_b_columns`.
    static constexpr bool LOADS_ROWS_OF_B = true;

    struct A {
        float x[4][K];
    };
    struct B {
        float x[K][4];
    };
    struct C {
        float x[SIZE];
    };

    // The rows of a lane are LANE_ROWS apart, so that the lanes that read at the same time read
    // neighbouring rows, which the padding of tiles puts into different banks. The columns of a
    // lane are neighbours, to be loaded and stored at once.
    static PORT_DEVICE int row(int i) { return lane() / LANE_COLS + i / 4 * LANE_ROWS; }
    static PORT_DEVICE int col(int i) { return lane() % LANE_COLS * 4 + i % 4; }
    static constexpr PORT_DEVICE int row_of(int i) { return i / 4; }

    static PORT_DEVICE void load_a(A& a, const T* tile, int stride) {
        const T* from = tile + row(0) * stride;
#pragma unroll
        for (int i = 0; i < 4; i++)
            load<K>(from + i * LANE_ROWS * stride, a.x[i]);
    }

    static PORT_DEVICE void load_b(B& b, const T* tile, int stride) {
        const T* from = tile + col(0);
#pragma unroll
        for (int k = 0; k < K; k++)
            load<4>(from + k * stride, b.x[k]);
    }

    static PORT_DEVICE void load_b_columns(B& b, const T* tile, int stride) {
        const T* from = tile + col(0) * stride;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float x[K];
            load<K>(from + j * stride, x);
#pragma unroll
            for (int k = 0; k < K; k++)
                b.x[k][j] = x[k];
        }
    }

    static PORT_DEVICE void multiply(C& c, const A& a, const B& b) {
#pragma unroll
        for (int k = 0; k < K; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    c.x[4 * i + j] += a.x[i][k] * b.x[k][j];
    }

    static PORT_DEVICE float row_sum(float x) { return lanes_sum<LANE_COLS>(x); }
    static PORT_DEVICE float row_max(float x) { return lanes_max<LANE_COLS>(x); }

    // A row and 16 bytes, so that rows begin in different banks.
    static constexpr int SCRATCH_STRIDE = N + 16 / int(sizeof(T));
};

template <class T> struct MatrixCore : PlainCore<T> {};

} // namespace port
