use fusion_cost_model::Problem;

use crate::gpu::lower::lower;
use crate::gpu::tests::emulation::{Headers, Order, check_on, device, failures_on};
use crate::gpu::tests::mutations::expect_missed;

/// The kernels of the fused variant and of the unfused one.
fn kernels(problem: &str) -> Vec<String> {
    let plan = lower(&problem.parse().unwrap(), &device("sm_90a")).unwrap();
    plan.kernels().map(|kernel| kernel.code.entry.clone()).collect()
}

#[test]
fn gemms_use_it_where_it_suits() {
    for (problem, count) in [
        ("linear+bias+relu/bf16/m8192.k8192.n8192", 2),
        ("linear+bias/f16/m1100.k72.n1000", 2),
        ("linear+bias+layer_norm/bf16/m1100.k72.n1000", 2),
        ("linear+gelu+linear/bf16/m4096.k1024.n4096.o1024", 3),
        // The second layer has too few columns: neither has it, fused or not.
        ("linear+gelu+linear/bf16/m4096.k1024.n4096.o8", 0),
        // Rows of 16 bytes; numbers of 16 bits; half of the processors.
        ("linear+bias/bf16/m8192.k8192.n8196", 0),
        ("linear+bias/bf16/m8192.k8190.n8192", 0),
        ("linear+bias/f32/m8192.k8192.n8192", 0),
        ("linear+bias/bf16/m64.k8192.n8192", 0),
        // Both GEMMs alone, and all in one.
        ("attention/bf16/b8.h16.q1024.kv1024.d64", 3),
        ("attention/f16/b8.h16.q1024.kv1024.d128", 3),
        ("multihead_linear/bf16/b8.h16.q1024.kv1024.d64.n1024", 4),
        ("attention/f16/b8.h16.q1024.kv1024.d80", 0),
        ("attention/f16/b1.h1.q1024.kv1024.d64", 0),
        // Rows of probabilities, and rows of the layer after it.
        ("attention/bf16/b8.h16.q1024.kv1020.d64", 0),
        ("multihead_linear/bf16/b8.h16.q1024.kv1020.d64.n1024", 0),
        ("multihead_linear/bf16/b8.h16.q1024.kv1024.d64.n1020", 0),
        // Steps between the GEMMs, and one GEMM without the other.
        ("qk+scale+softmax+pv/bf16/b8.h16.q1024.kv1024.d64", 0),
        ("attention_scores/bf16/b8.h16.q1024.kv1024.d64", 0),
        ("attention_output/bf16/b8.h16.q1024.kv1024.d64", 0),
    ] {
        let kernels = kernels(problem);
        let found = kernels.iter().filter(|name| name.contains("wgmma")).count();
        assert_eq!(found, count, "{problem}: {kernels:?}");
    }
}

/// Where no kernel of either variant waits for all blocks, and rows of tiles come in pairs.
#[test]
fn blocks_share_what_they_read_of_b_in_pairs() {
    for (problem, expected) in [
        ("linear+bias+relu/bf16/m8192.k8192.n8192", true),
        ("linear+bias/f16/m2100.k512.n4096", true),
        // Three rows of tiles; all blocks wait; the narrowest tiles have no boxes to share.
        ("linear+bias/f16/m384.k512.n8192", false),
        ("linear+bias+layer_norm/bf16/m8192.k1024.n8192", false),
        ("linear+gelu+linear/bf16/m4096.k1024.n4096.o1024", false),
        ("linear+bias/bf16/m16384.k512.n64", false),
    ] {
        let plan = lower(&problem.parse().unwrap(), &device("sm_90a")).unwrap();
        for kernel in [&plan.unfused[0], &plan.fused] {
            let cluster = kernel.shape.cluster;
            assert_eq!(cluster > 1, expected, "{problem}: {}", kernel.code.entry);
            assert!(kernel.shape.grid[0].is_multiple_of(cluster) && cluster <= 2, "{problem}");
            assert_eq!(kernel.code.entry.contains("_pairs"), expected, "{problem}");
        }
    }
}

#[test]
fn tiles_are_as_wide_as_all_processors_have_work_for() {
    let name = |problem, index: usize| kernels(problem).remove(index);
    assert!(name("linear+bias/bf16/m8192.k8192.n8192", 0).contains("128x256"));
    // 64 tiles would leave half of the processors with nothing to do.
    assert!(name("linear+bias/bf16/m2048.k512.n1024", 0).contains("128x128"));
    // No wider than the values are.
    assert!(name("attention/bf16/b8.h16.q1024.kv1024.d64", 2).contains("values_wgmma_128x64"));
    assert!(name("attention/bf16/b8.h16.q1024.kv1024.d128", 2).contains("128x128"));
}

