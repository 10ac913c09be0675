//! A model as it is run: each way is a sequence of layers. `ways` are those that a partition knows.

mod again;
mod ways;

use std::collections::HashMap;

use fused_kernels::InputSpec;
use fusion_cost_model::{GraphNode, NodeOps, Op, Pointwise, Problem};
use serde::{Deserialize, Serialize};

pub use again::Again;
pub use ways::{Region, Ways};

/// A way to run a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// One kernel for each op.
    Unfused,
    /// As few kernels as possible, of those whose cost is known.
    AlwaysFused,
    /// The kernels that the cost model expects to take the least time.
    BestPartition,
}

impl Way {
    /// All, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Unfused, Self::AlwaysFused, Self::BestPartition];

    /// The words in reports.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Unfused => "unfused",
            Self::AlwaysFused => "always fused",
            Self::BestPartition => "best partition",
        }
    }
}

/// A layer: ops that are one problem, and where their inputs come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// What it computes.
    pub problem: Problem,
    /// Whether in one kernel, or in one for each op.
    pub fused: bool,
    /// Inputs that other layers of the sequence write.
    pub feeds: Vec<Fed>,
}

/// An input of a layer that another one writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fed {
    /// Which input, in the order of [`InputSpec::of`].
    pub input: usize,
    /// The layer that writes it, which runs before.
    pub from: usize,
}

/// A cut of a graph into kernels, in an order in which they can run: the ops of each, by node.
pub type Cut = Vec<Vec<NodeOps>>;

/// The layers of a cut of a graph; the problem of each is one kernel, or, where `fused` is false, one
/// for each op, in place as in an unfused variant.
///
/// What flows along, and operands such as residuals, keys and values, come from the layers that write
/// them, where both have as many elements; else from memory of the layer's own. Weights always do.
///
/// `None` when ops of a kernel are not a problem, which those of a partition are.
#[must_use]
pub fn layers(nodes: &[GraphNode], cut: &[Vec<NodeOps>], fused: bool) -> Option<Vec<Layer>> {
    let mut writers: HashMap<usize, usize> = HashMap::new();
    let mut layers: Vec<Layer> = Vec::with_capacity(cut.len());
    for parts in cut {
        let problem = problem_of(nodes, parts)?;
        let specs = InputSpec::of(&problem);
        let mut feeds = Vec::new();
        let mut feed = |input: Option<usize>, read: usize| {
            let (Some(input), Some(&from)) = (input, writers.get(&read)) else { return };
            let written: Option<u64> = layers.get(from).map(|one: &Layer| elements(&one.problem));
            if written == specs.get(input).map(|spec| spec.shape.elements()) {
                feeds.push(Fed { input, from });
            }
        };
        let (mut step, mut before) = (0, None);
        for part in parts {
            let node = nodes.get(part.node)?;
            if part.ops.start == 0 {
                let reads = node.input.into_iter().chain(node.operands.iter().copied());
                let mut outside: Vec<usize> = reads.collect();
                // What the op before it in the kernel writes never leaves the kernel.
                if let Some(at) = outside.iter().position(|read| Some(*read) == before) {
                    outside.remove(at);
                } else if step == 0 && node.input.is_some() {
                    feed(Some(0), outside.remove(0));
                }
                if let [operand, ..] = outside[..] {
                    feed(operand_input(&specs, step, node.problem.chain()[0]), operand);
                }
            }
            step += part.ops.len();
            before = Some(part.node);
        }
        if let Some(last) = before {
            writers.insert(last, layers.len());
        }
        layers.push(Layer { problem, fused, feeds });
    }
    Some(layers)
}

/// The input of a problem that is the operand of a step, where another layer can write it.
fn operand_input(specs: &[InputSpec], step: usize, op: Op) -> Option<usize> {
    let is_activation = matches!(
        op,
        Op::Qk | Op::Pv | Op::Pointwise(Pointwise::Add) | Op::Pointwise(Pointwise::Mul)
    );
    // The very first input is what flows along.
    let found = specs.iter().enumerate().skip(1).find(|(_, spec)| spec.step == step);
    found.filter(|_| is_activation).map(|(index, _)| index)
}

fn elements(problem: &Problem) -> u64 {
    problem.steps().last().map_or(0, |step| step.output.elements())
}

