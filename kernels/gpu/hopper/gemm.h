// GEMMs of f16 and bf16 by `wgmma` and TMA of sm_90a, with a tail.
//
// One thread of one warpgroup copies boxes of A and B into a ring of stages; two other warpgroups
// multiply, each half of a tile's rows, and apply the tail. While they do that, copies for the
// next tile go on. Every block does many tiles, one after the other. One GEMM alone is stored by
// TMA, which goes on while the next tile is multiplied (`BoxOutput`).
//
// A is [m, k], row-major. B is [k, n], either row-major, so that it has N side by side (N_MAJOR is
// 1), or with its columns one behind the other, so that it has K side by side (N_MAJOR is 0). C is
// [m, n]. There may be many of each, which then lie one behind the other, but for C.
//
// The blocks of a cluster do tiles below each other, and so need the same part of B: each copies its
// share of the boxes to all of them, and they read B once from the L2.
#pragma once

#include "hopper/output.h"

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
static_assert(REGISTERS_RETURNED + CONSUMERS < RESULTS_STAGED, "barriers of their own");
// Sums of so few columns need none of the producer's, and the assembler would share nothing.
constexpr int COLS_WITHOUT_SHARING = 64;
// Tiles of this many rows are done before the next columns, so that what the blocks read at a time
// is nearly square.
constexpr int GROUP_ROWS = 16;

// The ring of stages in shared memory, behind it what else the block has there, and the barriers.
template <int COLS_, int STAGES_, u32 MORE_BYTES>
struct Ring {
    static constexpr int COLS = COLS_, STAGES = STAGES_;
    static constexpr u32 A_BYTES = TILE_ROWS * BOX_ROW_BYTES;
    static constexpr u32 B_BOX_BYTES = STAGE_DEPTH * BOX_ROW_BYTES;
    static constexpr u32 STAGE_BYTES = A_BYTES + COLS / BOX_COLS * B_BOX_BYTES;

