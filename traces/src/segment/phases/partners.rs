//! Which operators have gradients, where the profiler wrote no numbers: by names.
//!
//! A backward pass computes the gradients of the operators that ran last. So each node is of the last
//! operator of its name before it that is of no later node, and what ran before the pass, as an
//! evaluation did, is left without.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::forward::Call;
use super::training::{is_engine, plain, short, with_gradient};
use crate::{NameId, Trace};

/// Finds the operators with gradients among those of each thread, which are in the order of their
/// starts, and leaves out those inside of others of the same name.
pub(super) fn match_by_name(trace: &Trace, by_thread: &mut FxHashMap<u32, Vec<Call>>) {
    let mut numbers: FxHashMap<String, usize> = FxHashMap::default();
    let mut number = |name: String| {
        let next = numbers.len();
        *numbers.entry(name).or_insert(next)
    };
    let of_op: Vec<usize> =
        trace.names.iter().map(|(_, name)| number(plain(short(name)))).collect();
    let of_node = nodes(trace, number);
    let name_of = |name: NameId| of_op.get(name.0 as usize).copied().unwrap_or(usize::MAX);
    for of_thread in by_thread.values_mut() {
        let mut ends: FxHashMap<usize, i64> = FxHashMap::default();
        of_thread.retain(|call| {
            let end = ends.entry(name_of(call.name)).or_insert(i64::MIN);
            let is_inside = call.start_ns < *end;
            *end = call.end_ns.max(*end);
            !is_inside
        });
    }
    // From the last to the first.
    let mut nodes: Vec<(i64, usize)> = Vec::new();
    for (name, start_ns) in trace.ops.name.iter().zip(trace.ops.start_ns.iter()) {
        nodes.extend(of_node.get(name).map(|op| (*start_ns, *op)));
    }
    nodes.sort_unstable_by_key(|(start_ns, _)| Reverse(*start_ns));
    let mut calls: Vec<&mut Call> = by_thread.values_mut().flatten().collect();
    calls.sort_by_key(|call| Reverse(call.start_ns));
    let mut nodes = nodes.into_iter().peekable();
    let mut waiting: FxHashMap<usize, u64> = FxHashMap::default();
    for call in calls {
        while let Some((_, op)) = nodes.next_if(|(start_ns, _)| *start_ns > call.start_ns) {
            *waiting.entry(op).or_default() += 1;
        }
        let of_name = waiting.get_mut(&name_of(call.name)).filter(|left| **left > 0);
        call.has_gradient = of_name.is_some();
        if let Some(left) = of_name {
            *left -= 1;
        }
    }
}

/// Of the names of nodes, those of the operators whose gradients they compute. A node is recorded
/// with the engine's call around it or without, and is counted once.
fn nodes(trace: &Trace, mut number: impl FnMut(String) -> usize) -> FxHashMap<NameId, usize> {
    let named: Vec<(NameId, bool, usize)> = trace
        .names
        .iter()
        .filter_map(|(id, name)| Some((id, is_engine(name), number(with_gradient(name)?))))
        .collect();
    let alone: FxHashSet<usize> =
        named.iter().filter(|(_, is_engine, _)| !is_engine).map(|(.., op)| *op).collect();
    let is_counted = |(_, is_engine, op): &(NameId, bool, usize)| !is_engine || !alone.contains(op);
    named.into_iter().filter(is_counted).map(|(id, _, op)| (id, op)).collect()
}
