/*
 * Splits a graph of ops into the kernels that take the least time, as `examples/partitioner.rs`.
 *
 * Usage: partitioner CALIBRATION
 */
#include <stdio.h>
#include <stdlib.h>

#include "fusion_cost_model.h"

/* Prints the message of a call that failed, and ends the program. */
static void check(fcm_status status, fcm_error *error) {
    if (status != FCM_OK) {
        fprintf(stderr, "error: %s\n", fcm_error_message(error));
        fcm_error_free(error);
        exit(EXIT_FAILURE);
    }
}

static fcm_problem *linear(uint64_t m, uint64_t k, uint64_t n) {
    fcm_linear_sizes sizes = {.m = m, .k = k, .n = n};
    fcm_problem *problem;
    fcm_error *error;
    check(fcm_problem_linear("linear", FCM_DTYPE_F32, sizes, &problem, &error), error);
    return problem;
}

static fcm_problem *pointwise(const char *op, uint64_t m, uint64_t n) {
    fcm_rows_sizes sizes = {.m = m, .n = n};
    fcm_problem *problem;
    fcm_error *error;
    check(fcm_problem_rows(op, FCM_DTYPE_F32, sizes, &problem, &error), error);
    return problem;
}

int main(int argc, char **argv) {
    const char *file = argc > 1 ? argv[1] : "tests/data/example.toml";
    fcm_error *error;
    fcm_model *model;
    check(fcm_model_load(file, NULL, &model, &error), error);
    fcm_on_target *on_cpu;
    check(fcm_model_on(model, fcm_target_cpu(2), &on_cpu, &error), error);

    /* Two linear layers, the second with a residual connection from outside. */
    fcm_problem *ops[] = {
        linear(4096, 64, 256),  pointwise("bias", 4096, 256), pointwise("relu", 4096, 256),
        linear(4096, 256, 1024), pointwise("add", 4096, 1024), pointwise("relu", 4096, 1024),
    };
    enum { NUM_OPS = sizeof ops / sizeof ops[0] };
    fcm_graph_node graph[NUM_OPS] = {0};
    for (size_t i = 0; i < NUM_OPS; i++) {
        graph[i].problem = ops[i];
        graph[i].has_input = i > 0;
        graph[i].input = i > 0 ? i - 1 : 0;
    }

    /* Fuse whatever is faster, and keep apart what nothing is known about. */
    fcm_policy policy = fcm_policy_new(FCM_WHEN_UNKNOWN_CONSERVATIVE);
    fcm_partition *best;
    check(fcm_on_target_partition_graph(on_cpu, graph, NUM_OPS, policy, &best, &error), error);
    for (size_t i = 0; i < best->num_segments; i++) {
        const fcm_segment *segment = &best->segments[i];
        if (segment->problem != NULL) {
            printf("%s: %s, saves %.3f ms\n", fcm_problem_text(segment->problem),
                   fcm_evidence_name(segment->estimate.evidence), segment->saved_ms.value);
        }
    }
    printf("%.3f ms less than one kernel per op\n", best->saved_ms.value);

    fcm_partition_free(best);
    for (size_t i = 0; i < NUM_OPS; i++) {
        fcm_problem_free(ops[i]);
    }
    fcm_on_target_free(on_cpu);
    fcm_model_free(model);
    return EXIT_SUCCESS;
}
