//! Splitting a chain, or a graph of chains, into the kernels that take the least time.

mod graph;
mod memory;
mod possible;
mod search;

pub use graph::{GraphNode, NodeOps};
pub use possible::{PossibleKernel, possible_kernels};

use rustc_hash::FxHashSet;

use super::answer::{Estimate, Interval};
use super::on_target::OnTarget;
use super::policy::{Decision, Policy};
use crate::error::Error;
use crate::vocabulary::Problem;
use graph::Units;
use search::{Cut, Order, best_two};

/// Ops in one kernel, and what that costs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Segment<'m> {
    /// The ops, in the order in which they run.
    pub parts: Vec<NodeOps>,
    /// The ops as one problem; `None` for a single op that cannot be asked alone.
    pub problem: Option<Problem>,
    /// The time of its ops as one kernel each, and as one kernel together, with the evidence.
    pub estimate: Estimate<'m>,
    /// What one kernel saves, in milliseconds: 0 of a single op, and of ops that a policy fuses
    /// without knowing.
    pub saved_ms: Interval,
    /// What a kernel with the next op in it too would save more than this one, in milliseconds;
    /// `None` where it cannot be one, or nothing is known.
    pub saved_by_next_ms: Option<Interval>,
}

/// Another split, and how much longer it takes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Alternative {
    /// The ops of each kernel.
    pub segments: Vec<Vec<NodeOps>>,
    /// By how many milliseconds it is slower than the best split. Kernels that both have are in
    /// neither side of this difference, so that it is more certain than the difference of two totals.
    /// Below zero where a split is faster that the policy does not allow, such as by its threshold.
    pub slower_by_ms: Interval,
    /// The most bytes that are alive at once.
    pub peak_bytes: u64,
}

/// The best split into kernels.
///
/// A kernel is a run of ops, each of which alone reads what the one before it writes. The best split
/// is the one that saves most against one kernel per op, by the paired speedups of its segments:
/// times of different problems are less certain than how much faster one of them is than its own
/// unfused variant. Weights and other constants are prepared beforehand in either case, such as
/// packed for a GEMM, at no cost; and they are in memory all the time.
///
/// ```
/// # fn main() -> Result<(), fusion_cost_model::Error> {
/// # let text = include_str!("../../../tests/data/example.toml");
/// # let calibration = fusion_cost_model::calibration::HardwareCalibration::from_toml(text)?;
/// # let model = fusion_cost_model::FusionCostModel::new(calibration);
/// use fusion_cost_model::{Policy, Problem, Target, WhenUnknown};
///
/// let chain: Problem = "linear_bias_relu/f32/m4096.k64.n256".parse()?;
/// let policy = Policy::new(WhenUnknown::Conservative);
/// let best = model.on(Target::cpu(2)).partition(&chain, &policy)?;
/// assert_eq!(best.segments.len(), 1);
/// assert_eq!(best.segments[0].parts[0].ops, 0..3);
/// if let Some(total) = best.total_ms {
///     println!("{:.3} ms, and {:.3} ms less than unfused", total.value, best.saved_ms.value);
/// }
/// if let Some(other) = best.runner_up {
///     println!("{} kernels take longer", other.segments.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Partition<'m> {
    /// Its kernels, in the order in which they run.
    pub segments: Vec<Segment<'m>>,
    /// Their time together, in milliseconds; `None` where that of a segment is not known.
    pub total_ms: Option<Interval>,
    /// What it saves against one kernel per op, in milliseconds.
    pub saved_ms: Interval,
    /// The most bytes that are alive at once: what a kernel reads and writes, and what later ones
    /// will read, without weights and other constants.
    pub peak_bytes: u64,
    /// The second best split; `None` where there is only one.
    pub runner_up: Option<Alternative>,
    /// One kernel per op.
    pub never: Alternative,
    /// As few kernels as possible, of those whose cost is known.
    pub always: Alternative,
}

