//! Cuts a sequence of kernels into passes and layers.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::ends::{body, common_prefix, lead};
use super::layers::NoLayers;
use super::markers::{self, Marker};
use super::modules::Modules;
use super::sequence::Sequence;
use super::steps::Steps;
use super::{passes, repetition};
use crate::Trace;
use crate::classify::Class;
use crate::launched::NONE;

/// At least this share of the layers must look like another one.
const LEAST_REPEATED: f64 = 0.5;

/// The ends of last layers are looked for with so many of the patterns.
const PATTERNS: usize = 8;

/// The passes and layers of a sequence.
pub(super) struct Cut {
    pub(super) marker: Marker,
    /// The share of the layers that look like another one.
    pub(super) repeated_share: f64,
    pub(super) passes: Vec<CutPass>,
}

/// The layers of a pass, as places in the sequence.
pub(super) struct CutPass {
    pub(super) layers: Vec<Range<usize>>,
    pub(super) is_backward: bool,
    /// Whether the last layer is without the beginning of a next one.
    pub(super) has_open_end: bool,
}

/// Finds the passes and layers of a sequence, or says why there are none.
pub(super) fn cut(
    trace: &Trace,
    sequence: &Sequence<'_>,
    launches: &[u32],
    steps: &Steps,
    modules: Option<&Modules>,
) -> Result<Cut, NoLayers> {
    let (marker, passes) = if let Some((marker, markers)) = markers::find(sequence) {
        let markers = first_of_each_call(trace, sequence, launches, modules, markers);
        if markers.len() < 2 {
            return Err(NoLayers::OneMarker { marker });
        }
        (marker, at_markers(sequence, &markers, launches, steps))
    } else if let Some(calls) = calls(trace, sequence, launches, modules) {
        (Marker::Module, whole_layers(sequence, calls, launches, steps))
    } else {
        let found = repetition::find(sequence, steps);
        if found.is_empty() {
            return Err(NoLayers::NoMarker);
        }
        let ranges = found.into_iter().map(|(from, to)| from..to).collect();
        (Marker::Repetition, whole_layers(sequence, ranges, launches, steps))
    };
    let repeated_share = repeated_share(sequence, &passes);
    if repeated_share < LEAST_REPEATED {
        let markers = passes.iter().map(|pass| pass.layers.len()).sum();
        return Err(NoLayers::NoRepetition { marker, markers, repeated_share });
    }
    Ok(Cut { marker, passes, repeated_share })
}

/// Leaves out the markers of a module's call after its first one, if calls have several. A marker
/// outside of all calls then has no module that it could be the first of.
fn first_of_each_call(
    trace: &Trace,
    sequence: &Sequence<'_>,
    launches: &[u32],
    modules: Option<&Modules>,
    markers: Vec<usize>,
) -> Vec<usize> {
    let Some(modules) = modules else { return markers };
    let call_of = |at: usize| {
        let launch = launches.get(sequence.kernel(at)).copied().unwrap_or(NONE);
        modules.call(trace, launch)
    };
    let calls: Vec<Option<u32>> = markers.iter().map(|at| call_of(*at)).collect();
    let repeats = calls.windows(2).any(|pair| matches!(pair, [Some(a), Some(b)] if a == b));
    if !repeats {
        return markers;
    }
    let mut last = None;
    let first_of_call = |(at, call): (usize, Option<u32>)| {
        let is_first = call.is_some() && call != last;
        last = call;
        is_first.then_some(at)
    };
    markers.into_iter().zip(calls).filter_map(first_of_call).collect()
}

