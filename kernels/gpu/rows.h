// Softmax and norms over the rows of a matrix, with pointwise steps before, between and after.
//
// What is done to a row is a generated `Program`: `OPS` row ops, with a stage of pointwise steps
// before each and one after the last.
//
//     static constexpr int OPS;
//     template <int STAGE> static constexpr rows::Op op();
//     template <int STAGE, int V> void pointwise(float (&x)[V], i64 row, i64 col) const;
//     template <int STAGE> const T* weight() const;   // of the norm `op<STAGE>()`
//     template <int STAGE> const T* shift() const;
//     static constexpr bool MASKED;                   // whether the first is a causal softmax,
//     i64 seen(i64 row) const;                        // and how many numbers it sees of a row
//
// A team of threads does a row. Where there is room it holds the row in registers, so that memory
// is read once; else it reads the row again for every statistic, and computes what comes before
// again. Statistics take two passes, like those of the reference: the mean before the squares of
// what differs from it, the maximum before the sum of powers. Input and output may be the same.
#pragma once

#include "number.h"

namespace rows {

enum Op { SOFTMAX, LAYER_NORM, RMS_NORM };

// Added to a variance, and to the mean square of an RMS norm.
constexpr float EPSILON = 1e-5f;
constexpr float RMS_EPSILON = 1.1920929e-7f;
constexpr float LOG2_E = 1.44269502f;

// `LANES` neighbouring lanes of a warp, a power of two, or all `LANES` threads of a block, a
// multiple of the warp.
template <int LANES, bool IN_WARP = (LANES <= port::WARP)> struct Team {
    PORT_DEVICE int index() const { return port::thread() % LANES; }
    PORT_DEVICE int group() const { return port::thread() / LANES; }
    PORT_DEVICE int groups() const { return port::threads() / LANES; }
    PORT_DEVICE float sum(float x) { return port::lanes_sum<LANES>(x); }
    PORT_DEVICE float max(float x) { return port::lanes_max<LANES>(x); }
    PORT_DEVICE void finish() {}
};

template <int LANES> struct Team<LANES, false> {
    static constexpr int WARPS = LANES / port::WARP;
    // Two places for partial results that take turns: whoever writes to one has seen, at the
    // barrier of the other, that all have read it.
    int turn = 0;

    PORT_DEVICE int index() const { return port::thread(); }
    PORT_DEVICE int group() const { return 0; }
    PORT_DEVICE int groups() const { return 1; }
    PORT_DEVICE float sum(float x) {
        return port::lanes_sum(of_every_warp(port::lanes_sum(x), 0.0f));
    }
    PORT_DEVICE float max(float x) {
        return port::lanes_max(of_every_warp(port::lanes_max(x), -port::infinity()));
    }
    PORT_DEVICE void finish() { port::sync_block(); }

    // What the warp of this lane's number has, or `otherwise` if there is none.
    PORT_DEVICE float of_every_warp(float x, float otherwise) {
        float* partial = reinterpret_cast<float*>(port::shared()) + turn * WARPS;
        turn ^= 1;
        if (port::lane() == 0) partial[port::warp()] = x;
        port::sync_block();
        return port::lane() < WARPS ? partial[port::lane()] : otherwise;
    }
};

// Where the numbers of a lane are. Columns and rows that are not there are read at the beginning or
// the end instead, which costs less than to go around them; what is read there is used for nothing.
//
// Of a row that a team holds, only the last chunk may not be there: `CHUNKS` is as few as it takes.
template <int LANES, int CHUNKS, int V> struct HeldPlace {
    i64 row;
    int cols, first;

    PORT_DEVICE bool inside(int chunk) const {
        return chunk < CHUNKS - 1 || first + chunk * (LANES * V) < cols;
    }
    PORT_DEVICE int col(int chunk) const { return inside(chunk) ? first + chunk * (LANES * V) : 0; }
};

// Of a part of a longer row, any.
template <int LANES, int CHUNKS, int V> struct PartPlace {
    i64 row, cols, first;

    PORT_DEVICE bool inside(int chunk) const { return first + chunk * (LANES * V) < cols; }
    PORT_DEVICE i64 col(int chunk) const { return inside(chunk) ? first + chunk * (LANES * V) : 0; }
};

// What a mask hides is not read.
template <int CHUNKS, int V, typename T, typename Program, typename Place>
PORT_DEVICE void load_chunks(const Program& program, const T* input, const Place& place,
                             float (&x)[CHUNKS][V]) {
    const T* row = input + place.row * place.cols;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        if constexpr (Program::MASKED) {
            const i64 col = place.col(c);
            port::load<V>(row + (col < program.seen(place.row) ? col : 0), x[c]);
        } else {
            port::load<V>(row + place.col(c), x[c]);
        }
    }
}

