//! Cuts a sequence of kernels into passes and layers.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::ends::{common_prefix, common_suffix};
use super::markers::{self, Marker};
use super::modules::Modules;
use super::no_layers::NoLayers;
use super::sequence::Sequence;
use super::shape::{Shape, most_common};
use super::signature::Weights;
use super::steps::Steps;
use super::{passes, repetition, strangers};
use crate::Trace;
use crate::classify::Class;
use crate::launched::NONE;

/// At least this share of the layers must look like another one.
const LEAST_REPEATED: f64 = 0.5;

/// The passes and layers of a sequence.
pub(super) struct Cut {
    pub(super) marker: Marker,
    /// The share of the layers that look exactly like another one.
    pub(super) repeated_share: f64,
    pub(super) passes: Vec<CutPass>,
    /// Those of other models.
    pub(super) others: Vec<CutPass>,
}

/// The layers of a pass, as places in the sequence.
pub(super) struct CutPass {
    pub(super) layers: Vec<Range<usize>>,
    pub(super) is_backward: bool,
    /// Whether the last layer is without the beginning of a next one.
    pub(super) has_open_end: bool,
}

impl CutPass {
    /// The layers with both ends.
    pub(super) fn whole_layers(&self) -> impl Iterator<Item = &Range<usize>> {
        let open = usize::from(self.has_open_end);
        self.layers.iter().take(self.layers.len().saturating_sub(open))
    }
}

/// What is known of the recording beside the sequence that is cut.
pub(super) struct Recording<'r> {
    pub(super) trace: &'r Trace,
    pub(super) launches: &'r [u32],
    pub(super) steps: &'r Steps,
    pub(super) modules: Option<&'r Modules>,
    pub(super) weights: Weights<'r>,
}

impl Recording<'_> {
    fn launch(&self, kernel: usize) -> u32 {
        self.launches.get(kernel).copied().unwrap_or(NONE)
    }

    /// The call of a layer's module that a kernel was launched in.
    fn call(&self, kernel: usize) -> Option<u32> {
        self.modules?.call(self.trace, self.launch(kernel))
    }

    /// The module, of those that are the layers, that a kernel was launched in.
    fn module(&self, kernel: usize) -> Option<u32> {
        self.modules?.module(self.trace, self.launch(kernel))
    }
}

/// Finds the passes and layers of a sequence, or says why there are none.
pub(super) fn cut(recording: &Recording<'_>, sequence: &Sequence<'_>) -> Result<Cut, NoLayers> {
    let (marker, mut passes) = if let Some((marker, markers)) = markers::find(sequence) {
        let markers = first_of_each_call(recording, sequence, markers);
        if markers.len() < 2 {
            return Err(NoLayers::OneMarker { marker });
        }
        (marker, at_markers(recording, sequence, &markers))
    } else if let Some(calls) = calls(recording, sequence) {
        (
            Marker::Module,
            whole_layers(recording, sequence, calls, |kernel| recording.module(kernel)),
        )
    } else {
        let found = repetition::find(sequence, recording.steps)?;
        let ranges = found.into_iter().map(|(from, to)| from..to).collect();
        (Marker::Repetition, whole_layers(recording, sequence, ranges, |_| None))
    };
    let repeated = repeated(sequence, &passes);
    if repeated.nearly < LEAST_REPEATED {
        let markers = passes.iter().map(|pass| pass.layers.len()).sum();
        let repeated_share = repeated.nearly;
        return Err(NoLayers::NoRepetition { marker, markers, repeated_share });
    }
    let others = strangers::take_out(recording, sequence, &mut passes);
    Ok(Cut { marker, passes, others, repeated_share: repeated.exactly })
}

