//! The distinct layers of both sides: those whose kernels do the same in the same order.

use rustc_hash::{FxHashMap, FxHashSet};

use super::align::{Item, words};
use super::basis::{PHASES, Steps};
use super::roles::roles;
use super::side::Chosen;
use super::work::Work;
use crate::segment::Phase;

/// Layers of one side that look the same. Which side is where they are kept.
#[derive(Debug)]
pub(super) struct Variant {
    pub(super) phase: Option<Phase>,
    pub(super) is_backward: bool,
    /// Whether they lack the beginning of a next layer.
    pub(super) ends_pass: bool,
    /// What the kernels do, and for what.
    pub(super) items: Vec<Item>,
    /// Their numbers in the model, each once, in ascending order.
    pub(super) numbers: Vec<u32>,
    /// How many there are.
    pub(super) count: u64,
    /// The kernels of all of them together, in nanoseconds.
    pub(super) total_ns: u64,
}

/// The variants of one side.
#[derive(Debug, Default)]
pub(super) struct Variants {
    pub(super) list: Vec<Variant>,
    /// The variant of each layer of the trace's list; `None` for one that is not compared.
    pub(super) of_layer: Vec<Option<usize>>,
}

impl Variants {
    /// Groups the layers of a side, those with a number if one is asked for.
    pub(super) fn of(side: &Chosen<'_>, steps: &Steps, layer: Option<u32>) -> Self {
        let layers = &side.side.segments.layers;
        let mut found = Self { list: Vec::new(), of_layer: vec![None; layers.list.len()] };
        let mut known: FxHashMap<(usize, bool, bool, Vec<u32>), usize> = FxHashMap::default();
        let mut numbers: Vec<FxHashSet<u32>> = Vec::new();
        let mut word_cache = FxHashMap::default();
        let names = &side.side.trace.names;
        let works = WorkIds::of(side);
        for (index, is_backward) in side.layers() {
            let Some(entry) = layers.list.get(index) else { continue };
            let phase = side.layer_phase(index);
            let place = steps.place(phase);
            let is_asked_for =
                layer.is_none_or(|layer| layer == entry.number) && steps.compares(place);
            if !is_asked_for {
                continue;
            }
            let ends_pass =
                layers.patterns.get(entry.pattern as usize).is_some_and(|own| own.ends_pass);
            let kernels = layers.kernels(entry);
            let key = kernels.iter().map(|kernel| works.id(*kernel as usize)).collect();
            let key = (place, is_backward, ends_pass, key);
            let variant = match known.get(&key) {
                Some(variant) => *variant,
                None => {
                    let variant = found.list.len();
                    let all: Vec<Work> = key.3.iter().map(|id| works.work(*id)).collect();
                    let items = all
                        .iter()
                        .zip(roles(&all, is_backward))
                        .zip(kernels)
                        .map(|((work, role), kernel)| {
                            let name = side.side.trace.kernels.name[*kernel as usize];
                            let words: &Vec<u64> =
                                word_cache.entry(name).or_insert_with(|| words(names.text(name)));
                            Item { work: *work, role, words: words.clone() }
                        })
                        .collect();
                    found.list.push(Variant {
                        phase: phase.filter(|_| place + 1 < PHASES),
                        is_backward,
                        ends_pass,
                        items,
                        numbers: Vec::new(),
                        count: 0,
                        total_ns: 0,
                    });
                    numbers.push(FxHashSet::default());
                    known.insert(key, variant);
                    variant
                }
            };
            let own = &mut found.list[variant];
            own.count += 1;
            own.total_ns = own.total_ns.saturating_add(entry.total_ns);
            numbers[variant].insert(entry.number);
            found.of_layer[index] = Some(variant);
        }
        for (variant, numbers) in found.list.iter_mut().zip(numbers) {
            variant.numbers = numbers.into_iter().collect();
            variant.numbers.sort_unstable();
        }
        found
    }
}

/// What each kernel does, as numbers.
pub(super) struct WorkIds<'c> {
    side: &'c Chosen<'c>,
    /// By the number of a kernel's classification.
    ids: Vec<u32>,
    works: Vec<Work>,
}

impl<'c> WorkIds<'c> {
    pub(super) fn of(side: &'c Chosen<'c>) -> Self {
        let mut known: FxHashMap<Work, u32> = FxHashMap::default();
        let mut works = Vec::new();
        let ids = side.side.classes.known().iter().map(|classification| {
            let work = Work::of(*classification);
            *known.entry(work).or_insert_with(|| {
                works.push(work);
                u32::try_from(works.len() - 1).unwrap_or(u32::MAX)
            })
        });
        let ids = ids.collect();
        Self { side, ids, works }
    }

    pub(super) fn id(&self, kernel: usize) -> u32 {
        self.ids[self.side.side.classes.id(kernel) as usize]
    }

    pub(super) fn work(&self, id: u32) -> Work {
        self.works[id as usize]
    }

    pub(super) fn works(&self) -> &[Work] {
        &self.works
    }
}
