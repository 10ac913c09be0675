//! A model as it is split into kernels: `text` for people, `csv` for tables, and these types as JSON.

mod csv;
mod text;

use std::collections::{BTreeMap, HashMap};

use fusion_cost_model::{
    Alternative, Decision, Error, Estimate, Evidence, GraphNode, NodeOps, OnTarget, Partition,
    Policy, PossibleKernel, Problem, Segment, possible_kernels,
};
use model_graphs::{SegmentOp, Segments};
use serde::{Serialize, Serializer};

use super::estimated::{EVIDENCE, Range, decision_words};

/// A model that was split into kernels.
#[derive(Debug, Clone, Serialize)]
pub struct SplitModel {
    /// What was split, with what is known of what.
    #[serde(flatten)]
    pub question: Question,
    /// The kernels of the best split, in an order in which they can run.
    pub kernels: Vec<Kernel>,
    /// Kernels of as few as can be that the best split does not have: what is better apart.
    pub apart: Vec<Kernel>,
    /// The best split and others.
    pub splits: Splits,
    /// What is known of the kernels, by evidence.
    pub evidence: Vec<Known>,
    /// Nodes that the vocabulary cannot express.
    pub opaque: Vec<OpaqueNodes>,
    /// What is taken for granted, and of how many groups of nodes.
    pub assumed: BTreeMap<String, usize>,
}

/// What was split, and by what knowledge.
#[derive(Debug, Clone, Serialize)]
pub struct Question {
    /// The file of the model.
    pub model: String,
    /// Numbers of its open dimensions.
    pub dims: BTreeMap<String, u64>,
    /// The calibration file.
    pub profile: String,
    /// Where the kernels would run.
    #[serde(serialize_with = "as_text")]
    pub target: fusion_cost_model::Target,
    /// The speedup from which fusing is worth it.
    pub threshold: f64,
    /// How many ops there are.
    pub ops: usize,
    /// How many segments they are in, over whose ends no kernel reaches.
    pub segments: usize,
    /// Nodes that only change a shape.
    pub views: usize,
    /// Nodes whose results are known ahead of time.
    pub computed_ahead: usize,
    /// Nodes that no output needs, which are left out.
    pub unused: usize,
}

/// A kernel.
#[derive(Debug, Clone, Serialize)]
pub struct Kernel {
    /// What it computes; `None` for ops that cannot be asked about.
    pub problem: Option<Problem>,
    /// The nodes of the model that it computes.
    pub nodes: Vec<String>,
    /// What the times rest on.
    #[serde(serialize_with = "as_text")]
    pub evidence: Evidence,
    /// How far beyond the measured sizes it lies.
    pub octaves_beyond: f64,
    /// Whether to fuse; `None` of a single op.
    pub decision: Option<&'static str>,
    /// Its time as one kernel per op.
    pub unfused_ms: Option<Range>,
    /// Its time as one kernel.
    pub fused_ms: Option<Range>,
    /// The one over the other.
    pub speedup: Option<Range>,
    /// What it saves against one kernel per op; `None` of what is not known.
    pub saved_ms: Option<Range>,
    /// What a kernel with the next op in it would save more.
    pub saved_by_next_ms: Option<Range>,
}

/// The best split and others.
#[derive(Debug, Clone, Serialize)]
pub struct Splits {
    /// The best one.
    pub best: Split,
    /// The second best; `None` where there is only one.
    pub second: Option<Split>,
    /// As few kernels as possible, of those whose cost is known.
    pub always: Split,
    /// One kernel per op.
    pub never: Split,
}

/// A split.
#[derive(Debug, Clone, Serialize)]
pub struct Split {
    /// How many kernels it has.
    pub kernels: usize,
    /// Their time together; `None` where that of one is not known.
    pub total_ms: Option<Range>,
    /// By how much it is slower than the best one.
    pub slower_by_ms: Range,
    /// The most bytes that are alive at once.
    pub peak_bytes: u64,
}

