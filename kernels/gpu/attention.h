// Attention of one head and a tile of its queries by one block: O = P V with P = softmax(S) and
// S = Q K^T, without S or P in memory (Dao et al., "FlashAttention-2", arXiv:2307.08691).
//
// Each warp has some rows of queries to itself and goes over the keys in steps. What a step adds
// to O is weighted with exp(s - m), where m is the largest score of the row so far; when m grows,
// O and the sum of the weights are scaled down accordingly, and O is divided by the sum at the end.
// exp(x) is 2^(x log2 e), since 2^x is what devices have an instruction for.
//
// A row without any finite score has no weights: its sum is zero, and 0 / 0 is NaN, as it is where
// a score is NaN or infinite and as softmax of such a row is elsewhere.
#pragma once

#include "matrix_core.h"
#include "attention/copy.h"
#include "attention/store.h"

namespace attention {

// No pointwise steps.
struct Nothing {
    template <int V> PORT_DEVICE void apply(float (&)[V], i64, i64) const {}
};
template <class Steps> constexpr bool is_nothing = false;
template <> inline constexpr bool is_nothing<Nothing> = true;

// How the work is cut.
template <typename Number, int Width, int Keys, int Tiles, int Warps, int Threads, int Vector,
          int KeyVector, int Pair, bool Given, bool Values, bool Exact, bool InRegisters,
          bool Causal>
struct Shape {
    using T = Number;
    using Core = port::MatrixCore<T>;
    // The head size, padded with zeros.
    static constexpr int WIDTH = Width;
    // Keys of a step.
    static constexpr int KEYS = Keys;
    // Of Core::M queries that a warp has.
    static constexpr int TILES = Tiles;
    // Warps that compute. The other threads of the block only help to copy.
    static constexpr int WARPS = Warps;
    static constexpr int THREADS = Threads;
    // Numbers that are copied and stored at a time in rows of the head size and of the keys, of
    // which both are multiples.
    static constexpr int VECTOR = Vector;
    static constexpr int KEY_VECTOR = KeyVector;
    // Neighbouring scores that a lane has, and that steps are applied to at a time.
    static constexpr int PAIR = Pair;
    // Whether the scores are given and not computed.
    static constexpr bool GIVEN = Given;
    // Whether P is multiplied with values. Else it is the result.
    static constexpr bool VALUES = Values;
    // Whether the sums must be known before anything is done with P, for which the scores are
    // computed twice.
    static constexpr bool EXACT = Exact;
    // Whether queries are kept in registers, or read from shared memory at every step.
    static constexpr bool IN_REGISTERS = InRegisters;
    // Whether a query sees no key after its own.
    static constexpr bool CAUSAL = Causal;

    static constexpr int ROWS = TILES * Core::M;
    static constexpr int QUERIES = WARPS * ROWS;
    // Rows are padded by 16 bytes, so that the same column of neighbouring rows is in other banks.
    static constexpr int PADDING = 16 / int(sizeof(T));
    static constexpr int STRIDE = WIDTH + PADDING;
    static constexpr int SCORE_STRIDE = KEYS + PADDING;
    // Values are transposed on their way to shared memory where rows of them cannot be loaded well.
    static constexpr bool TRANSPOSED = !Core::LOADS_ROWS_OF_B;
    static constexpr int VALUE_STRIDE = TRANSPOSED ? KEYS + PADDING : STRIDE;
    static constexpr int VALUE_NUMBERS = (TRANSPOSED ? WIDTH : KEYS) * VALUE_STRIDE;
    static constexpr int WIDTH_STEPS = WIDTH / Core::K;
    static constexpr int WIDTH_TILES = VALUES ? WIDTH / Core::N : 1;
    static constexpr int KEY_TILES = KEYS / Core::N;

