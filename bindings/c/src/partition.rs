//! Graphs, and the best splits of them into kernels.

use std::ptr::null;

use fusion_cost_model as fcm;

use crate::error::{Error, given};
use crate::estimate::{Estimate, Interval};
use crate::problem::Problem;
use crate::text::array;

/// A node of a graph: ops that follow each other, and what they read of other nodes. Zeros are a node
/// that reads nothing of others.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct GraphNode<'a> {
    /// The ops.
    pub problem: Option<&'a Problem>,
    /// Whether the first op transforms what another node writes, and not what comes from outside.
    pub has_input: bool,
    /// Whether something outside of the graph reads what it writes. A node that no other reads need not
    /// say so.
    pub is_output: bool,
    /// The node whose result the first op transforms, if it has one.
    pub input: usize,
    /// The nodes that write other operands, `num_operands` of them. Weights and other constants are not
    /// nodes.
    pub operands: *const usize,
    /// The number of operands.
    pub num_operands: usize,
}

/// The nodes of a caller.
///
/// # Safety
///
/// The operands of each node are as many as it says.
pub(crate) unsafe fn nodes(graph: &[GraphNode<'_>]) -> Result<Vec<fcm::GraphNode>, Error> {
    let node = |(index, node): (usize, &GraphNode<'_>)| {
        let what = format!("graph[{index}].operands");
        // SAFETY: what the caller of this function promises.
        let operands = unsafe { array(node.operands, node.num_operands, &what) }?;
        let problem = given(node.problem, &format!("graph[{index}].problem"))?.problem;
        let mut read = fcm::GraphNode::new(problem).with_operands(operands.iter().copied());
        if node.has_input {
            read = read.reading(node.input);
        }
        Ok(if node.is_output { read.as_output() } else { read })
    };
    graph.iter().enumerate().map(node).collect()
}

/// Some of a node's ops: from `begin` to before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct NodeOps {
    /// The node. A chain that is split by itself is node 0.
    pub node: usize,
    /// The first op.
    pub begin: usize,
    /// The op after the last one.
    pub end: usize,
}

/// The ops of a kernel, in the order in which they run.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Parts {
    /// The first of `count`.
    pub parts: *const NodeOps,
    /// Their number.
    pub count: usize,
}

/// Ops in one kernel, and what that costs.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Segment {
    /// The ops.
    pub ops: Parts,
    /// The ops as one problem; NULL for a single op that cannot be asked alone, such as a `max_pool`.
    pub problem: *const Problem,
    /// The time of its ops as one kernel each, and as one kernel together.
    pub estimate: Estimate,
    /// What one kernel saves: 0 of a single op, and of ops that a policy fuses without knowing.
    pub saved_ms: Interval,
    /// What a kernel with the next op in it too would save more than this one; NaN where it cannot be
    /// one, or nothing is known.
    pub saved_by_next_ms: Interval,
}

/// Another split, and how much longer it takes.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Alternative {
    /// The ops of the first of `num_segments` kernels.
    pub segments: *const Parts,
    /// The number of kernels.
    pub num_segments: usize,
    /// By how much it is slower than the best split.
    pub slower_by_ms: Interval,
    /// The most bytes that are alive at once.
    pub peak_bytes: u64,
}

/// The best split into kernels. What its pointers lead to belongs to it.
#[derive(Debug)]
#[repr(C)]
pub struct Partition {
    /// The first of `num_segments` kernels, in the order in which they run.
    pub segments: *const Segment,
    /// The number of kernels.
    pub num_segments: usize,
    /// Their time together; NaN where that of a segment is not known.
    pub total_ms: Interval,
    /// The time that it saves over one kernel per op.
    pub saved_ms: Interval,
    /// The most bytes that are alive at once: what a kernel reads and writes, and what later ones will
    /// read, without weights and other constants.
    pub peak_bytes: u64,
    /// The second best split; NULL where there is only one.
    pub runner_up: *const Alternative,
    /// One kernel per op.
    pub never: *const Alternative,
    /// As few kernels as possible, of those whose cost is known.
    pub always: *const Alternative,
    /// The storage behind the pointers, not for callers.
    pub storage: Box<Storage>,
}

/// What the pointers of a partition lead to.
#[derive(Debug, Default)]
pub struct Storage {
    // None of them changes once a pointer leads to its elements, so that those stay where they are.
    problems: Vec<Option<Problem>>,
    parts: Vec<Vec<NodeOps>>,
    kernels: Vec<Vec<Parts>>,
    segments: Vec<Segment>,
    alternatives: Vec<Alternative>,
}

impl Storage {
    fn keep_parts(&mut self, parts: &[fcm::NodeOps]) -> Parts {
        let of = |part: &fcm::NodeOps| NodeOps {
            node: part.node,
            begin: part.ops.start,
            end: part.ops.end,
        };
        let kept: Vec<NodeOps> = parts.iter().map(of).collect();
        let parts = Parts { parts: kept.as_ptr(), count: kept.len() };
        self.parts.push(kept);
        parts
    }

    fn keep_alternative(&mut self, alternative: &fcm::Alternative) {
        let kernels: Vec<Parts> =
            alternative.segments.iter().map(|parts| self.keep_parts(parts)).collect();
        self.alternatives.push(Alternative {
            segments: kernels.as_ptr(),
            num_segments: kernels.len(),
            slower_by_ms: Interval::of(Some(alternative.slower_by_ms)),
            peak_bytes: alternative.peak_bytes,
        });
        self.kernels.push(kernels);
    }

    fn keep_segment(&mut self, segment: &fcm::Segment<'_>, index: usize) -> Result<(), Error> {
        let problem = self.problems.get(index).and_then(Option::as_ref);
        let problem = problem.map_or(null(), std::ptr::from_ref);
        let ops = self.keep_parts(&segment.parts);
        self.segments.push(Segment {
            ops,
            problem,
            estimate: Estimate::of(&segment.estimate)?,
            saved_ms: Interval::of(Some(segment.saved_ms)),
            saved_by_next_ms: Interval::of(segment.saved_by_next_ms),
        });
        Ok(())
    }
}

impl Partition {
    pub(crate) fn of(best: &fcm::Partition<'_>) -> Result<Self, Error> {
        let mut storage = Box::new(Storage::default());
        // All of them first: a pointer leads to each.
        let problems = best.segments.iter().map(|segment| segment.problem.map(Problem::of));
        storage.problems = problems.collect();
        for (index, segment) in best.segments.iter().enumerate() {
            storage.keep_segment(segment, index)?;
        }
        storage.keep_alternative(&best.never);
        storage.keep_alternative(&best.always);
        if let Some(runner_up) = &best.runner_up {
            storage.keep_alternative(runner_up);
        }
        let alternative =
            |index| storage.alternatives.get(index).map_or(null(), std::ptr::from_ref);
        Ok(Self {
            segments: storage.segments.as_ptr(),
            num_segments: storage.segments.len(),
            total_ms: Interval::of(best.total_ms),
            saved_ms: Interval::of(Some(best.saved_ms)),
            peak_bytes: best.peak_bytes,
            never: alternative(0),
            always: alternative(1),
            runner_up: alternative(2),
            storage,
        })
    }
}

/// Frees a partition and all that its pointers lead to.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_partition_free(partition: Option<Box<Partition>>) {
    drop(partition);
}
