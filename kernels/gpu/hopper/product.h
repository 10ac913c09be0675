// Matrix products of f16 and bf16 by `wgmma` and bulk copies of sm_90a, with a tail.
//
// One warpgroup, of which one thread works, copies boxes of A and B into a ring of stages; two
// others multiply, each half of a tile's rows, and apply the tail. While they do that, copies for
// the next tile go on. Every block does many tiles, one after the other.
//
// A is [m, k] and B is [k, n], both row-major, so B has N side by side. C is [m, n].
#pragma once

#include "hopper/wgmma.h"

namespace port::hopper {

// How far a stage goes along K: one box of A.
constexpr int STAGE_DEPTH = BOX_COLS;
constexpr int CONSUMERS = 2;
constexpr int TILE_ROWS = CONSUMERS * WGMMA_ROWS;
constexpr int PRODUCT_THREADS = (1 + CONSUMERS) * WARPGROUP;
// Registers of a thread: what 384 threads have when the kernel begins, and how they are shared
// out while it multiplies. 128 (40 + 2 * 232) is all there are, 128 * 3 * 168.
constexpr int REGISTERS = 168;
constexpr int PRODUCER_REGISTERS = 40;
constexpr int CONSUMER_REGISTERS = 232;
// Tiles of so many rows are done before the next columns, so that what the blocks read at a time
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

// Where tile `tile` begins, in tiles: down GROUP_ROWS rows of tiles, then to the next columns.
struct Tiles {
    int rows, cols;

    template <int COLS>
    PORT_DEVICE static Tiles of(i64 m, i64 n) {
        return {static_cast<int>((m + TILE_ROWS - 1) / TILE_ROWS),
                static_cast<int>((n + COLS - 1) / COLS)};
    }
    PORT_DEVICE i64 count() const { return static_cast<i64>(rows) * cols; }
    PORT_DEVICE void find(i64 tile, int& row, int& col) const {
        const int group_tiles = GROUP_ROWS * cols;
        const int group = static_cast<int>(tile / group_tiles);
        const int within = static_cast<int>(tile % group_tiles);
        const int left = rows - group * GROUP_ROWS;
        const int height = left < GROUP_ROWS ? left : GROUP_ROWS;
        row = group * GROUP_ROWS + within % height;
        col = within / height;
    }
};

namespace detail {

// Of 4 blocks of 8 columns, of which every lane has columns 2 (lane % 4) and the next one in
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

// Applies the tail to a warpgroup's part of a tile, and writes what lies within the matrix.
template <typename T, int SIZE, typename Tail>
PORT_DEVICE void finish(const float (&sums)[SIZE], T* c, i64 m, i64 n, i64 first_row,
                        i64 first_col, const Tail& tail) {
#pragma unroll
    for (int block = 0; block < SIZE / 4; block += 4) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float pairs[4][2], x[8];
#pragma unroll
            for (int i = 0; i < 8; i++) pairs[i / 2][i % 2] = sums[(block + i / 2) * 4 + 2 * half + i % 2];
            gather_eight(pairs, x);
            const i64 row = first_row + wgmma_row(2 * half);
            const i64 col = first_col + (block + thread() % 4) * 8;
            if (row < m && col < n) {
                tail.template apply<8>(x, row, col);
                store_eight(c + row * n + col, x);
            }
        }
    }
}

} // namespace detail

// The copies of all tiles of a block; one thread.
template <int COLS, int STAGES>
PORT_DEVICE void produce(const TensorMap& a, const TensorMap& b, Tiles tiles, int k, i64 first,
                         i64 blocks) {
    using Stages = Ring<COLS, STAGES>;
    Position<STAGES> at;
    for (i64 tile = first; tile < tiles.count(); tile += blocks) {
        int row, col;
        tiles.find(tile, row, col);
        for (int depth = 0; depth < k; depth += STAGE_DEPTH) {
            // The first time round, every stage is empty: parity 1 is complete from the start.
            barrier_wait(Stages::empty(at.stage), at.parity ^ 1);
            u64* const full = Stages::full(at.stage);
            barrier_arrive_expect(full, Stages::STAGE_BYTES);
            copy_box(Stages::a(at.stage), a, depth, row * TILE_ROWS, 0, full);
#pragma unroll
            for (int box = 0; box < COLS / BOX_COLS; box++) {
                copy_box(Stages::b(at.stage) + box * Stages::B_BOX_BYTES, b,
                         col * COLS + box * BOX_COLS, depth, 0, full);
            }
            at.next();
        }
    }
}