template <int CHUNKS, int V, typename T, typename Place>
PORT_DEVICE void store_chunks(T* output, const Place& place, bool is_row,
                              const float (&x)[CHUNKS][V]) {
    T* row = output + place.row * place.cols;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c)
        if (is_row && place.inside(c)) port::store<V>(row + place.col(c), x[c]);
}

template <int STAGE, int CHUNKS, int V, typename Program, typename Place>
PORT_DEVICE void pointwise(const Program& program, const Place& place, float (&x)[CHUNKS][V]) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c)
        program.template pointwise<STAGE, V>(x[c], place.row, place.col(c));
}

// How much the query of a row of scores sees under a causal mask, which puts the last query at the
// last key.
PORT_DEVICE i64 seen_by_row(i64 row, i64 queries, i64 keys) {
    const i64 query = row - port::quotient(row, queries) * queries;
    return keys - queries + query + 1;
}

// Minus infinity becomes a probability of zero.
template <int V> PORT_DEVICE void hide_unseen(float (&x)[V], i64 col, i64 seen) {
#pragma unroll
    for (int i = 0; i < V; ++i)
        if (col + i >= seen) x[i] = -port::infinity();
}

// Combines a number for each element that is inside with what there is so far.
template <int CHUNKS, int V, typename Place, typename Combine>
PORT_DEVICE float fold(const Place& place, const float (&x)[CHUNKS][V], float so_far,
                       const Combine& combine) {
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        float with = so_far;
#pragma unroll
        for (int i = 0; i < V; ++i) with = combine(with, x[c][i]);
        so_far = place.inside(c) ? with : so_far;
    }
    return so_far;
}

struct Larger {
    PORT_DEVICE float operator()(float so_far, float x) const {
        return port::max_number(so_far, x);
    }
};
struct Sum {
    PORT_DEVICE float operator()(float so_far, float x) const { return so_far + x; }
};
struct SquaredDifferences {
    float from;
    PORT_DEVICE float operator()(float so_far, float x) const {
        return port::fma(x - from, x - from, so_far);
    }
};
struct Powers {
    float offset;
    PORT_DEVICE float operator()(float so_far, float x) const { return so_far + power(x, offset); }
    // e to the power of `x` less the maximum, whose product with `LOG2_E` is `offset`. What is
    // rounded off that is the same factor in all of a row, and cancels.
    static PORT_DEVICE float power(float x, float offset) {
        return port::exp2(port::fma(x, LOG2_E, -offset));
    }
};

// What a row op does to an element once it knows the row: `center` is the maximum, as an exponent
// of two, or the mean; `scale` is what the rest is multiplied by.
struct Statistics {
    float center, scale;
};

template <Op OP, typename Int> PORT_DEVICE float norm_scale(float squares, Int cols) {
    constexpr float epsilon = OP == RMS_NORM ? RMS_EPSILON : EPSILON;
    return port::rsqrt(squares / static_cast<float>(cols) + epsilon);
}

template <int STAGE, int CHUNKS, int V, typename Program, typename Place>
PORT_DEVICE void normalize(const Program& program, const Place& place,
                           const Statistics& statistics, float (&x)[CHUNKS][V]) {
    constexpr Op OP = Program::template op<STAGE>();
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        float weight[V], shift[V];
        if constexpr (OP != SOFTMAX)
            port::load<V>(program.template weight<STAGE>() + place.col(c), weight);
        if constexpr (OP == LAYER_NORM)
            port::load<V>(program.template shift<STAGE>() + place.col(c), shift);
#pragma unroll
        for (int i = 0; i < V; ++i) {
            if constexpr (OP == SOFTMAX)
                x[c][i] = Powers::power(x[c][i], statistics.center) * statistics.scale;
            else if constexpr (OP == LAYER_NORM)
                x[c][i] = port::fma((x[c][i] - statistics.center) * statistics.scale, weight[i],
                                    shift[i]);
            else
                x[c][i] = x[c][i] * (statistics.scale * weight[i]);
        }
    }
}

// A row op, and what follows it, on a row that the team holds.
template <int STAGE, int LANES, int CHUNKS, int V, typename Program>
PORT_DEVICE void held_stages(const Program& program, Team<LANES>& team,
                             const HeldPlace<LANES, CHUNKS, V>& place, float (&x)[CHUNKS][V]) {
    pointwise<STAGE>(program, place, x);
    if constexpr (STAGE < Program::OPS) {
        constexpr Op OP = Program::template op<STAGE>();
        if constexpr (OP == SOFTMAX) {
            // Powers replace the row, so that each is computed once.
            const float offset = LOG2_E * team.max(fold(place, x, -port::infinity(), Larger{}));
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c)
#pragma unroll
                for (int i = 0; i < V; ++i) x[c][i] = Powers::power(x[c][i], offset);
            const float scale = port::recip(team.sum(fold(place, x, 0.0f, Sum{})));
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c)
#pragma unroll
                for (int i = 0; i < V; ++i) x[c][i] *= scale;
        } else {
            Statistics statistics = {0.0f, 0.0f};
            if constexpr (OP == LAYER_NORM)
                statistics.center =
                    team.sum(fold(place, x, 0.0f, Sum{})) / static_cast<float>(place.cols);
            const SquaredDifferences squares = {statistics.center};
            statistics.scale = norm_scale<OP>(team.sum(fold(place, x, 0.0f, squares)), place.cols);
            normalize<STAGE>(program, place, statistics, x);
        }
        held_stages<STAGE + 1>(program, team, place, x);
    }
}

