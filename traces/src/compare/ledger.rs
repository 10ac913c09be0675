//! The books of a comparison: every kernel that is compared is put down once in each of them, so
//! that each adds up to the whole.

use rustc_hash::FxHashMap;

use super::basis::{PHASES, Steps};
use super::kinds::Kinds;
use super::side::{Chosen, on_both};
use super::tally::{Both, Shares, Tally};
use super::variants::{Variants, WorkIds};
use super::work::Work;
use crate::{DeviceWork, NameId};

/// Sums of both sides, by what the kernels belong to.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The columns of each kind.
    pub(super) slots: Vec<Vec<SlotSums>>,
    /// What is outside of layers, by what it does, whether the runtime does it, and phase.
    pub(super) outside: FxHashMap<OutsideKey, Both>,
    /// Everything, by what it does and phase.
    pub(super) works: FxHashMap<(Work, usize), Both>,
    /// Everything, by side and phase.
    pub(super) phases: [[Tally; PHASES]; 2],
    /// Everything, by name and phase.
    pub(super) names: [FxHashMap<NameId, NameSums>; 2],
    /// Everything of the layers of the model, by number, whether backward, and phase.
    pub(super) numbers: FxHashMap<(u32, bool, usize), Both>,
    /// What runs alongside computation: collectives, copies and fills of the runtime.
    pub(super) beside: [[Both; PHASES]; 3],
}

/// What a kernel outside of layers belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct OutsideKey {
    pub(super) work: Work,
    pub(super) of_runtime: bool,
    pub(super) phase: usize,
    /// Whether it is outside of all steps, where those are marked.
    pub(super) is_outside_steps: bool,
}

/// The kernels in a column of a kind.
#[derive(Debug, Clone, Default)]
pub(super) struct SlotSums {
    pub(super) both: Both,
    /// The names of each side's kernels with their numbers.
    pub(super) names: [Vec<(NameId, u64)>; 2],
    /// The works of each side's kernels with their numbers.
    pub(super) works: [Vec<(Work, u64)>; 2],
    /// How many are copies or fills of the runtime.
    pub(super) by_runtime: u64,
    /// Of a column that both sides have, the shares of each side's kernels of such columns.
    pub(super) shares: [Shares; 2],
    /// A kernel of each side.
    pub(super) examples: [Option<u32>; 2],
}

impl SlotSums {
    /// Whether most of them are copies or fills of the runtime.
    pub(super) fn is_of_runtime(&self) -> bool {
        let count: u64 = self.both.0.iter().map(|tally| tally.count).sum();
        self.by_runtime * 2 > count
    }
}

/// The kernels of one name.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameSums {
    pub(super) work: Work,
    pub(super) phases: [Tally; PHASES],
}

impl NameSums {
    pub(super) fn all(&self) -> Tally {
        let mut all = Tally::default();
        self.phases.iter().for_each(|tally| all.merge(tally));
        all
    }
}

/// The places of [`Ledger::beside`].
pub(super) const COMMUNICATION: usize = 0;
pub(super) const COPIES: usize = 1;
pub(super) const FILLS: usize = 2;