/// Leaves out the markers of a module's call after its first one, if calls have several. A marker
/// outside of all calls then has no module that it could be the first of.
fn first_of_each_call(
    recording: &Recording<'_>,
    sequence: &Sequence<'_>,
    markers: Vec<usize>,
) -> Vec<usize> {
    let call_of = |at: &usize| recording.call(sequence.kernel(*at));
    let calls: Vec<Option<u32>> = markers.iter().map(call_of).collect();
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
fn calls(recording: &Recording<'_>, sequence: &Sequence<'_>) -> Option<Vec<Range<usize>>> {
    recording.modules?;
    let mut found: Vec<(u32, Range<usize>)> = Vec::new();
    for at in 0..sequence.len() {
        let Some(call) = recording.call(sequence.kernel(at)) else { continue };
        match found.last_mut() {
            Some((last, range)) if *last == call => range.end = at + 1,
            _ => found.push((call, at..at + 1)),
        }
    }
    (found.len() > 1).then(|| found.into_iter().map(|(_, range)| range).collect())
}

/// Cuts at markers. The last layer of a pass ends where its pattern does.
fn at_markers(
    recording: &Recording<'_>,
    sequence: &Sequence<'_>,
    markers: &[usize],
) -> Vec<CutPass> {
    let &Recording { trace, launches, steps, .. } = recording;
    let module = |kernel| recording.module(kernel);
    let begins = passes::begins(sequence, markers, launches, steps, module);
    let begins = passes::between_sends(trace, sequence, markers, begins);
    let mut begins = strangers::divide(recording, sequence, markers, begins);
    begins.push(markers.len());
    let passes: Vec<Range<usize>> = begins.windows(2).map(|pair| pair[0]..pair[1]).collect();
    let is_backward = |pass: &Range<usize>| {
        markers.get(pass.start).is_some_and(|marker| sequence.is_backward(*marker))
    };
    let shapes = [false, true].map(|backward| {
        let of_direction = passes.iter().filter(|pass| is_backward(pass) == backward);
        Shape::of(sequence, markers, of_direction.cloned(), steps)
    });
    let [mut forward, mut backward] = shapes;
    let cut = |pass: &Range<usize>| {
        let is_backward = is_backward(pass);
        let shape = if is_backward { &mut backward } else { &mut forward };
        let next = markers.get(pass.end).copied().unwrap_or(sequence.len());
        let of_pass = markers.get(pass.clone()).unwrap_or_default();
        let mut layers: Vec<Range<usize>> =
            of_pass.windows(2).map(|pair| pair[0]..pair[1]).collect();
        layers.extend(of_pass.last().map(|last| *last..shape.end(sequence, *last, next, steps)));
        CutPass { layers, is_backward, has_open_end: true }
    };
    passes.iter().map(cut).collect()
}

/// Puts layers with both ends into passes, by the modules that kernels were launched in.
fn whole_layers(
    recording: &Recording<'_>,
    sequence: &Sequence<'_>,
    layers: Vec<Range<usize>>,
    module: impl Fn(usize) -> Option<u32>,
) -> Vec<CutPass> {
    let markers: Vec<usize> = layers.iter().map(|layer| layer.start).collect();
    if markers.is_empty() {
        return Vec::new();
    }
    let &Recording { launches, steps, .. } = recording;
    let mut begins = passes::begins(sequence, &markers, launches, steps, module);
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

/// How many layers look like another one.
struct Repeated {
    /// The share whose classes are those of another one, or the beginning of those.
    exactly: f64,
    /// The share that is at least nearly so, except for some kernels at one place.
    nearly: f64,
}

fn repeated(sequence: &Sequence<'_>, passes: &[CutPass]) -> Repeated {
    let (mut whole, mut lasts) = (Vec::new(), Vec::new());
    for pass in passes {
        for (index, layer) in pass.layers.iter().enumerate() {
            let is_open = pass.has_open_end && index + 1 == pass.layers.len();
            let list = if is_open { &mut lasts } else { &mut whole };
            list.push(sequence.between(layer.start, layer.end));
        }
    }
    let mut counts: FxHashMap<&[Class], usize> = FxHashMap::default();
    whole.iter().for_each(|classes| *counts.entry(*classes).or_insert(0) += 1);
    let patterns = most_common(whole.iter().copied());
    // A few kernels are the beginning of anything.
    let begins = |classes: &[Class], last: &[Class]| {
        last.len() * 5 >= classes.len() * 2 && classes.starts_with(last)
    };
    let nearly_begins = |classes: &[Class], last: &[Class]| {
        last.len() * 5 >= classes.len() * 2
            && classes.get(..last.len()).is_some_and(|begin| alike(begin, last))
    };
    let (mut exactly, mut nearly) = (0, 0);
    for (classes, count) in &counts {
        let is_exact = *count > 1 || lasts.iter().any(|last| begins(classes, last));
        let is_near =
            || patterns.iter().any(|pattern| pattern != classes && alike(pattern, classes));
        exactly += if is_exact { *count } else { 0 };
        nearly += if is_exact || is_near() { *count } else { 0 };
    }
    for last in &lasts {
        let is_exact = counts.keys().any(|classes| begins(classes, last));
        let is_near = || patterns.iter().any(|pattern| nearly_begins(pattern, last));
        exactly += usize::from(is_exact);
        nearly += usize::from(is_exact || is_near());
    }
    let all = (whole.len() + lasts.len()).max(1) as f64;
    Repeated { exactly: exactly as f64 / all, nearly: nearly as f64 / all }
}

/// Whether two layers are the same except for a quarter of the longer one at one place.
fn alike(a: &[Class], b: &[Class]) -> bool {
    let prefix = common_prefix(a, b);
    let rest = |classes: &'_ [Class]| classes.len() - prefix;
    let suffix = common_suffix(a, b).min(rest(a)).min(rest(b));
    (prefix + suffix) * 4 >= a.len().max(b.len()) * 3
}
