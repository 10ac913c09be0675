// `v_wmma_f32_16x16x16`: f16 and bf16 on gfx11 and gfx12, with 32 lanes.
//
// As with `mfma.h`, the instruction computes the transposed MMA, so that all numbers of a lane
// are in one row of C. On gfx11, both halves of a warp hold all of an operand, and take turns in
// the columns of C; on gfx12, each half has half of both.
#pragma once

#include "matrix_core/plain.h"

#if defined(PORT_HOST)
#include "matrix_instructions.h"
#endif

namespace port {

#if defined(PORT_CORE_WMMA11)
constexpr int WMMA_NUMBERS = 16;
#else
constexpr int WMMA_NUMBERS = 8;
#endif

// Numbers of 16 bits along what is summed: of row `lane % 16` of the first operand, or of that
// column of the second.
struct alignas(16) WmmaNumbers {
    u32 x[WMMA_NUMBERS / 2];
};

#if defined(PORT_HOST)

template <class T>
void wmma(float (&c)[8], const WmmaNumbers& first, const WmmaNumbers& second) {
#if defined(PORT_CORE_WMMA11)
    host::wmma_16x16x16_gfx11<T>(c, first.x, second.x);
#else
    host::wmma_16x16x16_gfx12<T>(c, first.x, second.x);
#endif
}

#else

template <class T>
PORT_DEVICE void wmma(float (&c)[8], const WmmaNumbers& first, const WmmaNumbers& second) {
    using Floats = float __attribute__((ext_vector_type(8)));
    using Halves = _Float16 __attribute__((ext_vector_type(WMMA_NUMBERS)));
    using Shorts = short __attribute__((ext_vector_type(WMMA_NUMBERS)));
    Floats sum = {c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]};
#if defined(PORT_CORE_WMMA11)
    if constexpr (__is_same(T, f16))
        sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(
            __builtin_bit_cast(Halves, first), __builtin_bit_cast(Halves, second), sum);
    else
        sum = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(
            __builtin_bit_cast(Shorts, first), __builtin_bit_cast(Shorts, second), sum);
#else
    if constexpr (__is_same(T, f16))
        sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(
            __builtin_bit_cast(Halves, first), __builtin_bit_cast(Halves, second), sum);
    else
        sum = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(
            __builtin_bit_cast(Shorts, first), __builtin_bit_cast(Shorts, second), sum);
#endif
#pragma unroll
    for (int i = 0; i < 8; i++)
        c[i] = sum[i];
}

#endif

template <class T> struct WmmaCore {
    static constexpr int M = 16, N = 16, K = 16;
    static constexpr int SIZE = 8;
    static constexpr int ROWS = 1;
    static constexpr int RUN = WMMA_NUMBERS == 16 ? 1 : 8;
    // Rows are gathered number by number: there is no load that transposes.
    static constexpr int PADDING = 16;
    static constexpr int UNROLL = 4;
    static constexpr bool LOADS_ROWS_OF_B = false;

    struct A {
        WmmaNumbers x;
    };
    struct B {
        WmmaNumbers x;
    };
    struct C {
        float x[SIZE];
    };

    // Where this half of the warp begins along what is summed.
    static PORT_DEVICE int first_k() { return WMMA_NUMBERS == 16 ? 0 : lane() / 16 * 8; }

    static PORT_DEVICE int row(int) { return lane() % 16; }
    static PORT_DEVICE int col(int i) {
        return WMMA_NUMBERS == 16 ? 2 * i + lane() / 16 : lane() / 16 * 8 + i;
    }
    static constexpr PORT_DEVICE int row_of(int) { return 0; }

    static PORT_DEVICE void load_a(A& a, const T* tile, int stride) {
        a.x = *reinterpret_cast<const WmmaNumbers*>(tile + lane() % 16 * stride + first_k());
    }

    static PORT_DEVICE void load_b(B& b, const T* tile, int stride) {
        const u16* from = reinterpret_cast<const u16*>(tile) + first_k() * stride + lane() % 16;
#pragma unroll
        for (int i = 0; i < WMMA_NUMBERS / 2; i++)
            b.x.x[i] = u32(from[2 * i * stride]) | u32(from[(2 * i + 1) * stride]) << 16;
    }

    static PORT_DEVICE void load_b_columns(B& b, const T* tile, int stride) {
        b.x = *reinterpret_cast<const WmmaNumbers*>(tile + lane() % 16 * stride + first_k());
    }

    static PORT_DEVICE void multiply(C& c, const A& a, const B& b) { wmma<T>(c.x, b.x, a.x); }

    static PORT_DEVICE float row_sum(float x) { return x + shuffle_xor(x, 16); }
    static PORT_DEVICE float row_max(float x) { return max_number(x, shuffle_xor(x, 16)); }

    static constexpr int SCRATCH_STRIDE = 0;

    static PORT_DEVICE void a_from_c(A (&a)[1], const C& c) {
#if defined(PORT_CORE_WMMA11)
        // Each half of the warp has every other column: the other half's go in between.
#pragma unroll
        for (int i = 0; i < SIZE / 2; i++) {
            const u32 own = pack<T>(c.x[2 * i], c.x[2 * i + 1]);
            const u32 others = __builtin_bit_cast(
                u32, shuffle_xor(__builtin_bit_cast(float, own), 16));
            const bool lower = lane() < 16;
            const u32 even = lower ? own : others, odd = lower ? others : own;
            a[0].x.x[2 * i] = (even & 0xffffu) | odd << 16;
            a[0].x.x[2 * i + 1] = even >> 16 | (odd & 0xffff0000u);
        }
#else
#pragma unroll
        for (int i = 0; i < SIZE / 2; i++)
            a[0].x.x[i] = pack<T>(c.x[2 * i], c.x[2 * i + 1]);
#endif
    }
};

template <> struct MatrixCore<f16> : WmmaCore<f16> {};
template <> struct MatrixCore<bf16> : WmmaCore<bf16> {};

} // namespace port
