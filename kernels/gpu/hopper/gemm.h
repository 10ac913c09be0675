// GEMMs of f16 and bf16 by `wgmma` and TMA of sm_90a, with a tail.
//
// One thread of one warpgroup copies boxes of A and B into a ring of stages; two other warpgroups
// multiply, each half of a tile's rows, and apply the tail. While they do that, copies for the
// next tile go on. Every block does many tiles, one after the other.
//
// A is [m, k], row-major. B is [k, n], either row-major, so that it has N side by side (N_MAJOR is
// 1), or with its columns one behind the other, so that it has K side by side (N_MAJOR is 0). C is
// [m, n]. There may be many of each, which then lie one behind the other, but for C.
#pragma once

#include "hopper/wgmma.h"

namespace port::hopper {

// How far a stage goes along K: one box of A.
constexpr int STAGE_DEPTH = BOX_COLS;
constexpr int CONSUMERS = 2;
constexpr int TILE_ROWS = CONSUMERS * WGMMA_ROWS;
constexpr int GEMM_THREADS = (1 + CONSUMERS) * WARPGROUP;
// Registers of a thread: what 384 threads have when the kernel begins, and how they are shared
// out while it multiplies. 128 (40 + 2 * 232) is all there are, 128 * 3 * 168.
constexpr int REGISTERS = 168;
constexpr int PRODUCER_REGISTERS = 40;
constexpr int CONSUMER_REGISTERS = 232;
// Barriers of a part of the block: attention's turns are 1 and 2, and those of each consumer by
// itself come after this one.
constexpr int REGISTERS_RETURNED = 3;
// Sums of so few columns need none of the producer's, and the assembler would share nothing.
constexpr int COLS_WITHOUT_SHARING = 64;
// Tiles of this many rows are done before the next columns, so that what the blocks read at a time
// is nearly square.
constexpr int GROUP_ROWS = 16;

// The ring of stages in shared memory, with the barriers behind it.
template <int COLS, int STAGES>
struct Ring {
    static constexpr u32 A_BYTES = TILE_ROWS * BOX_ROW_BYTES;
    static constexpr u32 B_BOX_BYTES = STAGE_DEPTH * BOX_ROW_BYTES;
    static constexpr u32 STAGE_BYTES = A_BYTES + COLS / BOX_COLS * B_BOX_BYTES;
    static constexpr u32 BYTES = STAGES * (STAGE_BYTES + 16);

    PORT_DEVICE static u8* a(int stage) { return shared() + stage * STAGE_BYTES; }
    PORT_DEVICE static u8* b(int stage) { return a(stage) + A_BYTES; }
    PORT_DEVICE static u64* full(int stage) {
        return reinterpret_cast<u64*>(shared() + STAGES * STAGE_BYTES) + stage;
    }
    PORT_DEVICE static u64* empty(int stage) { return full(STAGES) + stage; }
};

// Which stage is next, and how often the ring has gone round.
template <int STAGES>
struct Position {
    int stage = 0;
    u32 parity = 0;

