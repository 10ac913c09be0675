// Where the results of a GEMM by `wgmma` go, after its tail: to memory by the threads that have
// them, or by TMA.
//
// An output has a `Stores`, which each consumer makes of it and hands one tile after the other:
//
//     static constexpr bool BATCHED;     // whether there are many matrices
//     static constexpr u32 SHARED_BYTES; // what all consumers need of shared memory
//     Stores(const Output&, int consumer, u8* memory);
//     void tile(const float (&sums)[SIZE], int batch, i64 row, i64 col); // where its part begins
//     void finish();                     // everything is in memory
#pragma once

#include "hopper/wgmma.h"

namespace port::hopper {

// Of each consumer by itself: it has written a box, or may write the next one.
constexpr int RESULTS_STAGED = 6;

namespace detail {

// Of 4 blocks of 8 columns, where every lane has columns 2 (lane % 4) and the next one in
// `pairs`, lane l of each 4 gets the 8 columns of block l % 4. All lanes of the warp call.
PORT_DEVICE void gather_eight(const float (&pairs)[4][2], float (&x)[8]) {
    const bool odd = thread() & 1, upper = thread() & 2;
    float fours[2][4];
#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const float even_block = pairs[2 * half][e], odd_block = pairs[2 * half + 1][e];
            const float other = shuffle_xor(odd ? even_block : odd_block, 1);
            fours[half][e] = odd ? other : even_block;
            fours[half][2 + e] = odd ? odd_block : other;
        }
    }
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const float other = shuffle_xor(upper ? fours[0][e] : fours[1][e], 2);
        x[e] = upper ? other : fours[0][e];
        x[4 + e] = upper ? fours[1][e] : other;
    }
}

// Stores 8 numbers with one access. NVRTC 12.4 makes four of `store` in these kernels.
template <typename T>
PORT_DEVICE void store_eight(T* to, const float (&x)[8]) {
#if defined(PORT_HOST)
    store<8>(to, x);
#else
    asm volatile("{\n.reg .u64 global;\ncvta.to.global.u64 global, %0;\n"
                 "st.global.v4.b32 [global], {%1, %2, %3, %4};\n}" ::"l"(to),
                 "r"(pack<T>(x[0], x[1])), "r"(pack<T>(x[2], x[3])), "r"(pack<T>(x[4], x[5])),
                 "r"(pack<T>(x[6], x[7]))
                 : "memory");
#endif
}

// The same to shared memory.
template <typename T>
PORT_DEVICE void stage_eight(u8* to, const float (&x)[8]) {
#if defined(PORT_HOST)
    store<8>(reinterpret_cast<T*>(to), x);
#else
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(to)),
                 "r"(pack<T>(x[0], x[1])), "r"(pack<T>(x[2], x[3])), "r"(pack<T>(x[4], x[5])),
                 "r"(pack<T>(x[6], x[7]))
                 : "memory");
#endif
}

// Where eight neighbouring numbers of a thread begin in a warpgroup's part of a tile.
PORT_DEVICE int row_of(int half) { return wgmma_row(0) + 8 * half; }
PORT_DEVICE int col_of(int block) { return (block + thread() % 4) * 8; }

// Gives `take(x, half, block)` the blocks BLOCK to END of 8 columns of a warpgroup's part of a tile,
// 8 neighbouring numbers at a time: those of `row_of(half)` and from `col_of(block)` on. Not a loop,
// which the compiler would keep for a long tail, and then the sums were in no registers.
template <int BLOCK, int END, int SIZE, class Take>
PORT_DEVICE void each_eight(const float (&sums)[SIZE], float scale, const Take& take) {
    if constexpr (BLOCK < END) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float pairs[4][2], x[8];
#pragma unroll
            for (int i = 0; i < 8; i++)
                pairs[i / 2][i % 2] = sums[(BLOCK + i / 2) * 4 + 2 * half + i % 2] * scale;
            gather_eight(pairs, x);
            take(x, half, BLOCK);
        }
        each_eight<BLOCK + 4, END>(sums, scale, take);
    }
}

} // namespace detail

// C of many batches: `inner` of them lie side by side, and those of the next `inner` below them.
// Sums are multiplied by `scale` before the tail.
template <typename T, class Tail>
struct BatchedOutput {
    static constexpr bool BATCHED = true;
    static constexpr u32 SHARED_BYTES = 0;

    T* c;
    // Of a batch.
    i64 m, n;
    i64 batches, inner;
    float scale;
    const Tail& tail;

    // A batch's part of C, and where in it a warpgroup's part of a tile begins.
    struct Part {
        const BatchedOutput& output;
        i64 batch_row, batch_col, first_row, first_col;