/// The kernels that each call of a layer's module launched, if there are such calls.
fn calls(
    trace: &Trace,
    sequence: &Sequence<'_>,
    launches: &[u32],
    modules: Option<&Modules>,
) -> Option<Vec<Range<usize>>> {
    let modules = modules?;
    let mut found: Vec<(u32, Range<usize>)> = Vec::new();
    for at in 0..sequence.len() {
        let launch = launches.get(sequence.kernel(at)).copied().unwrap_or(NONE);
        let Some(call) = modules.call(trace, launch) else { continue };
        match found.last_mut() {
            Some((last, range)) if *last == call => range.end = at + 1,
            _ => found.push((call, at..at + 1)),
        }
    }
    (found.len() > 1).then(|| found.into_iter().map(|(_, range)| range).collect())
}

/// Cuts at markers. The last layer of a pass ends where its pattern does.
fn at_markers(
    sequence: &Sequence<'_>,
    markers: &[usize],
    launches: &[u32],
    steps: &Steps,
) -> Vec<CutPass> {
    let mut begins = passes::begins(sequence, markers, launches, steps);
    begins.push(markers.len());
    let marker = |index: usize| markers.get(index).copied().unwrap_or(sequence.len());
    let inner = begins.windows(2).flat_map(|pass| match pass {
        &[from, to] => from..to.saturating_sub(1),
        _ => 0..0,
    });
    let patterns = most_common(inner.map(|at| sequence.between(marker(at), marker(at + 1))));
    let leads = leads(sequence, &patterns, &begins, markers, steps);
    let mut lengths: FxHashMap<&[Class], usize> = FxHashMap::default();
    let mut found = Vec::new();
    for pass in begins.windows(2) {
        let &[from, to] = pass else { continue };
        let Some(last) = to.checked_sub(1) else { continue };
        let mut layers: Vec<Range<usize>> =
            (from..last).map(|at| marker(at)..marker(at + 1)).collect();
        let limit = end_of_step(sequence, marker(last), marker(to), steps);
        let rest = sequence.between(marker(last), limit);
        // Most passes end in the same way.
        let length = *lengths.entry(rest).or_insert_with(|| last_length(&patterns, &leads, rest));
        layers.push(marker(last)..marker(last) + length);
        let is_backward = sequence.is_backward(marker(from));
        found.push(CutPass { layers, is_backward, has_open_end: true });
    }
    found
}

/// The classes of stretches, the most frequent first.
fn most_common<'s>(stretches: impl Iterator<Item = &'s [Class]>) -> Vec<&'s [Class]> {
    let mut counts: FxHashMap<&[Class], (usize, usize)> = FxHashMap::default();
    for (index, stretch) in stretches.enumerate() {
        counts.entry(stretch).or_insert((0, index)).0 += 1;
    }
    let mut sorted: Vec<(&[Class], (usize, usize))> = counts.into_iter().collect();
    sorted.sort_by_key(|(_, (count, first))| (Reverse(*count), *first));
    sorted.into_iter().take(PATTERNS).map(|(stretch, _)| stretch).collect()
}

/// For each pattern, how much of its end is the beginning of a next layer: what most passes show
/// before their first marker.
fn leads(
    sequence: &Sequence<'_>,
    patterns: &[&[Class]],
    begins: &[usize],
    markers: &[usize],
    steps: &Steps,
) -> Vec<usize> {
    let heads: Vec<(&[Class], bool)> = begins
        .iter()
        .filter_map(|begin| {
            let to = *markers.get(*begin)?;
            let from = begin.checked_sub(1).and_then(|before| markers.get(before).copied());
            let from = begin_of_step(sequence, from.map_or(0, |from| from + 1), to, steps);
            // What looks up tokens comes before the first layer, and other steps before that.
            let outer = (from..to).rev().find(|at| sequence.is_outer(*at));
            let from = outer.map_or(from, |outer| outer + 1);
            Some((sequence.between(from, to), from == 0))
        })
        .take(PATTERNS)
        .collect();
    let of_pattern = |pattern: &&[Class]| {
        let mut counts: FxHashMap<usize, usize> = FxHashMap::default();
        for (head, begins_recording) in &heads {
            let (lead, used) = lead(pattern, head);
            // The recording began in a layer, of which nothing shows the beginning.
            if lead > 0 && !(*begins_recording && used == head.len()) {
                *counts.entry(lead).or_insert(0) += 1;
            }
        }
        let most = counts.into_iter().max_by_key(|(lead, count)| (*count, Reverse(*lead)));
        most.map_or(0, |(lead, _)| lead)
    };
    patterns.iter().map(of_pattern).collect()
}

