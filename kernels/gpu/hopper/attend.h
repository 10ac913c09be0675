// Attention of f16 and bf16 by `wgmma` and TMA of sm_90a, as "attention.h" has it for other
// matrix cores (Shah et al., "FlashAttention-3", arXiv:2407.08608).
//
// One warpgroup copies queries once and keys and values step by step; two others have 64 queries
// each. Scores of the next keys are computed while the weights of those before are multiplied with
// their values, and the two warpgroups take turns: one has the matrix cores while the other one
// computes its softmax.
#pragma once

#include "attention.h"
#include "hopper/gemm.h"

namespace port::hopper {

// Keys of a step.
constexpr int STEP_KEYS = 128;
constexpr int STEP_STAGES = 2;

// How shared memory is used: boxes of 64 columns of the consumers' queries, stages of keys, stages
// of values, barriers.
template <int WIDTH>
struct AttentionMemory {
    static constexpr int BOXES = WIDTH / BOX_COLS;
    static constexpr u32 QUERY_BOX_BYTES = WGMMA_ROWS * BOX_ROW_BYTES;
    static constexpr u32 QUERY_BYTES = CONSUMERS * BOXES * QUERY_BOX_BYTES;
    static constexpr u32 BOX_BYTES = STEP_KEYS * BOX_ROW_BYTES;
    static constexpr u32 STEP_BYTES = BOXES * BOX_BYTES;
    static constexpr u32 BARRIERS_AT = QUERY_BYTES + 2 * STEP_STAGES * STEP_BYTES;
    static constexpr int BARRIERS = 2 + 4 * STEP_STAGES;
    static constexpr u32 BYTES = BARRIERS_AT + BARRIERS * 8;

    PORT_DEVICE static u8* queries(int consumer, int box) {
        return shared() + (consumer * BOXES + box) * QUERY_BOX_BYTES;
    }
    PORT_DEVICE static u8* keys(int stage, int box) {
        return shared() + QUERY_BYTES + stage * STEP_BYTES + box * BOX_BYTES;
    }
    PORT_DEVICE static u8* values(int stage, int box) { return keys(STEP_STAGES + stage, box); }

    PORT_DEVICE static u64* barrier(int index) {
        return reinterpret_cast<u64*>(shared() + BARRIERS_AT) + index;
    }
    PORT_DEVICE static u64* queries_full() { return barrier(0); }
    PORT_DEVICE static u64* queries_empty() { return barrier(1); }
    PORT_DEVICE static u64* keys_full(int stage) { return barrier(2 + stage); }
    PORT_DEVICE static u64* keys_empty(int stage) { return barrier(2 + STEP_STAGES + stage); }
    PORT_DEVICE static u64* values_full(int stage) { return barrier(2 + 2 * STEP_STAGES + stage); }
    PORT_DEVICE static u64* values_empty(int stage) { return barrier(2 + 3 * STEP_STAGES + stage); }
};

// The copies of all tiles of a block; one thread.
template <int WIDTH>
struct AttentionProducer {
    using Memory = AttentionMemory<WIDTH>;
    const TensorMap& query_map;
    const TensorMap& key_map;
    const TensorMap& value_map;
    Position<STEP_STAGES> keys_at, values_at;
    u32 tile_parity;

    PORT_DEVICE void copy_queries(int matrix, int first) {
        barrier_wait(Memory::queries_empty(), tile_parity ^ 1);
        u64* const full = Memory::queries_full();
        barrier_arrive_expect(full, Memory::QUERY_BYTES);
#pragma unroll
        for (int part = 0; part < CONSUMERS * Memory::BOXES; part++) {
            const int consumer = part / Memory::BOXES, box = part % Memory::BOXES;
            copy_box(Memory::queries(consumer, box), query_map, box * BOX_COLS,
                     first + consumer * WGMMA_ROWS, matrix, full);
        }
        tile_parity ^= 1;
    }

