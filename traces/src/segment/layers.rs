//! The layers of a trace.

use std::ops::Range;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::cut::{Cut, CutPass, Recording, cut};
pub use super::markers::Marker;
use super::modules::Modules;
use super::no_layers::NoLayers;
use super::order::StreamOrder;
use super::sequence::Sequence;
use super::signature::Weights;
use super::steps::Steps;
use crate::classify::Class;
use crate::launched::NONE;
use crate::{Classes, Trace, Warning};

/// A layer that ran once.
///
/// It begins at its marker and ends before the next layer's marker, or before what follows the
/// last layer of a pass. What comes before the marker in a network (a norm, a projection) is thus
/// the end of the layer before, and before the first layer it belongs to none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The pass that it is of: an index into [`Layers::passes`].
    pub pass: u32,
    /// Its number in the model, from zero.
    pub number: u32,
    /// What it looks like: an index into [`Layers::patterns`].
    pub pattern: u32,
    /// The durations of its kernels together, in nanoseconds.
    pub total_ns: u64,
    pub(super) kernels: Range<usize>,
}

/// A run through the model, forward or backward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The device.
    pub device: i64,
    /// The stream on it; none if kernels of all its streams are in the layers, in the order in
    /// which they began.
    pub stream: Option<i64>,
    /// Its layers: indices into [`Layers::list`].
    pub layers: Range<usize>,
    /// Whether it computes gradients, and so begins with the last layer.
    pub is_backward: bool,
    /// Whether the recording began or ended in it, or the file may end in it.
    pub is_cut: bool,
}

/// Passes through another model than the one that the layers are of. Its kernels are in no layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherModel {
    /// How many layers a pass has.
    pub layers: usize,
    /// How many passes there are.
    pub passes: usize,
    /// The kernel that its layers begin with.
    pub marker: String,
    /// The durations of the kernels of its layers together, in nanoseconds.
    pub total_ns: u64,
}

/// Layers with the same classes in the same order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The main class of each kernel.
    pub classes: Vec<Class>,
    /// How many layers have it.
    pub count: usize,
    /// The durations of their kernels together, in nanoseconds.
    pub total_ns: u64,
    /// The first of them: an index into [`Layers::list`].
    pub first: usize,
    /// Whether it is that of the last layers of passes, which lack the beginning of a next layer.
    pub ends_pass: bool,
}

/// From this share of repeated layers on, all streams of a device are taken together.
const CLEAR_SHARE: f64 = 0.9;

/// The layers of a trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Layers {
    /// How many layers the model has: as many as most passes; zero if none were found.
    pub count: u32,
    /// What they were found by.
    pub marker: Option<Marker>,
    /// The type of the recorded modules that are called like layers, and how many of them there
    /// are.
    pub modules: Option<(String, usize)>,
    /// The passes through the model, device by device.
    pub passes: Vec<Pass>,
    /// All layers of all passes.
    pub list: Vec<Layer>,
    /// The distinct ones, the most frequent first.
    pub patterns: Vec<Pattern>,
    /// What ran of other models.
    pub others: Vec<OtherModel>,
    /// Why there are none.
    pub none_because: Option<NoLayers>,
    /// The kernels of all layers, one layer after another.
    pub(super) kernels: Vec<u32>,
    pub(super) of_kernel: Vec<u32>,
}

impl Layers {
    /// The layer of a kernel, as an index into `list`.
    #[must_use]
    pub fn layer(&self, kernel: usize) -> Option<usize> {
        let layer = *self.of_kernel.get(kernel)?;
        (layer != NONE).then_some(layer as usize)
    }

    /// The kernels of a layer in their order, as rows of [`Trace::kernels`].
    #[must_use]
    pub fn kernels(&self, layer: &Layer) -> &[u32] {
        self.kernels.get(layer.kernels.clone()).unwrap_or_default()
    }