impl Ledger {
    pub(super) fn of(
        sides: &[Chosen<'_>; 2],
        steps: &Steps,
        variants: &[Variants; 2],
        kinds: &Kinds,
    ) -> Self {
        let of_side = |index: usize| {
            let slots = kinds.list.iter().map(|kind| vec![SlotSums::default(); kind.columns.len()]);
            let mut ledger = Self { slots: slots.collect(), ..Self::default() };
            ledger.put_down(index, &sides[index], steps, &variants[index], kinds);
            ledger
        };
        let [mut first, second] = on_both(&of_side);
        first.take_second(second);
        first
    }

    /// Takes in the books of the second side.
    fn take_second(&mut self, other: Self) {
        let Self { slots, outside, works, phases, names, numbers, beside } = other;
        for (slot, other) in self.slots.iter_mut().flatten().zip(slots.into_iter().flatten()) {
            let SlotSums { both, names: [_, names], works: [_, works], .. } = other;
            slot.both.0[1] = both.0[1];
            (slot.names[1], slot.works[1]) = (names, works);
            slot.by_runtime += other.by_runtime;
            slot.shares[1] = other.shares[1];
            slot.examples[1] = other.examples[1];
        }
        for (key, both) in outside {
            self.outside.entry(key).or_default().0[1] = both.0[1];
        }
        for (key, both) in works {
            self.works.entry(key).or_default().0[1] = both.0[1];
        }
        for (key, both) in numbers {
            self.numbers.entry(key).or_default().0[1] = both.0[1];
        }
        for (own, other) in self.beside.iter_mut().flatten().zip(beside.iter().flatten()) {
            own.0[1] = other.0[1];
        }
        let [_, names] = names;
        self.names[1] = names;
        self.phases[1] = phases[1];
    }

    fn put_down(
        &mut self,
        index: usize,
        side: &Chosen<'_>,
        steps: &Steps,
        variants: &Variants,
        kinds: &Kinds,
    ) {
        let trace = side.side.trace;
        let works = WorkIds::of(side);
        let slots = slots_of(index, side, variants, kinds);
        let marked = &side.side.segments.steps;
        let layers = &side.side.segments.layers;
        // Kernels are many and what they do is little: sums by number first.
        let mut by_work = vec![Tally::default(); works.works().len() * PHASES];
        let mut by_name: Vec<Option<NameSums>> = vec![None; trace.names.len()];
        let mut by_layer = vec![Tally::default(); layers.list.len()];
        for &row in &side.rows {
            let kernel = row as usize;
            let duration_ns = trace.kernels.duration_ns[kernel];
            let own_ns = side.attribution.own_ns[kernel];
            let wait_ns = side.attribution.wait_ns[kernel];
            let add = |tally: &mut Tally| tally.add(duration_ns, own_ns, wait_ns);
            let phase = steps.place(side.phase(kernel));
            let id = works.id(kernel);
            let work = works.work(id);
            let name = trace.kernels.name[kernel];
            let device_work = trace.kernels.work[kernel];

            add(&mut self.phases[index][steps.place_with_parts(side.phase(kernel))]);
            add(&mut by_work[id as usize * PHASES + phase]);
            let sums = by_name[name.0 as usize]
                .get_or_insert(NameSums { work, phases: [Tally::default(); PHASES] });
            add(&mut sums.phases[phase]);
            let beside = match device_work {
                DeviceWork::Memcpy => Some(COPIES),
                DeviceWork::Memset => Some(FILLS),
                DeviceWork::Kernel => {
                    (work.main == crate::classify::Class::Comm).then_some(COMMUNICATION)
                }
            };
            if let Some(beside) = beside {
                add(&mut self.beside[beside][phase].0[index]);
            }

            if let Some(tally) = layers.layer(kernel).and_then(|layer| by_layer.get_mut(layer)) {
                add(tally);
            }
            match slots[kernel] {
                Some((kind, column)) => {
                    let slot = &mut self.slots[kind as usize][column as usize];
                    add(&mut slot.both.0[index]);
                    count(&mut slot.names[index], name);
                    count(&mut slot.works[index], work);
                    slot.by_runtime += u64::from(device_work != DeviceWork::Kernel);
                    slot.examples[index].get_or_insert(row);
                }
                None => {
                    let key = OutsideKey {
                        work,
                        of_runtime: device_work != DeviceWork::Kernel,
                        phase,
                        is_outside_steps: steps.needs_marks() && marked.step(kernel).is_none(),
                    };
                    add(&mut self.outside.entry(key).or_default().0[index]);
                }
            }
        }
        self.add_shares(index, side, variants, kinds);
        for (work, tallies) in works.works().iter().zip(by_work.chunks(PHASES)) {
            for (phase, tally) in tallies.iter().enumerate().filter(|(_, tally)| tally.count > 0) {
                self.works.entry((*work, phase)).or_default().0[index].merge(tally);
            }
        }
        for (at, (layer, tally)) in layers.list.iter().zip(by_layer).enumerate() {
            if tally.count > 0 {
                let pass = layers.passes.get(layer.pass as usize);
                let is_backward = pass.is_some_and(|pass| pass.is_backward);
                let key = (layer.number, is_backward, steps.place(side.layer_phase(at)));
                self.numbers.entry(key).or_default().0[index].merge(&tally);
            }
        }
        let names = (0..).map(NameId).zip(by_name);
        self.names[index] = names.filter_map(|(name, sums)| Some((name, sums?))).collect();
    }
}

impl Ledger {
    /// Puts down what part each kernel has of those of its layer that both sides have.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    fn add_shares(&mut self, index: usize, side: &Chosen<'_>, variants: &Variants, kinds: &Kinds) {
        let durations = &side.side.trace.kernels.duration_ns;
        for (variant, kernels) in &variants.instances {
            let (kind, columns) = &kinds.places[index][*variant];
            let paired =
                |column: usize| kinds.list[*kind].columns[column].items.iter().all(Option::is_some);
            let of_both = || {
                let all = kernels.iter().zip(columns).filter(|(_, column)| paired(**column));
                all.map(|(kernel, column)| (durations[*kernel as usize] as f64, *column))
            };
            let total: f64 = of_both().map(|(duration, _)| duration).sum();
            for (duration, column) in of_both().filter(|_| total > 0.0) {
                self.slots[*kind][column].shares[index].add(duration / total);
            }
        }
    }
}

fn count<T: PartialEq>(counts: &mut Vec<(T, u64)>, what: T) {
    match counts.iter_mut().find(|(known, _)| *known == what) {
        Some((_, count)) => *count += 1,
        None => counts.push((what, 1)),
    }
}

/// The kind and the column of each kernel that is in a layer.
fn slots_of(
    index: usize,
    side: &Chosen<'_>,
    variants: &Variants,
    kinds: &Kinds,
) -> Vec<Option<(u32, u32)>> {
    let mut slots = vec![None; side.side.trace.kernels.len()];
    for (variant, kernels) in &variants.instances {
        let (kind, columns) = &kinds.places[index][*variant];
        for (kernel, column) in kernels.iter().zip(columns) {
            let place = (u32::try_from(*kind).unwrap_or(0), u32::try_from(*column).unwrap_or(0));
            slots[*kernel as usize] = Some(place);
        }
    }
    slots
}
