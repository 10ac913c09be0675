//! The parts of a step of training, by the operators around the launches of kernels.
//!
//! The framework records each node of the backward pass as an operator, and calls of an optimizer.
//! The innermost of these around a launch says what it is for. Forward is what was launched between
//! the first and the last operator whose gradient the trace has, before the backward pass begins
//! (see `forward`): what comes before these, as loading inputs or an evaluation, and behind the
//! backward pass, such as clipping, is not part of it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::marks::Phase;
use super::super::order::StreamOrder;
use super::{Found, PhaseEvidence, forward};
use crate::enclosing::{Intervals, Moment};
use crate::launched::NONE;
use crate::shapes::base;
use crate::{NameId, Trace};

/// What an operator, an annotation or a frame contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A node of the backward pass.
    Node,
    /// A node of the framework's own, which never calls operators of a forward pass.
    OwnNode,
    Checkpoint,
    Optimizer,
    /// An optimizer's call that runs the passes as well.
    Closure,
    /// The optimizer's, which may come between a forward pass and its backward pass.
    ZeroGradients,
}

impl Kind {
    pub(super) const fn is_backward(self) -> bool {
        matches!(self, Self::Node | Self::OwnNode | Self::Checkpoint)
    }
}

/// Operators that only a forward pass calls: those of a backward pass are made of others.
const FORWARD_ONLY: [&str; 10] = [
    "linear",
    "layer_norm",
    "group_norm",
    "batch_norm",
    "scaled_dot_product_attention",
    "conv1d",
    "conv2d",
    "conv3d",
    "dropout",
    "embedding",
];

/// The parts, if the trace has a backward pass.
pub(super) fn parts(
    trace: &Trace,
    launches: &[u32],
    operators: &[u32],
    order: &StreamOrder,
) -> Option<Found> {
    let calls = Calls::of(trace);
    if !calls.kinds.iter().any(|kind| matches!(kind, Kind::Node | Kind::OwnNode)) {
        return None;
    }
    let moments: Vec<Option<Moment>> =
        (0..trace.kernels.len()).map(|kernel| moment(trace, kernel, launches, operators)).collect();
    let again = calls.run_again(trace);
    let mut by_kernel = vec![None; trace.kernels.len()];
    let mut is_inside = vec![false; trace.kernels.len()];
    let known: Vec<(usize, Moment)> = moments
        .iter()
        .enumerate()
        .filter_map(|(kernel, moment)| Some((kernel, (*moment)?)))
        .collect();
    let times: Vec<Moment> = known.iter().map(|(_, moment)| *moment).collect();
    calls.intervals().around(&times, |place, open| {
        let mut telling = open.iter().filter(|call| calls.kinds[**call] != Kind::Closure);
        let (Some((kernel, moment)), Some(&innermost)) = (known.get(place), telling.next()) else {
            return;
        };
        is_inside[*kernel] = true;
        by_kernel[*kernel] = match (calls.kinds[innermost], again.get(&innermost)) {
            (Kind::Optimizer | Kind::ZeroGradients, _) => {
                Some((Phase::Optimizer, PhaseEvidence::Optimizer))
            }
            (Kind::Checkpoint, _) => Some((Phase::Recompute, PhaseEvidence::Checkpoint)),
            (_, None) => Some((Phase::Backward, PhaseEvidence::Autograd)),
            // Where the second run ends, the gradient that needs it is computed: nothing shows
            // where.
            (_, Some((from, to))) => (*from..=*to)
                .contains(&moment.time_ns)
                .then_some((Phase::Recompute, PhaseEvidence::Checkpoint)),
        };
    });
    let stretches = forward::stretches(trace, &calls);
    for (kernel, moment) in &known {
        let is_forward = |stretches: &Vec<(i64, i64)>| {
            let next = stretches.partition_point(|(from, _)| *from <= moment.time_ns);
            let last = next.checked_sub(1).and_then(|last| stretches.get(last));
            last.is_some_and(|(_, to)| moment.time_ns <= *to)
        };
        if !is_inside[*kernel] && stretches.get(&moment.thread).is_some_and(is_forward) {
            by_kernel[*kernel] = Some((Phase::Forward, PhaseEvidence::Gradients));
        }
    }
    between(&mut by_kernel, &moments, order);
    let runs = runs(&by_kernel, &known);
    Some(Found { by_kernel, runs })
}