    // Parts of shared memory, in bytes: queries, keys or given scores, values, scratch and stage of
    // each warp. Queries for registers, and the stage of O, are where keys and values are at
    // other times.
    static constexpr int QUERY_BYTES = QUERIES * STRIDE * int(sizeof(T));
    static constexpr int KEYS_AT = GIVEN || IN_REGISTERS ? 0 : QUERY_BYTES;
    static constexpr int VALUES_AT =
        KEYS_AT + (GIVEN ? QUERIES * SCORE_STRIDE : KEYS * STRIDE) * int(sizeof(T));
    static constexpr int SCRATCH_AT = VALUES_AT + (VALUES ? VALUE_NUMBERS * int(sizeof(T)) : 0);
    static constexpr bool HAS_SCRATCH = Core::SCRATCH_STRIDE > 0;
    static constexpr int SCRATCH_BYTES =
        VALUES ? ROWS * Core::SCRATCH_STRIDE * int(sizeof(T)) : 0;
    static constexpr int SCRATCH_END = SCRATCH_AT + WARPS * SCRATCH_BYTES;
    static constexpr int STAGE_AT = VALUES ? 0 : SCRATCH_END;
    static constexpr int STAGE_END = STAGE_AT + WARPS * stage_bytes<Core>();
    static constexpr int QUERIES_END = GIVEN ? 0 : QUERY_BYTES;
    static constexpr int SHARED_BYTES = largest(SCRATCH_END, largest(STAGE_END, QUERIES_END));

    static_assert(WIDTH % Core::K == 0 && WIDTH % Core::N == 0, "tiles of heads are whole");
    static_assert(KEYS % Core::K == 0 && KEYS % Core::N == 0, "tiles of keys are whole");
    static_assert(Core::N % Core::K == 0, "a tile of P is whole operands");
};

// The tensors of a problem and its sizes.
template <typename T> struct Problem {
    // Queries [heads, queries, width], or scores [heads, queries, keys].
    const T* source;
    const T* keys;
    const T* values;
    T* output;
    // Of one batch, and how many neighbours among them share keys and values.
    i64 heads;
    i64 sharing;
    i64 query_count;
    i64 key_count;
    i64 width;
    // What scores are multiplied with before anything else.
    float scale;

    // Where the keys and values of a head are among those of all batches.
    PORT_DEVICE i64 keys_of(i64 matrix) const { return matrix / sharing; }
    // How many keys a query sees under a causal mask, which puts the last query at the last key.
    // Rows that are not there see keys that are not there.
    PORT_DEVICE i64 seen_by(i64 query) const { return key_count - query_count + query + 1; }
    // How many keys the queries before `end` see together.
    template <bool CAUSAL> PORT_DEVICE i64 seen_before(i64 end) const {
        return CAUSAL && end < query_count ? seen_by(end - 1) : key_count;
    }
};

// What one warp keeps of its rows.
template <class S> struct Rows {
    using Core = typename S::Core;
    typename Core::A queries[S::IN_REGISTERS ? S::TILES : 1][S::IN_REGISTERS ? S::WIDTH_STEPS : 1];
    typename Core::C scores[S::TILES][S::KEY_TILES];
    typename Core::C output[S::TILES][S::WIDTH_TILES];
    // The largest score so far, and this lane's part of the sum of weights.
    float largest[S::TILES][Core::ROWS];
    float sum[S::TILES][Core::ROWS];
};

// A tile of queries of one head.
template <class S, class Before, class After, class Output> struct Tile {
    using T = typename S::T;
    using Core = typename S::Core;

    const Problem<T>& problem;
    const Before& before;
    const After& after;
    const Output& steps;
    // The head among those of all batches, and that of its keys and values among theirs.
    i64 matrix, of_keys;
    i64 first_query;
    // How many keys any of the queries sees.
    i64 seen;
    // Of this warp.
    Rows<S> rows;

    static constexpr float LOG2_E = 1.44269504088896340736f;

    PORT_DEVICE static float minus_infinity() { return -port::infinity(); }
    PORT_DEVICE static T* shared_at(int offset) {
        return reinterpret_cast<T*>(port::shared() + offset);
    }
    PORT_DEVICE static bool computes() { return port::warp() < S::WARPS; }
    // This warp's rows among those of the block.
    PORT_DEVICE static int warp_row() { return port::warp() * S::ROWS; }

    // --- copies -------------------------------------------------------------------------------

    PORT_DEVICE void copy_queries() {
        copy_tile<S::QUERIES, S::WIDTH, S::STRIDE, S::VECTOR, S::THREADS>(
            shared_at(0),
            problem.source + (matrix * problem.query_count + first_query) * problem.width,
            problem.width, problem.query_count - first_query, problem.width);
    }
    PORT_DEVICE void copy_keys(i64 first) {
        if constexpr (S::GIVEN) {
            copy_tile<S::QUERIES, S::KEYS, S::SCORE_STRIDE, S::KEY_VECTOR, S::THREADS>(
                shared_at(S::KEYS_AT),
                problem.source + (matrix * problem.query_count + first_query) * problem.key_count +
                    first,
                problem.key_count, problem.query_count - first_query, problem.key_count - first);
        } else {
            copy_tile<S::KEYS, S::WIDTH, S::STRIDE, S::VECTOR, S::THREADS>(
                shared_at(S::KEYS_AT),
                problem.keys + (of_keys * problem.key_count + first) * problem.width, problem.width,
                problem.key_count - first, problem.width);
        }
        port::copy_async_commit();
    }
    PORT_DEVICE void copy_values(i64 first) {
        T* target = shared_at(S::VALUES_AT);
        const T* source = problem.values + (of_keys * problem.key_count + first) * problem.width;
        const i64 left = problem.key_count - first;
        if constexpr (S::TRANSPOSED) {
            copy_transposed<S::KEYS, S::WIDTH, S::VALUE_STRIDE, S::VECTOR, S::THREADS>(
                target, source, problem.width, left, problem.width);
        } else {
            copy_tile<S::KEYS, S::WIDTH, S::VALUE_STRIDE, S::VECTOR, S::THREADS>(
                target, source, problem.width, left, problem.width);
        }
        port::copy_async_commit();
    }
    // What was copied by all threads is there, and all are done with what they read before.
    PORT_DEVICE static void arrived() {
        port::copy_async_wait<0>();
        port::sync_block();
    }

    // --- scores -------------------------------------------------------------------------------

    PORT_DEVICE void load_query(typename Core::A& a, int tile, int step) const {
        Core::load_a(a,
                     shared_at(0) + (warp_row() + tile * Core::M) * S::STRIDE + step * Core::K,
                     S::STRIDE);
    }

    PORT_DEVICE void multiply_keys() {
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
            for (int n = 0; n < S::KEY_TILES; ++n) rows.scores[tile][n] = {};
        }
        if constexpr (S::HAS_SCRATCH) {
            // Plain cores have enough instructions in a step that more of them at a time would
            // only fill registers.
#pragma unroll 2
            for (int step = 0; step < S::WIDTH_STEPS; ++step) multiply_keys(step);
        } else {
#pragma unroll
            for (int step = 0; step < S::WIDTH_STEPS; ++step) multiply_keys(step);
        }
    }