    PORT_DEVICE void copy_keys(int matrix, int first) {
        barrier_wait(Memory::keys_empty(keys_at.stage), keys_at.parity ^ 1);
        u64* const full = Memory::keys_full(keys_at.stage);
        barrier_arrive_expect(full, Memory::STEP_BYTES);
#pragma unroll
        for (int box = 0; box < Memory::BOXES; box++) {
            copy_box(Memory::keys(keys_at.stage, box), key_map, box * BOX_COLS, first, matrix,
                     full);
        }
        keys_at.next();
    }

    PORT_DEVICE void copy_values(int matrix, int first) {
        barrier_wait(Memory::values_empty(values_at.stage), values_at.parity ^ 1);
        u64* const full = Memory::values_full(values_at.stage);
        barrier_arrive_expect(full, Memory::STEP_BYTES);
#pragma unroll
        for (int box = 0; box < Memory::BOXES; box++) {
            copy_box(Memory::values(values_at.stage, box), value_map, box * BOX_COLS, first,
                     matrix, full);
        }
        values_at.next();
    }
};

// What a consumer does with its 64 queries.
template <typename T, int WIDTH, bool CAUSAL, class Output>
struct AttentionConsumer {
    using Memory = AttentionMemory<WIDTH>;
    static constexpr int SCORES = STEP_KEYS / 2;
    static constexpr int OUTPUTS = WIDTH / 2;
    static constexpr int WEIGHT_STEPS = STEP_KEYS / WGMMA_DEPTH;
    static constexpr float LOG2_E = 1.44269504088896340736f;

    const attention::Problem<T>& problem;
    const Output& steps;
    const int consumer;

    Position<STEP_STAGES> keys_at, values_at;
    u32 tile_parity;
    // Of the two rows that a thread has elements of.
    float largest[2], sum[2], shrink[2];

    // The barriers of the turns: one to wait for, and that of the other consumer.
    PORT_DEVICE void take_turn() const { sync_threads(1 + consumer, CONSUMERS * WARPGROUP); }
    PORT_DEVICE void give_turn() const { arrive_threads(2 - consumer, CONSUMERS * WARPGROUP); }
    PORT_DEVICE static void release(u64* barrier) {
        if (thread() % WARP == 0) barrier_arrive(barrier);
    }

    PORT_DEVICE void multiply_keys(float (&scores)[SCORES]) const {
        barrier_wait(Memory::keys_full(keys_at.stage), keys_at.parity);
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < WIDTH / WGMMA_DEPTH; step++) {
            const int box = step / (BOX_COLS / WGMMA_DEPTH);
            const u64 within = step % (BOX_COLS / WGMMA_DEPTH) * NEXT_K;
            wgmma<T, 0>(scores, k_major(Memory::queries(consumer, box)) + within,
                        k_major(Memory::keys(keys_at.stage, box)) + within, step > 0);
        }
        wgmma_commit();
    }
    PORT_DEVICE void release_keys() {
        release(Memory::keys_empty(keys_at.stage));
        keys_at.next();
    }

