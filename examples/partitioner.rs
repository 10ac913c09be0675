#![allow(missing_docs, reason = "its first lines are the documentation")]

// Splits a graph of ops into the kernels that take the least time.
// Run it with `cargo run --example partitioner [calibration file]`.

use fusion_cost_model::{
    Chain, DType, Error, FusionCostModel, GraphNode, LinearSizes, Op, Pointwise, Policy, Problem,
    RowsSizes, Target, WhenUnknown,
};

fn main() -> Result<(), Error> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "tests/data/example.toml".to_owned());
    let model = FusionCostModel::load(file)?;
    // Fuse whatever is faster, and keep apart what nothing is known about.
    let policy = Policy::new(WhenUnknown::Conservative);
    let best = model.on(Target::cpu(2)).partition_graph(&graph()?, &policy)?;
    for segment in &best.segments {
        let Some(kernel) = segment.problem else { continue };
        let (evidence, saved) = (segment.estimate.evidence(), segment.saved_ms);
        println!("{kernel}: {evidence}, saves {:.3} ms", saved.value);
    }
    println!("{:.3} ms less than one kernel per op", best.saved_ms.value);
    Ok(())
}

/// The ops of a graph with their sizes: two linear layers, the second with a residual connection
/// from outside.
pub(crate) fn graph() -> Result<[GraphNode; 6], Error> {
    let linear = |m, k, n| {
        let chain = Chain::new(&[Op::Linear])?;
        Ok::<_, Error>(GraphNode::new(Problem::linear(chain, DType::F32, LinearSizes { m, k, n })?))
    };
    let pointwise = |op: Pointwise, m, n| {
        let chain = Chain::new(&[op.into()])?;
        Ok::<_, Error>(GraphNode::new(Problem::rows(chain, DType::F32, RowsSizes { m, n })?))
    };
    Ok([
        linear(4096, 64, 256)?,
        pointwise(Pointwise::Bias, 4096, 256)?.reading(0),
        pointwise(Pointwise::Relu, 4096, 256)?.reading(1),
        linear(4096, 256, 1024)?.reading(2),
        pointwise(Pointwise::Add, 4096, 1024)?.reading(3),
        pointwise(Pointwise::Relu, 4096, 1024)?.reading(4),
    ])
}
