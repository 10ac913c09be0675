//! What the layers of a model are made of: each pattern position by position, and each layer of the
//! model by its number.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::{ByDuration, Partition, Times};
use crate::classify::Class;
use crate::ratio::ratio;
use crate::segment::Layers;
use crate::{Classes, NameId, Trace};

/// Layers with the same classes in the same order, and where their time goes. All times are in
/// nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PatternTime {
    /// Its number, from zero: its place in [`Layers::patterns`], the most frequent
    /// one first.
    pub pattern: usize,
    /// How many layers have it.
    pub layers: usize,
    /// How many kernels such a layer has.
    pub kernels: usize,
    /// Whether it is that of the last layers of passes, which lack the beginning of a next layer.
    pub ends_pass: bool,
    /// The mean over its layers of the durations of a layer's kernels together.
    pub mean_ns: f64,
    /// The durations of the kernels of all its layers together.
    pub total_ns: u64,
    /// Their part of the durations of all kernels of the trace.
    pub share: f64,
    /// The main class of each kernel.
    pub classes: Vec<&'static str>,
    /// Its kernels, in the order in which they run.
    pub positions: Vec<Position>,
}

/// The kernels at one position of a pattern, over all layers that have it. All times are in
/// nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Position {
    /// The position, from zero, where the marker is.
    pub position: usize,
    /// The most frequent class with everything that is fused into it, as `ADD+NORM`.
    pub class: String,
    /// The most frequent name.
    pub kernel: String,
    /// How many names there are. Layers differ in their kernels, and have the same classes.
    pub names: usize,
    /// How long the kernels take.
    #[serde(flatten)]
    pub times: Times,
    /// Their mean duration.
    pub mean_ns: f64,
    /// Their part of the time of the pattern.
    pub share: f64,
}

/// A layer of the model: all times that it ran, forward or backward. All times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerTime {
    /// Its number in the model, from zero.
    pub layer: u32,
    /// Whether it is its backward part.
    pub is_backward: bool,
    /// How many times it ran.
    pub count: usize,
    /// The kernels of all these times.
    pub kernels: usize,
    /// Their durations together.
    pub total_ns: u64,
    /// The least time that it took: the durations of its kernels together.
    pub min_ns: u64,
    /// The mean time that it took.
    pub mean_ns: f64,
    /// The most time that it took.
    pub max_ns: u64,
}

/// The time of every pattern, in the order of [`Layers::patterns`]. Shares are of `whole_ns`.
pub(super) fn pattern_times(
    trace: &Trace,
    classes: &Classes,
    layers: &Layers,
    by_duration: &ByDuration,
    whole_ns: u64,
) -> Vec<PatternTime> {
    let slots = Slots::of(trace, layers);
    let kinds = Partition::by(trace.kernels.len(), |kernel| {
        Some((slots.of_kernel(kernel)?, *trace.kernels.name.get(kernel)?, classes.id(kernel)))
    });
    let counts = kinds.counts();
    let examples = kinds.examples();
    let mut seen: FxHashMap<u32, Seen> = FxHashMap::default();
    for ((&(slot, name, _), count), kernel) in kinds.keys().iter().zip(counts).zip(examples) {
        seen.entry(slot).or_default().kinds.push(Kind { count, name, kernel });
    }
    let by_slot = kinds.coarser(|&(slot, ..)| Some(slot));
    let times = by_slot.times(by_duration);
    let times: FxHashMap<u32, Times> = by_slot.keys().iter().copied().zip(times).collect();
    let patterns = layers.patterns.iter().enumerate();
    let summed = patterns.map(|(number, pattern)| {
        let position = |at: usize| {
            let slot = slots.slot(number, at)?;
            let (class, kernel, names) = seen.get(&slot)?.most_frequent(trace, classes)?;
            let times = *times.get(&slot)?;
            Some(Position {
                position: at,
                class,
                kernel,
                names,
                times,
                mean_ns: times.mean_ns(),
                share: ratio(times.total_ns, pattern.total_ns),
            })
        };
        PatternTime {
            pattern: number,
            layers: pattern.count,
            kernels: pattern.classes.len(),
            ends_pass: pattern.ends_pass,
            mean_ns: ratio(pattern.total_ns, pattern.count as u64),
            total_ns: pattern.total_ns,
            share: ratio(pattern.total_ns, whole_ns),
            classes: pattern.classes.iter().copied().map(Class::name).collect(),
            positions: (0..pattern.classes.len()).filter_map(position).collect(),
        }
    });
    summed.collect()
}

