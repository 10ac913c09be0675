// `v_mfma_f32_32x32x8`: f16 and bf16 on gfx90a and gfx942, for large tiles of GEMMs.
//
// Two instructions side by side make an MMA of 32 by 64 by 8, of which one has the even columns and
// the other one the odd ones. So a lane that reads a word of a row of B has a number for each of
// them, and four words are its part of both: B lies in shared memory as it does in memory, and
// neither loads nor stores take less than they could. With 16x16x16, the same tile takes twice the
// instructions.
//
// No row has padding. Two buffers of a tile of 128 by 128 by 32 are 32 KiB then, and two blocks fit
// into the 64 KiB of a compute unit.
#pragma once

#include "matrix_core/mfma.h"

namespace port {

#if defined(PORT_HOST)

template <class T> void mfma_wide(float (&c)[16], Numbers4 first, Numbers4 second) {
    host::mfma_32x32x8<T>(c, first, second);
}

#else

template <class T> PORT_DEVICE void mfma_wide(float (&c)[16], Numbers4 first, Numbers4 second) {
    using Floats = float __attribute__((ext_vector_type(16)));
    Floats sum;
#pragma unroll
    for (int i = 0; i < 16; i++)
        sum[i] = c[i];
    if constexpr (__is_same(T, f16)) {
        using Halves = _Float16 __attribute__((ext_vector_type(4)));
        sum = __builtin_amdgcn_mfma_f32_32x32x8f16(__builtin_bit_cast(Halves, first),
                                                   __builtin_bit_cast(Halves, second), sum, 0, 0,
                                                   0);
    } else {
        using Shorts = short __attribute__((ext_vector_type(4)));
        sum = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(__builtin_bit_cast(Shorts, first),
                                                       __builtin_bit_cast(Shorts, second), sum, 0,
                                                       0, 0);
    }
#pragma unroll
    for (int i = 0; i < 16; i++)
        c[i] = sum[i];
}

#endif

template <class T> struct WideCore {
    static constexpr int M = 32, N = 64, K = 8;
    static constexpr int SIZE = 32;
    static constexpr int RUN = 8;
    static constexpr int PADDING = 0;
    static constexpr int UNROLL = 4;
    static constexpr bool LOADS_ROWS_OF_B = true;

    struct A {
        Numbers4 x;
    };
    struct B {
        Numbers4 x[2];
    };
    struct C {
        float x[SIZE];
    };

    // As with `mfma.h`, the instructions compute the transposed MMA. Number v of a lane's result of
    // one is in row `lane % 32` of C and in column 8 (v / 4) + 4 (lane / 32) + v % 4 of its columns,
    // which are every other one: eight neighbours alternate between both results.
    static PORT_DEVICE int row(int) { return lane() % 32; }
    static PORT_DEVICE int col(int i) { return i / 8 * 16 + lane() / 32 * 8 + i % 8; }

    // Where the number k of a row of A lies in it. Eight groups of four numbers take another order every
    // two rows: sixteen lanes that read the same group of as many rows find it in all banks, and so do
    // sixteen that write every other group of four rows.
    static constexpr int COLS_OF_A = 32;
    static PORT_DEVICE int place_in_a(int row, int k) { return k ^ row / 2 % 8 * 4; }

    static PORT_DEVICE void load_a(A& a, const T* rows, int stride, int k) {
        const int row = lane() % 32;
        a.x = *reinterpret_cast<const Numbers4*>(rows + row * stride +
                                                 place_in_a(row, k + lane() / 32 * 4));
    }

    // Number `which` of either word, side by side.
    static PORT_DEVICE u32 beside(u32 first, u32 second, int which) {
        return which == 0 ? (first & 0xffffu) | second << 16 : first >> 16 | (second & 0xffff0000u);
    }

    static PORT_DEVICE void load_b(B& b, const T* tile, int stride) {
        const T* from = tile + lane() / 32 * 4 * stride + lane() % 32 * 2;
        u32 rows[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            rows[k] = *reinterpret_cast<const u32*>(from + k * stride);
#pragma unroll
        for (int j = 0; j < 2; j++)
            b.x[j] = beside(rows[0], rows[1], j) | u64(beside(rows[2], rows[3], j)) << 32;
    }

    static PORT_DEVICE void multiply(C& c, const A& a, const B& b) {
#pragma unroll
        for (int j = 0; j < 2; j++) {
            float sums[SIZE / 2];
#pragma unroll
            for (int i = 0; i < SIZE / 2; i++)
                sums[i] = c.x[2 * i + j];
            mfma_wide<T>(sums, b.x[j], a.x);
#pragma unroll
            for (int i = 0; i < SIZE / 2; i++)
                c.x[2 * i + j] = sums[i];
        }
    }
};

} // namespace port