    PORT_DEVICE void multiply_values(float (&output)[OUTPUTS],
                                     const u32 (&weights)[WEIGHT_STEPS][4]) const {
        barrier_wait(Memory::values_full(values_at.stage), values_at.parity);
        const u64 values = n_major(Memory::values(values_at.stage, 0), STEP_KEYS);
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < WEIGHT_STEPS; step++)
            wgmma<T, 1>(output, weights[step], values + step * NEXT_K_OF_ROWS, 1);
        wgmma_commit();
    }
    PORT_DEVICE void release_values() {
        release(Memory::values_empty(values_at.stage));
        values_at.next();
    }

    // From scores to powers of two, where the largest so far is 1, and their sum. Afterwards
    // `shrink` is what earlier ones are to be multiplied with.
    PORT_DEVICE void soften(float (&x)[SCORES], i64 first_query, i64 first_key) {
        // A scale is positive, and so the largest score is the same before and after it.
        const float scale = LOG2_E * problem.scale;
        if constexpr (CAUSAL) {
            // Of the 64 queries, the first one sees least.
            const i64 seen = problem.seen_by(first_query) - first_key;
            if (seen < STEP_KEYS) {
                // Fewer than none of the next query hide nothing more.
                const int least = static_cast<int>(seen < -WGMMA_ROWS ? -WGMMA_ROWS : seen);
#pragma unroll
                for (int i = 0; i < SCORES; i++)
                    if (wgmma_col(i) >= least + wgmma_row(i)) x[i] = -infinity();
            }
        } else if (first_key + STEP_KEYS > problem.key_count) {
#pragma unroll
            for (int i = 0; i < SCORES; i++)
                if (first_key + wgmma_col(i) >= problem.key_count) x[i] = -infinity();
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float most = largest[half];
#pragma unroll
            for (int i = 0; i < SCORES; i++)
                if (i / 2 % 2 == half) most = max_number(most, x[i]);
            most = lanes_max<4>(most);
            // While all scores are minus infinity nothing is subtracted, since the difference
            // would be NaN, and a finite score may still come.
            const float offset = most == -infinity() ? 0.0f : most * scale;
            shrink[half] = port::exp2(port::fma(largest[half], scale, -offset));
            largest[half] = most;
            float weights = 0.0f;
#pragma unroll
            for (int i = 0; i < SCORES; i++) {
                if (i / 2 % 2 == half) {
                    x[i] = port::exp2(port::fma(x[i], scale, -offset));
                    weights += x[i];
                }
            }
            sum[half] = port::fma(sum[half], shrink[half], weights);
        }
    }

    PORT_DEVICE static void round(u32 (&weights)[WEIGHT_STEPS][4], const float (&x)[SCORES]) {
#pragma unroll
        for (int i = 0; i < SCORES; i += 2) weights[i / 8][i / 2 % 4] = pack<T>(x[i], x[i + 1]);
    }

    PORT_DEVICE void finish(const float (&output)[OUTPUTS], i64 matrix, i64 first_query) const {
        const i64 batch = matrix / problem.heads, head = matrix % problem.heads;
        const i64 stride = problem.heads * WIDTH;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float factor = 1.0f / lanes_sum<4>(sum[half]);
            const i64 query = first_query + wgmma_row(2 * half);
            const i64 row = batch * problem.query_count + query;
#pragma unroll
            for (int block = 0; block < OUTPUTS / 4; block += 4) {
                float pairs[4][2], x[8];
#pragma unroll
                for (int i = 0; i < 8; i++)
                    pairs[i / 2][i % 2] =
                        output[(block + i / 2) * 4 + 2 * half + i % 2] * factor;
                detail::gather_eight(pairs, x);
                if (query < problem.query_count) {
                    const i64 col = head * WIDTH + (block + thread() % 4) * 8;
                    steps.template apply<8>(x, row, col);
                    detail::store_eight(problem.output + row * stride + col, x);
                }
            }
        }
    }

    // Of the `seen` first keys, as many for both consumers, since they take turns.
    PORT_DEVICE void tile(i64 matrix, i64 first_query, i64 seen) {
        float scores[SCORES], output[OUTPUTS];
        u32 weights[WEIGHT_STEPS][4];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            largest[half] = -infinity();
            sum[half] = 0.0f;
        }
        // As in `consume` of GEMMs: registers are defined before the first wgmma.
#pragma unroll
        for (int i = 0; i < SCORES; i++) scores[i] = 0.0f;
#pragma unroll
        for (int i = 0; i < OUTPUTS; i++) output[i] = 0.0f;
        wgmma_keep(output);
        wgmma_keep(scores);

        barrier_wait(Memory::queries_full(), tile_parity);
        tile_parity ^= 1;
        multiply_keys(scores);
        wgmma_wait<0>();
        wgmma_keep(scores);
        release_keys();
        soften(scores, first_query, 0);
        round(weights, scores);
        for (i64 first_key = STEP_KEYS; first_key < seen; first_key += STEP_KEYS) {
            take_turn();
            multiply_keys(scores);
            multiply_values(output, weights);
            give_turn();
            wgmma_wait<1>();
            wgmma_keep(scores);
            release_keys();
            soften(scores, first_query, first_key);
            // The assembler would wait first and compute the softmax then, but it moves nothing over
            // what might be done or not. Sums of powers are not negative.
            wgmma_keep(scores);
            if (sum[0] + sum[1] < 0.0f) fence_async_proxy();
            wgmma_wait<0>();
            wgmma_keep(output);
            release_values();
#pragma unroll
            for (int i = 0; i < OUTPUTS; i++) output[i] *= shrink[i / 2 % 2];
            round(weights, scores);
        }
        release(Memory::queries_empty());
        multiply_values(output, weights);
        wgmma_wait<0>();
        wgmma_keep(output);
        release_values();
        finish(output, matrix, first_query);
    }
};