    /// Finds the layers of a trace.
    pub(super) fn of(
        trace: &Trace,
        classes: &Classes,
        launches: &[u32],
        steps: &Steps,
        order: &StreamOrder,
    ) -> Self {
        let modules = Modules::of(trace, launches);
        let mut layers = Self { of_kernel: vec![NONE; trace.kernels.len()], ..Self::default() };
        let mut failures = Vec::new();
        let mut patterns: FxHashMap<(Vec<Class>, bool), usize> = FxHashMap::default();
        let recording = Recording {
            trace,
            launches,
            steps,
            modules: modules.as_ref(),
            weights: Weights::of(trace, launches),
        };
        let cut = |sequence: &Sequence<'_>| cut(&recording, sequence);
        for (device, lanes) in order.devices(trace) {
            let sequence_of = |rows| Sequence::new(trace, classes, rows);
            let all_rows = order.merged(trace, &lanes);
            let all = sequence_of(&all_rows);
            let together = cut(&all);
            let share = together.as_ref().map_or(0.0, |cut| cut.repeated_share);
            // Streams that do not wait for each other look different together in every layer.
            if lanes.len() > 1 && share < CLEAR_SHARE {
                let alone = lanes
                    .iter()
                    .map(|lane| (lane, sequence_of(order.of_lane(*lane)).with_sends_of(&all)));
                // A stream that only communicates or copies has no layers of its own.
                let alone = alone.filter(|(_, sequence)| sequence.computes());
                let alone = alone.filter_map(|(lane, sequence)| {
                    let cut = cut(&sequence).ok().filter(|cut| cut.repeated_share > share)?;
                    Some((lane, sequence, cut))
                });
                let before = layers.list.len();
                for (lane, sequence, cut) in alone {
                    let stream = trace.lanes.get(*lane).map(|lane| lane.stream);
                    layers.take(trace, &sequence, (device, stream), &cut, &mut patterns);
                }
                if layers.list.len() > before {
                    continue;
                }
            }
            match together {
                Ok(cut) => layers.take(trace, &all, (device, None), &cut, &mut patterns),
                Err(failure) => failures.push((all.len(), failure)),
            }
        }
        if layers.list.is_empty() {
            // What the busiest device says.
            let busiest = failures.into_iter().max_by_key(|(kernels, _)| *kernels);
            layers.none_because = Some(match busiest {
                Some((1.., failure)) => failure,
                _ => NoLayers::NoKernels,
            });
            return layers;
        }
        layers.count = layers.most_common_count();
        let is_truncated =
            trace.warnings.iter().any(|warning| matches!(warning, Warning::Truncated { .. }));
        layers.number(is_truncated);
        layers.modules = modules
            .filter(|modules| layers.are_called_in(trace, launches, modules))
            .map(|found| (found.type_name, found.count));
        layers.sort_patterns();
        layers
    }

    /// Takes in the passes of a device, or of one of its streams.
    fn take(
        &mut self,
        trace: &Trace,
        sequence: &Sequence<'_>,
        (device, stream): (i64, Option<i64>),
        cut: &Cut,
        patterns: &mut FxHashMap<(Vec<Class>, bool), usize>,
    ) {
        self.marker = self.marker.or(Some(cut.marker));
        cut.others.iter().for_each(|pass| self.add_other(trace, sequence, pass));
        for pass in &cut.passes {
            let first = self.list.len();
            let number = u32::try_from(self.passes.len()).unwrap_or(NONE);
            for (index, layer) in pass.layers.iter().enumerate() {
                let ends_pass = pass.has_open_end && index + 1 == pass.layers.len();
                let classes = sequence.between(layer.start, layer.end).to_vec();
                let total_ns = sequence.total_ns(trace, layer.clone());
                let next = self.patterns.len();
                let pattern = *patterns.entry((classes, ends_pass)).or_insert_with_key(|key| {
                    let (classes, first) = (key.0.clone(), self.list.len());
                    self.patterns.push(Pattern {
                        classes,
                        count: 0,
                        total_ns: 0,
                        first,
                        ends_pass,
                    });
                    next
                });
                if let Some(pattern) = self.patterns.get_mut(pattern) {
                    pattern.count += 1;
                    pattern.total_ns = pattern.total_ns.saturating_add(total_ns);
                }
                let id = u32::try_from(self.list.len()).unwrap_or(NONE);
                let rows = sequence.rows.get(layer.clone()).unwrap_or_default();
                for kernel in rows {
                    if let Some(of_kernel) = self.of_kernel.get_mut(*kernel as usize) {
                        *of_kernel = id;
                    }
                }
                let begin = self.kernels.len();
                self.kernels.extend_from_slice(rows);
                self.list.push(Layer {
                    pass: number,
                    number: u32::try_from(index).unwrap_or(NONE),
                    pattern: u32::try_from(pattern).unwrap_or(NONE),
                    total_ns,
                    kernels: begin..self.kernels.len(),
                });
            }
            self.passes.push(Pass {
                device,
                stream,
                layers: first..self.list.len(),
                is_backward: pass.is_backward,
                is_cut: false,
            });
        }
    }

