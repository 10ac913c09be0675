// `mma.sync.m16n8k16` with `ldmatrix`: f16 and bf16 from sm_80 on.
//
// Two instructions side by side make an MMA of 16 by 16 by 16, since C is then as wide as A is
// deep, and one `ldmatrix` loads either operand.
#pragma once

#include "matrix_core/plain.h"

#if defined(PORT_HOST)
#include "matrix_instructions.h"
#endif

namespace port {

// What the instructions differ in for f16 and bf16.
template <class T> struct Mma;

#if defined(PORT_HOST)

inline void ldmatrix(u32 (&x)[4], const void* row) { host::ldmatrix_x4(x, row, false); }
inline void ldmatrix_transposed(u32 (&x)[4], const void* row) { host::ldmatrix_x4(x, row, true); }

template <class T> struct HostMma {
    static void multiply(float* c, const u32 (&a)[4], const u32* b) {
        host::mma_m16n8k16<T>(c, a, b);
    }
};
template <> struct Mma<f16> : HostMma<f16> {};
template <> struct Mma<bf16> : HostMma<bf16> {};

#else

// Each lane gives the address of one row of 16 bytes, and gets two numbers of each of the four
// matrices of 8 by 8.
PORT_DEVICE void ldmatrix(u32 (&x)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared_address(row)));
}
PORT_DEVICE void ldmatrix_transposed(u32 (&x)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared_address(row)));
}

#define PORT_MMA(T, NAME)                                                                          \
    template <> struct Mma<T> {                                                                    \
        static PORT_DEVICE void multiply(float* c, const u32 (&a)[4], const u32* b) {              \
            asm("mma.sync.aligned.m16n8k16.row.col.f32." NAME "." NAME ".f32 "                     \
                "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                  \
                : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                   \
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));               \
        }                                                                                          \
    };
PORT_MMA(f16, "f16")
PORT_MMA(bf16, "bf16")
#undef PORT_MMA

#endif

template <class T> struct MmaCore {
    static constexpr int M = 16, N = 16, K = 16;
    static constexpr int SIZE = 8;
    static constexpr int ROWS = 2;
    static constexpr int RUN = 2;
    static constexpr int PADDING = 16;
    static constexpr int UNROLL = 4;
    static constexpr bool LOADS_ROWS_OF_B = true;

    struct A {
        u32 x[4];
    };
    // Two registers for the columns of each instruction.
    struct B {
        u32 x[4];
    };
    struct C {
        float x[SIZE];
    };

    static PORT_DEVICE int row(int i) { return lane() / 4 + i / 2 % 2 * 8; }
    static PORT_DEVICE int col(int i) { return lane() % 4 * 2 + i % 2 + i / 4 * 8; }
    static constexpr PORT_DEVICE int row_of(int i) { return i / 2 % 2; }

    static PORT_DEVICE void load_a(A& a, const T* tile, int stride) {
        ldmatrix(a.x, tile + lane() % 16 * stride + lane() / 16 * 8);
    }

    static PORT_DEVICE void load_b(B& b, const T* tile, int stride) {
        ldmatrix_transposed(b.x, tile + lane() % 16 * stride + lane() / 16 * 8);
    }

    static PORT_DEVICE void load_b_columns(B& b, const T* tile, int stride) {
        const int column = lane() / 16 * 8 + lane() % 8;
        ldmatrix(b.x, tile + column * stride + lane() / 8 % 2 * 8);
    }

    static PORT_DEVICE void multiply(C& c, const A& a, const B& b) {
        Mma<T>::multiply(c.x, a.x, b.x);
        Mma<T>::multiply(c.x + 4, a.x, b.x + 2);
    }

    static PORT_DEVICE float row_sum(float x) { return lanes_sum<4>(x); }
    static PORT_DEVICE float row_max(float x) { return lanes_max<4>(x); }

    static constexpr int SCRATCH_STRIDE = 0;

    // The lanes of C are those of A already.
    static PORT_DEVICE void a_from_c(A (&a)[1], const C& c) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[0].x[i] = pack<T>(c.x[2 * i], c.x[2 * i + 1]);
    }
};

template <> struct MatrixCore<f16> : MmaCore<f16> {};
template <> struct MatrixCore<bf16> : MmaCore<bf16> {};

} // namespace port