/// When and where a kernel was launched, or its operator began.
pub(super) fn moment(
    trace: &Trace,
    kernel: usize,
    launches: &[u32],
    operators: &[u32],
) -> Option<Moment> {
    let row = |rows: &[u32]| rows.get(kernel).copied().filter(|row| *row != NONE);
    if let Some(launch) = row(launches) {
        let thread = *trace.launches.thread.get(launch as usize)?;
        return Some(Moment { thread, time_ns: *trace.launches.start_ns.get(launch as usize)? });
    }
    let op = row(operators)? as usize;
    Some(Moment { thread: *trace.ops.thread.get(op)?, time_ns: *trace.ops.start_ns.get(op)? })
}

/// The operators, annotations and frames that say what is launched in them.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) start_ns: Vec<i64>,
    duration_ns: Vec<u64>,
    thread: Vec<u32>,
    pub(super) kinds: Vec<Kind>,
    /// The names of operators whose gradients are computed, as [`plain`] writes them.
    pub(super) with_gradient: FxHashSet<String>,
    /// The numbers of the gradients that nodes compute, where the profiler wrote them.
    pub(super) gradients: FxHashSet<u32>,
}

impl Calls {
    fn of(trace: &Trace) -> Self {
        let mut calls = Self::default();
        let kinds: Vec<Option<Kind>> = trace.names.iter().map(|(_, name)| kind(name)).collect();
        let Trace { ops, annotations, frames, .. } = trace;
        macro_rules! rows {
            ($table:ident) => {
                &Intervals {
                    start_ns: &$table.start_ns,
                    duration_ns: &$table.duration_ns,
                    thread: &$table.thread,
                }
            };
        }
        calls.take(&ops.name, rows!(ops), &kinds, |_| true);
        let on_host = |row: usize| annotations.on_device.get(row) == Some(&false);
        calls.take(&annotations.name, rows!(annotations), &kinds, on_host);
        calls.take(&frames.name, rows!(frames), &kinds, |_| true);
        let is_node = |kind: &Option<Kind>| kind.is_some_and(Kind::is_backward);
        let nodes = trace.names.iter().zip(&kinds).filter(|(_, kind)| is_node(kind));
        calls.with_gradient = nodes.filter_map(|((_, name), _)| with_gradient(name)).collect();
        let of_ops = ops.name.iter().map(|name| kinds.get(name.0 as usize).copied().flatten());
        let gradients = of_ops.zip(ops.gradient.iter()).filter(|(kind, _)| is_node(kind));
        calls.gradients = gradients.map(|(_, number)| *number).filter(|one| *one != 0).collect();
        calls.take_out_closures();
        calls
    }

    /// An optimizer that is given a closure runs the passes forward and backward itself: that a
    /// launch lies in such a call says nothing.
    fn take_out_closures(&mut self) {
        let mut nodes: Vec<i64> = (0..self.kinds.len())
            .filter(|row| self.kinds[*row].is_backward())
            .map(|row| self.start_ns[row])
            .collect();
        nodes.sort_unstable();
        for row in 0..self.kinds.len() {
            let from = self.start_ns[row];
            let to = from.saturating_add_unsigned(self.duration_ns[row]);
            let next = nodes.partition_point(|node| *node < from);
            if self.kinds[row] == Kind::Optimizer && nodes.get(next).is_some_and(|node| *node < to)
            {
                self.kinds[row] = Kind::Closure;
            }
        }
    }

