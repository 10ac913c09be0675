//! Where the model begins again: between two markers lies a layer, or the end of one pass and the
//! beginning of the next.

use rustc_hash::{FxHashMap, FxHashSet};

use super::ends::{common_prefix, common_suffix};
use super::sequence::Sequence;
use super::steps::Steps;
use crate::Trace;
use crate::classify::Class;
use crate::launched::NONE;

/// Patterns of layers that a pass boundary is distinguished from.
const PATTERNS: usize = 8;

/// The places in a list of markers at which passes begin, the first one included. `module` is the
/// recorded module that a kernel was launched in, if it is one of the layers'.
pub(super) fn begins(
    sequence: &Sequence<'_>,
    markers: &[usize],
    launches: &[u32],
    steps: &Steps,
    module: impl Fn(usize) -> Option<u32>,
) -> Vec<usize> {
    let replays = markers_of_launches(sequence, markers, launches);
    let outer = has_outer(sequence, markers);
    let mut begins = vec![0];
    let mut called: FxHashSet<u32> = FxHashSet::default();
    called.extend(markers.first().and_then(|first| module(sequence.kernel(*first))));
    for (index, pair) in markers.windows(2).enumerate() {
        let &[one, next] = pair else { continue };
        let (a, b) = (sequence.kernel(one), sequence.kernel(next));
        let other_step = steps.step(a).zip(steps.step(b)).is_some_and(|(a, b)| a != b);
        let other_direction = sequence.is_backward(one) != sequence.is_backward(next);
        let launch = |kernel: usize| launches.get(kernel).copied().unwrap_or(NONE);
        let whole = |launch: u32| replays.get(&launch).is_some_and(|markers| *markers >= 2);
        let other_replay = launch(a) != launch(b) && whole(launch(a)) && whole(launch(b));
        let outside = outer.get(index).copied().unwrap_or_default();
        // A pass calls each of its layers once.
        let own = module(b);
        let again = own.is_some_and(|own| called.contains(&own));
        if other_step || other_direction || other_replay || outside || again {
            begins.push(index + 1);
            called.clear();
        }
        called.extend(own);
    }
    begins
}

/// The beginnings of passes with those behind which something was sent: a stage of a pipeline passes
/// on what it computed. That is so if all passes then have the same number of layers, except those
/// at the ends of the recording; experts exchange tokens in every layer, or begin to early.
pub(super) fn between_sends(
    trace: &Trace,
    sequence: &Sequence<'_>,
    markers: &[usize],
    begins: Vec<usize>,
) -> Vec<usize> {
    let start = |marker: &usize| trace.kernels.start_ns.get(sequence.kernel(*marker)).copied();
    let mut all = begins.clone();
    for (index, pair) in markers.windows(2).enumerate() {
        let (from, to) = (pair.first().and_then(start), pair.last().and_then(start));
        let sends = sequence.sends();
        let after = sends.partition_point(|send| Some(*send) <= from);
        if sends.get(after).is_some_and(|send| Some(*send) <= to) {
            all.push(index + 1);
        }
    }
    all.sort_unstable();
    all.dedup();
    let inner: Vec<usize> = all.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect();
    let is_even = inner.len() > 1 && inner.iter().all(|length| *length > 1 && *length == inner[0]);
    if is_even { all } else { begins }
}

/// How many markers each launch has. A graph with several is a replay of the whole model.
fn markers_of_launches(
    sequence: &Sequence<'_>,
    markers: &[usize],
    launches: &[u32],
) -> FxHashMap<u32, u32> {
    let mut counts = FxHashMap::default();
    for marker in markers {
        let launch = launches.get(sequence.kernel(*marker)).copied().unwrap_or(NONE);
        if launch != NONE {
            *counts.entry(launch).or_insert(0) += 1;
        }
    }
    counts
}

/// For each stretch between two markers, whether it has more in its middle than any layer, and
/// among that what belongs before the first or behind the last layer.
fn has_outer(sequence: &Sequence<'_>, markers: &[usize]) -> Vec<bool> {
    let mut ids: FxHashMap<&[Class], usize> = FxHashMap::default();
    let mut stretches: Vec<(usize, usize, u32)> = Vec::new();
    let mut of_marker = Vec::new();
    for pair in markers.windows(2) {
        let &[from, to] = pair else { continue };
        let next = stretches.len();
        let id = *ids.entry(sequence.between(from, to)).or_insert(next);
        if id == next {
            stretches.push((from, to, 0));
        }
        if let Some((.., count)) = stretches.get_mut(id) {
            *count += 1;
        }
        of_marker.push(id);
    }
    let mut common_first: Vec<usize> = (0..stretches.len()).collect();
    common_first.sort_by_key(|id| std::cmp::Reverse(stretches.get(*id).map(|(.., count)| *count)));
    let mut layers: Vec<&[Class]> = Vec::new();
    let mut outside = vec![false; stretches.len()];
    for id in common_first {
        let Some(&(from, to, count)) = stretches.get(id) else { continue };
        let classes = sequence.between(from, to);
        let is_outside = layers.iter().any(|layer| {
            let middle = middle(classes, layer);
            (from + middle.0..from + middle.1).any(|at| sequence.is_outer(at))
        });
        // What every second stretch is does not end a pass.
        if is_outside && (count as usize) * 2 < markers.len() {
            if let Some(outside) = outside.get_mut(id) {
                *outside = true;
            }
        } else if layers.len() < PATTERNS {
            layers.push(classes);
        }
    }
    let is_outside = |id: &usize| outside.get(*id).copied().unwrap_or_default();
    // A model has more than one layer; what ends every other one is part of layers.
    if of_marker.iter().filter(|id| is_outside(id)).count() * 2 > of_marker.len() {
        return Vec::new();
    }
    of_marker.iter().map(is_outside).collect()
}

/// What a stretch has between the part that is as in a layer's beginning and the part that is as
/// in its end; nothing if those meet.
fn middle(stretch: &[Class], layer: &[Class]) -> (usize, usize) {
    let prefix = common_prefix(stretch, layer);
    let suffix = common_suffix(stretch.get(prefix..).unwrap_or_default(), layer);
    (prefix, stretch.len() - suffix)
}
