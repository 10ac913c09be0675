//! The layers of both sides, place by place and number by number.

use rustc_hash::{FxHashMap, FxHashSet};

use super::basis::{PHASES, Steps};
use super::explain::Explained;
use super::kinds::{Kind, Kinds};
use super::ledger::{Ledger, SlotSums};
use super::places::{Place, places};
use super::result::{LayerComparison, LayerKind, LayerNumber, Part, Slot, SlotKernel, SlotStatus};
use super::side::Chosen;
use super::tally::Both;
use super::text::ranges;
use super::variants::Variants;

/// Puts the layers together.
pub(super) fn compare(
    sides: &[Chosen<'_>; 2],
    steps: &Steps,
    variants: &[Variants; 2],
    kinds: &Kinds,
    ledger: &Ledger,
    explained: &[Vec<Explained>],
) -> LayerComparison {
    let all = kinds.list.iter().zip(&ledger.slots).zip(explained);
    let of_layers = all.filter(|((kind, _), _)| kind.key.operator.is_none());
    let mut list: Vec<LayerKind> = of_layers
        .map(|((kind, sums), explained)| {
            let phase = steps.place(kind.key.phase);
            let slots = places(kind, sums);
            let slots = slots.iter().zip(kind.columns.iter().map(|column| column.is_moved));
            let slots: Vec<Slot> = slots
                .zip(explained)
                .enumerate()
                .map(|(at, ((place, is_moved), explained))| {
                    slot(sides, steps, phase, at, place, is_moved, *explained)
                })
                .collect();
            layer_kind(variants, kind, slots, &sum(sums))
        })
        .collect();
    list.sort_by(|a, b| {
        let longer = |kind: &LayerKind| kind.part.first_ns.max(kind.part.second_ns);
        longer(b).total_cmp(&longer(a))
    });
    for (number, kind) in list.iter_mut().enumerate() {
        kind.kind = number;
    }
    let mut aligned: FxHashSet<u32> = FxHashSet::default();
    for kind in kinds.list.iter().filter(|kind| kind.key.operator.is_none()) {
        let numbers = |side: usize| -> FxHashSet<u32> {
            let of = kind.variants[side].iter();
            of.flat_map(|variant| variants[side].list[*variant].numbers.iter().copied()).collect()
        };
        aligned.extend(numbers(0).intersection(&numbers(1)));
    }
    LayerComparison {
        aligned: u32::try_from(aligned.len()).unwrap_or(u32::MAX),
        none_because: None,
        kinds: list,
        numbers: numbers(sides, steps, ledger),
    }
}

fn sum(slots: &[SlotSums]) -> Both {
    let mut sum = Both::default();
    for slot in slots {
        sum.0.iter_mut().zip(&slot.both.0).for_each(|(sum, tally)| sum.merge(tally));
    }
    sum
}

fn layer_kind(variants: &[Variants; 2], kind: &Kind, slots: Vec<Slot>, sum: &Both) -> LayerKind {
    let of = |side: usize| kind.variants[side].iter().map(move |id| &variants[side].list[*id]);
    let layers = [0, 1].map(|side| of(side).map(|variant| variant.count).sum::<u64>());
    let mut numbers: Vec<u32> =
        [0, 1].into_iter().flat_map(of).flat_map(|variant| variant.numbers.clone()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mean = |side: usize| {
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let mean = sum.0[side].total_ns as f64 / layers[side] as f64;
        if layers[side] == 0 { 0.0 } else { mean }
    };
    let mut part = Part::default();
    slots.iter().for_each(|slot| part.add(&slot.part));
    LayerKind {
        kind: 0,
        phase: kind.key.phase,
        is_backward: kind.key.is_backward,
        is_outside: kind.key.is_outside,
        numbers: ranges(&numbers),
        first_layers: layers[0],
        second_layers: layers[1],
        first_mean_ns: mean(0),
        second_mean_ns: mean(1),
        part,
        slots,
    }
}

fn slot(
    sides: &[Chosen<'_>; 2],
    steps: &Steps,
    phase: usize,
    at: usize,
    place: &Place<'_>,
    is_moved: bool,
    explained: Explained,
) -> Slot {
    let kernel = |side: usize| {
        let work = place.works[side]?;
        let tally = &place.sums.both.0[side];
        Some(SlotKernel {
            class: work.label(),
            kernel: place.name(side, sides[side].side.trace).to_owned(),
            names: place.sums.names[side].len(),
            count: tally.count,
            mean_ns: tally.mean_ns()?,
            deviation_ns: tally.deviation_ns(),
            min_ns: tally.min_ns,
            max_ns: tally.max_ns,
        })
    };
    let status = match (place.works[0].is_some(), place.works[1].is_some()) {
        (true, false) => SlotStatus::FirstOnly,
        (false, true) => SlotStatus::SecondOnly,
        _ if is_moved => SlotStatus::Moved,
        _ => SlotStatus::Aligned,
    };
    Slot {
        slot: at,
        role: place.role,
        status,
        first: kernel(0),
        second: kernel(1),
        part: place.sums.both.part(steps, phase),
        ratio: place.sums.both.ratio(),
        fusion: explained.fusion,
        implementation: explained.implementation,
    }
}

/// The layers of the model by number.
fn numbers(sides: &[Chosen<'_>; 2], steps: &Steps, ledger: &Ledger) -> Vec<LayerNumber> {
    let mut keys: Vec<(u32, bool)> =
        ledger.numbers.keys().map(|(number, is_backward, _)| (*number, *is_backward)).collect();
    keys.sort_unstable_by_key(|(number, is_backward)| (*is_backward, *number));
    keys.dedup();
    let mut ran = [0, 1].map(|_| FxHashMap::<(u32, bool), u64>::default());
    for (ran, side) in ran.iter_mut().zip(sides) {
        for (layer, is_backward) in side.layers() {
            let phase = side.layer_phase(layer);
            if let Some(layer) = side.side.segments.layers.list.get(layer)
                && steps.compares(phase)
            {
                *ran.entry((layer.number, is_backward)).or_default() += 1;
            }
        }
    }
    let count = |side: usize, key: (u32, bool)| ran[side].get(&key).copied().unwrap_or(0);
    keys.into_iter()
        .map(|(number, is_backward)| {
            let mut part = Part::default();
            for phase in 0..PHASES {
                if let Some(both) = ledger.numbers.get(&(number, is_backward, phase)) {
                    part.add(&both.part(steps, phase));
                }
            }
            LayerNumber {
                layer: number,
                is_backward,
                first_layers: count(0, (number, is_backward)),
                second_layers: count(1, (number, is_backward)),
                part,
            }
        })
        .collect()
}
