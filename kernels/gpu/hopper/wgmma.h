// `wgmma` of sm_90a: MMAs by a warpgroup, 128 threads whose first is a multiple of 128.
//
// C[64, N] += A[64, 16] B[16, N] with 16-bit A and B, and C in f32 in the registers. A and B lie
// in shared memory as `copy_box` puts them there, or A in registers. From `wgmma_fence` on,
// they read registers and memory at any time until `wgmma_wait`: nobody may touch them.
//
// What is relied on, all from the PTX ISA's "Asynchronous Warpgroup Level Matrix
// Multiply-Accumulate Instructions":
// - "Register fragments, wgmma.mma_async.m64nNk16": element `i` of a lane's C lies in row
//   16 warp + lane / 4 + 8 (i / 2 % 2) and column 8 (i / 4) + 2 (lane % 4) + i % 2; A in registers
//   is that layout with 16 columns, two numbers in a register.
// - "Matrix descriptor": bits 0-13 have the address, 16-29 the leading and 32-45 the stride
//   dimension byte offset, all without their last four bits; 49-51 are 0 where swizzle patterns
//   begin at multiples of 1024 bytes; 62-63 are 1 for the 128-byte swizzle.
// - "Strides": with that swizzle and K side by side, 8 rows are 1024 bytes, and the stride offset
//   is from 8 rows to the next; the leading one is not used. With N side by side, 64 columns and
//   8 of K are 1024 bytes, the stride offset is from 8 of K to the next 8, and the leading one
//   from 64 columns to the next.
// - Swizzling is of address bits, so that a tile that begins 32 bytes (16 of K) further to the
//   right in the swizzled rows is named by an address that is 32 bytes higher.
#pragma once

#include "hopper/tma.h"
#include "number.h"

namespace port::hopper {

constexpr int WARPGROUP = 128;
constexpr int WGMMA_ROWS = 64;
constexpr int WGMMA_DEPTH = 16;

// Where a thread's elements of C lie.
PORT_DEVICE int wgmma_row(int i) {
    return thread() % WARPGROUP / 32 * 16 + thread() % 32 / 4 + i / 2 % 2 * 8;
}
PORT_DEVICE int wgmma_col(int i) { return i / 4 * 8 + thread() % 4 * 2 + i % 2; }

namespace detail {

constexpr u64 SWIZZLE_128 = 1ull << 62;

PORT_DEVICE u64 descriptor(const u8* at, u32 leading_bytes, u32 stride_bytes) {
    return SWIZZLE_128 | static_cast<u64>(stride_bytes >> 4) << 32 |
           static_cast<u64>(leading_bytes >> 4) << 16 | (shared_address(at) & 0x3FFFF) >> 4;
}

} // namespace detail

// Rows of A, or columns of B, whose 64 numbers of K lie side by side in a box. The next 16 of K
// are `NEXT_K` higher.
PORT_DEVICE u64 k_major(const u8* box) { return detail::descriptor(box, 16, 1024); }
constexpr u64 NEXT_K = (WGMMA_DEPTH * 2) >> 4;

// Rows of B, 64 numbers of N side by side in a box of `depth` rows, and boxes one behind the
// other. The next 16 of K are `NEXT_K_OF_ROWS` higher.
PORT_DEVICE u64 n_major(const u8* boxes, u32 depth) {
    return detail::descriptor(boxes, depth * BOX_ROW_BYTES, 1024);
}
constexpr u64 NEXT_K_OF_ROWS = (WGMMA_DEPTH * BOX_ROW_BYTES) >> 4;

} // namespace port::hopper

#if defined(PORT_HOST)

#include "hopper_wgmma.h"

#else