/// The time of every layer of the model, the forward ones by number, then the backward ones.
pub(super) fn layer_times(layers: &Layers) -> Vec<LayerTime> {
    let mut by_number: BTreeMap<(bool, u32), LayerTime> = BTreeMap::new();
    for layer in &layers.list {
        let is_backward =
            layers.passes.get(layer.pass as usize).is_some_and(|pass| pass.is_backward);
        let time = by_number.entry((is_backward, layer.number)).or_insert(LayerTime {
            layer: layer.number,
            is_backward,
            count: 0,
            kernels: 0,
            total_ns: 0,
            min_ns: u64::MAX,
            mean_ns: 0.0,
            max_ns: 0,
        });
        time.count += 1;
        time.kernels += layers.kernels(layer).len();
        time.total_ns = time.total_ns.saturating_add(layer.total_ns);
        time.min_ns = time.min_ns.min(layer.total_ns);
        time.max_ns = time.max_ns.max(layer.total_ns);
    }
    let mut times: Vec<LayerTime> = by_number.into_values().collect();
    for time in &mut times {
        time.mean_ns = ratio(time.total_ns, time.count as u64);
    }
    times
}

/// A number for each position of each pattern.
struct Slots {
    /// The slot of the first position of each pattern.
    first: Vec<u32>,
    of_kernel: Vec<u32>,
}

const NO_SLOT: u32 = u32::MAX;

impl Slots {
    fn of(trace: &Trace, layers: &Layers) -> Self {
        let mut next = 0_u32;
        let first = layers.patterns.iter().map(|pattern| {
            let length = u32::try_from(pattern.classes.len()).unwrap_or(NO_SLOT);
            let first = next;
            next = next.saturating_add(length);
            first
        });
        let mut slots =
            Self { first: first.collect(), of_kernel: vec![NO_SLOT; trace.kernels.len()] };
        for layer in &layers.list {
            let first = slots.first.get(layer.pattern as usize).copied().unwrap_or(NO_SLOT);
            for (kernel, slot) in layers.kernels(layer).iter().zip(first..) {
                if let Some(of_kernel) = slots.of_kernel.get_mut(*kernel as usize) {
                    *of_kernel = slot;
                }
            }
        }
        slots
    }

    fn of_kernel(&self, kernel: usize) -> Option<u32> {
        self.of_kernel.get(kernel).copied().filter(|slot| *slot != NO_SLOT)
    }

    fn slot(&self, pattern: usize, position: usize) -> Option<u32> {
        self.first.get(pattern)?.checked_add(u32::try_from(position).ok()?)
    }
}

/// Kernels of one name and class at one position.
struct Kind {
    count: usize,
    name: NameId,
    /// The first of them.
    kernel: usize,
}

/// What was seen at a position.
#[derive(Default)]
struct Seen {
    kinds: Vec<Kind>,
}

impl Seen {
    /// The label of the class and the name of most kernels, and how many names there are.
    fn most_frequent(&self, trace: &Trace, classes: &Classes) -> Option<(String, String, usize)> {
        // Of equals the one that is seen first.
        let most = self.kinds.iter().min_by_key(|kind| (Reverse(kind.count), kind.kernel))?;
        let mut names: Vec<NameId> = self.kinds.iter().map(|kind| kind.name).collect();
        names.sort_unstable();
        names.dedup();
        let label = classes.get(most.kernel).label();
        Some((label, trace.names.text(most.name).to_owned(), names.len()))
    }
}
