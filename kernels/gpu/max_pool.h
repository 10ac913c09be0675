// Maxima over windows of an NHWC image, with pointwise steps after them.
#pragma once

#include "number.h"

namespace max_pool {

struct Sizes {
    i64 height, width, out_height, out_width, channels, window, stride, pad;
};

PORT_DEVICE i64 clamp(i64 x, i64 least, i64 most) {
    return x < least ? least : x > most ? most : x;
}

// Each thread does `V` channels of an output pixel; `V` divides the channels. `WINDOW` is the
// window, so that all of it is read at once, or 0 for one that is too large for that.
template <int WINDOW, int V, typename T, typename Tail>
PORT_DEVICE void tile(const Tail& tail, const T* input, T* output, const Sizes& sizes,
                      i64 elements, i64 tile) {
    const i64 at = (tile * port::threads() + port::thread()) * V;
    if (at >= elements) return;
    const i64 row = port::quotient(at, sizes.channels);
    const i64 channel = at - row * sizes.channels;
    const i64 line = port::quotient(row, sizes.out_width);
    const i64 image = port::quotient(line, sizes.out_height);
    const i64 y = (line - image * sizes.out_height) * sizes.stride - sizes.pad;
    const i64 x = (row - line * sizes.out_width) * sizes.stride - sizes.pad;

    // A window that reaches out of the image sees its last pixels more than once instead, which
    // does not change a maximum. They are in the window, because the padding is less than it.
    const int window = WINDOW > 0 ? WINDOW : static_cast<int>(sizes.window);
    float best[V];
#pragma unroll
    for (int r = 0; r < window; ++r) {
        const i64 in_y = image * sizes.height + clamp(y + r, 0, sizes.height - 1);
#pragma unroll
        for (int s = 0; s < window; ++s) {
            const i64 pixel = in_y * sizes.width + clamp(x + s, 0, sizes.width - 1);
            float values[V];
            port::load<V>(input + pixel * sizes.channels + channel, values);
#pragma unroll
            for (int i = 0; i < V; ++i)
                best[i] = r == 0 && s == 0 ? values[i] : port::max(best[i], values[i]);
        }
    }
    tail.template apply<V>(best, row, channel);
    port::store<V>(output + at, best);
}

} // namespace max_pool
