// A tile of a GEMM, C[m, n] = A[m, k] B[k, n], by one block.
//
// Numbers go from memory to shared memory in steps of BK along k, in STAGES buffers, from there to
// the registers of matrix cores, and the sums back through shared memory, where each lane takes
// neighbouring numbers of a row: what follows the GEMM, and the access to memory, are then the
// same for every core. Sizes need not be multiples of anything: what lies beyond an edge is read as
// zero and not written. Nothing is split along k between blocks.
#pragma once

#include "matrix_core.h"
#include "number.h"
#include "port.h"

namespace port {

// Rows of numbers in memory that are read V at a time: `cols` and `stride` are multiples of V then,
// and the address is one of V numbers.
template <class T, int V_> struct MatrixSource {
    static constexpr int V = V_;
    const T* base;
    i64 rows, cols, stride;

    struct Row {
        const T* at; // null beyond the last one
    };
    struct Col {
        i64 at;
    };
    PORT_DEVICE Row row(i64 index) const {
        return {index < rows ? base + index * stride : nullptr};
    }
    PORT_DEVICE Col col(i64 index) const { return {index}; }
    // Null where there is nothing.
    PORT_DEVICE const T* at(Row row, Col col) const {
        return row.at != nullptr && col.at < cols ? row.at + col.at : nullptr;
    }
};

// What lies in memory and nowhere else. A pointer that may be null is one of any kind to clang, and
// then each wait for shared memory waits for these loads too.
template <int BYTES> PORT_DEVICE Words<BYTES> load_global(const void* from) {
#if defined(PORT_HIP)
    using Vector = u32 __attribute__((ext_vector_type(BYTES / 4)));
    using Global = const Vector __attribute__((address_space(1)))*;
    return __builtin_bit_cast(Words<BYTES>, *(Global)from);
#else
    return load_words<BYTES>(from);
#endif
}
PORT_DEVICE u16 load_global_half(const void* from) {
#if defined(PORT_HIP)
    using Global = const u16 __attribute__((address_space(1)))*;
    return *(Global)from;
#else
    return *static_cast<const u16*>(from);
#endif
}

// V numbers on their way through registers.
template <class T, int V> struct Numbers {
    static constexpr int BYTES = V * int(sizeof(T));
    Words<BYTES> words;
    PORT_DEVICE void load(const T* from) {
        if (from != nullptr) {
            words = load_global<BYTES>(from);
        } else {
#pragma unroll
            for (int i = 0; i < BYTES / 4; i++)
                words.x[i] = 0;
        }
    }
    // To a multiple of this many bytes, or of those of all numbers if they are fewer.
    template <int ALIGNMENT> PORT_DEVICE void store(T* to) const {
        if constexpr (BYTES <= ALIGNMENT) {
            store_words<BYTES>(to, words);
        } else {
            static_assert(BYTES == 16 && ALIGNMENT == 8, "halves");
            store_words<8>(to, {{words.x[0], words.x[1]}});
            store_words<8>(to + V / 2, {{words.x[2], words.x[3]}});
        }
    }
    PORT_DEVICE u16 half(int i) const { return u16(words.x[i / 2] >> i % 2 * 16); }
};
template <class T> struct NumbersOfTwoBytes {
    u16 bits;
    PORT_DEVICE void load(const T* from) {
        bits = from != nullptr ? load_global_half(from) : u16(0);
    }
    template <int> PORT_DEVICE void store(T* to) const { to->bits = bits; }
    PORT_DEVICE u16 half(int) const { return bits; }
};
template <> struct Numbers<f16, 1> : NumbersOfTwoBytes<f16> {};
template <> struct Numbers<bf16, 1> : NumbersOfTwoBytes<bf16> {};

// Whether copies to shared memory run while their thread goes on.
#if defined(PORT_CORE_MMA) || defined(PORT_CORE_WGMMA)
constexpr bool COPIES_ASYNC = true;
#else
constexpr bool COPIES_ASYNC = false;
#endif

// Copies a box of ROWS by COLS numbers to shared memory, where rows are STRIDE apart. What cannot
// be copied asynchronously is held in registers between `fetch` and `put`, so that something can
// be computed in between.
template <class T, class Source, int THREADS, int ROWS, int COLS, int STRIDE> struct BoxCopy {
    static constexpr int V = Source::V;
    static constexpr bool ASYNC = COPIES_ASYNC && V * sizeof(T) == 16;
    static constexpr int PER_ROW = COLS / V;
    static constexpr int COUNT = ROWS * PER_ROW;
    static constexpr int EACH = (COUNT + THREADS - 1) / THREADS;
    static_assert(COLS % V == 0 && THREADS % PER_ROW == 0, "a thread stays in its columns");
    static constexpr int ROW_STEP = THREADS / PER_ROW;

    Numbers<T, V> held[ASYNC ? 1 : EACH];

    static PORT_DEVICE int row(int i) { return thread() / PER_ROW + i * ROW_STEP; }
    static PORT_DEVICE int col() { return thread() % PER_ROW * V; }
    static PORT_DEVICE bool has(int i) {
        return COUNT % THREADS == 0 || i + 1 < EACH || row(i) < ROWS;
    }

    // `at(i)` is where in memory the number lies that goes to `row(i)` and `col()`.
    template <class At> PORT_DEVICE void fetch(T* shared, const T* anything, const At& at) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            if (!has(i)) continue;
            const T* from = at(i);
            if constexpr (ASYNC)
                copy_async16(shared + row(i) * STRIDE + col(), from ? from : anything,
                             from != nullptr);
            else
                held[i].load(from);
        }
    }

    PORT_DEVICE void put(T* shared) {
        if constexpr (!ASYNC) {
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                if (!has(i)) continue;
                constexpr int ALIGNMENT = MatrixCore<T>::PADDING;
                held[i].template store<ALIGNMENT>(shared + row(i) * STRIDE + col());
            }
        }
    }
};