impl<'m> OnTarget<'m> {
    /// The best split of a chain into kernels. A segment is one that a [`Policy`] fuses, or a single
    /// op.
    ///
    /// # Errors
    ///
    /// Only when nothing is known about a possible segment, and the policy is not to guess:
    /// [`Error::is_undecided`].
    pub fn partition(&self, chain: &Problem, policy: &Policy) -> Result<Partition<'m>, Error> {
        self.partition_graph(&[GraphNode::new(*chain)], policy)
    }

    /// The best split of a graph into kernels. Ops of several nodes come into one kernel only where
    /// one alone reads what the other writes: a node that two others read ends a segment.
    ///
    /// # Errors
    ///
    /// When a node reads one that does not come before it ([`Error::is_invalid_question`]), and as
    /// [`Self::partition`].
    pub fn partition_graph(
        &self,
        nodes: &[GraphNode],
        policy: &Policy,
    ) -> Result<Partition<'m>, Error> {
        let units = Units::of(nodes)?;
        let mut failed = None;
        let costs = Costs { on: *self, policy, units: &units };
        let [best, runner_up] = best_two(units.feeders(), Order::Saving, |path| {
            let decision = costs.decide(path, &mut failed)?;
            decision.should_fuse().then(|| costs.saved(&decision).value)
        });
        let [always, _] = best_two(units.feeders(), Order::Kernels, |path| {
            let decision = costs.decide(path, &mut failed)?;
            let is_known = !matches!(decision, Decision::Unknown { fuse: false, .. });
            is_known.then(|| costs.saved(&decision).value)
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let one_each: Cut = (0..units.feeders().len()).map(|unit| vec![unit]).collect();
        let best = best.unwrap_or_else(|| one_each.clone());
        Ok(Partition {
            total_ms: costs.total(&best),
            saved_ms: sum(best.iter().map(|path| costs.saved_by(path))),
            peak_bytes: units.peak_bytes(&best),
            runner_up: runner_up.map(|cut| costs.alternative(&best, &cut)),
            never: costs.alternative(&best, &one_each),
            always: costs.alternative(&best, always.as_ref().unwrap_or(&one_each)),
            segments: best.iter().map(|path| costs.segment(path)).collect(),
        })
    }
}

/// What the paths of a graph cost on a target.
struct Costs<'u, 'm> {
    on: OnTarget<'m>,
    policy: &'u Policy,
    units: &'u Units<'u>,
}

impl<'m> Costs<'_, 'm> {
    fn decide(&self, path: &[usize], failed: &mut Option<Error>) -> Option<Decision<'m>> {
        let problem = self.units.problem(path)?;
        self.on.decide(&problem, self.policy).map_err(|error| failed.get_or_insert(error)).ok()
    }

    /// What one kernel saves. The fused time is in both variants and its error hardly matters.
    fn saved(&self, decision: &Decision<'_>) -> Interval {
        let estimate = decision.estimate();
        let known = (estimate.speedup(), estimate.fused_ms());
        let (Some(speedup), Some(fused), false) =
            (known.0, known.1, matches!(decision, Decision::Unknown { .. }))
        else {
            return Interval::exact(0.0);
        };
        let of = |speedup: f64| fused.value * (speedup - 1.0);
        Interval { value: of(speedup.value), low: of(speedup.low), high: of(speedup.high) }
    }

    fn saved_by(&self, path: &[usize]) -> Interval {
        if path.len() < 2 {
            return Interval::exact(0.0);
        }
        let decision = self.decide(path, &mut None);
        decision.map_or(Interval::exact(0.0), |decision| self.saved(&decision))
    }

    /// The estimate of a path, if the policy decides by such evidence.
    fn estimate(&self, path: &[usize]) -> Estimate<'m> {
        let problem = self.units.problem(path);
        problem.map_or(Estimate::UNKNOWN, |problem| self.on.estimate(&problem))
    }

    fn total(&self, cut: &Cut) -> Option<Interval> {
        let time = |path: &Vec<usize>| {
            let estimate = self.estimate(path);
            estimate.fused_ms().filter(|_| self.policy.counts(&estimate))
        };
        Some(sum(cut.iter().map(time).collect::<Option<Vec<_>>>()?))
    }

    fn segment(&self, path: &[usize]) -> Segment<'m> {
        let saved_ms = self.saved_by(path);
        let next = path.last().and_then(|&last| self.units.next(last));
        let with_next = next.and_then(|next| {
            let decision = self.decide(&[path, &[next]].concat(), &mut None)?;
            let is_known = !matches!(decision, Decision::Unknown { .. });
            is_known.then(|| difference(self.saved(&decision), saved_ms))
        });
        Segment {
            parts: self.units.parts(path),
            problem: self.units.problem(path),
            estimate: self.estimate(path),
            saved_ms,
            saved_by_next_ms: with_next,
        }
    }

    fn alternative(&self, best: &Cut, cut: &Cut) -> Alternative {
        let saved = |of: &Cut, but: &Cut| {
            let but: FxHashSet<&Vec<usize>> = but.iter().collect();
            sum(of.iter().filter(|path| !but.contains(path)).map(|path| self.saved_by(path)))
        };
        Alternative {
            segments: cut.iter().map(|path| self.units.parts(path)).collect(),
            slower_by_ms: difference(saved(best, cut), saved(cut, best)),
            peak_bytes: self.units.peak_bytes(cut),
        }
    }
}

/// The sum of values whose errors are independent.
fn sum(values: impl IntoIterator<Item = Interval>) -> Interval {
    let (mut value, mut below, mut above) = (0.0, 0.0_f64, 0.0_f64);
    for one in values {
        value += one.value;
        below = below.hypot(one.value - one.low);
        above = above.hypot(one.high - one.value);
    }
    Interval { value, low: value - below, high: value + above }
}

fn difference(a: Interval, b: Interval) -> Interval {
    sum([a, Interval { value: -b.value, low: -b.high, high: -b.low }])
}
