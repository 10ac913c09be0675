//! Passes through other models than the one that a trace is of: a text encoder before a diffusion
//! transformer, the decoder of its images behind it, a small model that drafts. Layers of two models
//! may look alike; then their weights tell, or else the times that they take (`signature`).

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::cut::{CutPass, Recording};
use super::sequence::Sequence;
use super::signature::Signature;
use crate::classify::Class;
use crate::{NameId, Trace};

/// At an end of the recording a pass of fewer layers may be one that is cut. It is of another model
/// if it begins its layers with another kernel, and less than this share of its kernels have names
/// that the model has.
const OWN_NAMES: f64 = 0.5;

/// Divides passes that are longer than most others: several in a row that nothing separates, or
/// one with layers of another model before it or behind it. `begins` are places in `markers`.
pub(super) fn divide(
    recording: &Recording<'_>,
    sequence: &Sequence<'_>,
    markers: &[usize],
    begins: Vec<usize>,
) -> Vec<usize> {
    let ends = begins.iter().skip(1).copied().chain([markers.len()]);
    let passes: Vec<Range<usize>> = begins.iter().zip(ends).map(|(from, to)| *from..to).collect();
    let is_backward = |pass: &Range<usize>| {
        markers.get(pass.start).is_some_and(|marker| sequence.is_backward(*marker))
    };
    let usual = [false, true].map(|backward| {
        let of_direction = passes.iter().filter(|pass| is_backward(pass) == backward);
        usual_length(of_direction.map(|pass| pass.len()))
    });
    let others = lengths_of_others(recording, sequence, markers, &passes, usual[0]);
    // A stretch that is in the middle of passes is that of a layer.
    let stretch = |at: usize| match markers.get(at..at + 2) {
        Some(&[from, to]) => sequence.between(from, to),
        _ => &[],
    };
    let mut inner: FxHashSet<&[Class]> = FxHashSet::default();
    for pass in &passes {
        if Some(pass.len()) == usual[usize::from(is_backward(pass))] {
            inner.extend((pass.start..pass.end - 1).map(stretch));
        }
    }
    let mut divided = Vec::with_capacity(begins.len());
    for pass in passes {
        divided.push(pass.start);
        let Some(length) = usual[usize::from(is_backward(&pass))] else { continue };
        // Passes of another model are left whole.
        let is_of_the_model = (pass.start..pass.end - 1).any(|at| inner.contains(stretch(at)))
            && (is_backward(&pass) || !others.contains(&pass.len()));
        if pass.len() <= length || !is_of_the_model {
            continue;
        }
        if pass.len().is_multiple_of(length) {
            divided.extend((pass.start..pass.end).step_by(length).skip(1));
            continue;
        }
        let places = [pass.start + length, pass.end - length];
        divided.extend(places.into_iter().find(|place| !inner.contains(stretch(place - 1))));
    }
    divided
}

/// How many layers those forward passes have that are longer than most others and of another model,
/// though layers of both may look alike: one that drafts and the one that it drafts for.
fn lengths_of_others(
    recording: &Recording<'_>,
    sequence: &Sequence<'_>,
    markers: &[usize],
    passes: &[Range<usize>],
    usual: Option<usize>,
) -> Vec<usize> {
    let is_forward = |pass: &&Range<usize>| {
        markers.get(pass.start).is_some_and(|marker| !sequence.is_backward(*marker))
    };
    let Some(usual) = usual else { return Vec::new() };
    if !passes.iter().filter(is_forward).any(|pass| pass.len() > usual) {
        return Vec::new();
    }
    let mut of_length: FxHashMap<usize, Signature> = FxHashMap::default();
    for pass in passes.iter().filter(is_forward).filter(|pass| pass.len() >= usual) {
        let of_pass = markers.get(pass.clone()).unwrap_or_default();
        let layers: Vec<Range<usize>> = of_pass.windows(2).map(|pair| pair[0]..pair[1]).collect();
        let own = Signature::of(recording, sequence, &layers, layers.len());
        of_length.entry(pass.len()).or_default().join(&own);
    }
    let Some(model) = of_length.remove(&usual) else { return Vec::new() };
    let is_other = |own: &Signature| {
        own.has_other_weights(&model).unwrap_or_else(|| own.takes_other_times(&model))
    };
    of_length.into_iter().filter(|(_, own)| is_other(own)).map(|(length, _)| length).collect()
}

/// The most frequent length of passes with more than one layer, if there are at least two such and
/// half of the passes have it.
fn usual_length(lengths: impl Iterator<Item = usize>) -> Option<usize> {
    let mut counts: FxHashMap<usize, usize> = FxHashMap::default();
    let mut all = 0;
    for length in lengths.filter(|length| *length > 1) {
        *counts.entry(length).or_insert(0) += 1;
        all += 1;
    }
    let (length, count) = counts.into_iter().max_by_key(|(length, count)| (*count, *length))?;
    (count > 1 && count * 2 >= all).then_some(length)
}

