//! The kernels that splits of a graph choose from.

use rustc_hash::FxHashMap;

use super::graph::{GraphNode, Units};
use super::search::each_path;
use crate::error::Error;
use crate::vocabulary::Problem;

/// A kernel that a split of a graph may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PossibleKernel {
    /// What it computes.
    pub problem: Problem,
    /// In how many places of the graph.
    pub places: usize,
}

/// Every kernel that a split of a graph may have, single ops too: the questions that
/// [`OnTarget::partition_graph`](crate::OnTarget::partition_graph) asks. Equal ones are there once, in
/// the order of their first places.
///
/// ```
/// use fusion_cost_model::{GraphNode, Problem, possible_kernels};
///
/// let chain: Problem = "linear_bias_relu/f32/m8.k16.n32".parse()?;
/// let kernels = possible_kernels(&[GraphNode::new(chain), GraphNode::new(chain)])?;
/// assert_eq!(kernels.len(), 6, "three ops, two pairs, and all of them");
/// assert!(kernels.iter().all(|kernel| kernel.places == 2));
/// # Ok::<(), fusion_cost_model::Error>(())
/// ```
///
/// # Errors
///
/// When a node reads one that does not come before it: [`Error::is_invalid_question`].
pub fn possible_kernels(nodes: &[GraphNode]) -> Result<Vec<PossibleKernel>, Error> {
    let units = Units::of(nodes)?;
    let mut kernels: Vec<PossibleKernel> = Vec::new();
    let mut known: FxHashMap<Problem, usize> = FxHashMap::default();
    for op in 0..units.feeders().len() {
        each_path(units.feeders(), &mut vec![op], &mut |path| {
            let Some(problem) = units.problem(path) else { return };
            let at = *known.entry(problem).or_insert(kernels.len());
            match kernels.get_mut(at) {
                Some(kernel) => kernel.places += 1,
                None => kernels.push(PossibleKernel { problem, places: 1 }),
            }
        });
    }
    Ok(kernels)
}