    PORT_DEVICE void next() {
        stage++;
        if (stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

// C of all batches: `inner` of them lie side by side, and those of the next `inner` below them.
// Sums are multiplied by `scale` before the tail.
template <typename T, class Tail>
struct GemmOutput {
    T* c;
    // Of a batch.
    i64 m, n;
    i64 batches, inner;
    float scale;
    const Tail& tail;
};

// Where a tile begins: in which batch, and in tiles within that.
struct Place {
    int batch, row, col;
};

// The tiles of a batch, and of one batch after the other if there are many (BATCHED).
struct Tiles {
    int rows, cols;

    template <int COLS>
    PORT_DEVICE static Tiles of(i64 m, i64 n) {
        return {static_cast<int>((m + TILE_ROWS - 1) / TILE_ROWS),
                static_cast<int>((n + COLS - 1) / COLS)};
    }
    PORT_DEVICE i64 of_batch() const { return static_cast<i64>(rows) * cols; }
    // Down GROUP_ROWS rows of tiles, then to the next columns.
    template <bool BATCHED>
    PORT_DEVICE Place find(i64 tile) const {
        int batch = 0;
        if constexpr (BATCHED) {
            batch = static_cast<int>(tile / of_batch());
            tile -= batch * of_batch();
        }
        const int group_tiles = GROUP_ROWS * cols;
        const int group = static_cast<int>(tile / group_tiles);
        const int within = static_cast<int>(tile % group_tiles);
        const int left = rows - group * GROUP_ROWS;
        const int height = left < GROUP_ROWS ? left : GROUP_ROWS;
        return {batch, group * GROUP_ROWS + within % height, within / height};
    }
};

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

// A batch's part of C, and where in it a warpgroup's part of a tile begins.
struct Target {
    i64 batch_row, batch_col, stride, first_row, first_col;
};

// Applies the tail to a warpgroup's part of a tile, from block BLOCK of 8 columns on, and writes
// what lies within its batch. Not a loop, which the compiler would keep for a long tail, and then
// the sums were in no registers.
template <int BLOCK, typename T, int SIZE, class Tail>
PORT_DEVICE void finish(const float (&sums)[SIZE], const GemmOutput<T, Tail>& output,
                        const Target& target) {
    if constexpr (BLOCK < SIZE / 4) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float pairs[4][2], x[8];
#pragma unroll
            for (int i = 0; i < 8; i++)
                pairs[i / 2][i % 2] = sums[(BLOCK + i / 2) * 4 + 2 * half + i % 2] * output.scale;
            gather_eight(pairs, x);
            const i64 row = target.first_row + wgmma_row(2 * half);
            const i64 col = target.first_col + (BLOCK + thread() % 4) * 8;
            if (row < output.m && col < output.n) {
                const i64 at_row = target.batch_row + row, at_col = target.batch_col + col;
                output.tail.template apply<8>(x, at_row, at_col);
                store_eight(output.c + at_row * target.stride + at_col, x);
            }
        }
        finish<BLOCK + 4>(sums, output, target);
    }
}

} // namespace detail

// The copies of all tiles of a block; one thread.
// Neighbouring batches may share a B, `sharing` of them.
template <int COLS, int STAGES, bool BATCHED, int N_MAJOR>
PORT_DEVICE void produce(const TensorMap& a, const TensorMap& b, Tiles tiles, i64 count, int k,
                         i64 sharing, i64 first, i64 blocks) {
    using Stages = Ring<COLS, STAGES>;
    Position<STAGES> at;
    for (i64 tile = first; tile < count; tile += blocks) {
        const Place place = tiles.find<BATCHED>(tile);
        const int batch_of_b = BATCHED ? place.batch / static_cast<int>(sharing) : 0;
        for (int depth = 0; depth < k; depth += STAGE_DEPTH) {
            // The first time round, every stage is empty: parity 1 is complete from the start.
            barrier_wait(Stages::empty(at.stage), at.parity ^ 1);
            u64* const full = Stages::full(at.stage);
            barrier_arrive_expect(full, Stages::STAGE_BYTES);
            copy_box(Stages::a(at.stage), a, depth, place.row * TILE_ROWS, place.batch, full);
            if constexpr (N_MAJOR) {
#pragma unroll
                for (int box = 0; box < COLS / BOX_COLS; box++) {
                    copy_box(Stages::b(at.stage) + box * Stages::B_BOX_BYTES, b,
                             place.col * COLS + box * BOX_COLS, depth, batch_of_b, full);
                }
            } else {
                copy_box(Stages::b(at.stage), b, depth, place.col * COLS, batch_of_b, full);
            }
            at.next();
        }
    }
}

// The end of sharing registers. A producer's warp that took its own back while a consumer still
// waits for more would leave too few, and neither would ever go on: so the consumers give first.
// Between two changes, all warps of a warpgroup meet, as setmaxnreg wants it.
PORT_DEVICE void take_registers_back() {
    sync_threads(REGISTERS_RETURNED, GEMM_THREADS);
    registers_acquire<REGISTERS>();
}

PORT_DEVICE void give_registers_back(int consumer) {
    sync_threads(REGISTERS_RETURNED + 1 + consumer, WARPGROUP);
    registers_release<REGISTERS>();
    arrive_threads(REGISTERS_RETURNED, GEMM_THREADS);
}

// The GEMM of all tiles of a block by consumer 0 or 1.
template <int COLS, int STAGES, bool BATCHED, int N_MAJOR, typename T, class Tail>
PORT_DEVICE void consume(int consumer, const GemmOutput<T, Tail>& output, Tiles tiles, i64 count,
                         int k, i64 first, i64 blocks) {
    using Stages = Ring<COLS, STAGES>;
    constexpr u64 NEXT_K_OF_B = N_MAJOR ? NEXT_K_OF_ROWS : NEXT_K;
    Position<STAGES> at;
    const u8* const a_rows = shared() + consumer * WGMMA_ROWS * BOX_ROW_BYTES;
    const bool first_lane = thread() % WARP == 0;
    for (i64 tile = first; tile < count; tile += blocks) {
        const Place place = tiles.find<BATCHED>(tile);
        // Not by a first wgmma that does not accumulate: the compiler would make the wgmmas
        // wait for each other, since it sees the registers defined by something else before.
        float sums[COLS / 2];
#pragma unroll
        for (int i = 0; i < COLS / 2; i++) sums[i] = 0.0f;
        wgmma_keep(sums);
        int before = 0;
        for (int depth = 0; depth < k; depth += STAGE_DEPTH) {
            barrier_wait(Stages::full(at.stage), at.parity);
            const u64 a = k_major(a_rows + at.stage * Stages::STAGE_BYTES);
            const u8* const b_boxes = Stages::b(at.stage);
            const u64 b = N_MAJOR ? n_major(b_boxes, STAGE_DEPTH) : k_major(b_boxes);
            wgmma_fence();
#pragma unroll
            for (int step = 0; step < STAGE_DEPTH / WGMMA_DEPTH; step++)
                wgmma<T, N_MAJOR>(sums, a + step * NEXT_K, b + step * NEXT_K_OF_B, 1);
            wgmma_commit();
            // The wgmmas of the stage before are done; those of this one go on.
            wgmma_wait<1>();
            if (first_lane && depth > 0) barrier_arrive(Stages::empty(before));
            before = at.stage;
            at.next();
        }
        wgmma_wait<0>();
        wgmma_keep(sums);
        if (first_lane) barrier_arrive(Stages::empty(before));
        const i64 first_row = static_cast<i64>(place.row) * TILE_ROWS + consumer * WGMMA_ROWS;
        const i64 first_col = static_cast<i64>(place.col) * COLS;
        detail::Target target{0, 0, output.n, first_row, first_col};
        if constexpr (BATCHED) {
            const i64 outer = place.batch / output.inner, inner = place.batch % output.inner;
            target.batch_row = outer * output.m;
            target.batch_col = inner * output.n;
            target.stride = output.inner * output.n;
        }
        detail::finish<0>(sums, output, target);
    }
}

// C = tail(scale A B): the tiles `block`, `block + blocks` and so on. All GEMM_THREADS of the
// block call; k, n are multiples of 8, and without BATCHED there is one batch. Boxes of A are
// TILE_ROWS high, those of B STAGE_DEPTH, or COLS where that has K side by side.
template <int COLS, int STAGES, bool BATCHED, int N_MAJOR, typename T, class Tail>
PORT_DEVICE void gemm(const TensorMap& a, const TensorMap& b,
                      const GemmOutput<T, Tail>& output, i64 k, i64 sharing, i64 block,
                      i64 blocks) {
    using Stages = Ring<COLS, STAGES>;
    const Tiles tiles = Tiles::of<COLS>(output.m, output.n);
    const i64 count = BATCHED ? output.batches * tiles.of_batch() : tiles.of_batch();
    const int depth = static_cast<int>(k);
    if (thread() == 0) {
        prefetch_map(a);
        prefetch_map(b);
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(Stages::full(stage), 1);
            barrier_init(Stages::empty(stage), CONSUMERS * WARPGROUP / WARP);
        }
        publish_barriers();
    }
    sync_block();
    const int group = thread() / WARPGROUP;
    constexpr bool SHARES = COLS > COLS_WITHOUT_SHARING;
    if (group == 0) {
        if constexpr (SHARES) registers_release<PRODUCER_REGISTERS>();
        if (thread() == 0)
            produce<COLS, STAGES, BATCHED, N_MAJOR>(a, b, tiles, count, depth, sharing, block,
                                                    blocks);
        sync_warp();
        if constexpr (SHARES) take_registers_back();
    } else {
        if constexpr (SHARES) registers_acquire<CONSUMER_REGISTERS>();
        consume<COLS, STAGES, BATCHED, N_MAJOR>(group - 1, output, tiles, count, depth, block,
                                                blocks);
        if constexpr (SHARES) give_registers_back(group - 1);
    }
    sync_block();
    if (thread() == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_end(Stages::full(stage));
            barrier_end(Stages::empty(stage));
        }
    }
}

} // namespace port::hopper
