//! When forward passes of training were launched: from the first to the last operator whose
//! gradient a backward pass computes.
//!
//! The profiler numbers gradients: an operator and the node that computes its gradient have the
//! same number, and an operator without a gradient, as in an evaluation between two steps, has none
//! that a node has. Old profilers write no numbers; there names have to do (`partners`).

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::partners;
use super::training::{Calls, Kind, plain, short};
use crate::enclosing::Moment;
use crate::shapes::base;
use crate::{NameId, Trace};

/// Operators whose gradients exist and that also load inputs.
const LOADING: [&str; 5] = ["to", "_to_copy", "copy_", "clone", "contiguous"];

/// Parts of the names of operators that every model has. A pass in which these have no gradients is
/// a pass of its own; masks and positions have none within a pass, either.
const OF_MODELS: [&str; 5] = ["mm", "conv", "norm", "attention", "embedding"];

/// An operator that may have a gradient.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) name: NameId,
    pub(super) has_gradient: bool,
    is_of_model: bool,
    is_in_closure: bool,
}

/// By thread, the stretches of time in which forward passes were launched.
pub(super) fn stretches(trace: &Trace, calls: &Calls) -> FxHashMap<u32, Vec<(i64, i64)>> {
    // What begins a stretch: all calls but those that may lie in the middle of a forward pass.
    let mut breaks: Vec<(i64, bool)> = (0..calls.kinds.len())
        .filter(|row| !matches!(calls.kinds[*row], Kind::ZeroGradients | Kind::Closure))
        .map(|row| (calls.start_ns[row], calls.kinds[row].is_backward()))
        .collect();
    breaks.sort_unstable();
    let next = |time: i64| breaks.partition_point(|(start, _)| *start <= time);
    // What no backward pass follows may be for anything.
    let is_before_backward = |run: &&[Call]| {
        let first = run.first().and_then(|call| breaks.get(next(call.start_ns)));
        first.is_some_and(|(_, is_backward)| *is_backward)
    };
    let with_stretches = |(thread, of_thread): (u32, Vec<Call>)| {
        let runs = of_thread.chunk_by(|a, b| next(a.start_ns) == next(b.start_ns));
        (thread, runs.filter(is_before_backward).flat_map(with_gradients).collect())
    };
    by_thread(trace, calls).into_iter().map(with_stretches).collect()
}

/// The operators outside of nodes and of optimizers whose gradients may be computed.
fn by_thread(trace: &Trace, calls: &Calls) -> FxHashMap<u32, Vec<Call>> {
    let ops = &trace.ops;
    let may_have: Vec<bool> = trace
        .names
        .iter()
        .map(|(_, name)| {
            !LOADING.contains(&base(name)) && calls.with_gradient.contains(&plain(short(name)))
        })
        .collect();
    let is_of_model: Vec<bool> = trace
        .names
        .iter()
        .map(|(_, name)| OF_MODELS.iter().any(|part| base(name).contains(part)))
        .collect();
    let on_backward: FxHashSet<u32> = calls.threads(Kind::is_backward);
    let on_main: FxHashSet<u32> = calls.threads(|kind| !kind.is_backward());
    let is_main = |thread: u32| on_main.contains(&thread) || !on_backward.contains(&thread);
    let rows: Vec<usize> = (0..ops.len())
        .filter(|row| {
            may_have.get(ops.name[*row].0 as usize) == Some(&true) && is_main(ops.thread[*row])
        })
        .collect();
    let moments: Vec<Moment> = rows
        .iter()
        .map(|row| Moment { thread: ops.thread[*row], time_ns: ops.start_ns[*row] })
        .collect();
    let mut by_thread: FxHashMap<u32, Vec<Call>> = FxHashMap::default();
    calls.intervals().around(&moments, |place, open| {
        if open.iter().any(|call| calls.kinds[*call] != Kind::Closure) {
            return;
        }
        let row = rows[place];
        by_thread.entry(ops.thread[row]).or_default().push(Call {
            start_ns: ops.start_ns[row],
            end_ns: ops.start_ns[row].saturating_add_unsigned(ops.duration_ns[row]),
            name: ops.name[row],
            has_gradient: calls.gradients.contains(&ops.gradient[row]),
            is_of_model: is_of_model.get(ops.name[row].0 as usize) == Some(&true),
            is_in_closure: !open.is_empty(),
        });
    });
    let order = |call: &Call| (call.start_ns, Reverse(call.end_ns));
    by_thread.values_mut().for_each(|of_thread| of_thread.sort_unstable_by_key(order));
    if calls.gradients.is_empty() {
        partners::match_by_name(trace, &mut by_thread);
    }
    // In a closure, the optimizer computes as well, with operators that have no gradients.
    let may_be_of_a_pass =
        |call: &Call| call.has_gradient || call.is_of_model || !call.is_in_closure;
    by_thread.values_mut().for_each(|of_thread| of_thread.retain(may_be_of_a_pass));
    by_thread
}

/// The stretches of a run of operators in which they have gradients: all of it, if it has no pass
/// without.
fn with_gradients(run: &[Call]) -> Vec<(i64, i64)> {
    let mut found = Vec::new();
    let mut open: Option<(i64, i64)> = None;
    let mut has_other_passes = false;
    for call in run {
        if call.has_gradient {
            let (from, to) = open.unwrap_or((call.start_ns, call.end_ns));
            open = Some((from, to.max(call.end_ns)));
        } else if call.is_of_model && open.is_none_or(|(_, to)| call.start_ns >= to) {
            // What a checkpoint runs inside of its call has no gradients yet.
            found.extend(open.take());
            has_other_passes = true;
        }
    }
    found.extend(open);
    let whole = run.first().zip(run.iter().map(|call| call.end_ns).max());
    match whole {
        Some((first, to)) if !has_other_passes && !found.is_empty() => vec![(first.start_ns, to)],
        _ => found,
    }
}
