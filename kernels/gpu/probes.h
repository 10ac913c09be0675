// Kernels that show the ceilings of a device: moving bytes, multiplying, and doing nothing.
#pragma once

#include "port.h"
#include "matrix_core.h"
#include "number.h"

namespace probe {

// Numbers that a thread moves per access, and independent accesses, so that enough bytes are under
// way to fill the memory's pipeline.
constexpr int VECTOR = 4;
constexpr int ACCESSES = 4;

// a = b + c on a tile of THREADS * VECTOR * ACCESSES numbers.
PORT_DEVICE void triad(float* a, const float* b, const float* c, i64 tile) {
    const i64 first = tile * port::threads() * VECTOR * ACCESSES + port::thread() * VECTOR;
    const i64 step = static_cast<i64>(port::threads()) * VECTOR;
    float x[ACCESSES][VECTOR], y[ACCESSES][VECTOR];
#pragma unroll
    for (int i = 0; i < ACCESSES; ++i) {
        port::load<VECTOR>(b + first + i * step, x[i]);
        port::load<VECTOR>(c + first + i * step, y[i]);
    }
#pragma unroll
    for (int i = 0; i < ACCESSES; ++i) {
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) x[i][j] += y[i][j];
        port::store<VECTOR>(a + first + i * step, x[i]);
    }
}

// Reads a tile of THREADS * VECTOR * ACCESSES numbers.
PORT_DEVICE void read(const float* b, float* never, i64 tile) {
    const i64 first = tile * port::threads() * VECTOR * ACCESSES + port::thread() * VECTOR;
    const i64 step = static_cast<i64>(port::threads()) * VECTOR;
    float x[ACCESSES][VECTOR];
#pragma unroll
    for (int i = 0; i < ACCESSES; ++i) port::load<VECTOR>(b + first + i * step, x[i]);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < ACCESSES; ++i) {
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) sum += x[i][j];
    }
    // The numbers are between -1 and 1. The compiler does not know, and must compute the sum.
    if (sum > 1e6f) never[0] = sum;
}

#if defined(PORT_COUNTERS)
// The cycles of this processor and the device's time, in the place of the processor. Two of them say
// what its clock was in between.
PORT_DEVICE void stamp(u64* stamps, i64 places) {
    const i64 place = port::processor();
    if (port::thread() != 0 || place >= places) return;
    const u64 time = port::ticks(), count = port::cycles();
    // At once: other blocks may be on the same processor.
    const port::Words<16> words = {{static_cast<u32>(count), static_cast<u32>(count >> 32),
                                    static_cast<u32>(time), static_cast<u32>(time >> 32)}};
    port::store_words<16>(stamps + 2 * place, words);
}
#endif

// Number `i` of an operand. Random enough that the multipliers do not idle: an MMA of zeros takes
// less power, and so runs at a higher clock.
template <typename T> PORT_DEVICE T number(int i) {
    const u32 hash = static_cast<u32>(i) * 2654435761u >> 8;
    return port::from_float<T>(static_cast<float>(hash & 0xffff) / 65536.0f - 0.5f);
}

// Says what a warp multiplies and adds in one turn, and in a way that its sum is needed.
PORT_DEVICE void finish(float* result, int of_a_turn, float sum) {
    if (port::block() == 0 && port::thread() == 0) result[0] = static_cast<float>(of_a_turn);
    if (sum > 1e30f) result[1] = sum;
    port::sync_block();
}

// MMAs on fragments that stay in registers, `repeats` times for each of MS x NS results of
// every warp: independent ones, so that each can start before the others have ended.
template <typename T> PORT_DEVICE void multiply(float* result, i64 repeats) {
    using Core = port::MatrixCore<T>;
    // Plain multiply-adds have larger fragments, which must stay in registers too.
    constexpr int MS = sizeof(T) == 4 ? 2 : 4, NS = 2;
    // A row of either operand, a multiple of 16 bytes.
    constexpr int LONGER = Core::N > Core::K ? Core::N : Core::K;
    constexpr int STRIDE = (LONGER + 15) / 16 * 16;
    constexpr int ROWS = Core::M > Core::K ? Core::M : Core::K;
    T* tile = reinterpret_cast<T*>(port::shared());
    for (int i = port::thread(); i < ROWS * STRIDE; i += port::threads()) tile[i] = number<T>(i);
    port::sync_block();
    typename Core::A a[MS];
    typename Core::B b[NS];
    typename Core::C c[MS][NS] = {};
#pragma unroll
    for (int i = 0; i < MS; ++i) Core::load_a(a[i], tile, STRIDE);
#pragma unroll
    for (int j = 0; j < NS; ++j) Core::load_b(b[j], tile, STRIDE);
    for (i64 repeat = 0; repeat < repeats; ++repeat) {
#pragma unroll
        for (int i = 0; i < MS; ++i) {
#pragma unroll
            for (int j = 0; j < NS; ++j) Core::multiply(c[i][j], a[i], b[j]);
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < MS; ++i) {
#pragma unroll
        for (int j = 0; j < NS; ++j) {
#pragma unroll
            for (int k = 0; k < Core::SIZE; ++k) sum += c[i][j].x[k];
        }
    }
    finish(result, MS * NS * Core::M * Core::N * Core::K, sum);
}

} // namespace probe