        PORT_DEVICE void operator()(float (&x)[8], int half, int block) const {
            const i64 row = first_row + detail::row_of(half);
            const i64 col = first_col + detail::col_of(block);
            if (row < output.m && col < output.n) {
                const i64 at_row = batch_row + row, at_col = batch_col + col;
                output.tail.template apply<8>(x, at_row, at_col);
                const i64 stride = output.inner * output.n;
                detail::store_eight(output.c + at_row * stride + at_col, x);
            }
        }
    };

    struct Stores {
        const BatchedOutput& output;

        PORT_DEVICE Stores(const BatchedOutput& output, int, u8*) : output(output) {}
        template <int SIZE>
        PORT_DEVICE void tile(const float (&sums)[SIZE], int batch, i64 row, i64 col) {
            const i64 outer = batch / output.inner, inner = batch % output.inner;
            const Part part{output, outer * output.m, inner * output.n, row, col};
            detail::each_eight<0, SIZE / 4>(sums, output.scale, part);
        }
        PORT_DEVICE void finish() {}
    };
};

// One C, stored by TMA in boxes of 64 rows and columns. A consumer has two of them, which take turns:
// what it computes next, the other one or the next tile, goes on while one is stored.
template <typename T, class Tail>
struct BoxOutput {
    static constexpr bool BATCHED = false;
    static constexpr u32 BOX_BYTES = WGMMA_ROWS * BOX_ROW_BYTES;
    static constexpr int BOXES = 2;
    static constexpr u32 SHARED_BYTES = 2 * BOXES * BOX_BYTES;

    const TensorMap& c;
    i64 m, n;
    float scale;
    const Tail& tail;

    // A box of a tile, and where in C that begins.
    struct Box {
        const BoxOutput& output;
        u8* box;
        int first_row, first_col;
        // Where a thread's first eight numbers go.
        int first;

        PORT_DEVICE void operator()(float (&x)[8], int half, int block) const {
            const int at_row = first_row + detail::row_of(half);
            const int at_col = first_col + detail::col_of(block);
            // What lies beyond the edges has no operands for the tail, and is not stored.
            if (at_row >= output.m || at_col >= output.n) return;
            output.tail.template apply<8>(x, at_row, at_col);
            // Eight rows further the swizzle is the same, and four blocks are one of its bits.
            const int at = (first ^ block % 8 * 16) + half * (8 * BOX_ROW_BYTES);
            detail::stage_eight<T>(box + at, x);
        }
    };

    struct Stores {
        const BoxOutput& output;
        u8* const boxes;

        PORT_DEVICE Stores(const BoxOutput& output, int consumer, u8* memory)
            : output(output), boxes(memory + consumer * (BOXES * BOX_BYTES)) {}
        static PORT_DEVICE bool leads() { return thread() % WARPGROUP == 0; }
        // All of the consumer's threads.
        static PORT_DEVICE void sync() {
            sync_threads(RESULTS_STAGED + thread() / WARPGROUP - 1, WARPGROUP);
        }
        template <int SIZE>
        PORT_DEVICE void tile(const float (&sums)[SIZE], int, int row, int col) {
            const int of_part = detail::row_of(0);
            int first = of_part * BOX_ROW_BYTES + (thread() % 4 ^ of_part % 8) * 16;
#if !defined(PORT_HOST)
            // The compiler would compute all places before the first tile, where they find no room.
            asm volatile("" : "+r"(first));
#endif
            if (row < output.m) boxes_from<0>(sums, row, col, first);
        }
        template <int BOX, int SIZE>
        PORT_DEVICE void boxes_from(const float (&sums)[SIZE], int row, int col, int first) {
            if constexpr (BOX < 2 * SIZE / BOX_COLS) {
                if (col + BOX * BOX_COLS >= output.n) return;
                u8* const box = boxes + BOX % BOXES * BOX_BYTES;
                // The store before the latest one was of this box; the latest of all, perhaps, where
                // a tile begins, which is long over.
                if (leads()) wait_for_reads<(BOX == 0 ? 0 : BOXES - 1)>();
                sync();
                constexpr int BLOCKS = BOX_COLS / 8;
                detail::each_eight<BOX * BLOCKS, (BOX + 1) * BLOCKS>(sums, output.scale,
                                                                    Box{output, box, row, col, first});
                fence_async_proxy_of_shared();
                sync();
                if (leads()) store_box(output.c, col + BOX * BOX_COLS, row, 0, box);
                boxes_from<BOX + 1>(sums, row, col, first);
            }
        }
        PORT_DEVICE void finish() {
            if (leads()) wait_for_stores();
        }
    };
};

} // namespace port::hopper