/// How many kernels of the rest of a pass belong to its last layer, by the pattern that fits best.
fn last_length(patterns: &[&[Class]], leads: &[usize], rest: &[Class]) -> usize {
    let fits = patterns.iter().zip(leads).map(|(pattern, &lead)| {
        let body_length = pattern.len().saturating_sub(lead).max(1);
        let exact = common_prefix(pattern, rest).min(body_length);
        (exact as f64 / body_length as f64, pattern, lead)
    });
    // Of equals the first, which is the most frequent one.
    let best = fits.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map_or(1, |(_, pattern, lead)| body(pattern, lead, rest).max(1)).min(rest.len())
}

/// Where the step of a kernel ends, at most `limit`.
fn end_of_step(sequence: &Sequence<'_>, at: usize, limit: usize, steps: &Steps) -> usize {
    let step = steps.step(sequence.kernel(at));
    let is_other = |other: &usize| {
        let other = steps.step(sequence.kernel(*other));
        other.is_some() && other != step
    };
    (at..limit).find(is_other).unwrap_or(limit)
}

/// Where the step of a kernel begins, at least `limit`.
fn begin_of_step(sequence: &Sequence<'_>, limit: usize, at: usize, steps: &Steps) -> usize {
    let step = steps.step(sequence.kernel(at));
    let is_other = |other: &usize| {
        let other = steps.step(sequence.kernel(*other));
        other.is_some() && other != step
    };
    (limit..at).rev().find(is_other).map_or(limit, |other| other + 1)
}

/// Puts layers with both ends into passes.
fn whole_layers(
    sequence: &Sequence<'_>,
    layers: Vec<Range<usize>>,
    launches: &[u32],
    steps: &Steps,
) -> Vec<CutPass> {
    let markers: Vec<usize> = layers.iter().map(|layer| layer.start).collect();
    if markers.is_empty() {
        return Vec::new();
    }
    let mut begins = passes::begins(sequence, &markers, launches, steps);
    begins.push(markers.len());
    begins
        .windows(2)
        .filter_map(|pass| match pass {
            &[from, to] => layers.get(from..to),
            _ => None,
        })
        .map(|layers| CutPass {
            layers: layers.to_vec(),
            is_backward: layers.first().is_some_and(|layer| sequence.is_backward(layer.start)),
            has_open_end: false,
        })
        .collect()
}

/// The share of the layers whose classes are those of another one, or the beginning of those.
fn repeated_share(sequence: &Sequence<'_>, passes: &[CutPass]) -> f64 {
    let mut counts: FxHashMap<&[Class], usize> = FxHashMap::default();
    let mut lasts = Vec::new();
    let (mut repeated, mut all) = (0, 0);
    for pass in passes {
        for (index, layer) in pass.layers.iter().enumerate() {
            let classes = sequence.between(layer.start, layer.end);
            all += 1;
            if pass.has_open_end && index + 1 == pass.layers.len() {
                lasts.push(classes);
            } else {
                *counts.entry(classes).or_insert(0) += 1;
            }
        }
    }
    repeated += counts.values().filter(|count| **count > 1).sum::<usize>();
    for last in lasts {
        repeated += usize::from(counts.keys().any(|classes| classes.starts_with(last)));
    }
    // Two layers of one pass: the second is the beginning of the first.
    let is_pair = all == 2 && repeated == 1;
    if is_pair { 1.0 } else { repeated as f64 / f64::max(1.0, all as f64) }
}
