#![allow(missing_docs, reason = "its first lines are the documentation")]

// Splits a chain of ops into kernels: at each op the longest run that is worth one kernel.
// Run it with `cargo run --example partitioner [calibration file]`.

use fusion_cost_model::{
    Chain, DType, Error, FusionCostModel, LinearSizes, OnTarget, Op, Pointwise, Policy, Problem,
    RowsSizes, Target, WhenUnknown,
};

fn main() -> Result<(), Error> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "tests/data/example.toml".to_owned());
    let model = FusionCostModel::load(file)?;
    let policy = Policy::new(WhenUnknown::Conservative).with_threshold(1.05);
    for kernel in partition(&graph()?, model.on(Target::cpu(2)), &policy)? {
        println!("{kernel}");
    }
    Ok(())
}

/// The ops of a graph with their sizes: two linear layers, the second with a residual connection.
pub(crate) fn graph() -> Result<[Problem; 6], Error> {
    let linear =
        |m, k, n| Problem::linear(Chain::new(&[Op::Linear])?, DType::F32, LinearSizes { m, k, n });
    let pointwise = |op: Pointwise, m, n| {
        Problem::rows(Chain::new(&[op.into()])?, DType::F32, RowsSizes { m, n })
    };
    Ok([
        linear(4096, 64, 256)?,
        pointwise(Pointwise::Bias, 4096, 256)?,
        pointwise(Pointwise::Relu, 4096, 256)?,
        linear(4096, 256, 1024)?,
        pointwise(Pointwise::Add, 4096, 1024)?,
        pointwise(Pointwise::Relu, 4096, 1024)?,
    ])
}

pub(crate) fn partition(
    ops: &[Problem],
    on: OnTarget,
    policy: &Policy,
) -> Result<Vec<Problem>, Error> {
    let mut kernels = Vec::new();
    let mut rest = ops;
    while let [first, next @ ..] = rest {
        let (mut kernel, mut end) = (*first, 1);
        let mut run = *first;
        for (ops, op) in (2..).zip(next) {
            run = match run.join(op) {
                Ok(joined) => joined,
                Err(error) if error.is_not_one_kernel() => break,
                Err(error) => return Err(error),
            };
            if on.decide(&run, policy)?.should_fuse() {
                (kernel, end) = (run, ops);
            }
        }
        kernels.push(kernel);
        rest = &rest[end..];
    }
    Ok(kernels)
}