    // Adds what one step along the head contributes.
    PORT_DEVICE void multiply_keys(int step) {
        const T* keys = shared_at(S::KEYS_AT);
        typename Core::A loaded[S::TILES];
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
            if constexpr (S::IN_REGISTERS) {
                loaded[tile] = rows.queries[tile][step];
            } else {
                load_query(loaded[tile], tile, step);
            }
        }
#pragma unroll
        for (int n = 0; n < S::KEY_TILES; ++n) {
            typename Core::B b;
            Core::load_b_columns(b, keys + n * Core::N * S::STRIDE + step * Core::K, S::STRIDE);
#pragma unroll
            for (int tile = 0; tile < S::TILES; ++tile) {
                Core::multiply(rows.scores[tile][n], loaded[tile], b);
            }
        }
    }

    PORT_DEVICE void read_scores() {
        const T* given = shared_at(S::KEYS_AT) + warp_row() * S::SCORE_STRIDE;
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
            for (int n = 0; n < S::KEY_TILES; ++n) {
#pragma unroll
                for (int i = 0; i < Core::SIZE; ++i) {
                    const int row = tile * Core::M + Core::row(i);
                    const int col = n * Core::N + Core::col(i);
                    rows.scores[tile][n].x[i] = port::to_float(given[row * S::SCORE_STRIDE + col]);
                }
            }
        }
    }

    // How many of the rows or keys from `first` on are there, of those of a tile.
    PORT_DEVICE static int left(i64 count, i64 first, int tile) {
        const i64 rest = count - first;
        return rest < tile ? static_cast<int>(rest) : tile;
    }

    // Applies pointwise steps to the scores or to what has become of them.
    template <class Steps> PORT_DEVICE void apply(const Steps& steps, i64 first_key) {
        if constexpr (is_nothing<Steps>) return;
        // Places are relative to this lane's first one, from which they differ by constants.
        const int first_row = warp_row() + Core::row(0), first_col = Core::col(0);
        // Operands of steps have nothing for rows and keys that are not there.
        const int rows_left = left(problem.query_count, first_query + first_row, S::ROWS);
        const int keys_left = left(problem.key_count, first_key + first_col, S::KEYS);
        const i64 matrix_row = matrix * problem.query_count + first_query + first_row;
        const i64 matrix_col = first_key + first_col;
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
            for (int n = 0; n < S::KEY_TILES; ++n) {
#pragma unroll
                for (int i = 0; i < Core::SIZE; i += S::PAIR) {
                    const int row = tile * Core::M + Core::row(i) - Core::row(0);
                    const int col = n * Core::N + Core::col(i) - Core::col(0);
                    if (row >= rows_left || col >= keys_left) continue;
                    float x[S::PAIR];
#pragma unroll
                    for (int j = 0; j < S::PAIR; ++j) x[j] = rows.scores[tile][n].x[i + j];
                    steps.template apply<S::PAIR>(x, matrix_row + row, matrix_col + col);
#pragma unroll
                    for (int j = 0; j < S::PAIR; ++j) rows.scores[tile][n].x[i + j] = x[j];
                }
            }
        }
    }

    // The scores of the step's keys, up to the factor `exponent_scale()`.
    PORT_DEVICE void make_scores(i64 first_key) {
        if constexpr (S::GIVEN) {
            read_scores();
        } else {
            multiply_keys();
        }
        if constexpr (!is_nothing<Before>) {
#pragma unroll
            for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
                for (int n = 0; n < S::KEY_TILES; ++n) {
#pragma unroll
                    for (int i = 0; i < Core::SIZE; ++i) {
                        rows.scores[tile][n].x[i] *= problem.scale;
                    }
                }
            }
            apply(before, first_key);
        }
        if constexpr (S::CAUSAL) {
            hide_unseen(first_key);
            return;
        }
        if (first_key + S::KEYS <= problem.key_count) return;
        const int keys_left = left(problem.key_count, first_key + Core::col(0), S::KEYS);
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
            for (int n = 0; n < S::KEY_TILES; ++n) {
#pragma unroll
                for (int i = 0; i < Core::SIZE; ++i) {
                    const int col = n * Core::N + Core::col(i) - Core::col(0);
                    if (col >= keys_left) rows.scores[tile][n].x[i] = minus_infinity();
                }
            }
        }
    }

    // Leaves each query of this warp the scores of the keys that it sees, which are all there.
    PORT_DEVICE void hide_unseen(i64 first_key) {
        const i64 first_row = first_query + warp_row();
        if (first_key + S::KEYS <= problem.seen_by(first_row)) return;
        // As in `apply`, places are relative to this lane's first one.
        const i64 seen = problem.seen_by(first_row + Core::row(0)) - first_key - Core::col(0);
        // Fewer hide nothing more, and more leave nothing hidden.
        const int limit = static_cast<int>(
            seen < -S::ROWS ? i64(-S::ROWS) : seen > S::KEYS ? i64(S::KEYS) : seen);
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
            for (int n = 0; n < S::KEY_TILES; ++n) {
#pragma unroll
                for (int i = 0; i < Core::SIZE; ++i) {
                    const int row = tile * Core::M + Core::row(i) - Core::row(0);
                    const int col = n * Core::N + Core::col(i) - Core::col(0);
                    if (col >= limit + row) rows.scores[tile][n].x[i] = minus_infinity();
                }
            }
        }
    }

    // --- softmax ------------------------------------------------------------------------------

    // From scores to powers of two. A scale is positive, and so the largest score is the same
    // before and after it.
    PORT_DEVICE float exponent_scale() const {
        return is_nothing<Before> ? problem.scale * LOG2_E : LOG2_E;
    }

    // What is subtracted in the exponent. While all scores are minus infinity it is nothing, since
    // their difference would be NaN, and a finite score may still come.
    PORT_DEVICE float exponent_offset(float largest) const {
        return largest == minus_infinity() ? 0.0f : largest * exponent_scale();
    }

    // Takes the step's scores into the largest ones, and scales down what they were not in.
    PORT_DEVICE void update_largest(float (&offset)[S::TILES][Core::ROWS]) {
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
            for (int r = 0; r < Core::ROWS; ++r) {
                float largest = minus_infinity();
#pragma unroll
                for (int n = 0; n < S::KEY_TILES; ++n) {
#pragma unroll
                    for (int i = 0; i < Core::SIZE; ++i) {
                        if (Core::row_of(i) == r) {
                            largest = port::max_number(largest, rows.scores[tile][n].x[i]);
                        }
                    }
                }
                const float before = rows.largest[tile][r];
                largest = port::max_number(before, Core::row_max(largest));
                offset[tile][r] = exponent_offset(largest);
                const float shrink = port::exp2(port::fma(before, exponent_scale(), -offset[tile][r]));
                rows.largest[tile][r] = largest;
                rows.sum[tile][r] *= shrink;
                if constexpr (S::VALUES && !S::EXACT) {
#pragma unroll
                    for (int n = 0; n < S::WIDTH_TILES; ++n) {
#pragma unroll
                        for (int i = 0; i < Core::SIZE; ++i) {
                            if (Core::row_of(i) == r) rows.output[tile][n].x[i] *= shrink;
                        }
                    }
                }
            }
        }
    }

    // Makes weights of scores.
    PORT_DEVICE void exponentiate(const float (&offset)[S::TILES][Core::ROWS]) {
        const float scale = exponent_scale();
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
            for (int n = 0; n < S::KEY_TILES; ++n) {
#pragma unroll
                for (int i = 0; i < Core::SIZE; ++i) {
                    float& x = rows.scores[tile][n].x[i];
                    x = port::exp2(port::fma(x, scale, -offset[tile][Core::row_of(i)]));
                }
            }
        }
    }

    PORT_DEVICE void add_to_sums() {
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
            for (int n = 0; n < S::KEY_TILES; ++n) {
#pragma unroll
                for (int i = 0; i < Core::SIZE; ++i) {
                    rows.sum[tile][Core::row_of(i)] += rows.scores[tile][n].x[i];
                }
            }
        }
    }

    // One over the sums of weights.
    PORT_DEVICE void reciprocal_sums(float (&reciprocal)[S::TILES][Core::ROWS]) const {
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
            for (int r = 0; r < Core::ROWS; ++r) {
                reciprocal[tile][r] = 1.0f / Core::row_sum(rows.sum[tile][r]);
            }
        }
    }

    template <int COUNT>
    PORT_DEVICE static void multiply_rows(typename Core::C (&x)[S::TILES][COUNT],
                                          const float (&factor)[S::TILES][Core::ROWS]) {
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
            for (int n = 0; n < COUNT; ++n) {
#pragma unroll
                for (int i = 0; i < Core::SIZE; ++i) {
                    x[tile][n].x[i] *= factor[tile][Core::row_of(i)];
                }
            }
        }
    }

    // --- values -------------------------------------------------------------------------------

    // Adds what one step of an operand of weights contributes; `key` is its first key.
    PORT_DEVICE void multiply_values(const typename Core::A (&weights)[S::TILES], int key) {
        const T* values = shared_at(S::VALUES_AT);
#pragma unroll
        for (int n = 0; n < S::WIDTH_TILES; ++n) {
            typename Core::B b;
            if constexpr (S::TRANSPOSED) {
                Core::load_b_columns(b, values + n * Core::N * S::VALUE_STRIDE + key,
                                     S::VALUE_STRIDE);
            } else {
                Core::load_b(b, values + key * S::VALUE_STRIDE + n * Core::N, S::VALUE_STRIDE);
            }
#pragma unroll
            for (int tile = 0; tile < S::TILES; ++tile) {
                Core::multiply(rows.output[tile][n], weights[tile], b);
            }
        }
    }

    PORT_DEVICE void multiply_values() {
#pragma unroll
        for (int m = 0; m < S::KEY_TILES; ++m) {
            if constexpr (S::HAS_SCRATCH) {
                multiply_values_through_scratch(m);
            } else {
                static_assert(Core::N == Core::K, "a tile of P is one operand");
                typename Core::A weights[S::TILES];
#pragma unroll
                for (int tile = 0; tile < S::TILES; ++tile) {
                    typename Core::A one[1];
                    Core::a_from_c(one, rows.scores[tile][m]);
                    weights[tile] = one[0];
                }
                multiply_values(weights, m * Core::N);
            }
        }
    }

    // A tile of P is many operands, which there are no registers for all at once.
    PORT_DEVICE void multiply_values_through_scratch(int m) {
        constexpr int NUMBERS = Core::M * Core::SCRATCH_STRIDE;
        // In the rows of such cores, the elements of a lane are neighbours.
        constexpr int NEIGHBOURS = Core::SIZE / Core::ROWS;
        T* scratch = shared_at(S::SCRATCH_AT + port::warp() * S::SCRATCH_BYTES);
        // What was read there before was so before the block's last barrier.
        static_assert(S::KEY_TILES == 1, "the scratch is written once between two barriers");
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
            for (int i = 0; i < Core::SIZE; i += NEIGHBOURS) {
                float x[NEIGHBOURS];
#pragma unroll
                for (int j = 0; j < NEIGHBOURS; ++j) x[j] = rows.scores[tile][m].x[i + j];
                port::store<NEIGHBOURS>(
                    scratch + tile * NUMBERS + Core::row(i) * Core::SCRATCH_STRIDE + Core::col(i),
                    x);
            }
        }
        port::sync_warp();