/// Takes the passes of other models out of those of the model that takes most of the time.
pub(super) fn take_out(
    recording: &Recording<'_>,
    sequence: &Sequence<'_>,
    passes: &mut Vec<CutPass>,
) -> Vec<CutPass> {
    let trace = recording.trace;
    let Some(layers) = layers_of_the_model(trace, sequence, passes) else { return Vec::new() };
    if passes.iter().all(|pass| pass.is_backward || pass.layers.len() == layers) {
        return Vec::new();
    }
    let is_of_length = |pass: &&CutPass| !pass.is_backward && pass.layers.len() == layers;
    let mut known = Known::default();
    passes.iter().filter(is_of_length).for_each(|pass| known.add(trace, sequence, pass));
    let signature = |pass: &CutPass| {
        let whole = pass.whole_layers().count();
        (!pass.is_backward).then(|| Signature::of(recording, sequence, &pass.layers, whole))
    };
    let signatures: Vec<Option<Signature>> = passes.iter().map(signature).collect();
    let last = passes.len().saturating_sub(1);
    // At the ends of the recording a pass may be cut, and so of any length.
    let is_whole =
        |index: usize, pass: &CutPass| index > 0 && index < last || pass.layers.len() == layers;
    let mut of_length: FxHashMap<usize, Signature> = FxHashMap::default();
    for (index, (pass, own)) in passes.iter().zip(&signatures).enumerate() {
        if let Some(own) = own.as_ref().filter(|_| is_whole(index, pass)) {
            of_length.entry(pass.layers.len()).or_default().join(own);
        }
    }
    let Some(model) = of_length.get(&layers) else { return Vec::new() };
    let is_other = |(index, (pass, own)): (usize, (&CutPass, &Option<Signature>))| {
        let Some(own) = own.as_ref().filter(|_| pass.layers.len() != layers) else { return false };
        let is_inner = is_whole(index, pass);
        let takes_other_times = || {
            let mut all = of_length.get(&pass.layers.len()).cloned().unwrap_or_default();
            if !is_inner {
                all.join(own);
            }
            all.takes_other_times(model)
        };
        own.has_other_weights(model).unwrap_or_else(takes_other_times)
            || own.has_other_attentions(model)
            || !known.has_layer_of(sequence, pass)
                && (is_inner && pass.layers.len() > 1
                    || known.differs_by_names(trace, sequence, pass))
    };
    let is_other: Vec<bool> = passes.iter().zip(&signatures).enumerate().map(is_other).collect();
    let mut is_other = is_other.into_iter();
    passes.extract_if(.., |_| is_other.next().unwrap_or(false)).collect()
}

/// How many layers the model has: of the forward passes that the recording does not cut, those that
/// together take the most time.
fn layers_of_the_model(
    trace: &Trace,
    sequence: &Sequence<'_>,
    passes: &[CutPass],
) -> Option<usize> {
    let mut times: FxHashMap<usize, u64> = FxHashMap::default();
    let inner = passes.get(1..passes.len().saturating_sub(1)).unwrap_or_default();
    for pass in inner.iter().filter(|pass| !pass.is_backward && pass.layers.len() > 1) {
        let of_layers = pass.layers.iter().map(|layer| sequence.total_ns(trace, layer.clone()));
        let time = times.entry(pass.layers.len()).or_insert(0);
        *time = of_layers.fold(*time, u64::saturating_add);
    }
    times.into_iter().max_by_key(|(layers, time)| (*time, *layers)).map(|(layers, _)| layers)
}

/// What the layers of the model look like.
#[derive(Default)]
struct Known<'s> {
    layers: FxHashSet<&'s [Class]>,
    names: FxHashSet<NameId>,
    markers: FxHashSet<NameId>,
}

impl<'s> Known<'s> {
    fn add(&mut self, trace: &Trace, sequence: &'s Sequence<'_>, pass: &CutPass) {
        self.layers.extend(pass.whole_layers().map(|one| sequence.between(one.start, one.end)));
        for layer in &pass.layers {
            self.names.extend(layer.clone().filter_map(|at| name(trace, sequence, at)));
            self.markers.extend(name(trace, sequence, layer.start));
        }
    }

    fn has_layer_of(&self, sequence: &Sequence<'_>, pass: &CutPass) -> bool {
        let mut layers = pass.whole_layers();
        layers.any(|layer| self.layers.contains(sequence.between(layer.start, layer.end)))
    }

    fn differs_by_names(&self, trace: &Trace, sequence: &Sequence<'_>, pass: &CutPass) -> bool {
        let of_marker = |layer: &Range<usize>| name(trace, sequence, layer.start);
        if pass.layers.iter().filter_map(of_marker).any(|name| self.markers.contains(&name)) {
            return false;
        }
        let names = || {
            let kernels = pass.layers.iter().flat_map(Clone::clone);
            kernels.filter_map(|at| name(trace, sequence, at))
        };
        let own = names().filter(|name| self.names.contains(name)).count();
        (own as f64) < OWN_NAMES * names().count() as f64
    }
}

fn name(trace: &Trace, sequence: &Sequence<'_>, at: usize) -> Option<NameId> {
    trace.kernels.name.get(sequence.kernel(at)).copied()
}