// A block of BM by BN numbers of C by WARPS_M by WARPS_N warps.
template <class T_, int BM_, int BN_, int BK_, int WARPS_M_, int WARPS_N_, int STAGES_,
          int SHARED_BYTES_>
struct GemmTile {
    using T = T_;
    using Core = MatrixCore<T>;
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
};

// The part of A that a block needs.
template <class Tile, class Source> struct OperandA {
    using T = typename Tile::T;
    static constexpr int STRIDE = Tile::BK + Tile::PAD;
    static constexpr int NUMBERS = Tile::BM * STRIDE;
    using Copy = BoxCopy<T, Source, Tile::THREADS, Tile::BM, Tile::BK, STRIDE>;

    const Source& source;
    typename Source::Row rows[Copy::EACH];
    Copy copy;

    PORT_DEVICE OperandA(const Source& source, i64 row) : source(source) {
#pragma unroll
        for (int i = 0; i < Copy::EACH; i++)
            rows[i] = source.row(row + Copy::row(i));
    }
    PORT_DEVICE void fetch(T* shared, i64 k) {
        const auto col = source.col(k + Copy::col());
        copy.fetch(shared, source.base, [&](int i) { return source.at(rows[i], col); });
    }
    PORT_DEVICE void put(T* shared) { copy.put(shared); }
    // Numbers from the first one of a buffer to a row, or along k: constants of a loop are apart
    // from what a thread adds to them once.
    static constexpr PORT_DEVICE int offset(int row, int k) { return row * STRIDE + k; }
    static PORT_DEVICE void load(typename Tile::Core::A& a, const T* at) {
        Tile::Core::load_a(a, at, STRIDE);
    }
};

// The part of B, given as rows of `n` numbers (ROWS), or as columns of `k` numbers.
enum class Given { ROWS, COLUMNS };
template <class Tile, class Source, Given GIVEN, bool TRANSPOSE> struct OperandB;

template <class Tile, class Source> struct OperandB<Tile, Source, Given::COLUMNS, false> {
    using T = typename Tile::T;
    static constexpr int STRIDE = Tile::BK + Tile::PAD;
    static constexpr int NUMBERS = Tile::BN * STRIDE;
    using Copy = BoxCopy<T, Source, Tile::THREADS, Tile::BN, Tile::BK, STRIDE>;

    const Source& source;
    typename Source::Row columns[Copy::EACH];
    Copy copy;

    PORT_DEVICE OperandB(const Source& source, i64 col) : source(source) {
#pragma unroll
        for (int i = 0; i < Copy::EACH; i++)
            columns[i] = source.row(col + Copy::row(i));
    }
    PORT_DEVICE void fetch(T* shared, i64 k) {
        const auto col = source.col(k + Copy::col());
        copy.fetch(shared, source.base, [&](int i) { return source.at(columns[i], col); });
    }
    PORT_DEVICE void put(T* shared) { copy.put(shared); }
    static constexpr PORT_DEVICE int offset(int k, int col) { return col * STRIDE + k; }
    static PORT_DEVICE void load(typename Tile::Core::B& b, const T* at) {
        Tile::Core::load_b_columns(b, at, STRIDE);
    }
};