    /// Whether the kernels that most layers begin with were launched in calls of modules.
    fn are_called_in(&self, trace: &Trace, launches: &[u32], modules: &Modules) -> bool {
        let is_in_call = |layer: &&Layer| {
            let first = self.kernels(layer).first().copied().unwrap_or(NONE);
            let launch = launches.get(first as usize).copied().unwrap_or(NONE);
            modules.call(trace, launch).is_some()
        };
        self.list.iter().filter(is_in_call).count() * 2 >= self.list.len()
    }

    fn add_other(&mut self, trace: &Trace, sequence: &Sequence<'_>, pass: &CutPass) {
        let name = pass.layers.first().and_then(|first| {
            trace.kernels.name.get(sequence.kernel(first.start)).map(|name| trace.names.text(*name))
        });
        let marker = name.unwrap_or_default();
        let of_layers = pass.layers.iter().map(|layer| sequence.total_ns(trace, layer.clone()));
        let total_ns = of_layers.fold(0, u64::saturating_add);
        let layers = pass.layers.len();
        let known = self.others.iter_mut();
        match known.into_iter().find(|one| one.layers == layers && one.marker == marker) {
            Some(one) => {
                one.passes += 1;
                one.total_ns = one.total_ns.saturating_add(total_ns);
            }
            None => {
                let marker = marker.to_owned();
                self.others.push(OtherModel { layers, passes: 1, marker, total_ns });
            }
        }
    }

    /// How many layers most passes have; of equals the larger number. The recording may begin in
    /// the first pass and end in the last one, so these count only if there are no others, and
    /// then the longest does. Passes of a single layer are those of another, small model.
    fn most_common_count(&self) -> u32 {
        let place = |pass: &Pass| (pass.device, pass.stream);
        let mut counts: FxHashMap<usize, usize> = FxHashMap::default();
        for around in self.passes.windows(3) {
            let [before, pass, after] = around else { continue };
            let is_inner = place(before) == place(pass) && place(pass) == place(after);
            if is_inner && pass.layers.len() > 1 {
                *counts.entry(pass.layers.len()).or_insert(0) += 1;
            }
        }
        let most = counts.into_iter().max_by_key(|(layers, passes)| (*passes, *layers));
        let longest = || self.passes.iter().map(|pass| pass.layers.len()).max().unwrap_or(0);
        u32::try_from(most.map_or_else(longest, |(layers, _)| layers)).unwrap_or(NONE)
    }

    /// Numbers the layers as the model does: a backward pass begins with the last one, and so
    /// does what is left of a pass in which the recording began.
    fn number(&mut self, is_truncated: bool) {
        let passes = self.passes.len();
        for index in 0..passes {
            let place = |at: usize| self.passes.get(at).map(|pass| (pass.device, pass.stream));
            let is_first = index == 0 || place(index - 1) != place(index);
            let is_last = place(index + 1) != place(index);
            let Some(pass) = self.passes.get_mut(index) else { continue };
            let length = u32::try_from(pass.layers.len()).unwrap_or(NONE);
            let missing = self.count.saturating_sub(length);
            pass.is_cut = missing > 0 && (is_first || is_last) || is_last && is_truncated;
            let begins_late = missing > 0 && is_first && !is_last;
            for layer in self.list.get_mut(pass.layers.clone()).unwrap_or_default() {
                if pass.is_backward {
                    let first = if begins_late { length } else { length + missing };
                    layer.number = (first - 1).saturating_sub(layer.number);
                } else if begins_late {
                    layer.number += missing;
                }
            }
        }
    }

    fn sort_patterns(&mut self) {
        let mut by_count: Vec<usize> = (0..self.patterns.len()).collect();
        let count = |id: &usize| self.patterns.get(*id).map(|pattern| pattern.count);
        by_count.sort_by_key(|id| std::cmp::Reverse(count(id)));
        let mut new_ids = vec![NONE; by_count.len()];
        for (new, old) in (0..).zip(&by_count) {
            if let Some(id) = new_ids.get_mut(*old) {
                *id = new;
            }
        }
        let sorted = by_count.iter().filter_map(|id| self.patterns.get(*id).cloned()).collect();
        self.patterns = sorted;
        for layer in &mut self.list {
            layer.pattern = new_ids.get(layer.pattern as usize).copied().unwrap_or(NONE);
        }
    }
}