/// Checks problems on a device of few processors, so that small ones have enough tiles; all of
/// them or none must take this path.
fn check_all(problems: &[&str], by_wgmma: bool) {
    let problems: Vec<Problem> = problems.iter().map(|text| text.parse().unwrap()).collect();
    let mut device = device("sm_90a");
    device.processors = 2;
    for problem in &problems {
        let plan = lower(problem, &device).unwrap();
        let gemms = plan.kernels().map(|kernel| kernel.code.entry.as_str()).filter(|name| {
            ["linear", "scores", "values", "attention"].iter().any(|kind| name.starts_with(kind))
        });
        for name in gemms {
            assert_eq!(name.contains("wgmma"), by_wgmma, "{problem}: {name}");
        }
    }
    check_on(&problems, &device);
}

fn check(problems: &[&str]) {
    check_all(problems, true);
}

#[test]
fn linear_layers_with_what_follows() {
    check(&[
        // Edges on all sides, and several tiles for each block; less than a stage along k;
        // more than a round of the ring.
        "linear+bias+silu+mul/bf16/m300.k72.n520",
        "linear+bias+dropout/f16/m130.k8.n8",
        "linear+bias+gelu/bf16/m200.k456.n264",
        "linear+add/f16/m1.k136.n16",
        // The widest tiles, whose results take all boxes in turn more than once; fewer rows than
        // two consumers have.
        "linear+bias/bf16/m200.k72.n248",
        "linear+mul/f16/m64.k16.n504",
        // Several tiles of a cluster, and its ring more than once round.
        "linear+bias+relu/f16/m250.k328.n392",
        // More rows of tiles than a group has, and an odd number of them: nothing of one block of the
        // last cluster is stored. A box of B that both blocks get lies partly outside.
        "linear+bias+relu/bf16/m4200.k8.n72",
    ]);
}

#[test]
fn layers_and_rows_one_after_the_other_in_a_kernel() {
    check(&[
        "linear+bias+add+layer_norm/bf16/m131.k72.n272",
        "linear+gelu+linear/f16/m260.k24.n136.o16",
    ]);
}

#[test]
fn attention_with_what_follows() {
    check(&[
        "attention/bf16/b2.h2.q10.kv304.d64",
        "attention/f16/b1.h3.q3.kv8.d128",
        "qk+softmax+pv+relu/bf16/b2.h1.q5.kv136.d64",
        "qk+softmax+pv+add/f16/b1.h2.q130.kv24.d128",
        "multihead_linear/bf16/b2.h2.q129.kv24.d64.n24",
        // Odd numbers of batches and heads, the widest tiles of scores, and more than a round
        // of the ring.
        "attention_head/f16/b3.h5.q131.kv72.d64",
        "attention_head/bf16/b1.h3.q200.kv248.d128",
        "attention_head/f16/b3.h1.q70.kv520.d128",
        "attention_head/bf16/b1.h3.q129.kv584.d64",
    ]);
}

/// More and fewer than a tile of queries, at both ends of a longer row of keys.
#[test]
fn attention_with_a_causal_mask_and_shared_keys() {
    check(&[
        "attention_head/bf16/b2.h6.q131.kv264.d64.kvh2.causal1",
        "attention_head/f16/b1.h4.q200.kv200.d128.kvh1.causal1",
        // Of the last step of keys a tile sees one, or one less than all.
        "attention_head/bf16/b1.h4.q135.kv136.d64.causal1",
        "attention_head/bf16/b1.h4.q130.kv256.d64.causal1",
        "attention_head/bf16/b1.h4.q3.kv136.d64.kvh2",
        "qk+softmax+pv+add/f16/b1.h2.q270.kv304.d64.causal1",
        "multihead_linear/bf16/b2.h2.q129.kv136.d64.kvh1.causal1.n24",
    ]);
}

#[test]
fn parts_of_attention_have_the_same_instructions_fused_or_not() {
    check_all(
        &[
            "attention_scores/f16/b3.h1.q130.kv72.d64",
            "attention_scores/bf16/b1.h3.q33.kv136.d128",
            "attention_output/bf16/b3.h1.q130.kv72.d64",
            "attention_output/f16/b1.h3.q33.kv136.d128",
            "attention_head/bf16/b3.h1.q130.kv70.d64",
        ],
        false,
    );
}

const GEMM: &str = "hopper/gemm.h";
const OUTPUT: &str = "hopper/output.h";
const ATTEND: &str = "hopper/attend.h";

