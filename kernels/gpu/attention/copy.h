// Tiles of matrices from memory to shared memory, with zeros where the matrix ends.
#pragma once

#include "number.h"
#include "port.h"

namespace attention {

// This many bytes of a matrix, at a multiple of their number.
template <int BYTES> struct Bytes;
template <> struct Bytes<2> { using Type = u16; };
template <> struct Bytes<4> { using Type = u32; };
template <> struct Bytes<8> { using Type = u64; };

// `VECTOR` numbers or zeros; the source is not read if not `valid`.
template <int VECTOR, typename T>
PORT_DEVICE void copy_vector(T* target, const T* source, bool valid) {
    constexpr int BYTES = VECTOR * static_cast<int>(sizeof(T));
    if constexpr (BYTES == 16) {
        port::copy_async16(target, source, valid);
    } else {
        using Word = typename Bytes<BYTES>::Type;
        Word word = 0;
        if (valid) word = *reinterpret_cast<const Word*>(source);
        *reinterpret_cast<Word*>(target) = word;
    }
}

// Copies `ROWS` by `COLS` numbers; only `rows` by `cols` are there. `cols` and both strides are
// multiples of `VECTOR`. With 16 bytes at a time the copies are asynchronous where a device can
// do that.
template <int ROWS, int COLS, int STRIDE, int VECTOR, int THREADS, typename T>
PORT_DEVICE void copy_tile(T* target, const T* source, i64 source_stride, i64 rows, i64 cols) {
    constexpr int VECTORS = COLS / VECTOR;
    constexpr int STEPS = (ROWS * VECTORS + THREADS - 1) / THREADS;
    if constexpr (THREADS % VECTORS == 0) {
        // Every thread stays in its columns.
        constexpr int ROW_STEP = THREADS / VECTORS;
        const int row = port::thread() / VECTORS, col = port::thread() % VECTORS * VECTOR;
        const i64 left = col < cols ? rows - row : 0;
        source += row * source_stride + col;
        target += row * STRIDE + col;
        // What is not asynchronous needs registers.
        constexpr int UNROLL = VECTOR * static_cast<int>(sizeof(T)) == 16 ? STEPS : 4;
#pragma unroll UNROLL
        for (int step = 0; step < STEPS; ++step) {
            const int below = step * ROW_STEP;
            if (ROWS % ROW_STEP != 0 && row + below >= ROWS) break;
            copy_vector<VECTOR>(target + below * STRIDE, source + below * source_stride,
                                below < left);
        }
    } else {
#pragma unroll 4
        for (int step = 0; step < STEPS; ++step) {
            const int index = step * THREADS + port::thread();
            const int row = index / VECTORS, col = index % VECTORS * VECTOR;
            if (row >= ROWS) break;
            copy_vector<VECTOR>(target + row * STRIDE + col, source + row * source_stride + col,
                                row < rows && col < cols);
        }
    }
}

// `VECTOR` numbers of 16 bits in words, or zeros; a word for each pair.
template <int VECTOR, typename T>
PORT_DEVICE void load_or_zeros(u32 (&words)[(VECTOR + 1) / 2], const T* source, bool valid) {
#pragma unroll
    for (int i = 0; i < (VECTOR + 1) / 2; ++i) words[i] = 0;
    if (!valid) return;
    if constexpr (VECTOR == 1) {
        words[0] = *reinterpret_cast<const u16*>(source);
    } else {
        const auto loaded = port::load_words<VECTOR * 2>(source);
#pragma unroll
        for (int i = 0; i < VECTOR / 2; ++i) words[i] = loaded.x[i];
    }
}

// The same for numbers of 16 bits, transposed: `STRIDE` is that of columns. Two rows at a time, so
// that words are written; and neighbouring threads take neighbouring rows, so that these words lie
// side by side.
template <int ROWS, int COLS, int STRIDE, int VECTOR, int THREADS, typename T>
PORT_DEVICE void copy_transposed(T* target, const T* source, i64 source_stride, i64 rows,
                                 i64 cols) {
    static_assert(sizeof(T) == 2 && ROWS % 2 == 0 && STRIDE % 2 == 0, "pairs are words");
    constexpr int PAIRS = ROWS / 2;
    constexpr int STEPS = (PAIRS * (COLS / VECTOR) + THREADS - 1) / THREADS;
    constexpr int WORDS = (VECTOR + 1) / 2;
#pragma unroll 2
    for (int step = 0; step < STEPS; ++step) {
        const int index = step * THREADS + port::thread();
        const int row = index % PAIRS * 2, col = index / PAIRS * VECTOR;
        if (col >= COLS) break;
        const T* from = source + row * source_stride + col;
        u32 upper[WORDS], lower[WORDS];
        load_or_zeros<VECTOR>(upper, from, row < rows && col < cols);
        load_or_zeros<VECTOR>(lower, from + source_stride, row + 1 < rows && col < cols);
        u32* to = reinterpret_cast<u32*>(target + col * STRIDE + row);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            const int shift = i % 2 * 16;
            to[i * (STRIDE / 2)] =
                (upper[i / 2] >> shift & 0xffff) | lower[i / 2] >> shift << 16;
        }
    }
}

} // namespace attention
