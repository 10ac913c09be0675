// `v_mfma_f32_16x16x16`: f16 and bf16 on gfx90a and gfx942, with 64 lanes.
//
// The instruction gets B as its first operand and A as its second, so that it computes the
// transposed MMA: a lane's four numbers are then neighbours in a row of C, and they lie as the
// operand A of the next MMA needs them.
#pragma once

#include "matrix_core/plain.h"

#if defined(PORT_HOST)
#include "matrix_instructions.h"
#endif

namespace port {

// Four numbers of 16 bits: of row `lane % 16` of the first operand, or of that column of the
// second, those from `lane / 16 * 4` on along what is summed.
using Numbers4 = u64;

#if defined(PORT_HOST)

template <class T> void mfma(float (&c)[4], Numbers4 first, Numbers4 second) {
    host::mfma_16x16x16<T>(c, first, second);
}

#else

template <class T> PORT_DEVICE void mfma(float (&c)[4], Numbers4 first, Numbers4 second) {
    using Floats = float __attribute__((ext_vector_type(4)));
    Floats sum = {c[0], c[1], c[2], c[3]};
    if constexpr (__is_same(T, f16)) {
        using Halves = _Float16 __attribute__((ext_vector_type(4)));
        sum = __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_bit_cast(Halves, first),
                                                    __builtin_bit_cast(Halves, second), sum, 0, 0,
                                                    0);
    } else {
        using Shorts = short __attribute__((ext_vector_type(4)));
        sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(__builtin_bit_cast(Shorts, first),
                                                        __builtin_bit_cast(Shorts, second), sum, 0,
                                                        0, 0);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        c[i] = sum[i];
}

#endif

template <class T> struct MfmaCore {
    static constexpr int M = 16, N = 16, K = 16;
    static constexpr int SIZE = 4;
    static constexpr int ROWS = 1;
    static constexpr int RUN = 4;
    // Rows are gathered number by number: there is no load that transposes.
    // Sixteen lanes read 8 bytes each from as many rows: with 8 bytes of padding after a power of
    // two, these lie in different banks, with 16 bytes two of them share one.
    static constexpr int PADDING = 8;
    static constexpr int UNROLL = 4;
    static constexpr bool LOADS_ROWS_OF_B = false;

    struct A {
        Numbers4 x;
    };
    struct B {
        Numbers4 x;
    };
    struct C {
        float x[SIZE];
    };

    static PORT_DEVICE int row(int) { return lane() % 16; }
    static PORT_DEVICE int col(int i) { return lane() / 16 * 4 + i; }
    static constexpr PORT_DEVICE int row_of(int) { return 0; }

    static PORT_DEVICE void load_a(A& a, const T* tile, int stride) {
        a.x = *reinterpret_cast<const Numbers4*>(tile + lane() % 16 * stride + lane() / 16 * 4);
    }

    static PORT_DEVICE void load_b(B& b, const T* tile, int stride) {
        const u16* from =
            reinterpret_cast<const u16*>(tile) + lane() / 16 * 4 * stride + lane() % 16;
        b.x = u64(u32(from[0]) | u32(from[stride]) << 16) |
              u64(u32(from[2 * stride]) | u32(from[3 * stride]) << 16) << 32;
    }

    static PORT_DEVICE void load_b_columns(B& b, const T* tile, int stride) {
        b.x = *reinterpret_cast<const Numbers4*>(tile + lane() % 16 * stride + lane() / 16 * 4);
    }

    static PORT_DEVICE void multiply(C& c, const A& a, const B& b) { mfma<T>(c.x, b.x, a.x); }

    static PORT_DEVICE float row_sum(float x) {
        x += shuffle_xor(x, 16);
        return x + shuffle_xor(x, 32);
    }

    static PORT_DEVICE float row_max(float x) {
        x = max_number(x, shuffle_xor(x, 16));
        return max_number(x, shuffle_xor(x, 32));
    }

    static constexpr int SCRATCH_STRIDE = 0;

    static PORT_DEVICE void a_from_c(A (&a)[1], const C& c) {
        a[0].x = pack<T>(c.x[0], c.x[1]) | u64(pack<T>(c.x[2], c.x[3])) << 32;
    }
};

template <> struct MatrixCore<f16> : MfmaCore<f16> {};
template <> struct MatrixCore<bf16> : MfmaCore<bf16> {};

} // namespace port