/// What batches, columns, the scale and edges need, and what takes its place.
const CHANGES: [(&str, &str, &str); 11] = [
    (GEMM, "place.batch, full);", "0, full);"),
    (OUTPUT, " && col < output.n", ""),
    (OUTPUT, "outer * output.m,", "0,"),
    (OUTPUT, "inner * output.n, row", "0, row"),
    (OUTPUT, "stride = output.inner * output.n;", "stride = output.n;"),
    (OUTPUT, " * scale;", ";"),
    (GEMM, "box * BOX_COLS, depth, batch_of_b,", "box * BOX_COLS, depth, 0,"),
    (GEMM, "place.col * COLS, batch_of_b,", "place.col * COLS, 0,"),
    (GEMM, "N_MAJOR ? NEXT_K_OF_ROWS : NEXT_K;", "NEXT_K_OF_ROWS;"),
    (GEMM, "tile -= batch * of_batch();", ""),
    (OUTPUT, "row < output.m && ", ""),
];

#[test]
fn what_batches_need_is_missed() {
    are_missed(&CHANGES[..2]);
}

#[test]
#[ignore = "compiles kernels for each of the changes: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn all_that_batches_need_is_missed() {
    are_missed(&CHANGES[2..]);
}

/// What blocks of a cluster owe each other: without it one of them waits for ever, or what it
/// reads changes, or it is not there yet or any more.
#[test]
fn an_arrival_that_a_cluster_misses_is_seen() {
    are_missed_in_clusters(&[("rank < CLUSTER; rank++", "rank < 1; rank++")]);
}

#[test]
#[ignore = "compiles kernels for each of the changes: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn all_that_clusters_need_is_missed() {
    are_missed_in_clusters(&[
        ("sync_cluster();", "sync_block();"),
        ("stage < Stages::STAGES; stage++", "stage < 0; stage++"),
        ("CLUSTER * CONSUMERS * WARPGROUP / WARP", "CONSUMERS * WARPGROUP / WARP"),
        ("(place.row * CLUSTER + rank) * TILE_ROWS", "place.row * CLUSTER * TILE_ROWS"),
        ("if (box % CLUSTER != rank) continue;", ""),
        ("* CLUSTER + rank_of<CLUSTER>();", "* CLUSTER;"),
    ]);
}

fn are_missed_in_clusters(changes: &[(&str, &str)]) {
    let mut orders = vec![Order::Forward, Order::Reverse];
    orders.extend((1..=8).map(Order::Shuffled));
    are_missed_in(GEMM, "linear+bias/bf16/m200.k328.n248", changes, &orders);
}

/// One tile, which fits into the ring of stages: the producer is done before the consumers have
/// begun.
const ONE_TILE: [(&str, &str); 2] =
    [(GEMM, "linear+bias/bf16/m100.k72.n248"), (ATTEND, "attention_head/bf16/b1.h1.q100.kv72.d64")];

/// What the consumers say when they have given their registers, said before they take them.
const EARLY: &str = "arrive_threads(REGISTERS_RETURNED, GEMM_THREADS);";

/// In ascending order the producer's warps come first: with too few registers left for the consumers,
/// nobody ever goes on.
#[test]
fn registers_that_are_taken_back_before_others_have_theirs_are_seen() {
    let [gemm, attend] = ONE_TILE;
    let acquire = "if constexpr (SHARES) registers_acquire<CONSUMER_REGISTERS>();";
    deadlock(
        gemm,
        &[
            // The producer waits for its own warps alone.
            ("sync_threads(REGISTERS_RETURNED, GEMM_THREADS);", "sync_threads(9, WARPGROUP);"),
            (acquire, &format!("{EARLY} {acquire}")),
        ],
    );
    let acquire = "registers_acquire<CONSUMER_REGISTERS>();";
    deadlock(
        attend,
        &[
            (
                "take_registers_back();",
                "sync_threads(9, WARPGROUP); registers_acquire<REGISTERS>();",
            ),
            (acquire, &format!("{EARLY} {acquire}")),
        ],
    );
}

fn deadlock((header, problem): (&str, &str), changes: &[(&str, &str)]) {
    for error in are_missed_in(header, problem, changes, &[Order::Forward]) {
        let is_deadlock = error.contains("pause forever") && error.contains("in registers_acquire");
        assert!(is_deadlock, "{error}");
    }
}

/// Between two changes all warps of a warpgroup meet. Consumers of a GEMM do so for its results too.
#[test]
fn registers_that_change_before_the_warps_have_met_are_seen() {
    let [(_, gemm), (_, attention)] = ONE_TILE;
    let of_producer = ("sync_threads(REGISTERS_RETURNED, GEMM_THREADS);", "");
    let of_consumer = ("sync_threads(REGISTERS_RETURNED + 1 + consumer, WARPGROUP);", "");
    let in_attention = ("take_registers_back();", "registers_acquire<REGISTERS>();");
    for (header, problem, change) in [
        (GEMM, gemm, of_producer),
        (GEMM, attention, of_consumer),
        (ATTEND, attention, in_attention),
    ] {
        for order in [Order::Forward, Order::Reverse, Order::Shuffled(1)] {
            for error in are_missed_in(header, problem, &[change], &[order]) {
                assert!(error.contains("before all warps of the group have met"), "{error}");
            }
        }
    }
}

