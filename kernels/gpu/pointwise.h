// Pointwise steps on a matrix, which is read and written once. Input and output may be the same.
#pragma once

#include "number.h"

namespace pointwise {

// Where a chunk of `V` numbers lies in the matrix.
struct Place {
    i64 at, row, col;
};

// The place `step` numbers further, which is `step_rows` rows and `step_cols` columns. Additions,
// because a division takes as long as some tens of them.
PORT_DEVICE Place next(const Place& place, i64 cols, i64 step, i64 step_rows, i64 step_cols) {
    Place after = {place.at + step, place.row + step_rows, place.col + step_cols};
    if (after.col >= cols) {
        after.col -= cols;
        after.row += 1;
    }
    return after;
}

// `CHUNKS` chunks of each thread, all read before the first is written, so that many
// reads are under way at a time. `V` divides the columns. `step_rows` and `step_cols` are quotient
// and rest of `port::threads() * V` over the columns.
template <int CHUNKS, int V, typename T, typename Tail>
PORT_DEVICE void tile(const Tail& tail, const T* input, T* output, i64 elements, i64 cols,
                      i64 step_rows, i64 step_cols, i64 tile) {
    const i64 step = port::threads() * V;
    Place places[CHUNKS];
    const i64 first = tile * step * CHUNKS + port::thread() * V;
    const i64 row = port::quotient(first, cols);
    places[0] = {first, row, first - row * cols};
#pragma unroll
    for (int c = 1; c < CHUNKS; ++c)
        places[c] = next(places[c - 1], cols, step, step_rows, step_cols);

    // Chunks behind the end are read at the beginning instead, and written nowhere.
    float x[CHUNKS][V];
    bool inside[CHUNKS];
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        inside[c] = places[c].at < elements;
        if (!inside[c]) places[c] = {0, 0, 0};
        port::load<V>(input + places[c].at, x[c]);
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) tail.template apply<V>(x[c], places[c].row, places[c].col);
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c)
        if (inside[c]) port::store<V>(output + places[c].at, x[c]);
}

// The same for steps that do not ask which column they are in: the matrix is one long row, whose
// length `V` need not divide; it is at least `V`.
template <int CHUNKS, int V, typename T, typename Tail>
PORT_DEVICE void flat_tile(const Tail& tail, const T* input, T* output, i64 elements, i64 tile) {
    const i64 step = port::threads() * V;
    const i64 first = tile * step * CHUNKS;
    const i64 rest = elements % V;
    i64 at[CHUNKS];
    float x[CHUNKS][V];
    bool inside[CHUNKS];
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        at[c] = first + c * step + port::thread() * V;
        inside[c] = at[c] < elements - rest;
        if (!inside[c]) at[c] = 0;
        port::load<V>(input + at[c], x[c]);
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) tail.template apply<V>(x[c], 0, at[c]);
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c)
        if (inside[c]) port::store<V>(output + at[c], x[c]);

    const i64 single = elements - rest + port::thread();
    if (V > 1 && first + step * CHUNKS >= elements && single < elements) {
        float y[1];
        port::load<1>(input + single, y);
        tail.template apply<1>(y, 0, single);
        port::store<1>(output + single, y);
    }
}

} // namespace pointwise