    PORT_DEVICE static u8* more() { return shared() + STAGES * STAGE_BYTES; }
    PORT_DEVICE static u8* a(int stage) { return shared() + stage * STAGE_BYTES; }
    PORT_DEVICE static u8* b(int stage) { return a(stage) + A_BYTES; }
    PORT_DEVICE static u64* full(int stage) {
        return reinterpret_cast<u64*>(more() + MORE_BYTES) + stage;
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

// Where a tile begins: in which batch, and in tiles within that.
struct Place {
    int batch, row, col;
};

// The tiles of a batch, and of one batch after the other if there are many (BATCHED). Those of a
// cluster are one here.
struct Tiles {
    int rows, cols;

    template <int COLS, int CLUSTER>
    PORT_DEVICE static Tiles of(i64 m, i64 n) {
        constexpr int ROWS = CLUSTER * TILE_ROWS;
        return {static_cast<int>((m + ROWS - 1) / ROWS), static_cast<int>((n + COLS - 1) / COLS)};
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

// Which block of its cluster this is.
template <int CLUSTER>
PORT_DEVICE int rank_of() {
    if constexpr (CLUSTER > 1) return cluster_rank();
    return 0;
}

// A stage is free for whoever copies to it: all of the cluster.
template <int CLUSTER>
PORT_DEVICE void free_stage(u64* empty) {
    if constexpr (CLUSTER > 1) {
#pragma unroll
        for (int rank = 0; rank < CLUSTER; rank++) barrier_arrive_at(empty, rank);
    } else {
        barrier_arrive(empty);
    }
}

// The copies of all tiles of a block; one thread.
// Neighbouring batches may share a B, `sharing` of them.
template <class Stages, int CLUSTER, bool BATCHED, int N_MAJOR>
PORT_DEVICE void produce(const TensorMap& a, const TensorMap& b, Tiles tiles, i64 count, int k,
                         i64 sharing, i64 first, i64 blocks) {
    constexpr int COLS = Stages::COLS;
    const int rank = rank_of<CLUSTER>();
    Position<Stages::STAGES> at;
    for (i64 tile = first; tile < count; tile += blocks) {
        const Place place = tiles.find<BATCHED>(tile);
        const int batch_of_b = BATCHED ? place.batch / static_cast<int>(sharing) : 0;
        for (int depth = 0; depth < k; depth += STAGE_DEPTH) {
            // The first time round, every stage is empty: parity 1 is complete from the start.
            barrier_wait(Stages::empty(at.stage), at.parity ^ 1);
            u64* const full = Stages::full(at.stage);
            barrier_arrive_expect(full, Stages::STAGE_BYTES);
            copy_box(Stages::a(at.stage), a, depth, (place.row * CLUSTER + rank) * TILE_ROWS,
                     place.batch, full);
            if constexpr (CLUSTER > 1) {
#pragma unroll
                for (int box = 0; box < COLS / BOX_COLS; box++) {
                    if (box % CLUSTER != rank) continue;
                    copy_box_to_all<CLUSTER>(Stages::b(at.stage) + box * Stages::B_BOX_BYTES, b,
                                             place.col * COLS + box * BOX_COLS, depth, 0, full);
                }
            } else if constexpr (N_MAJOR) {
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
    // The last arrivals of other blocks, before this one ends.
    if constexpr (CLUSTER > 1) {
        for (int stage = 0; stage < Stages::STAGES; stage++) {
            barrier_wait(Stages::empty(at.stage), at.parity ^ 1);
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
template <class Stages, int CLUSTER, typename T, int N_MAJOR, class Output>
PORT_DEVICE void consume(int consumer, const Output& output, Tiles tiles, i64 count, int k,
                         i64 first, i64 blocks) {
    constexpr int COLS = Stages::COLS;
    constexpr u64 NEXT_K_OF_B = N_MAJOR ? NEXT_K_OF_ROWS : NEXT_K;
    Position<Stages::STAGES> at;
    typename Output::Stores stores(output, consumer, Stages::more());
    const u8* const a_rows = shared() + consumer * WGMMA_ROWS * BOX_ROW_BYTES;
    const bool first_lane = thread() % WARP == 0;
    for (i64 tile = first; tile < count; tile += blocks) {
        const Place place = tiles.find<Output::BATCHED>(tile);
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
            if (first_lane && depth > 0) free_stage<CLUSTER>(Stages::empty(before));
            before = at.stage;
            at.next();
        }
        wgmma_wait<0>();
        wgmma_keep(sums);
        if (first_lane) free_stage<CLUSTER>(Stages::empty(before));
        const int tile_row = place.row * CLUSTER + rank_of<CLUSTER>();
        stores.tile(sums, place.batch, tile_row * TILE_ROWS + consumer * WGMMA_ROWS,
                    place.col * COLS);
    }
    stores.finish();
}

// C = tail(scale A B): the tiles `block`, `block + blocks` and so on. All GEMM_THREADS of the
// block call; k, n are multiples of 8. Boxes of A are TILE_ROWS high, those of B STAGE_DEPTH, or
// COLS where that has K side by side. With a CLUSTER of more than one block, `blocks` is a multiple of
// it, and so are those of the launch; there is one B then, with N side by side.
template <typename T, int COLS, int STAGES, int N_MAJOR, int CLUSTER, class Output>
PORT_DEVICE void gemm(const TensorMap& a, const TensorMap& b, const Output& output, i64 k,
                      i64 sharing, i64 block, i64 blocks) {
    static_assert(CLUSTER == 1 || (!Output::BATCHED && N_MAJOR && COLS / BOX_COLS >= CLUSTER),
                  "every block has a box of B to copy");
    using Stages = Ring<COLS, STAGES, Output::SHARED_BYTES>;
    const Tiles tiles = Tiles::of<COLS, CLUSTER>(output.m, output.n);
    block /= CLUSTER;
    blocks /= CLUSTER;
    i64 count = tiles.of_batch();
    if constexpr (Output::BATCHED) count *= output.batches;
    const int depth = static_cast<int>(k);
    if (thread() == 0) {
        prefetch_map(a);
        prefetch_map(b);
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(Stages::full(stage), 1);
            barrier_init(Stages::empty(stage), CLUSTER * CONSUMERS * WARPGROUP / WARP);
        }
        publish_barriers();
    }
    // Others copy to this block, and arrive at its barriers, once these are there.
    if constexpr (CLUSTER > 1)
        sync_cluster();
    else
        sync_block();
    const int group = thread() / WARPGROUP;
    constexpr bool SHARES = COLS > COLS_WITHOUT_SHARING;
    if (group == 0) {
        if constexpr (SHARES) registers_release<PRODUCER_REGISTERS>();
        if (thread() == 0)
            produce<Stages, CLUSTER, Output::BATCHED, N_MAJOR>(a, b, tiles, count, depth, sharing,
                                                               block, blocks);
        sync_warp();
        if constexpr (SHARES) take_registers_back();
    } else {
        if constexpr (SHARES) registers_acquire<CONSUMER_REGISTERS>();
        consume<Stages, CLUSTER, T, N_MAJOR>(group - 1, output, tiles, count, depth, block, blocks);
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
