//! The distinct layers of both sides, and the distinct stretches between passes through the model:
//! those whose kernels do the same in the same order.

use rustc_hash::{FxHashMap, FxHashSet};

use super::addends::Addend;
use super::align::{Item, words};
use super::basis::Steps;
use super::operators::Call;
use super::roles::{Role, roles};
use super::side::Chosen;
use super::stretches::stretches;
use super::work::Work;
use crate::NameId;
use crate::classify::Class;
use crate::segment::Phase;

/// Layers of one side, or stretches between its passes, that look the same.
#[derive(Debug)]
pub(super) struct Variant {
    pub(super) key: Key,
    /// What the kernels do, and for what.
    pub(super) items: Vec<Item>,
    /// The numbers of such layers in the model, each once, in ascending order.
    pub(super) numbers: Vec<u32>,
    /// How many there are.
    pub(super) count: u64,
    /// How many kernels of each class one has.
    pub(super) classes: [u32; Class::ALL.len()],
    /// The classes of each two kernels that follow each other, in ascending order; of what is
    /// outside of layers only.
    pub(super) pairs: Vec<(Class, Class)>,
}

/// What layers must have in common to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    /// The phase, where phases are distinguished.
    pub(super) phase: Option<Phase>,
    pub(super) is_backward: bool,
    /// Whether they are outside of layers.
    pub(super) is_outside: bool,
    /// Of a call in place of a layer, which operator is called.
    pub(super) operator: Option<u32>,
}

impl Key {
    /// Whether the end of one is the beginning of the next.
    pub(super) fn goes_on(&self) -> bool {
        !self.is_outside && self.operator.is_none()
    }
}

/// Some layers, or stretches, of one side.
#[derive(Debug, Default)]
pub(super) struct Variants {
    pub(super) list: Vec<Variant>,
    /// Every layer and stretch that is compared: its variant and its kernels.
    pub(super) instances: Vec<(usize, Vec<u32>)>,
}

/// So many different stretches outside of layers are compared kernel by kernel; where there are
/// more, they have nothing that repeats.
const MOST_STRETCHES: usize = 64;

impl Variants {
    /// Groups the layers of a side, and what is between its passes; only the layers with a number
    /// if one is asked for.
    pub(super) fn of(side: &Chosen<'_>, steps: &Steps, layer: Option<u32>) -> Self {
        let layers = &side.side.segments.layers;
        let mut grouping = Grouping::new(side);
        for (index, is_backward) in side.layers() {
            let Some(entry) = layers.list.get(index) else { continue };
            let phase = side.layer_phase(index);
            if !steps.compares(phase) || layer.is_some_and(|layer| layer != entry.number) {
                continue;
            }
            let phase = steps.of_steps(phase);
            let kernels = of_phase(side, steps, layers.kernels(entry), phase);
            let ends_pass =
                layers.patterns.get(entry.pattern as usize).is_some_and(|own| own.ends_pass);
            let key = Key { phase, is_backward, is_outside: false, operator: None };
            let variant = grouping.variant(key, ends_pass, &kernels);
            grouping.numbers[variant].insert(entry.number);
            grouping.take(variant, kernels);
        }
        if layer.is_none() {
            grouping.add_stretches(steps);
        }
        grouping.finish()
    }
}

impl Variants {
    /// Groups calls of operators, in place of layers.
    pub(super) fn of_calls(side: &Chosen<'_>, steps: &Steps, calls: &[Call]) -> Self {
        let mut grouping = Grouping::new(side);
        for call in calls {
            let Some(first) = call.kernels.first() else { continue };
            let phase = side.phase(*first as usize);
            if !steps.compares(phase) {
                continue;
            }
            let phase = steps.of_steps(phase);
            let kernels = of_phase(side, steps, &call.kernels, phase);
            let operator = Some(call.operator);
            let key = Key { phase, is_backward: false, is_outside: false, operator };
            let variant = grouping.variant(key, false, &kernels);
            // All calls of an operator are the same part of the model.
            grouping.numbers[variant].insert(0);
            grouping.take(variant, kernels);
        }
        grouping.finish()
    }
}