#pragma unroll 2
        for (int step = 0; step < Core::N / Core::K; ++step) {
            typename Core::A weights[S::TILES];
#pragma unroll
            for (int tile = 0; tile < S::TILES; ++tile) {
                Core::load_a(weights[tile], scratch + tile * NUMBERS + step * Core::K,
                             Core::SCRATCH_STRIDE);
            }
            multiply_values(weights, m * Core::N + step * Core::K);
        }
    }

    // --- the whole ----------------------------------------------------------------------------

    PORT_DEVICE void begin() {
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
            for (int r = 0; r < Core::ROWS; ++r) {
                rows.largest[tile][r] = minus_infinity();
                rows.sum[tile][r] = 0.0f;
            }
#pragma unroll
            for (int n = 0; n < S::WIDTH_TILES; ++n) rows.output[tile][n] = {};
        }
        if constexpr (!S::GIVEN) {
            copy_queries();
            if constexpr (S::IN_REGISTERS) {
                port::copy_async_commit();
                arrived();
                if (computes()) {
#pragma unroll
                    for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
                        for (int step = 0; step < S::WIDTH_STEPS; ++step) {
                            load_query(rows.queries[tile][step], tile, step);
                        }
                    }
                }
                port::sync_block();
            }
        }
        copy_keys(0);
    }

    // The largest scores and the sums of weights alone; the first keys are on their way again at
    // the end.
    PORT_DEVICE void sum_weights() {
        for (i64 first = 0; first < seen; first += S::KEYS) {
            arrived();
            if (computes()) make_scores(first);
            port::sync_block();
            copy_keys(first + S::KEYS < seen ? first + S::KEYS : 0);
            if (computes()) {
                float offset[S::TILES][Core::ROWS];
                update_largest(offset);
                exponentiate(offset);
                add_to_sums();
            }
        }
    }

    // The probabilities of the step's keys, where the sums are known.
    PORT_DEVICE void make_probabilities(const float (&reciprocal)[S::TILES][Core::ROWS]) {
        float offset[S::TILES][Core::ROWS];
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
#pragma unroll
            for (int r = 0; r < Core::ROWS; ++r) {
                offset[tile][r] = exponent_offset(rows.largest[tile][r]);
            }
        }
        exponentiate(offset);
        multiply_rows(rows.scores, reciprocal);
    }

    // Each of them is stored.
    PORT_DEVICE void store_probabilities() {
        float reciprocal[S::TILES][Core::ROWS];
        reciprocal_sums(reciprocal);
        float* stage = stage_of_warp();
        for (i64 first = 0; first < problem.key_count; first += S::KEYS) {
            arrived();
            if (computes()) make_scores(first);
            port::sync_block();
            if (first + S::KEYS < problem.key_count) copy_keys(first + S::KEYS);
            if (!computes()) continue;
            make_probabilities(reciprocal);
#pragma unroll
            for (int tile = 0; tile < S::TILES; ++tile) {
                const i64 query = first_query + warp_row() + tile * Core::M;
                store_rows<S::KEY_VECTOR, Core>(
                    rows.scores[tile], stage, problem.output, problem.key_count,
                    matrix * problem.query_count + query, first, problem.query_count - query,
                    problem.key_count - first, steps);
            }
        }
    }

    PORT_DEVICE void attend() {
        float reciprocal[S::TILES][Core::ROWS];
        if constexpr (S::EXACT) reciprocal_sums(reciprocal);
        // Steps that do not commute with the division may make something of a weight of zero.
        const i64 end = S::EXACT ? problem.key_count : seen;
        for (i64 first = 0; first < end; first += S::KEYS) {
            arrived();
            copy_values(first);
            if (computes()) {
                make_scores(first);
                if constexpr (S::EXACT) {
                    make_probabilities(reciprocal);
                } else {
                    float offset[S::TILES][Core::ROWS];
                    update_largest(offset);
                    exponentiate(offset);
                    add_to_sums();
                }
                // Without known sums these are steps that commute with the division by them.
                apply(after, first);
            }
            arrived();
            if (first + S::KEYS < end) copy_keys(first + S::KEYS);
            if (computes()) multiply_values();
        }
        if constexpr (!S::EXACT) {
            reciprocal_sums(reciprocal);
            multiply_rows(rows.output, reciprocal);
        }
    }

    PORT_DEVICE float* stage_of_warp() const {
        return reinterpret_cast<float*>(port::shared() + S::STAGE_AT +
                                        port::warp() * stage_bytes<Core>());
    }

    // The heads lie side by side.
    PORT_DEVICE void store_output() {
        float* stage = stage_of_warp();
        const i64 batch = matrix / problem.heads, head = matrix % problem.heads;
#pragma unroll
        for (int tile = 0; tile < S::TILES; ++tile) {
            const i64 query = first_query + warp_row() + tile * Core::M;
            store_rows<S::VECTOR, Core>(rows.output[tile], stage, problem.output,
                                        problem.heads * problem.width,
                                        batch * problem.query_count + query, head * problem.width,
                                        problem.query_count - query, problem.width, steps);
        }
    }

    PORT_DEVICE void run() {
        begin();
        if constexpr (S::EXACT) sum_weights();
        if constexpr (S::VALUES) {
            attend();
            // The stage is where other warps may still read values.
            port::sync_block();
            if (computes()) store_output();
        } else {
            store_probabilities();
        }
        port::sync_block();
    }
};

// Does the tile `index`: tiles of the same head are neighbours, so that their keys and values stay
// in cache. Under a causal mask the last queries have most to do, and begin first. `before` are steps on scores, `after` steps on probabilities, and `steps` those on the
// output.
template <class S, int SHARED_BYTES, int QUERIES, class Before, class After, class Output>
PORT_DEVICE void tile(i64 index, const Problem<typename S::T>& problem, const Before& before,
                      const After& after, const Output& steps) {
    static_assert(SHARED_BYTES == S::SHARED_BYTES && QUERIES == S::QUERIES,
                  "the launch is for another core");
    const i64 per_head = (problem.query_count + S::QUERIES - 1) / S::QUERIES;
    const i64 matrix = index / per_head, place = index % per_head;
    const i64 first = (S::CAUSAL ? per_head - 1 - place : place) * S::QUERIES;
    const i64 seen = problem.template seen_before<S::CAUSAL>(first + S::QUERIES);
    Tile<S, Before, After, Output> work{problem, before,  after, steps, matrix,
                                        problem.keys_of(matrix), first, seen, {}};
    work.run();
}

} // namespace attention
