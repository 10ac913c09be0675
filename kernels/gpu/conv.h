// Convolutions of NHWC images: what a GEMM reads instead of its left operand, a max-pool
// of its results while they lie in shared memory, and depthwise convolutions, which are not GEMMs.
#pragma once

#include "gemm.h"

namespace port {

// Divides numbers below 2^31 by a constant of the launch: multiplier and shift come from the host.
struct Divisor {
    i64 by, multiplier, shift;
    PORT_DEVICE int quotient(int x) const {
        return int(u64(u32(x)) * u64(multiplier) >> shift);
    }
};

// Output pixels in the order of rows of a GEMM. With a WINDOW, the pixels of each window of a
// max-pool follow each other, and those that no window covers are left out.
template <int WINDOW> struct Pixels {
    i64 out_h, out_w;

    struct Place {
        i64 image;
        int y, x;
    };
    PORT_DEVICE Place place(i64 index) const {
        if constexpr (WINDOW == 0) {
            const i64 line = quotient(index, out_w), image = quotient(line, out_h);
            return {image, int(line - image * out_h), int(index - line * out_w)};
        } else {
            const i64 window = index / (WINDOW * WINDOW);
            const int within = int(index % (WINDOW * WINDOW));
            const i64 across = out_w / WINDOW, down = out_h / WINDOW;
            const i64 line = quotient(window, across), image = quotient(line, down);
            return {image, int(line - image * down) * WINDOW + within / WINDOW,
                    int(window - line * across) * WINDOW + within % WINDOW};
        }
    }
    // The row of the matrix of all output pixels.
    PORT_DEVICE i64 row(i64 index) const {
        if constexpr (WINDOW == 0) return index;
        const Place at = place(index);
        return (at.image * out_h + at.y) * out_w + at.x;
    }
};

// The image as the left operand: a row for each output pixel with the numbers that its filter
// covers, of the channels of one group. V numbers are of one pixel: V divides the channels of a
// group.
template <class T, int V_, int WINDOW> struct ImageSource {
    static constexpr int V = V_;
    const T* base;
    i64 rows, cols;
    Pixels<WINDOW> pixels;
    i64 h, w, channels, stride, pad;
    Divisor group_channels, filter_width;

    // Beyond the last row and column, places are so far outside that their sums are, too.
    static constexpr int OUTSIDE = 1 << 29;
    struct Row {
        const T* at; // that of the filter's first element, which the padding may be
        int y, x;
    };
    struct Col {
        i64 offset;
        int y, x;
    };
    PORT_DEVICE Row row(i64 index) const {
        if (index >= rows) return {base, -2 * OUTSIDE, 0};
        const auto place = pixels.place(index);
        const int y = place.y * int(stride) - int(pad), x = place.x * int(stride) - int(pad);
        return {base + ((place.image * h + y) * w + x) * channels, y, x};
    }
    PORT_DEVICE Col col(i64 index) const {
        if (index >= cols) return {0, OUTSIDE, 0};
        const int element = group_channels.quotient(int(index));
        const int channel = int(index) - element * int(group_channels.by);
        const int y = filter_width.quotient(element), x = element - y * int(filter_width.by);
        return {(y * w + x) * channels + channel, y, x};
    }
    PORT_DEVICE const T* at(Row row, Col col) const {
        const bool inside = u32(row.y + col.y) < u32(h) && u32(row.x + col.x) < u32(w);
        return inside ? row.at + col.offset : nullptr;
    }
};

// Applies what is before the pool to each sum, takes the maximum of each window, applies what is
// after it, and writes the results V at a time.
template <class T, int V, int WINDOW, class Before, class After> struct StorePooled {
    T* output;
    i64 rows_count, cols_count, first_col, stride;
    Pixels<WINDOW> pixels;
    const Before& before;
    const After& after;

    template <int ROWS, int COLS, int STRIDE>
    PORT_DEVICE void rows(const float* staged, i64 row, i64 col) const {
        constexpr int ELEMENTS = WINDOW * WINDOW;
        static_assert(ROWS % ELEMENTS == 0, "a warp has whole windows");
        constexpr int PER_ROW = COLS / V, COUNT = ROWS / ELEMENTS * PER_ROW;
#pragma unroll 1
        for (int i = lane(); i < COUNT; i += WARP) {
            const int window = i / PER_ROW, c = i % PER_ROW * V;
            const i64 first = row + window * ELEMENTS, at_col = first_col + col + c;
            if (first >= rows_count || col + c >= cols_count) continue;
            float most[V];
#pragma unroll
            for (int element = 0; element < ELEMENTS; element++) {
                float x[V];
                load<V>(staged + (window * ELEMENTS + element) * STRIDE + c, x);
                before.template apply<V>(x, pixels.row(first + element), at_col);
#pragma unroll
                for (int v = 0; v < V; v++)
                    most[v] = element == 0 ? x[v] : max(most[v], x[v]);
            }
            const i64 at_row = first / ELEMENTS;
            after.template apply<V>(most, at_row, at_col);
            store<V>(output + at_row * stride + at_col, most);
        }
    }
};

// A convolution whose groups have one input channel each. A thread computes PIXELS neighbouring
// pixels of V output channels, so that a filter of width S is loaded once for all of them, and what
// neighbours share of the image once as well. With S = 0, the width is that of `width`.
template <class T, int V, int PIXELS, int S, int STRIDE> struct Depthwise {
    const T* input;
    const T* filter;
    T* output;
    i64 images, h, w, out_h, out_w, height, width, stride, pad;
    // Channels of the input, and of the output for each of them: one where V > 1.
    i64 channels, multiplier;

    template <class Tail> PORT_DEVICE void tile(i64 tile, const Tail& tail) const {
        const i64 outputs = channels * multiplier;
        const i64 per_pixel = quotient(outputs, V), per_line = quotient(out_w + PIXELS - 1, PIXELS);
        const i64 item = tile * threads() + thread();
        const i64 strip = quotient(item, per_pixel), c = (item - strip * per_pixel) * V;
        const i64 line = quotient(strip, per_line), image = quotient(line, out_h);
        if (image >= images) return;
        const int first = int(strip - line * per_line) * PIXELS;
        const int y = int(line - image * out_h) * int(step()) - int(pad);
        const int x = first * int(step()) - int(pad);
        const i64 channel = V == 1 ? quotient(c, multiplier) : c;
        const T* const from = input + image * h * w * channels + channel;

        float sums[PIXELS][V] = {};
        const int top = y < 0 ? -y : 0, bottom = int(h) - y < height ? int(h) - y : int(height);
        for (int r = top; r < bottom; r++)
            line_of_filter(sums, from + i64(y + r) * w * channels, filter + r * width * outputs + c,
                           x, outputs);
#pragma unroll
        for (int p = 0; p < PIXELS; p++) {
            if (first + p >= out_w) break;
            const i64 row = line * out_w + first + p;
            tail.template apply<V>(sums[p], row, c);
            store<V>(output + row * outputs + c, sums[p]);
        }
    }

    PORT_DEVICE i64 step() const { return S > 0 ? i64(STRIDE) : stride; }

    PORT_DEVICE void line_of_filter(float (&sums)[PIXELS][V], const T* from, const T* taps, int x,
                                    i64 outputs) const {
        if constexpr (S > 0) {
            constexpr int COVERED = (PIXELS - 1) * STRIDE + S;
            float covered[COVERED][V];
#pragma unroll
            for (int i = 0; i < COVERED; i++)
                load_pixel(covered[i], from, x + i);
#pragma unroll
            for (int s = 0; s < S; s++) {
                float tap[V];
                load<V>(taps + s * outputs, tap);
#pragma unroll
                for (int p = 0; p < PIXELS; p++)
                    multiply_add(sums[p], covered[p * STRIDE + s], tap);
            }
        } else {
            for (int s = 0; s < width; s++) {
                float tap[V];
                load<V>(taps + s * outputs, tap);
#pragma unroll
                for (int p = 0; p < PIXELS; p++) {
                    float pixel[V];
                    load_pixel(pixel, from, x + p * int(stride) + s);
                    multiply_add(sums[p], pixel, tap);
                }
            }
        }
    }
    PORT_DEVICE void load_pixel(float (&pixel)[V], const T* line, int x) const {
        if (u32(x) < u32(w)) {
            load<V>(line + x * channels, pixel);
        } else {
#pragma unroll
            for (int v = 0; v < V; v++)
                pixel[v] = 0;
        }
    }
    static PORT_DEVICE void multiply_add(float (&sum)[V], const float (&x)[V],
                                         const float (&y)[V]) {
#pragma unroll
        for (int v = 0; v < V; v++)
            sum[v] += x[v] * y[v];
    }
};

} // namespace port