/// The kernels of a phase among those that ran together. What ran among them for steps of another
/// phase, such as a copy of the next step's inputs, has its share of the mix by its own phase: it is
/// in no place of theirs.
fn of_phase(side: &Chosen<'_>, steps: &Steps, kernels: &[u32], phase: Option<Phase>) -> Vec<u32> {
    let has_it = |row: &&u32| steps.of_steps(side.phase(**row as usize)) == phase;
    kernels.iter().filter(has_it).copied().collect()
}

/// Layers while they are grouped.
struct Grouping<'c> {
    side: &'c Chosen<'c>,
    works: WorkIds<'c>,
    words: FxHashMap<NameId, Vec<u64>>,
    found: Variants,
    known: FxHashMap<(Key, bool, Vec<u32>), usize>,
    numbers: Vec<FxHashSet<u32>>,
}

impl<'c> Grouping<'c> {
    fn new(side: &'c Chosen<'c>) -> Self {
        Self {
            side,
            works: WorkIds::of(side),
            words: FxHashMap::default(),
            found: Variants::default(),
            known: FxHashMap::default(),
            numbers: Vec::new(),
        }
    }

    fn add_stretches(&mut self, steps: &Steps) {
        let before = self.found.list.len();
        for kernels in stretches(self.side) {
            let Some(first) = kernels.first() else { continue };
            let phase = self.side.phase(*first as usize);
            if !steps.compares(phase) {
                continue;
            }
            let phase = steps.of_steps(phase);
            let kernels = of_phase(self.side, steps, &kernels, phase);
            let key = Key { phase, is_backward: false, is_outside: true, operator: None };
            if self.found.list.len() - before >= MOST_STRETCHES && !self.knows(key, &kernels) {
                continue;
            }
            let variant = self.variant(key, false, &kernels);
            self.take(variant, kernels);
        }
    }

    fn ids(&self, kernels: &[u32]) -> Vec<u32> {
        kernels.iter().map(|kernel| self.works.id(*kernel as usize)).collect()
    }

    fn knows(&self, key: Key, kernels: &[u32]) -> bool {
        self.known.contains_key(&(key, false, self.ids(kernels)))
    }

    /// The variant of some kernels.
    fn variant(&mut self, key: Key, ends_pass: bool, kernels: &[u32]) -> usize {
        let ids = self.ids(kernels);
        let next = self.found.list.len();
        let full = (key, ends_pass, ids);
        if let Some(variant) = self.known.get(&full) {
            return *variant;
        }
        let works: Vec<Work> = full.2.iter().map(|id| self.works.work(*id)).collect();
        let roles = if key.is_outside {
            vec![Role::Outside; works.len()]
        } else {
            roles(&works, key.is_backward)
        };
        let trace = self.side.side.trace;
        let mut classes = [0; Class::ALL.len()];
        let mut items = Vec::with_capacity(works.len());
        for ((work, role), kernel) in works.into_iter().zip(roles).zip(kernels) {
            classes[work.main as usize] += 1;
            let name = trace.kernels.name[*kernel as usize];
            let words = self.words.entry(name).or_insert_with(|| words(trace.names.text(name)));
            let is_bias = work.main == Class::Elementwise
                && Addend::of(self.side, *kernel as usize) == Some(Addend::Row);
            items.push(Item { work, role, words: words.clone(), is_bias });
        }
        let mut pairs: Vec<(Class, Class)> = Vec::new();
        if key.is_outside {
            let of_two = |two: &[Item]| (two[0].work.main, two[1].work.main);
            pairs = items.windows(2).map(of_two).collect();
            pairs.sort_unstable();
        }
        let variant = Variant { key, items, numbers: Vec::new(), count: 0, classes, pairs };
        self.found.list.push(variant);
        self.numbers.push(FxHashSet::default());
        self.known.insert(full, next);
        next
    }

    fn take(&mut self, variant: usize, kernels: Vec<u32>) {
        self.found.list[variant].count += 1;
        self.found.instances.push((variant, kernels));
    }

    fn finish(self) -> Variants {
        let mut found = self.found;
        for (variant, numbers) in found.list.iter_mut().zip(self.numbers) {
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