namespace port::hopper {

// Before the first wgmma, and before one whose registers were written to since the
// last one.
PORT_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// The wgmmas since the last call are a group.
PORT_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until all but the last PENDING groups are complete.
template <int PENDING>
PORT_DEVICE void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Keeps the compiler from moving accesses to C over this place.
template <int SIZE>
PORT_DEVICE void wgmma_keep(float (&c)[SIZE]) {
#pragma unroll
    for (int i = 0; i < SIZE; i++) asm volatile("" : "+f"(c[i])::"memory");
}

namespace detail {

// One instruction per number type and N; A in shared memory (SS) or in registers (RS).
template <typename T, int N>
struct Wgmma;

// The registers of C as the text of an instruction names them, and as its operands.
#define PORT_LIST_32 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15" \
    ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define PORT_LIST_64 \
    PORT_LIST_32 \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
    ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define PORT_LIST_128 \
    PORT_LIST_64 \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
    ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95" \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
    ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define PORT_OUT_4(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define PORT_OUT_16(i) PORT_OUT_4(i), PORT_OUT_4(i + 4), PORT_OUT_4(i + 8), PORT_OUT_4(i + 12)
#define PORT_OUT_32 PORT_OUT_16(0), PORT_OUT_16(16)
#define PORT_OUT_64 PORT_OUT_32, PORT_OUT_16(32), PORT_OUT_16(48)
#define PORT_OUT_128                                                                               \
    PORT_OUT_64, PORT_OUT_16(64), PORT_OUT_16(80), PORT_OUT_16(96), PORT_OUT_16(112)

// SIZE is N / 2, the registers of C; O0 to O6 are the numbers of the operands after them.
#define PORT_WGMMA(T, NAME, N, SIZE, O0, O1, O2, O3, O4, O5, O6)                                   \
    template <>                                                                                    \
    struct Wgmma<T, N> {                                                                           \
        template <int N_MAJOR>                                                                     \
        PORT_DEVICE static void shared_a(float (&c)[SIZE], u64 a, u64 b, int accumulate) {         \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " O2 ", 0;\n"                           \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." NAME "." NAME " {"      \
                         PORT_LIST_##SIZE "}, " O0 ", " O1 ", p, 1, 1, 0, " O3 ";\n}"              \
                         : PORT_OUT_##SIZE                                                         \
                         : "l"(a), "l"(b), "r"(accumulate), "n"(N_MAJOR));                         \
        }                                                                                          \
        template <int N_MAJOR>                                                                     \
        PORT_DEVICE static void register_a(float (&c)[SIZE], const u32 (&a)[4], u64 b,             \
                                           int accumulate) {                                       \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " O5 ", 0;\n"                           \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." NAME "." NAME " {"      \
                         PORT_LIST_##SIZE "}, {" O0 ", " O1 ", " O2 ", " O3 "}, " O4               \
                         ", p, 1, 1, " O6 ";\n}"                                                   \
                         : PORT_OUT_##SIZE                                                         \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate),    \
                           "n"(N_MAJOR));                                                          \
        }                                                                                          \
    };
#define PORT_WGMMA_SIZES(T, NAME)                                                                  \
    PORT_WGMMA(T, NAME, 64, 32, "%32", "%33", "%34", "%35", "%36", "%37", "%38")                   \
    PORT_WGMMA(T, NAME, 128, 64, "%64", "%65", "%66", "%67", "%68", "%69", "%70")                  \
    PORT_WGMMA(T, NAME, 256, 128, "%128", "%129", "%130", "%131", "%132", "%133", "%134")

PORT_WGMMA_SIZES(port::f16, "f16")
PORT_WGMMA_SIZES(port::bf16, "bf16")

#undef PORT_WGMMA_SIZES
#undef PORT_WGMMA
#undef PORT_OUT_128
#undef PORT_OUT_64
#undef PORT_OUT_32
#undef PORT_OUT_16
#undef PORT_OUT_4
#undef PORT_LIST_128
#undef PORT_LIST_64
#undef PORT_LIST_32

} // namespace detail

// C += A B, or C = A B where `accumulate` is 0, with descriptors of A and B. B has K side by side
// (`k_major`), or N (`n_major`) where N_MAJOR is 1. C has N / 2 elements in every thread.
template <typename T, int N_MAJOR, int SIZE>
PORT_DEVICE void wgmma(float (&c)[SIZE], u64 a, u64 b, int accumulate) {
    detail::Wgmma<T, SIZE * 2>::template shared_a<N_MAJOR>(c, a, b, accumulate);
}

// The same with A in registers.
template <typename T, int N_MAJOR, int SIZE>
PORT_DEVICE void wgmma(float (&c)[SIZE], const u32 (&a)[4], u64 b, int accumulate) {
    detail::Wgmma<T, SIZE * 2>::template register_a<N_MAJOR>(c, a, b, accumulate);
}

} // namespace port::hopper

#endif
