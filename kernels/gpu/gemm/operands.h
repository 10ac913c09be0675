// The operands of a GEMM on their way from memory, over shared memory, to the registers of matrix
// cores.
//
// A block needs a part of A and a part of B in each step along k. How these lie in shared memory
// follows from how the core reads them.
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
            static_assert(ALIGNMENT == 8, "halves");
            store_fours(to, to + 4);
        }
    }
    // Eight of them, four to each of two places.
    PORT_DEVICE void store_fours(T* first, T* second) const {
        static_assert(BYTES == 16 && V == 8, "eight");
        store_words<8>(first, {{words.x[0], words.x[1]}});
        store_words<8>(second, {{words.x[2], words.x[3]}});
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
// be computed in between. Rows begin at multiples of ALIGNMENT bytes.
template <class T, class Source, int THREADS, int ROWS, int COLS, int STRIDE, int ALIGNMENT>
struct BoxCopy {
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
                held[i].template store<ALIGNMENT>(shared + row(i) * STRIDE + col());
            }
        }
    }
};

// The part of A that a block needs.
template <class Tile, class Source, bool IN_GROUPS = IS_WIDE<typename Tile::Core>> struct OperandA;

template <class Tile, class Source> struct OperandA<Tile, Source, false> {
    using T = typename Tile::T;
    static constexpr int STRIDE = Tile::BK + Tile::PAD;
    static constexpr int NUMBERS = Tile::BM * STRIDE;
    using Copy = BoxCopy<T, Source, Tile::THREADS, Tile::BM, Tile::BK, STRIDE, Tile::ALIGNMENT>;

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
    static PORT_DEVICE void load(typename Tile::Core::A& a, const T* rows, int row, int k) {
        Tile::Core::load_a(a, rows + offset(row, k), STRIDE);
    }
};

// The same without padding, where the core says in which order the groups of four numbers of a row
// lie.
template <class Tile, class Source> struct OperandA<Tile, Source, true> {
    using T = typename Tile::T;
    using Core = typename Tile::Core;
    static_assert(Tile::BK == Core::COLS_OF_A, "the order is that of rows of BK numbers");
    static constexpr int STRIDE = Tile::BK;
    static constexpr int NUMBERS = Tile::BM * STRIDE;
    using Copy = BoxCopy<T, Source, Tile::THREADS, Tile::BM, Tile::BK, STRIDE, 8>;

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
    PORT_DEVICE void put(T* shared) {
#pragma unroll
        for (int i = 0; i < Copy::EACH; i++) {
            if (!Copy::has(i)) continue;
            const int row = Copy::row(i), k = Copy::col();
            T* const to = shared + row * STRIDE;
            if constexpr (Copy::V == 8)
                copy.held[i].store_fours(to + Core::place_in_a(row, k),
                                         to + Core::place_in_a(row, k + 4));
            else
                copy.held[i].template store<8>(to + Core::place_in_a(row, k));
        }
    }
    static constexpr PORT_DEVICE int offset(int row, int) { return row * STRIDE; }
    static PORT_DEVICE void load(typename Core::A& a, const T* rows, int row, int k) {
        Core::load_a(a, rows + offset(row, 0), STRIDE, k);
    }
};

// The part of B, given as rows of `n` numbers (ROWS), or as columns of `k` numbers.
enum class Given { ROWS, COLUMNS };
template <class Tile, class Source, Given GIVEN, bool TRANSPOSE> struct OperandB;

template <class Tile, class Source> struct OperandB<Tile, Source, Given::COLUMNS, false> {
    using T = typename Tile::T;
    static constexpr int STRIDE = Tile::BK + Tile::PAD;
    static constexpr int NUMBERS = Tile::BN * STRIDE;
    using Copy = BoxCopy<T, Source, Tile::THREADS, Tile::BN, Tile::BK, STRIDE, Tile::ALIGNMENT>;

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
    using Copy = BoxCopy<T, Source, Tile::THREADS, Tile::BK, Tile::BN, STRIDE, Tile::ALIGNMENT>;

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

} // namespace port
