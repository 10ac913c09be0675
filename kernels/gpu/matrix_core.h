// The MMA: multiply-accumulate of small matrices by the lanes of one warp, in f32, behind one
// interface.
//
// `MatrixCore<T>` is chosen by the type of the numbers and the architecture (PORT_CORE_*): f32 is
// always plain multiply-adds, f16 and bf16 are what the architecture has. Every one of them has
//
//     static constexpr int M, N, K;      // C[M, N] += A[M, K] B[K, N] by one warp; K divides N
//     struct A, struct B;                // this lane's part of an operand
//     struct C { float x[SIZE]; };       // this lane's part of the result
//     static constexpr int SIZE;
//
//     static void load_a(A&, const T* tile, int stride);        // rows of A, `stride` apart
//     static void load_b(B&, const T* tile, int stride);        // rows of B (K of them)
//     static void load_b_columns(B&, const T* tile, int stride);// columns of B (N of them), as in K^T
//     static constexpr bool LOADS_ROWS_OF_B; // whether load_b is as fast as load_b_columns; where it
//                                            // is not, better transpose B on its way to shared memory
//     static void multiply(C&, const A&, const B&);             // C += A B
//
//     static int row(int i), col(int i);  // where element `x[i]` of this lane lies in C
//     static constexpr int RUN;           // neighbouring elements of `x` that are so in a row of C
//     static constexpr int ROWS;          // rows of C that a lane has elements of
//     static constexpr int row_of(int i); // which of those element i is in, 0 to ROWS - 1
//     static float row_sum(float), row_max(float); // over the lanes that share a row of C; every
//                                                  // one of them gets the result
//
//     static constexpr int PADDING;       // bytes after rows of a power of two that keep them apart
//     static constexpr int UNROLL;        // MMAs along k that a loop should have at once
//
//     // C as the operand A of the next MMA (K of A is N of C), rounded to T. Where the
//     // fragments allow that in registers, SCRATCH_STRIDE is 0. Elsewhere there is no `a_from_c`: a
//     // kernel writes C to M rows of SCRATCH_STRIDE numbers that only this warp uses, and loads A.
//     static constexpr int SCRATCH_STRIDE;
//     static void a_from_c(A (&)[N / K], const C&);
//
// Tiles in shared memory start at multiples of PADDING bytes, 8 or 16, and so do their rows. All
// lanes of the warp call together.
//
// `WideCore<T>`, with MFMA alone, is for the large tiles of GEMMs whose B is given as rows, and has
// of all this what those need.
#pragma once

#include "number.h"
#include "port.h"

namespace port {

template <class T> struct WideCore;
template <class Core> constexpr bool IS_WIDE = false;
template <class T> constexpr bool IS_WIDE<WideCore<T>> = true;

} // namespace port

#include "matrix_core/plain.h"
#if defined(PORT_CORE_MMA) || defined(PORT_CORE_WGMMA)
#include "matrix_core/mma.h"
#elif defined(PORT_CORE_MFMA)
#include "matrix_core/mfma.h"
#include "matrix_core/mfma_wide.h"
#elif defined(PORT_CORE_WMMA11) || defined(PORT_CORE_WMMA12)
#include "matrix_core/wmma.h"
#endif