/// Or each of the changes above would be seen.
#[test]
fn one_tile_is_right_in_any_order() {
    let mut device = device("sm_90a");
    device.processors = 2;
    let mut orders = vec![Order::Forward, Order::Reverse];
    orders.extend((1..=24).map(Order::Shuffled));
    for (_, problem) in ONE_TILE {
        let problem = [problem.parse().unwrap()];
        let found = failures_on(&problem, &device, &Headers::shipped(), &orders);
        assert!(found.is_empty(), "{}", found[0]);
    }
}

fn are_missed(changes: &[(&str, &str, &str)]) {
    let problem = "attention_head/f16/b2.h3.q131.kv72.d64";
    for (header, from, to) in changes {
        are_missed_in(header, problem, &[(from, to)], &[Order::Forward]);
    }
}

/// The third box of a tile has the place of the first.
#[test]
fn a_store_that_nobody_waits_for_is_seen() {
    let problem = "linear+bias/bf16/m200.k72.n248";
    let wait = ("if (leads()) wait_for_reads<(BOX == 0 ? 0 : BOXES - 1)>();", "");
    are_missed_in(OUTPUT, problem, &[wait], &[Order::Forward]);
}

/// Blocks take tiles by groups of rows of tiles.
#[test]
fn the_order_of_tiles_in_groups_is_checked() {
    let changes = [
        ("group * GROUP_ROWS + within % height", "within % height"),
        ("static_cast<int>(tile % group_tiles)", "static_cast<int>(tile)"),
    ];
    are_missed_in(GEMM, "linear+bias/bf16/m4200.k8.n72", &changes, &[Order::Forward]);
}

/// The last group has fewer rows.
#[test]
#[ignore = "compiles kernels for each of the changes: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn the_height_of_the_last_group_is_checked() {
    let change = ("const int left = rows - group * GROUP_ROWS;", "const int left = rows;");
    are_missed_in(GEMM, "linear+bias/bf16/m4200.k8.n520", &[change], &[Order::Forward]);
}

#[test]
#[ignore = "compiles kernels for each of the changes: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn all_that_stores_need_is_missed() {
    let problem = "linear+mul/bf16/m300.k72.n520";
    let changes = [
        ("(BOX == 0 ? 0 : BOXES - 1)>();", "BOXES>();"),
        ("if (leads()) wait_for_stores();", ""),
        // Before a box is written, and before it is stored.
        ("sync();\n                constexpr", "constexpr"),
        ("fence_async_proxy_of_shared();\n                sync();", ""),
        ("memory + consumer * (BOXES * BOX_BYTES)", "memory"),
        ("at_row >= output.m || ", ""),
        ("thread() % 4 ^ of_part % 8", "thread() % 4"),
        ("boxes + BOX % BOXES * BOX_BYTES", "boxes"),
    ];
    are_missed_in(OUTPUT, problem, &changes, &[Order::Forward, Order::Reverse]);
}

/// A mask that is off by one or missing where more keys follow, and the keys of another head.
#[test]
fn what_a_mask_and_shared_keys_need_is_missed() {
    let changes = [
        ("wgmma_col(i) >= least + wgmma_row(i)", "wgmma_col(i) > least + wgmma_row(i)"),
        ("problem.seen_by(first_query) - first_key;", "problem.key_count - first_key;"),
        ("problem.keys_of(matrix)", "matrix / problem.heads"),
    ];
    let problem = "attention_head/f16/b1.h4.q150.kv264.d64.kvh2.causal1";
    are_missed_in("hopper/attend.h", problem, &changes, &[Order::Forward]);
    for (problem, from, to) in [
        (
            "q135.kv136",
            "(problem.template seen_before<CAUSAL>(first_query + ROWS));",
            "(problem.template seen_before<CAUSAL>(first_query + ROWS - 1));",
        ),
        ("q130.kv256", "if (seen < STEP_KEYS) {", "if (seen < STEP_KEYS - 1) {"),
    ] {
        let problem = format!("attention_head/bf16/b1.h4.{problem}.d64.causal1");
        are_missed_in("hopper/attend.h", &problem, &[(from, to)], &[Order::Forward]);
    }
}

/// On a device of few processors.
fn are_missed_in(
    header: &str,
    problem: &str,
    changes: &[(&str, &str)],
    orders: &[Order],
) -> Vec<String> {
    let mut device = device("sm_90a");
    device.processors = 2;
    expect_missed(header, problem, changes, &device, orders)
}