// The products of all tiles of a block by consumer 0 or 1.
template <typename T, int COLS, int STAGES, typename Tail>
PORT_DEVICE void consume(int consumer, T* c, Tiles tiles, i64 m, i64 n, int k, i64 first,
                         i64 blocks, const Tail& tail) {
    using Stages = Ring<COLS, STAGES>;
    Position<STAGES> at;
    const u8* const a_rows = shared() + consumer * WGMMA_ROWS * BOX_ROW_BYTES;
    const bool first_lane = thread() % WARP == 0;
    for (i64 tile = first; tile < tiles.count(); tile += blocks) {
        int row, col;
        tiles.find(tile, row, col);
        // Not by a first product that does not accumulate: the compiler would make the products
        // wait for each other, since it sees the registers defined by something else before.
        float sums[COLS / 2];
#pragma unroll
        for (int i = 0; i < COLS / 2; i++) sums[i] = 0.0f;
        wgmma_keep(sums);
        int before = 0;
        for (int depth = 0; depth < k; depth += STAGE_DEPTH) {
            barrier_wait(Stages::full(at.stage), at.parity);
            const u64 a = k_major(a_rows + at.stage * Stages::STAGE_BYTES);
            const u64 b = n_major(Stages::b(at.stage), STAGE_DEPTH);
            wgmma_fence();
#pragma unroll
            for (int step = 0; step < STAGE_DEPTH / WGMMA_DEPTH; step++)
                wgmma<T, 1>(sums, a + step * NEXT_K, b + step * NEXT_K_OF_ROWS, 1);
            wgmma_commit();
            // The products of the stage before are done; those of this one go on.
            wgmma_wait<1>();
            if (first_lane && depth > 0) barrier_arrive(Stages::empty(before));
            before = at.stage;
            at.next();
        }
        wgmma_wait<0>();
        wgmma_keep(sums);
        if (first_lane) barrier_arrive(Stages::empty(before));
        detail::finish(sums, c, m, n, static_cast<i64>(row) * TILE_ROWS + consumer * WGMMA_ROWS,
                       static_cast<i64>(col) * COLS, tail);
    }
}

// C = tail(A B): the tiles `block`, `block + blocks` and so on. All PRODUCT_THREADS of the block
// call; k, n are multiples of 8, and boxes are TILE_ROWS and STAGE_DEPTH rows high.
template <typename T, int COLS, int STAGES, typename Tail>
PORT_DEVICE void product(const TensorMap& a, const TensorMap& b, T* c, i64 m, i64 n, i64 k,
                         i64 block, i64 blocks, const Tail& tail) {
    using Stages = Ring<COLS, STAGES>;
    const Tiles tiles = Tiles::of<COLS>(m, n);
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
    // What a phase before has written, here or in memory, comes before the copies.
    fence_async_proxy();
    sync_block();
    const int group = thread() / WARPGROUP;
    if (group == 0) {
        registers_release<PRODUCER_REGISTERS>();
        if (thread() == 0) produce<COLS, STAGES>(a, b, tiles, depth, block, blocks);
        sync_warp();
        registers_acquire<REGISTERS>();
    } else {
        registers_acquire<CONSUMER_REGISTERS>();
        consume<T, COLS, STAGES>(group - 1, c, tiles, m, n, depth, block, blocks, tail);
        // A phase that comes next may copy what was written.
        fence_async_proxy();
        registers_release<REGISTERS>();
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