/// The ops of a kernel as one problem.
#[must_use]
pub fn problem_of(nodes: &[GraphNode], parts: &[NodeOps]) -> Option<Problem> {
    let mut problems =
        parts.iter().map(|part| nodes.get(part.node)?.problem.slice(part.ops.clone()));
    let first = problems.next()??;
    problems.try_fold(first, |joined, next| joined.join(&next?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> GraphNode {
        GraphNode::new(text.parse().unwrap())
    }

    fn cut(kernels: &[&[usize]]) -> Cut {
        let parts = |kernel: &&[usize]| {
            kernel.iter().map(|&node| NodeOps { node, ops: 0..1 }).collect::<Vec<_>>()
        };
        kernels.iter().map(parts).collect()
    }

    /// Each layer as its problem and its feeds.
    fn shown(layers: &[Layer]) -> Vec<(String, Vec<(usize, usize)>)> {
        let feeds = |layer: &Layer| layer.feeds.iter().map(|fed| (fed.input, fed.from)).collect();
        layers.iter().map(|layer| (layer.problem.to_string(), feeds(layer))).collect()
    }

    /// x -> relu -> linear -> bias -> + relu(x)
    fn residual() -> Vec<GraphNode> {
        vec![
            node("relu/f32/m8.n4"),
            node("linear/f32/m8.k4.n4").reading(0),
            node("bias/f32/m8.n4").reading(1),
            node("add/f32/m8.n4").reading(2).with_operands([0]),
        ]
    }

    #[test]
    fn what_leaves_a_kernel_feeds_the_ones_that_read_it() {
        let nodes = residual();
        let each = layers(&nodes, &cut(&[&[0], &[1], &[2], &[3]]), true).unwrap();
        let problem = |text: &str| text.to_owned();
        assert_eq!(
            shown(&each),
            [
                (problem("relu/f32/m8.n4"), vec![]),
                (problem("linear/f32/m8.k4.n4"), vec![(0, 0)]),
                (problem("bias/f32/m8.n4"), vec![(0, 1)]),
                (problem("add/f32/m8.n4"), vec![(0, 2), (1, 0)]),
            ]
        );
        let two = layers(&nodes, &cut(&[&[0], &[1, 2, 3]]), false).unwrap();
        // Weight, bias, and what is added.
        let expected = ("linear+bias+add/f32/m8.k4.n4".to_owned(), vec![(0, 0), (3, 0)]);
        assert_eq!(shown(&two)[1], expected);
        assert!(two.iter().all(|layer| !layer.fused));
    }

    #[test]
    fn a_sum_goes_on_with_either_of_its_two() {
        // The shortcut is in the kernel, and the main branch is what it adds.
        let nodes = vec![
            node("relu/f32/m8.n4"),
            node("linear/f32/m8.k4.n4").reading(0),
            node("tanh/f32/m8.n4").reading(0),
            node("add/f32/m8.n4").reading(1).with_operands([2]),
        ];
        let found = layers(&nodes, &cut(&[&[0], &[1], &[2, 3]]), true).unwrap();
        assert_eq!(shown(&found)[2], ("tanh+add/f32/m8.n4".to_owned(), vec![(0, 0), (1, 1)]));
    }

    #[test]
    fn attention_is_fed_with_queries_keys_and_values() {
        let nodes = vec![
            node("linear/f32/m6.k8.n8"),
            node("linear/f32/m6.k8.n8"),
            node("linear/f32/m6.k8.n8"),
            node("qk/f32/b1.h2.q6.kv6.d4").reading(0).with_operands([1]),
            node("softmax/f32/m12.n6").reading(3),
            node("pv/f32/b1.h2.q6.kv6.d4").reading(4).with_operands([2]),
        ];
        let found = layers(&nodes, &cut(&[&[0], &[1], &[2], &[3, 4, 5]]), true).unwrap();
        assert_eq!(shown(&found)[3].1, [(0, 0), (1, 1), (2, 2)]);
    }

    #[test]
    fn other_sizes_and_what_comes_from_outside_are_not_fed() {
        let nodes = vec![
            node("relu/f32/m8.n4"),
            node("add/f32/m2.n4").with_operands([0]),
            node("linear/f32/m2.k3.n4").reading(1),
        ];
        let found = layers(&nodes, &cut(&[&[0], &[1], &[2]]), true).unwrap();
        assert!(found.iter().all(|layer| layer.feeds.is_empty()), "{found:?}");
        assert_eq!(layers(&nodes, &cut(&[&[0, 2]]), true), None);
    }
}