/// What is known of kernels by some evidence.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Known {
    /// The evidence.
    #[serde(serialize_with = "as_text")]
    pub evidence: Evidence,
    /// Different kernels that a split may have.
    pub possible: usize,
    /// Kernels of the best split.
    pub chosen: usize,
    /// Their share of the time of the best split; `None` where that is not known.
    pub share: Option<f64>,
}

/// Opaque nodes of one operator that are opaque for the same reason.
#[derive(Debug, Clone, Serialize)]
pub struct OpaqueNodes {
    /// The operator.
    pub op: String,
    /// Why the vocabulary cannot express it.
    pub reason: String,
    /// How many.
    pub nodes: usize,
}

fn as_text<S: Serializer>(value: &impl ToString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_string())
}

impl SplitModel {
    /// The best split of the ops of a model, which are `nodes` in their order.
    ///
    /// # Errors
    ///
    /// When a node reads one that does not come before it, which those of segments do not.
    pub fn of(
        question: Question,
        found: &Segments,
        nodes: &[GraphNode],
        on: OnTarget<'_>,
        policy: &Policy,
    ) -> Result<Self, Error> {
        let best = on.partition_graph(nodes, policy)?;
        let possible = possible_kernels(nodes)?;
        let mut rest = found.segments().iter().flat_map(|segment| segment.ops());
        let of_node = |node: &GraphNode| rest.by_ref().take(node.problem.chain().len()).collect();
        let ops: Vec<Vec<&SegmentOp>> = nodes.iter().map(of_node).collect();
        let split = Ops { ops: &ops, nodes, on, policy };
        let kernels: Vec<Kernel> =
            best.segments.iter().map(|segment| split.kernel(segment)).collect();
        let is_chosen =
            |parts: &Vec<NodeOps>| best.segments.iter().any(|segment| segment.parts == *parts);
        let is_fused =
            |parts: &&Vec<NodeOps>| parts.iter().map(|part| part.ops.len()).sum::<usize>() > 1;
        let apart = best.always.segments.iter().filter(is_fused);
        let apart = apart.filter(|parts| !is_chosen(parts));
        let opaque = found.opaque_counts().into_iter();
        Ok(Self {
            apart: apart.map(|parts| split.apart(parts)).collect(),
            splits: Splits::of(&best),
            evidence: known(&possible, &kernels, on),
            opaque: opaque
                .map(|count| OpaqueNodes { op: count.op, reason: count.reason, nodes: count.nodes })
                .collect(),
            assumed: found.assumptions().map(|(what, count)| (what.to_string(), count)).collect(),
            question,
            kernels,
        })
    }
}

/// The ops of a model, and what is known of them.
struct Ops<'s> {
    /// Those of each node.
    ops: &'s [Vec<&'s SegmentOp>],
    nodes: &'s [GraphNode],
    on: OnTarget<'s>,
    policy: &'s Policy,
}