    /// Takes the rows of a table whose names say something.
    fn take(
        &mut self,
        names: &[NameId],
        rows: &Intervals<'_>,
        kinds: &[Option<Kind>],
        keep: impl Fn(usize) -> bool,
    ) {
        for (row, name) in names.iter().enumerate() {
            let kind = kinds.get(name.0 as usize).copied().flatten();
            if let Some(kind) = kind.filter(|_| keep(row)) {
                self.start_ns.push(rows.start_ns[row]);
                self.duration_ns.push(rows.duration_ns[row]);
                self.thread.push(rows.thread[row]);
                self.kinds.push(kind);
            }
        }
    }

    pub(super) fn intervals(&self) -> Intervals<'_> {
        let Self { start_ns, duration_ns, thread, .. } = self;
        Intervals { start_ns, duration_ns, thread }
    }

    /// For nodes in which operators of a forward pass run, from the first to the end of the last.
    fn run_again(&self, trace: &Trace) -> FxHashMap<usize, (i64, i64)> {
        let ops = &trace.ops;
        let is_forward: Vec<bool> =
            trace.names.iter().map(|(_, name)| FORWARD_ONLY.contains(&base(name))).collect();
        let rows: Vec<usize> = (0..ops.len())
            .filter(|row| is_forward.get(ops.name[*row].0 as usize) == Some(&true))
            .collect();
        let moments: Vec<Moment> = rows
            .iter()
            .map(|row| Moment { thread: ops.thread[*row], time_ns: ops.start_ns[*row] })
            .collect();
        let mut again: FxHashMap<usize, (i64, i64)> = FxHashMap::default();
        self.intervals().around(&moments, |place, open| {
            let Some(&node) = open.first().filter(|row| self.kinds[**row] == Kind::OwnNode) else {
                return;
            };
            let row = rows[place];
            let end = ops.start_ns[row].saturating_add_unsigned(ops.duration_ns[row]);
            let (from, to) = again.entry(node).or_insert((ops.start_ns[row], end));
            (*from, *to) = ((*from).min(ops.start_ns[row]), (*to).max(end));
        });
        again
    }

    pub(super) fn threads(&self, is_one: impl Fn(Kind) -> bool) -> FxHashSet<u32> {
        let rows = self.thread.iter().zip(&self.kinds).filter(|(_, kind)| is_one(**kind));
        rows.map(|(thread, _)| *thread).collect()
    }
}

/// A kernel without a launch, between two of one part on its stream, which runs kernels in the
/// order of their launches, is of that part.
fn between(
    by_kernel: &mut [Option<(Phase, PhaseEvidence)>],
    moments: &[Option<Moment>],
    order: &StreamOrder,
) {
    for lane in &order.lanes {
        let rows = order.kernels.get(lane.clone()).unwrap_or_default();
        let mut before = None;
        let mut waiting: Vec<usize> = Vec::new();
        for kernel in rows.iter().map(|row| *row as usize) {
            if moments.get(kernel).is_some_and(Option::is_none) {
                waiting.push(kernel);
                continue;
            }
            let found = by_kernel.get(kernel).copied().flatten();
            for kernel in waiting.drain(..) {
                if let Some(place) = by_kernel.get_mut(kernel).filter(|_| before == found) {
                    *place = found;
                }
            }
            before = found;
        }
    }
}

/// The runs of parts in the order of launches.
fn runs(
    by_kernel: &[Option<(Phase, PhaseEvidence)>],
    known: &[(usize, Moment)],
) -> Vec<(Phase, PhaseEvidence)> {
    let mut all: Vec<(i64, (Phase, PhaseEvidence))> = known
        .iter()
        .filter_map(|(kernel, moment)| Some((moment.time_ns, by_kernel.get(*kernel).copied()??)))
        .collect();
    all.sort_by_key(|(time, _)| *time);
    let runs = all.chunk_by(|a, b| a.1.0 == b.1.0);
    runs.filter_map(|run| Some(run.first()?.1)).collect()
}

