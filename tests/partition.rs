//! Graphs are split by what is known of their parts.

use crate::made::{Known, TARGET, calibration};
use fusion_cost_model::{
    Evidence, FusionCostModel, GraphNode, NodeOps, Partition, Policy, Problem, WhenUnknown,
    possible_kernels,
};

const POLICY: Policy = Policy::new(WhenUnknown::Conservative);

fn problem(text: &str) -> Problem {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Records of problems with their fused times and speedups.
fn model(known: &[(&str, f64, f64)]) -> FusionCostModel {
    let known = known.iter().map(|&(text, fused_ms, speedup)| Known {
        problem: problem(text),
        fused_ms,
        speedup,
        half_width: 0.02,
    });
    FusionCostModel::new(calibration(known))
}

/// A chain whose two halves fuse well, and which as a whole does not.
fn halves() -> FusionCostModel {
    model(&[
        ("add/f32/m64.n64", 2.0, 1.0),
        ("relu/f32/m64.n64", 1.0, 1.0),
        ("mul/f32/m64.n64", 2.0, 1.0),
        ("tanh/f32/m64.n64", 4.0, 1.0),
        ("add+relu/f32/m64.n64", 2.0, 1.5),
        ("relu+mul/f32/m64.n64", 2.5, 1.2),
        ("mul+tanh/f32/m64.n64", 5.0, 1.2),
        ("add+relu+mul/f32/m64.n64", 4.5, 5.0 / 4.5),
        ("relu+mul+tanh/f32/m64.n64", 7.0, 1.0),
        ("add+relu+mul+tanh/f32/m64.n64", 10.0, 0.9),
    ])
}

fn ops(partition: &Partition<'_>) -> Vec<std::ops::Range<usize>> {
    partition.segments.iter().map(|segment| segment.parts[0].ops.clone()).collect()
}

#[test]
fn a_chain_is_split_where_that_saves_most() {
    let model = halves();
    let chain = problem("add+relu+mul+tanh/f32/m64.n64");
    let best = model.on(TARGET).partition(&chain, &POLICY).unwrap();
    assert_eq!(ops(&best), [0..2, 2..4]);
    assert!(best.segments.iter().all(|it| it.estimate.evidence() == Evidence::Measured));
    assert!((best.total_ms.unwrap().value - 7.0).abs() < 1e-9);
    // 3 and 6 ms in four kernels, 2 and 5 in two.
    assert!((best.saved_ms.value - 2.0).abs() < 1e-9);
    assert!(best.saved_ms.low > 1.7 && best.saved_ms.high < 2.3, "{:?}", best.saved_ms);
    assert!((best.never.slower_by_ms.value - 2.0).abs() < 1e-9);
    assert_eq!(best.never.segments.len(), 4);
    // Everything in one kernel: 10 ms, where four kernels take 9.
    assert_eq!(best.always.segments, [vec![NodeOps { node: 0, ops: 0..4 }]]);
    assert!((best.always.slower_by_ms.value - 3.0).abs() < 1e-9);
    // The second best leaves the first half as it is, and saves 1 ms less.
    let runner_up = best.runner_up.unwrap();
    assert!((runner_up.slower_by_ms.value - 1.0).abs() < 1e-9, "{runner_up:?}");
    let certain = runner_up.slower_by_ms.high - runner_up.slower_by_ms.low;
    assert!(certain < best.saved_ms.high - best.saved_ms.low, "what both have cancels");
    // With the multiplication too, the first kernel would save half a millisecond less.
    let by_next = best.segments[0].saved_by_next_ms.unwrap();
    assert!((by_next.value + 0.5).abs() < 1e-9, "{by_next:?}");
    assert_eq!(best.segments[1].saved_by_next_ms, None);
}

#[test]
fn a_threshold_and_what_is_unknown_are_the_policys() {
    let model = halves();
    let chain = problem("add+relu+mul+tanh/f32/m64.n64");
    let on = model.on(TARGET);
    let picky = on.partition(&chain, &POLICY.with_threshold(1.3)).unwrap();
    assert_eq!(ops(&picky), [0..2, 2..3, 3..4]);
    let longer = problem("add+relu+mul+tanh+silu/f32/m64.n64");
    let careful = on.partition(&longer, &POLICY).unwrap();
    assert_eq!(ops(&careful), [0..2, 2..4, 4..5]);
    assert_eq!(careful.total_ms, None, "the time of a silu is not known");
    assert!((careful.saved_ms.value - 2.0).abs() < 1e-9);
    let refused = on.partition(&longer, &Policy::new(WhenUnknown::Error)).unwrap_err();
    assert!(refused.is_undecided(), "{refused}");
}

/// x -> add -> relu -> mul, where something else reads the result of the ReLU too.
fn graph(is_read_twice: bool) -> Vec<GraphNode> {
    let node = |text: &str| GraphNode::new(problem(text));
    let mut graph = vec![
        node("add/f32/m64.n64"),
        node("relu/f32/m64.n64").reading(0),
        node("mul/f32/m64.n64").reading(1),
        node("tanh/f32/m64.n64").reading(2),
    ];
    if is_read_twice {
        graph.push(node("mul+tanh/f32/m64.n64").reading(3).with_operands([1]));
    }
    graph
}

#[test]
fn a_node_that_two_others_read_ends_a_segment() {
    let model = model(&[
        ("relu+mul/f32/m64.n64", 1.0, 3.0),
        ("add+relu/f32/m64.n64", 1.0, 1.1),
        ("mul+tanh/f32/m64.n64", 1.0, 1.1),
    ]);
    let nodes = |nodes: &[GraphNode]| -> Vec<Vec<usize>> {
        let best = model.on(TARGET).partition_graph(nodes, &POLICY).unwrap();
        let of = |parts: &Vec<NodeOps>| parts.iter().map(|part| part.node).collect();
        best.segments.iter().map(|segment| of(&segment.parts)).collect()
    };
    assert_eq!(nodes(&graph(false)), [vec![0], vec![1, 2], vec![3]]);
    assert_eq!(nodes(&graph(true)), [vec![0, 1], vec![2, 3], vec![4]]);
    let mut with_output = graph(false);
    with_output[1] = with_output[1].clone().as_output();
    assert_eq!(nodes(&with_output), [vec![0, 1], vec![2, 3]]);
}

#[test]
fn a_sum_continues_either_of_its_branches() {
    let model = model(&[("relu+add/f32/m64.n64", 1.0, 1.1), ("tanh+add/f32/m64.n64", 1.0, 1.4)]);
    let node = |text: &str| GraphNode::new(problem(text));
    let graph = |last: &str| {
        [
            node("relu/f32/m64.n64"),
            node("tanh/f32/m64.n64"),
            node(last).reading(0).with_operands([1]),
        ]
    };
    let best = model.on(TARGET).partition_graph(&graph("add/f32/m64.n64"), &POLICY).unwrap();
    assert_eq!(best.segments.len(), 2);
    let path: Vec<usize> = best.segments[1].parts.iter().map(|part| part.node).collect();
    assert_eq!(path, [1, 2], "the branch that gains more");
    assert!(model.on(TARGET).partition_graph(&graph("silu/f32/m64.n64"), &POLICY).is_ok());
}

#[test]
fn fewer_kernels_need_less_memory() {
    let model = halves();
    let chain = problem("add+relu+mul+tanh/f32/m64.n64");
    let best = model.on(TARGET).partition(&chain, &POLICY).unwrap();
    let tensor = 64 * 64 * 4;
    // The sum reads two tensors and writes a third; later kernels write over their input.
    assert_eq!((best.peak_bytes, best.never.peak_bytes), (3 * tensor, 3 * tensor));
    // All in one kernel: three tensors from outside, and the result.
    assert_eq!(best.always.peak_bytes, 4 * tensor);
}

#[test]
fn a_pool_is_a_problem_by_itself_too() {
    let model = model(&[("conv2d+relu+max_pool/f32/n1.c3.h8.w8.k4.r3.s3", 1.0, 1.5)]);
    let chain = problem("conv2d+relu+max_pool/f32/n1.c3.h8.w8.k4.r3.s3");
    let best = model.on(TARGET).partition(&chain, &POLICY).unwrap();
    assert_eq!((best.segments.len(), ops(&best)[0].clone()), (1, 0..3));
    let apart = model.on(TARGET).partition(&chain, &POLICY.with_threshold(2.0)).unwrap();
    assert_eq!(ops(&apart), [0..1, 1..2, 2..3]);
    let pool = problem("max_pool/f32/n1.c4.h6.w6");
    assert_eq!((apart.segments[2].problem, apart.total_ms), (Some(pool), None));
}

#[test]
fn nodes_come_after_those_that_they_read() {
    let model = halves();
    let loops = [GraphNode::new(problem("relu/f32/m64.n64")).reading(0)];
    let error = model.on(TARGET).partition_graph(&loops, &POLICY).unwrap_err();
    assert!(error.is_invalid_question());
    assert_eq!(error.to_string(), "node 0 reads node 0; put the nodes that a node reads before it");
    let empty = model.on(TARGET).partition_graph(&[], &POLICY).unwrap();
    assert_eq!((empty.segments.len(), empty.saved_ms.value, empty.peak_bytes), (0, 0.0, 0));
}

/// Every kernel of every split that is reported is one of those that were asked about.
#[test]
fn splits_consist_of_possible_kernels() {
    let graph = [
        GraphNode::new(problem("relu/f32/m64.n64")),
        GraphNode::new(problem("linear/f32/m64.k64.n64")).reading(0),
        GraphNode::new(problem("tanh/f32/m64.n64")),
        GraphNode::new(problem("add/f32/m64.n64")).reading(1).with_operands([2]),
        GraphNode::new(problem("relu/f32/m64.n64")).reading(3),
    ];
    let kernels = possible_kernels(&graph).unwrap();
    let texts: Vec<String> = kernels.iter().map(|kernel| kernel.problem.to_string()).collect();
    let expected = [
        "relu/f32/m64.n64",
        "linear/f32/m64.k64.n64",
        "tanh/f32/m64.n64",
        "add/f32/m64.n64",
        "linear+add/f32/m64.k64.n64",
        "tanh+add/f32/m64.n64",
        "add_relu/f32/m64.n64",
        "linear+add+relu/f32/m64.k64.n64",
        "tanh+add+relu/f32/m64.n64",
    ];
    assert_eq!(texts, expected, "a sum continues either branch, and a GEMM nothing");
    assert_eq!(kernels[0].places, 2);
    // Of two operands the node names that of its last op, which does not continue another kernel.
    let later = [
        GraphNode::new(problem("linear/f32/m64.k64.n64")),
        GraphNode::new(problem("add+mul/f32/m64.n64")).with_operands([0]),
    ];
    let kernels_of_later = possible_kernels(&later).unwrap();
    assert!(kernels_of_later.iter().all(|kernel| !kernel.problem.to_string().contains("linear+")));
    let model = halves();
    let best = model.on(TARGET).partition_graph(&graph, &POLICY).unwrap();
    for segment in &best.segments {
        assert!(kernels.iter().any(|kernel| Some(kernel.problem) == segment.problem));
    }
    let backwards = [GraphNode::new(problem("relu/f32/m64.n64")).reading(0)];
    assert!(possible_kernels(&backwards).unwrap_err().is_invalid_question());
}