// The tiles `block`, `block + blocks` and so on of 128 queries of a head; tiles of the same head
// are neighbours, so that their keys and values stay in cache. All GEMM_THREADS of the block
// call. Boxes of queries are WGMMA_ROWS high, those of keys and values STEP_KEYS. `steps` are those
// on the output. Under a causal mask the last queries of a head have most to do, and come first.
template <typename T, int WIDTH, bool CAUSAL, class Output>
PORT_DEVICE void attend(const TensorMap& queries, const TensorMap& keys, const TensorMap& values,
                        const attention::Problem<T>& problem, i64 tiles, i64 block, i64 blocks,
                        const Output& steps) {
    using Memory = AttentionMemory<WIDTH>;
    constexpr int ROWS = CONSUMERS * WGMMA_ROWS;
    const i64 per_head = (problem.query_count + ROWS - 1) / ROWS;
    const auto first_query_of = [&](i64 place) {
        return (CAUSAL ? per_head - 1 - place : place) * ROWS;
    };
    if (thread() == 0) {
        prefetch_map(queries);
        prefetch_map(keys);
        prefetch_map(values);
        for (int index = 0; index < Memory::BARRIERS; index++) {
            // Full and empty take turns, one of the queries and STEP_STAGES of keys and values.
            const bool full = index < 2 ? index == 0 : (index - 2) / STEP_STAGES % 2 == 0;
            barrier_init(Memory::barrier(index), full ? 1 : CONSUMERS * WARPGROUP / WARP);
        }
        publish_barriers();
    }
    sync_block();
    const int group = thread() / WARPGROUP;
    if (group == 0) {
        registers_release<PRODUCER_REGISTERS>();
        if (thread() == 0) {
            AttentionProducer<WIDTH> producer{queries, keys, values, {}, {}, 0};
            for (i64 tile = block; tile < tiles; tile += blocks) {
                const int matrix = static_cast<int>(tile / per_head);
                const i64 first_query = first_query_of(tile % per_head);
                producer.copy_queries(matrix, static_cast<int>(first_query));
                const int of_keys = static_cast<int>(problem.keys_of(matrix));
                const int seen =
                    static_cast<int>(problem.template seen_before<CAUSAL>(first_query + ROWS));
                for (int first = 0; first < seen; first += STEP_KEYS) {
                    producer.copy_keys(of_keys, first);
                    producer.copy_values(of_keys, first);
                }
            }
        }
        sync_warp();
        take_registers_back();
    } else {
        registers_acquire<CONSUMER_REGISTERS>();
        AttentionConsumer<T, WIDTH, CAUSAL, Output> consumer{
            problem, steps, group - 1, {}, {}, 0, {}, {}, {}};
        // The first turn is that of consumer 0, and so is the one that nobody took.
        if (group == 2) consumer.give_turn();
        for (i64 tile = block; tile < tiles; tile += blocks) {
            const i64 first_query = first_query_of(tile % per_head);
            consumer.tile(tile / per_head, first_query + (group - 1) * WGMMA_ROWS,
                          problem.template seen_before<CAUSAL>(first_query + ROWS));
        }
        if (group == 1) consumer.take_turn();
        give_registers_back(group - 1);
    }
    sync_block();
    if (thread() == 0) {
        for (int index = 0; index < Memory::BARRIERS; index++) barrier_end(Memory::barrier(index));
    }
}

} // namespace port::hopper