/// What a name says that is launched in it.
fn kind(name: &str) -> Option<Kind> {
    if name.starts_with("Optimizer.step#") {
        return Some(Kind::Optimizer);
    }
    if name.starts_with("Optimizer.zero_grad#") {
        return Some(Kind::ZeroGradients);
    }
    // The function that frees and computes again: with nodes in it, or as a hook.
    let is_hook = name.contains("utils/checkpoint.py")
        && ["unpack_hook", "recompute_fn"].iter().any(|hook| name.ends_with(hook));
    if name.contains("CheckpointFunctionBackward") || is_hook {
        return Some(Kind::Checkpoint);
    }
    let node = name.strip_prefix(ENGINE).unwrap_or(name);
    if node.contains([' ', '(', '/']) {
        return None;
    }
    let stem = node.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.ends_with("Backward") {
        return Some(if stem == node { Kind::Node } else { Kind::OwnNode });
    }
    let is_of_framework = is_engine(name) || name.starts_with("torch::autograd::");
    is_of_framework.then_some(Kind::Node)
}

const ENGINE: &str = "autograd::engine::evaluate_function: ";

/// Whether a name is that of the engine's call of a node.
pub(super) fn is_engine(name: &str) -> bool {
    name.starts_with(ENGINE)
}

/// The operator whose gradient a node computes: `addmm` of `AddmmBackward0`.
pub(super) fn with_gradient(node: &str) -> Option<String> {
    let node = node.strip_prefix(ENGINE).unwrap_or(node);
    let stem = node.trim_end_matches(|c: char| c.is_ascii_digit());
    let op = stem.strip_suffix("Backward").filter(|op| !op.is_empty())?;
    Some(plain(op))
}

/// The name of an operator without its library's.
pub(super) fn short(op: &str) -> &str {
    op.rsplit("::").next().unwrap_or(op)
}

/// A name without what separates its words.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts() {
        let cases = [
            ("autograd::engine::evaluate_function: AddmmBackward0", Some(Kind::OwnNode)),
            ("AddmmBackward0", Some(Kind::OwnNode)),
            // Of older versions, and of functions that programs write themselves.
            ("AddmmBackward", Some(Kind::Node)),
            ("torch::autograd::AccumulateGrad", Some(Kind::Node)),
            (
                "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
                Some(Kind::Node),
            ),
            ("CheckpointFunctionBackward", Some(Kind::Checkpoint)),
            ("torch/utils/checkpoint.py(1129): unpack_hook", Some(Kind::Checkpoint)),
            ("torch/utils/checkpoint.py(488): checkpoint", None),
            ("Optimizer.step#AdamW.step", Some(Kind::Optimizer)),
            ("Optimizer.zero_grad#SGD.zero_grad", Some(Kind::ZeroGradients)),
            ("torch/optim/adam.py(212): step", None),
            ("aten::convolution_backward", None),
            ("train.py(7): Backward", None),
            ("aten::mm", None),
            ("", None),
        ];
        for (name, expected) in cases {
            assert_eq!(kind(name), expected, "{name}");
        }
    }

    #[test]
    fn operators_of_nodes() {
        for (node, op) in [
            ("AddmmBackward0", "aten::addmm"),
            ("CudnnBatchNormBackward0", "aten::cudnn_batch_norm"),
            ("autograd::engine::evaluate_function: NllLossBackward0", "aten::nll_loss"),
            ("CompiledFunctionBackward", "CompiledFunction"),
        ] {
            assert_eq!(with_gradient(node), Some(plain(short(op))), "{node}");
        }
        assert_eq!(with_gradient("torch::autograd::AccumulateGrad"), None);
        assert_eq!(with_gradient("Backward"), None);
    }
}