impl Ops<'_> {
    fn kernel(&self, segment: &Segment<'_>) -> Kernel {
        Kernel {
            saved_by_next_ms: segment.saved_by_next_ms.map(Range::from),
            ..self.described(segment.problem, &segment.estimate, &segment.parts)
        }
    }

    /// A kernel that the best split does not have.
    fn apart(&self, parts: &[NodeOps]) -> Kernel {
        let mut problems = parts.iter().map(|part| {
            self.nodes.get(part.node).and_then(|node| node.problem.slice(part.ops.clone()))
        });
        let first = problems.next().flatten();
        let problem = first
            .and_then(|first| problems.try_fold(first, |joined, next| joined.join(&next?).ok()));
        let estimate = problem.map(|problem| self.on.estimate(&problem));
        match estimate {
            Some(estimate) => self.described(problem, &estimate, parts),
            None => Kernel {
                problem,
                nodes: self.names(parts),
                evidence: Evidence::Unknown,
                octaves_beyond: 0.0,
                decision: None,
                unfused_ms: None,
                fused_ms: None,
                speedup: None,
                saved_ms: None,
                saved_by_next_ms: None,
            },
        }
    }

    fn described(
        &self,
        problem: Option<Problem>,
        estimate: &Estimate<'_>,
        parts: &[NodeOps],
    ) -> Kernel {
        let several = problem.filter(|problem| !problem.chain().is_single());
        let decision = several.and_then(|problem| self.on.decide(&problem, self.policy).ok());
        let speedup = estimate.speedup().filter(|_| several.is_some());
        let fused = estimate.fused_ms();
        let saved = speedup.zip(fused).map(|(speedup, fused)| {
            let of = |speedup: f64| fused.value * (speedup - 1.0);
            Range { value: of(speedup.value), low: of(speedup.low), high: of(speedup.high) }
        });
        Kernel {
            problem,
            nodes: self.names(parts),
            evidence: estimate.evidence(),
            octaves_beyond: estimate.octaves_beyond(),
            decision: decision.map(|decision: Decision<'_>| decision_words(&decision)[1]),
            unfused_ms: estimate.unfused_ms().map(Range::from),
            fused_ms: fused.map(Range::from),
            speedup: speedup.map(Range::from),
            saved_ms: saved,
            saved_by_next_ms: None,
        }
    }

    /// The nodes of the model that compute some ops, each once.
    fn names(&self, parts: &[NodeOps]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let of_part = |part: &NodeOps| self.ops.get(part.node)?.get(part.ops.clone());
        for op in parts.iter().filter_map(of_part).flatten() {
            for name in op.nodes() {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        names
    }
}

impl Splits {
    fn of(best: &Partition<'_>) -> Self {
        let nothing = Range { value: 0.0, low: 0.0, high: 0.0 };
        let total = best.total_ms.map(Range::from);
        let of = |one: &Alternative| {
            let slower: Range = one.slower_by_ms.into();
            let total_ms = total.map(|total| {
                // What both have in common is as uncertain in either.
                let below = (total.value - total.low).hypot(slower.value - slower.low);
                let above = (total.high - total.value).hypot(slower.high - slower.value);
                let value = total.value + slower.value;
                Range { value, low: value - below, high: value + above }
            });
            Split {
                kernels: one.segments.len(),
                total_ms,
                slower_by_ms: slower,
                peak_bytes: one.peak_bytes,
            }
        };
        Self {
            best: Split {
                kernels: best.segments.len(),
                total_ms: total,
                slower_by_ms: nothing,
                peak_bytes: best.peak_bytes,
            },
            second: best.runner_up.as_ref().map(of),
            always: of(&best.always),
            never: of(&best.never),
        }
    }
}

/// What is known of all kernels that may be, and of those that were chosen.
fn known(possible: &[PossibleKernel], chosen: &[Kernel], on: OnTarget<'_>) -> Vec<Known> {
    let mut counts: HashMap<Evidence, usize> = HashMap::new();
    for kernel in possible {
        *counts.entry(on.estimate(&kernel.problem).evidence()).or_default() += 1;
    }
    let time = |kernel: &&Kernel| kernel.fused_ms.map(|time| time.value);
    let total: Option<f64> = chosen.iter().map(|kernel| time(&kernel)).sum();
    let of = |evidence: Evidence| {
        let chosen: Vec<&Kernel> =
            chosen.iter().filter(|kernel| kernel.evidence == evidence).collect();
        // The sum of nothing would be a negative zero.
        let own: Option<f64> = chosen.iter().map(time).try_fold(0.0, |sum, time| Some(sum + time?));
        Known {
            evidence,
            possible: counts.get(&evidence).copied().unwrap_or(0),
            chosen: chosen.len(),
            share: own.zip(total).filter(|(_, total)| *total > 0.0).map(|(own, total)| own / total),
        }
    };
    EVIDENCE.into_iter().map(of).collect()
}