// As many rows as the block has teams, held in registers: `LANES * CHUNKS * V` is at least `cols`.
template <int LANES, int CHUNKS, int V, typename T, typename Program>
PORT_DEVICE void held_tile(const Program& program, const T* input, T* output, i64 rows, i64 cols,
                           i64 tile) {
    Team<LANES> team;
    const i64 row = tile * team.groups() + team.group();
    const bool is_row = row < rows;
    const HeldPlace<LANES, CHUNKS, V> place = {is_row ? row : rows - 1, static_cast<int>(cols),
                                               team.index() * V};
    float x[CHUNKS][V];
    load_chunks(program, input, place, x);
    held_stages<0>(program, team, place, x);
    store_chunks(output, place, is_row, x);
    team.finish();
}

// A part of a row as it is before row op `STAGE`.
template <int STAGE, int LANES, int CHUNKS, int V, typename T, typename Program>
PORT_DEVICE void read_part(const Program& program, const T* input, const Statistics* statistics,
                           const PartPlace<LANES, CHUNKS, V>& place, float (&x)[CHUNKS][V]) {
    if constexpr (STAGE == 0) {
        load_chunks(program, input, place, x);
    } else {
        read_part<STAGE - 1>(program, input, statistics, place, x);
        normalize<STAGE - 1>(program, place, statistics[STAGE - 1], x);
    }
    pointwise<STAGE>(program, place, x);
}

template <int STAGE, int LANES, int CHUNKS, int V, typename T, typename Program, typename Combine>
PORT_DEVICE float fold_row(const Program& program, const T* input, const Statistics* statistics,
                           PartPlace<LANES, CHUNKS, V> place, float so_far, const Combine& combine) {
    for (; place.first < place.cols; place.first += LANES * CHUNKS * V) {
        float x[CHUNKS][V];
        read_part<STAGE>(program, input, statistics, place, x);
        so_far = fold(place, x, so_far, combine);
    }
    return so_far;
}

// The statistics of a row op and of those after it.
template <int STAGE, int LANES, int CHUNKS, int V, typename T, typename Program>
PORT_DEVICE void find_statistics(const Program& program, const T* input, Team<LANES>& team,
                                 const PartPlace<LANES, CHUNKS, V>& place, Statistics* statistics) {
    if constexpr (STAGE < Program::OPS) {
        constexpr Op OP = Program::template op<STAGE>();
        Statistics found = {0.0f, 0.0f};
        if constexpr (OP == SOFTMAX) {
            found.center = LOG2_E * team.max(fold_row<STAGE>(program, input, statistics, place,
                                                             -port::infinity(), Larger{}));
            const Powers powers = {found.center};
            found.scale = port::recip(
                team.sum(fold_row<STAGE>(program, input, statistics, place, 0.0f, powers)));
        } else {
            if constexpr (OP == LAYER_NORM)
                found.center =
                    team.sum(fold_row<STAGE>(program, input, statistics, place, 0.0f, Sum{})) /
                    static_cast<float>(place.cols);
            const SquaredDifferences squares = {found.center};
            found.scale = norm_scale<OP>(
                team.sum(fold_row<STAGE>(program, input, statistics, place, 0.0f, squares)),
                place.cols);
        }
        statistics[STAGE] = found;
        find_statistics<STAGE + 1>(program, input, team, place, statistics);
    }
}

// One row of any length, read again for every statistic.
template <int LANES, int CHUNKS, int V, typename T, typename Program>
PORT_DEVICE void long_tile(const Program& program, const T* input, T* output, i64 cols, i64 tile) {
    Team<LANES> team;
    PartPlace<LANES, CHUNKS, V> place = {tile, cols, team.index() * V};
    Statistics statistics[Program::OPS];
    find_statistics<0>(program, input, team, place, statistics);
    for (; place.first < cols; place.first += LANES * CHUNKS * V) {
        float x[CHUNKS][V];
        read_part<Program::OPS>(program, input, statistics, place, x);
        store_chunks(output, place, true, x);
    }
    team.finish();
}

} // namespace rows