template <class Tile, class Source> struct OperandB<Tile, Source, Given::ROWS, false> {
    using T = typename Tile::T;
    static constexpr int STRIDE = Tile::BN + Tile::PAD;
    static constexpr int NUMBERS = Tile::BK * STRIDE;
    using Copy = BoxCopy<T, Source, Tile::THREADS, Tile::BK, Tile::BN, STRIDE>;

    const Source& source;
    bool inside;
    const T* first;
    Copy copy;

    PORT_DEVICE OperandB(const Source& source, i64 col) : source(source) {
        inside = col + Copy::col() < source.cols;
        first = source.base + Copy::row(0) * source.stride + col + Copy::col();
    }
    PORT_DEVICE void fetch(T* shared, i64 k) {
        const i64 rows = inside ? source.rows - k - Copy::row(0) : 0;
        const T* from = first + k * source.stride;
        copy.fetch(shared, source.base, [&](int i) {
            const int row = i * Copy::ROW_STEP;
            return row < rows ? from + row * source.stride : nullptr;
        });
    }
    PORT_DEVICE void put(T* shared) { copy.put(shared); }
    static constexpr PORT_DEVICE int offset(int k, int col) { return k * STRIDE + col; }
    static PORT_DEVICE void load(typename Tile::Core::B& b, const T* at) {
        Tile::Core::load_b(b, at, STRIDE);
    }
};

// Rows of 16-bit numbers that become columns on their way through registers: a thread takes four
// rows of V numbers, and writes V columns of four. Threads that are neighbours take other rows and
// not other columns, so that what they write lies side by side.
template <class Tile, class Source> struct OperandB<Tile, Source, Given::ROWS, true> {
    using T = typename Tile::T;
    static_assert(sizeof(T) == 2, "four of them are written at once");
    static constexpr int V = Source::V;
    static constexpr int STRIDE = Tile::BK + Tile::PAD;
    static constexpr int NUMBERS = Tile::BN * STRIDE;
    static constexpr int GROUPS = Tile::BK / 4;
    static constexpr int COUNT = GROUPS * (Tile::BN / V);
    static constexpr int EACH = (COUNT + Tile::THREADS - 1) / Tile::THREADS;
    static constexpr int COL_STEP = Tile::THREADS / GROUPS * V;
    static_assert(Tile::THREADS % GROUPS == 0, "a thread stays in its rows");

    const Source& source;
    i64 col;
    Numbers<T, V> held[EACH][4];

    static PORT_DEVICE int row() { return thread() % GROUPS * 4; }
    static PORT_DEVICE int col_in_tile(int i) { return thread() / GROUPS * V + i * COL_STEP; }
    static PORT_DEVICE bool has(int i) {
        return COUNT % Tile::THREADS == 0 || i + 1 < EACH || col_in_tile(i) < Tile::BN;
    }

    PORT_DEVICE OperandB(const Source& source, i64 col) : source(source), col(col) {}
    PORT_DEVICE void fetch(T*, i64 k) {
        const i64 first = k + row();
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            if (!has(i)) continue;
            const i64 at = col + col_in_tile(i);
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const bool inside = first + r < source.rows && at < source.cols;
                held[i][r].load(inside ? source.base + (first + r) * source.stride + at : nullptr);
            }
        }
    }
    PORT_DEVICE void put(T* shared) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            if (!has(i)) continue;
#pragma unroll
            for (int j = 0; j < V; j++) {
                Words<8> four;
                four.x[0] = held[i][0].half(j) | u32(held[i][1].half(j)) << 16;
                four.x[1] = held[i][2].half(j) | u32(held[i][3].half(j)) << 16;
                store_words<8>(shared + (col_in_tile(i) + j) * STRIDE + row(), four);
            }
        }
    }
    static constexpr PORT_DEVICE int offset(int k, int col) { return col * STRIDE + k; }
    static PORT_DEVICE void load(typename Tile::Core::B& b, const T* at) {
        Tile::Core::load_b_columns(b, at, STRIDE);
    }
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
// lanes write to different banks.
template <class Tile> struct Staging {
    using Core = typename Tile::Core;
    static constexpr int ROWS = Core::M;
    static constexpr int COLS = Tile::CORES_N * Core::N;
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
                A::load(as[i], stage_a + A::offset(i * Core::M, k));
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
        for (int j = 0; j < Tile::CORES_N; j++)
#pragma unroll
            for (int x = 0; x < Core::SIZE; x += Core::RUN) {
                float run[Core::RUN];
#pragma unroll
                for (int y = 0; y < Core::RUN; y++)
                    run[y] = sums[i][j].x[x + y];
                store<Core::RUN>(
                    staged + Core::row(x) * Staged::STRIDE + j * Core::N + Core::col(x), run);
            }
        sync_warp();
        finish.template rows<Staged::ROWS, Staged::COLS, Staged::STRIDE>(
            staged, place.row + warp_row + i * Core::M, place.col + warp_col);
        sync_warp();
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
