/*
 * What kernel fusion really gains on a machine, for graph partitioners in C.
 *
 * Ownership. A call with an argument `fcm_T **` stores a new object there, which the caller frees with
 * `fcm_T_free`. A `const` pointer that a call returns, or that a call stores in a struct, belongs to
 * the object that was asked, and is valid until that object is freed. No call keeps a pointer that it
 * was given: every argument may be freed when the call has returned, even a model whose targets were
 * bound. Every `free` accepts NULL.
 *
 * Threads. Objects do not change. Any number of threads may read an object at the same time. It may be
 * freed when no other thread uses it any more.
 *
 * Errors. A call that can fail returns an `fcm_status`. If its last argument is not NULL, the call
 * stores an `fcm_error` there: NULL on success, else an error with a message, which the caller frees.
 * A call that fails stores NULL in place of an object, and leaves a struct as it was. There is no
 * state besides these objects.
 *
 * Text is UTF-8 and ends with a NUL. Times are in milliseconds. An unknown number is NaN.
 *
 * Pointers to results must not overlap each other or what the call reads.
 */

#ifndef FUSION_COST_MODEL_H
#define FUSION_COST_MODEL_H

/* Made by cbindgen from bindings/c/src; do not edit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The version of this interface. It rises when a call or a struct changes; calls that are added leave
// it as it is.
#define FCM_ABI_VERSION 2

// What the pointers of a coverage lead to.
typedef struct fcm_coverage_storage fcm_coverage_storage;

// What went wrong, where, and what to do about it.
typedef struct fcm_error fcm_error;

// What a calibration file says, ready to be asked.
typedef struct fcm_model fcm_model;

// What a model knows about one target. It keeps what it needs of the model.
typedef struct fcm_on_target fcm_on_target;

// A chain of ops, the dtype of its tensors, and its sizes.
typedef struct fcm_problem fcm_problem;

// What the pointers of a partition lead to.
typedef struct fcm_storage fcm_storage;

// The status of a call: `FCM_OK`, or the kind of the error.
typedef uint32_t fcm_status;

// Where an answer comes from: one of `FCM_EVIDENCE_*`, the most trusted first.
typedef uint32_t fcm_evidence;

// What runs a problem: one of `FCM_BACKEND_*`.
typedef uint32_t fcm_backend;

// What the caches hold when a problem begins: one of `FCM_CACHES_*`.
typedef uint32_t fcm_cache_state;

// The clock of a time: one of `FCM_CLOCK_*`.
typedef uint32_t fcm_clock;

// Whose kernels run: one of `FCM_IMPLEMENTATION_*`.
typedef uint32_t fcm_implementation;

// Where a problem would run, and what its time would be. All of it must match: a question about one
// target is never answered from the measurements of another.
typedef struct fcm_target {
  // What runs it.
  fcm_backend backend;
  // The number of threads; 1 on a GPU.
  uint32_t threads;
  // What the caches hold when it begins.
  fcm_cache_state cache_state;
  // The clock of its time.
  fcm_clock clock;
  // Whose kernels run.
  fcm_implementation implementation;
} fcm_target;

// The type of a tensor's elements: one of `FCM_DTYPE_*`.
typedef uint32_t fcm_dtype;

// Sizes of a chain of pointwise and row ops: a matrix `[m, n]`.
typedef struct fcm_rows_sizes {
  // Rows.
  uint64_t m;
  // Columns.
  uint64_t n;
} fcm_rows_sizes;

// Sizes of a linear op: X `[m, k]`, W `[k, n]`.
typedef struct fcm_linear_sizes {
  // Rows.
  uint64_t m;
  // Input features.
  uint64_t k;
  // Output features.
  uint64_t n;
} fcm_linear_sizes;

// Sizes of two linear ops: X `[m, k]`, W1 `[k, n]`, W2 `[n, o]`.
typedef struct fcm_mlp_sizes {
  // Rows.
  uint64_t m;
  // Input features.
  uint64_t k;
  // Hidden features.
  uint64_t n;
  // Output features.
  uint64_t o;
} fcm_mlp_sizes;

// Sizes of a convolution, by the letters of cuDNN, MIOpen and CUTLASS.
typedef struct fcm_conv_sizes {
  // Images.
  uint64_t n;
  // Input channels.
  uint64_t c;
  // Input height.
  uint64_t h;
  // Input width.
  uint64_t w;
  // Output channels.
  uint64_t k;
  // Filter height.
  uint64_t r;
  // Filter width.
  uint64_t s;
  // Stride of the filter.
  uint64_t stride;
  // Zero padding on each side.
  uint64_t pad;
  // Groups of channels.
  uint64_t groups;
} fcm_conv_sizes;

// The window of a max-pool over the output of a convolution.
typedef struct fcm_pool_window {
  // Height and width.
  uint64_t size;
  // Stride.
  uint64_t stride;
  // Padding on each side.
  uint64_t pad;
} fcm_pool_window;

// Sizes of attention: Q `[b h, q, d]`, K and V `[b kvh, kv, d]`.
typedef struct fcm_attention_sizes {
  // Batch.
  uint64_t b;
  // Heads.
  uint64_t h;
  // Queries.
  uint64_t q;
  // Keys and values.
  uint64_t kv;
  // Features of a head.
  uint64_t d;
  // Heads of keys and values: `h`, or fewer, each shared by as many heads of queries.
  uint64_t kvh;
  // Whether no query sees a key after its own, where the last query is at the last key.
  bool causal;
} fcm_attention_sizes;

// What to assume about a problem that nothing is known about: one of `FCM_WHEN_UNKNOWN_*`.
typedef uint32_t fcm_when_unknown;

// How a caller wants to decide.
typedef struct fcm_policy {
  // The speedup from which fusing is worth it.
  double threshold;
  // What to assume when nothing is known. There is no default.
  fcm_when_unknown when_unknown;
} fcm_policy;

// Some of a node's ops: from `begin` to before `end`.
typedef struct fcm_node_ops {
  // The node. A chain that is split by itself is node 0.
  size_t node;
  // The first op.
  size_t begin;
  // The op after the last one.
  size_t end;
} fcm_node_ops;

// The ops of a kernel, in the order in which they run.
typedef struct fcm_parts {
  // The first of `count`.
  const struct fcm_node_ops *parts;
  // Their number.
  size_t count;
} fcm_parts;

// A value with its 95 % interval.
typedef struct fcm_interval {
  // The value.
  double value;
  // The lower end.
  double low;
  // The upper end.
  double high;
} fcm_interval;

// What is known about a problem on a target.
typedef struct fcm_estimate {
  // Where the answer comes from. NaN is in all intervals where it is `FCM_EVIDENCE_UNKNOWN`.
  fcm_evidence evidence;
  // How many records `fcm_on_target_nearest` gives.
  uint32_t num_nearest;
  // The time of the unfused kernels together.
  struct fcm_interval unfused_ms;
  // The time of the fused kernel.
  struct fcm_interval fused_ms;
  // Unfused time over fused time.
  struct fcm_interval speedup;
  // How far beyond the measured sizes the problem lies, in octaves of the size that is farthest away;
  // 0 unless `evidence` is `FCM_EVIDENCE_EXTRAPOLATED`.
  double octaves_beyond;
} fcm_estimate;

// Ops in one kernel, and what that costs.
typedef struct fcm_segment {
  // The ops.
  struct fcm_parts ops;
  // The ops as one problem; NULL for a single op that cannot be asked alone, such as a `max_pool`.
  const struct fcm_problem *problem;
  // The time of its ops as one kernel each, and as one kernel together.
  struct fcm_estimate estimate;
  // What one kernel saves: 0 of a single op, and of ops that a policy fuses without knowing.
  struct fcm_interval saved_ms;
  // What a kernel with the next op in it too would save more than this one; NaN where it cannot be
  // one, or nothing is known.
  struct fcm_interval saved_by_next_ms;
} fcm_segment;

// Another split, and how much longer it takes.
typedef struct fcm_alternative {
  // The ops of the first of `num_segments` kernels.
  const struct fcm_parts *segments;
  // The number of kernels.
  size_t num_segments;
  // By how much it is slower than the best split.
  struct fcm_interval slower_by_ms;
  // The most bytes that are alive at once.
  uint64_t peak_bytes;
} fcm_alternative;

// The best split into kernels. What its pointers lead to belongs to it.
typedef struct fcm_partition {
  // The first of `num_segments` kernels, in the order in which they run.
  const struct fcm_segment *segments;
  // The number of kernels.
  size_t num_segments;
  // Their time together; NaN where that of a segment is not known.
  struct fcm_interval total_ms;
  // The time that it saves over one kernel per op.
  struct fcm_interval saved_ms;
  // The most bytes that are alive at once: what a kernel reads and writes, and what later ones will
  // read, without weights and other constants.
  uint64_t peak_bytes;
  // The second best split; NULL where there is only one.
  const struct fcm_alternative *runner_up;
  // One kernel per op.
  const struct fcm_alternative *never;
  // As few kernels as possible, of those whose cost is known.
  const struct fcm_alternative *always;
  // The storage behind the pointers, not for callers.
  struct fcm_storage *storage;
} fcm_partition;

// The reason for a decision: one of `FCM_REASON_*`.
typedef uint32_t fcm_reason;

// Whether to fuse, and what that rests on.
typedef struct fcm_decision {
  // What to do.
  bool should_fuse;
  // Why.
  fcm_reason reason;
  // What is known.
  struct fcm_estimate estimate;
} fcm_decision;

// A node of a graph: ops that follow each other, and what they read of other nodes. Zeros are a node
// that reads nothing of others.
typedef struct fcm_graph_node {
  // The ops.
  const struct fcm_problem *problem;
  // Whether the first op transforms what another node writes, and not what comes from outside.
  bool has_input;
  // Whether something outside of the graph reads what it writes. A node that no other reads need not
  // say so.
  bool is_output;
  // The node whose result the first op transforms, if it has one.
  size_t input;
  // The nodes that write other operands, `num_operands` of them. Weights and other constants are not
  // nodes.
  const size_t *operands;
  // The number of operands.
  size_t num_operands;
} fcm_graph_node;

// What is known of one problem.
typedef struct fcm_covered {
  // The problem.
  const struct fcm_problem *problem;
  // How often it was asked about.
  uint32_t count;
  // Whether the policy decides by such evidence, and is expected to lose at most 0.5 % of the fused
  // time.
  bool is_safe;
  // What is known.
  struct fcm_estimate estimate;
  // The time that deciding by this estimate is expected to lose, over all its occurrences: 0 of a
  // single op, about which nothing is decided, and NaN where nothing is known.
  double expected_regret_ms;
} fcm_covered;

// A problem to measure.
typedef struct fcm_next_point {
  // The problem.
  const struct fcm_problem *problem;
  // By how much it lowers the expected regret of all decisions, when those before it are measured.
  double lowers_regret_by_ms;
} fcm_next_point;

// What is known of some problems, and what to measure next. What its pointers lead to belongs to it.
typedef struct fcm_coverage {
  // The first of `num_questions`: each problem once, in the order in which they were asked about.
  const struct fcm_covered *questions;
  // The number of different problems.
  size_t num_questions;
  // The first of `num_to_measure`: the fewest problems that, when they are measured, let every
  // decision be safe that can be. What lowers the expected regret most comes first.
  const struct fcm_next_point *to_measure;
  // The number of problems to measure.
  size_t num_to_measure;
  // How many questions are answered by measured kernels, and not by a roofline or not at all.
  size_t known;
  // How many are more than a single op, so that there is something to decide.
  size_t decisions;
  // How many of the decisions are safe.
  size_t safe_decisions;
  // The expected regret of all decisions together, as far as it is known.
  double expected_regret_ms;
  // The storage behind the pointers, not for callers.
  struct fcm_coverage_storage *storage;
} fcm_coverage;

// Success.
#define FCM_OK 0

// An argument is NULL, is not UTF-8, or is not one of the allowed numbers.
#define FCM_INVALID_ARGUMENT 1

// A name is unknown; the message suggests the nearest ones.
#define FCM_UNKNOWN_NAME 2

// The ops, or the two neighbours, cannot be one kernel.
#define FCM_NOT_ONE_KERNEL 3

// Sizes do not belong to their chain, or no tensor can have them.
#define FCM_INVALID_SIZES 4

// Something else of a question is wrong: the text of a problem, or the order of a graph's nodes.
#define FCM_INVALID_QUESTION 5

// A file cannot be read.
#define FCM_CANNOT_READ 6

// A file is damaged, incomplete, or has impossible values.
#define FCM_INVALID_FILE 7

// A file is of another kind, such as a data sheet in the place of a calibration.
#define FCM_WRONG_FILE 8

// A file was written by a version with another format.
#define FCM_OTHER_VERSION 9

// A calibration is of another machine than was expected.
#define FCM_HARDWARE_MISMATCH 10

// Nothing is known, and the policy is not to guess.
#define FCM_UNDECIDED 11

// A bug in this library; please report the message.
#define FCM_BUG 12

// IEEE 754 binary64.
#define FCM_DTYPE_F64 1

// IEEE 754 binary32.
#define FCM_DTYPE_F32 2

// NVIDIA's 19-bit format inside matrix cores; tensors are stored as f32.
#define FCM_DTYPE_TF32 3

// The upper half of an f32.
#define FCM_DTYPE_BF16 4

// IEEE 754 binary16.
#define FCM_DTYPE_F16 5

// Eight-bit floating point (e4m3 or e5m2).
#define FCM_DTYPE_F8 6

// Eight-bit integers.
#define FCM_DTYPE_I8 7

// The host's processor.
#define FCM_BACKEND_CPU 1

// An NVIDIA GPU.
#define FCM_BACKEND_CUDA 2

// An AMD GPU.
#define FCM_BACKEND_HIP 3

// The clock of the processor that the kernels run on: from the call to its return.
#define FCM_CLOCK_HOST 1

// The clock of a GPU: from the first kernel's start to the last one's end, with the queue full.
#define FCM_CLOCK_DEVICE 2

// The host's clock around a GPU's work: from handing it to an idle GPU to its end.
#define FCM_CLOCK_LAUNCH_INCLUSIVE 3

// Its own tensors: it has just run.
#define FCM_CACHES_WARM 1

// None of its inputs.
#define FCM_CACHES_COLD 2

// The project's own, with the same core in both variants.
#define FCM_IMPLEMENTATION_NATIVE 1

// Those of a vendor's library.
#define FCM_IMPLEMENTATION_VENDOR 2

// Keep the kernels apart.
#define FCM_WHEN_UNKNOWN_CONSERVATIVE 1

// Fuse.
#define FCM_WHEN_UNKNOWN_OPTIMISTIC 2

// Decide by the roofline on the measured ceilings, and by what fusion gained of it elsewhere; keep
// where no ceilings were measured.
#define FCM_WHEN_UNKNOWN_ROOFLINE 3

// Answer with an error, `FCM_UNDECIDED`.
#define FCM_WHEN_UNKNOWN_ERROR 4

// The problem itself was measured.
#define FCM_EVIDENCE_MEASURED 1

// A chain that differs in some ops was measured at this very size.
#define FCM_EVIDENCE_COMPOSED_AT_SIZE 2

// The chain was measured at sizes around this one.
#define FCM_EVIDENCE_INTERPOLATED 3

// A chain that differs in some ops was measured at sizes around this one.
#define FCM_EVIDENCE_COMPOSED_BETWEEN 4

// The nearest measured sizes are `octaves_beyond` away.
#define FCM_EVIDENCE_EXTRAPOLATED 5

// Only the ceilings of the machine were measured.
#define FCM_EVIDENCE_ROOFLINE 6

// Nothing is known.
#define FCM_EVIDENCE_UNKNOWN 7

// The whole interval of the speedup is at or above the threshold: fuse.
#define FCM_REASON_FASTER 1

// The whole interval is below the threshold: keep the kernels apart.
#define FCM_REASON_SLOWER 2

// The threshold lies inside the interval. The value decides, for either choice costs little.
#define FCM_REASON_TOO_CLOSE 3

// Nothing is known that the policy decides by, so it assumes something.
#define FCM_REASON_UNKNOWN 4

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The `FCM_ABI_VERSION` that the library was built with. A program that loads the library while it
// runs compares it with that of its header.
uint32_t fcm_abi_version(void);

// The version of the library, such as `0.1.0`.
const char *fcm_version(void);

// Which kind of error it is; `FCM_OK` of NULL.
fcm_status fcm_error_status(const struct fcm_error *error);

// What was wrong, where, and what to do, for people. Belongs to the error; empty of NULL.
const char *fcm_error_message(const struct fcm_error *error);

// Frees an error.
void fcm_error_free(struct fcm_error *error);

// The words for some evidence in reports, such as `composed at size`; empty of another number.
const char *fcm_evidence_name(fcm_evidence evidence);

// The CPU with `threads` threads, warm caches and the project's own kernels.
struct fcm_target fcm_target_cpu(uint32_t threads);

// A GPU with warm caches and the project's own kernels, by one of its clocks.
struct fcm_target fcm_target_gpu(fcm_backend backend, fcm_clock clock);

// Loads a calibration file. Where `hardware` is not NULL, the file must be of the machine with this
// id, name or alias. Free the model with `fcm_model_free`.
//
// # Safety
//
// `path`, and `hardware` unless it is NULL, end with a NUL.
fcm_status fcm_model_load(const char *path,
                          const char *hardware,
                          struct fcm_model **model,
                          struct fcm_error **error);

// Reads the contents of a calibration file, `length` bytes of UTF-8. See `fcm_model_load`.
//
// # Safety
//
// `contents` leads to `length` bytes, and `hardware` ends with a NUL unless it is NULL.
fcm_status fcm_model_of_text(const char *contents,
                             size_t length,
                             const char *hardware,
                             struct fcm_model **model,
                             struct fcm_error **error);

// Frees a model. What was bound to a target of it stays valid.
void fcm_model_free(struct fcm_model *model);

// The targets that the file has records for, in a fixed order, and their number in `count`. Belong to
// the model.
const struct fcm_target *fcm_model_targets(const struct fcm_model *model,
                                           size_t *count);

// Reads a problem from its text form, such as `linear_bias_relu/f32/m128.k256.n512`. Free it with
// `fcm_problem_free`, as all problems that a call makes.
//
// # Safety
//
// `text` ends with a NUL.
fcm_status fcm_problem_of_text(const char *text,
                               struct fcm_problem **problem,
                               struct fcm_error **error);

// Pointwise and row ops (softmax, layer norm, RMS norm) on a matrix. A chain is ops joined with `+`,
// such as `add+relu`, or the name of a pattern, also by the names of frameworks.
//
// # Safety
//
// `chain` ends with a NUL.
fcm_status fcm_problem_rows(const char *chain,
                            fcm_dtype dtype,
                            struct fcm_rows_sizes sizes,
                            struct fcm_problem **problem,
                            struct fcm_error **error);

// One linear op and what follows it, such as `linear+bias+relu`.
//
// # Safety
//
// `chain` ends with a NUL.
fcm_status fcm_problem_linear(const char *chain,
                              fcm_dtype dtype,
                              struct fcm_linear_sizes sizes,
                              struct fcm_problem **problem,
                              struct fcm_error **error);

// Two linear ops and what follows each of them, such as `linear+bias+gelu+linear+bias`.
//
// # Safety
//
// `chain` ends with a NUL.
fcm_status fcm_problem_mlp(const char *chain,
                           fcm_dtype dtype,
                           struct fcm_mlp_sizes sizes,
                           struct fcm_problem **problem,
                           struct fcm_error **error);

// A convolution and the pointwise ops that follow it, such as `conv2d+batch_norm+relu`.
//
// # Safety
//
// `chain` ends with a NUL.
fcm_status fcm_problem_conv(const char *chain,
                            fcm_dtype dtype,
                            struct fcm_conv_sizes sizes,
                            struct fcm_problem **problem,
                            struct fcm_error **error);

// A convolution with a max-pool among the ops that follow it, such as `conv2d+relu+max_pool`.
//
// # Safety
//
// `chain` ends with a NUL.
fcm_status fcm_problem_conv_pool(const char *chain,
                                 fcm_dtype dtype,
                                 struct fcm_conv_sizes sizes,
                                 struct fcm_pool_window pool,
                                 struct fcm_problem **problem,
                                 struct fcm_error **error);

// Scaled dot-product attention, or its part before or after the softmax, such as `qk+softmax+pv`.
//
// # Safety
//
// `chain` ends with a NUL.
fcm_status fcm_problem_attention(const char *chain,
                                 fcm_dtype dtype,
                                 struct fcm_attention_sizes sizes,
                                 struct fcm_problem **problem,
                                 struct fcm_error **error);

// Attention and a linear op with `features` outputs on the joined heads.
//
// # Safety
//
// `chain` ends with a NUL.
fcm_status fcm_problem_multihead_linear(const char *chain,
                                        fcm_dtype dtype,
                                        struct fcm_attention_sizes sizes,
                                        uint64_t features,
                                        struct fcm_problem **problem,
                                        struct fcm_error **error);

// Makes one problem of two neighbours, where the second reads what the first writes.
fcm_status fcm_problem_join(const struct fcm_problem *first,
                            const struct fcm_problem *second,
                            struct fcm_problem **problem,
                            struct fcm_error **error);

// The text form of a problem: equal problems have equal text. Belongs to the problem; empty of NULL.
const char *fcm_problem_text(const struct fcm_problem *problem);

// Frees a problem.
void fcm_problem_free(struct fcm_problem *problem);

// Fuses what is expected to be faster: the threshold is 1.
struct fcm_policy fcm_policy_new(fcm_when_unknown when_unknown);

// Frees a partition and all that its pointers lead to.
void fcm_partition_free(struct fcm_partition *partition);

// Binds a target, once for all questions. One that the file has no records for can be bound too, and
// answers `FCM_EVIDENCE_UNKNOWN`. Free it with `fcm_on_target_free`.
fcm_status fcm_model_on(const struct fcm_model *model,
                        struct fcm_target target,
                        struct fcm_on_target **on,
                        struct fcm_error **error);

// The same target in one state of the machine, by its number in the file. One that the file does not
// have is `FCM_INVALID_QUESTION`.
fcm_status fcm_on_target_in_state(const struct fcm_on_target *on,
                                  uint32_t state,
                                  struct fcm_on_target **in_state,
                                  struct fcm_error **error);

// Frees a bound target.
void fcm_on_target_free(struct fcm_on_target *on);

// The target in words, such as `cpu, 8 threads, warm caches`. Belongs to the bound target; empty of
// NULL.
const char *fcm_on_target_text(const struct fcm_on_target *on);

// What is known about a problem, from the most trusted evidence that there is.
fcm_status fcm_on_target_estimate(const struct fcm_on_target *on,
                                  const struct fcm_problem *problem,
                                  struct fcm_estimate *estimate,
                                  struct fcm_error **error);

// The problem of one of the records that an estimate rests on most, by a number below its
// `num_nearest`. Free it with `fcm_problem_free`.
fcm_status fcm_on_target_nearest(const struct fcm_on_target *on,
                                 const struct fcm_problem *problem,
                                 uint32_t number,
                                 struct fcm_problem **nearest,
                                 struct fcm_error **error);

// Whether to make one kernel of a problem.
fcm_status fcm_on_target_decide(const struct fcm_on_target *on,
                                const struct fcm_problem *problem,
                                struct fcm_policy policy,
                                struct fcm_decision *decision,
                                struct fcm_error **error);

// The best split of a chain into kernels. Free it with `fcm_partition_free`.
fcm_status fcm_on_target_partition(const struct fcm_on_target *on,
                                   const struct fcm_problem *problem,
                                   struct fcm_policy policy,
                                   struct fcm_partition **partition,
                                   struct fcm_error **error);

// The best split of a graph into kernels; a node reads only nodes before it. Free it with
// `fcm_partition_free`.
//
// # Safety
//
// `graph` leads to `num_nodes` nodes, and what they lead to is as they say.
fcm_status fcm_on_target_partition_graph(const struct fcm_on_target *on,
                                         const struct fcm_graph_node *graph,
                                         size_t num_nodes,
                                         struct fcm_policy policy,
                                         struct fcm_partition **partition,
                                         struct fcm_error **error);

// What is known of some problems, which decisions about them are unsafe, and the fewest problems to
// measure that make them safe. One that is asked about several times, as those of a model's layers
// are, counts as often. Free it with `fcm_coverage_free`.
//
// # Safety
//
// `problems` leads to `num_problems` pointers to problems.
fcm_status fcm_on_target_coverage(const struct fcm_on_target *on,
                                  const struct fcm_problem *const *problems,
                                  size_t num_problems,
                                  struct fcm_policy policy,
                                  struct fcm_coverage **coverage,
                                  struct fcm_error **error);

// Frees a coverage and all that its pointers lead to.
void fcm_coverage_free(struct fcm_coverage *coverage);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FUSION_COST_MODEL_H */
