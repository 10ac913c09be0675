//! The gap put down to what it comes from.

use rustc_hash::FxHashMap;

use super::explain::{Evidence, Explained, Explanation};
use super::ledger::OutsideKey;
use super::places::Place;
use super::result::{Cause, CauseKind, Fusion, Part, Which};
use super::roles::Role;
use super::tally::Both;
use super::text::{capitalised, list, percent, time};
use super::work::Work;
use crate::classify::Class;

/// What a cause is, while its parts are added up.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Fusion(usize),
    Implementation(usize),
    OneSided(Which, Work, Role),
    Communication,
    Copies,
    Fills,
    Class(Class),
    OutsideSteps,
    Idle,
    PhaseMix,
}

/// Times that differ by less are equal, in nanoseconds.
const NO_GAP_NS: f64 = 0.5;

/// As often, up to this share: a recording may begin or end inside of a pass.
const SAME_OFTEN: f64 = 0.1;

impl Evidence<'_, '_> {
    /// Puts every kernel, every wait and the mix of phases down to one cause. The largest is first.
    pub(super) fn causes(&self, explanation: &Explanation, all: &[Vec<Place<'_>>]) -> Vec<Cause> {
        let mut parts: FxHashMap<Key, Part> = FxHashMap::default();
        let mut put = |key: Key, part: &Part| parts.entry(key).or_default().add(part);
        for ((kind, places), explained) in self.kinds.list.iter().zip(all).zip(&explanation.slots) {
            let phase = self.steps.place(kind.key.phase);
            for (place, explained) in places.iter().zip(explained) {
                let key = key_of_place(place, *explained);
                put(key, &place.sums.both.part(self.steps, phase));
                put(Key::Idle, &place.sums.both.waiting(self.steps, phase));
            }
        }
        // What one side does outside of layers, the other may do inside.
        let mut sums: FxHashMap<Work, Both> = FxHashMap::default();
        for ((work, _), both) in &self.ledger.works {
            let sum = sums.entry(*work).or_default();
            sum.0.iter_mut().zip(&both.0).for_each(|(sum, tally)| sum.merge(tally));
        }
        let mut outside: Vec<(&OutsideKey, &Both)> = self.ledger.outside.iter().collect();
        // Sums of floating-point numbers depend on the order.
        outside.sort_by_key(|(key, _)| {
            (key.phase, key.work.main, key.work.label(), key.of_runtime, key.is_outside_steps)
        });
        for (key, both) in outside {
            let cause = if key.is_outside_steps {
                Key::OutsideSteps
            } else {
                key_outside(key, &sums.get(&key.work).copied().unwrap_or_default())
            };
            put(cause, &both.part(self.steps, key.phase));
            let idle = if key.is_outside_steps { Key::OutsideSteps } else { Key::Idle };
            put(idle, &both.waiting(self.steps, key.phase));
        }
        let [first_ns, second_ns] = self.steps.mix_ns(&self.ledger.phases);
        if first_ns != 0.0 || second_ns != 0.0 {
            let mix = Part { first_ns, second_ns, gap_ns: first_ns - second_ns, ..Part::default() };
            put(Key::PhaseMix, &mix);
        }
        self.join_places(&mut parts);
        // Kernels without a duration are put down too.
        let is_there = |part: &Part| {
            let counts = part.first_amount.count + part.second_amount.count;
            counts > 0 || part.first_ns != 0.0 || part.second_ns != 0.0
        };
        let mut parts: Vec<(Key, Part)> =
            parts.into_iter().filter(|(_, part)| is_there(part)).collect();
        // Of equals what kernels do before what passes between them.
        parts.sort_by(|(a, one), (b, other)| {
            other.gap_ns.abs().total_cmp(&one.gap_ns.abs()).then_with(|| a.cmp(b))
        });
        parts.into_iter().map(|(key, part)| self.cause(explanation, &key, part)).collect()
    }

    /// What only one side has at one place of a layer, and only the other at another place or
    /// outside, as often in a step, both have: where a layer begins and ends may differ by a kernel.
    fn join_places(&self, parts: &mut FxHashMap<Key, Part>) {
        let mut one_sided: Vec<(Work, Which, Role)> = parts
            .keys()
            .filter_map(|key| match key {
                Key::OneSided(which, work, role) => Some((*work, *which, *role)),
                _ => None,
            })
            .collect();
        one_sided.sort_unstable();
        for same in one_sided.chunk_by(|(a, ..), (b, ..)| a == b) {
            let keys = same.iter().map(|(work, which, role)| Key::OneSided(*which, *work, *role));
            let mut sum = Part::default();
            keys.clone().filter_map(|key| parts.get(&key)).for_each(|part| sum.add(part));
            let [first, second] = [
                sum.first_amount.count as f64 / self.steps.counts[0],
                sum.second_amount.count as f64 / self.steps.counts[1],
            ];
            let (Some((work, ..)), true) =
                (same.first(), (first - second).abs() <= SAME_OFTEN * first.max(second))
            else {
                continue;
            };
            for key in keys {
                parts.remove(&key);
            }
            parts.entry(Key::Class(work.main)).or_default().add(&sum);
        }
    }

    fn cause(&self, explanation: &Explanation, key: &Key, part: Part) -> Cause {
        let (kind, index, name) = self.name(explanation, key);
        let sentence = if part.gap_ns.abs() < NO_GAP_NS {
            format!("{name} takes as long on both sides: {}", time(part.first_ns))
        } else {
            self.sentence(explanation, key, &part)
        };
        let sentence = capitalised(format!("{sentence}{}", self.of_gap(part.gap_ns)));
        Cause { kind, name, index, part, sentence }
    }

    /// What kind a cause is, its place in the list of findings, and its name.
    fn name(&self, explanation: &Explanation, key: &Key) -> (CauseKind, Option<usize>, String) {
        match key {
            Key::Fusion(index) => {
                let fusion = &explanation.fusions[*index];
                let who = &self.labels[usize::from(fusion.fused_by == Which::Second)];
                let name = format!("{} fused by {who} {}", fusion.operation, fusion.role.place());
                (CauseKind::Fusion, Some(*index), name)
            }
            Key::Implementation(index) => {
                let one = &explanation.implementation[*index];
                let who = &self.labels[usize::from(one.run_by == Which::Second)];
                let name = format!("{} of {who} {}", one.class, one.role.place());
                (CauseKind::Implementation, Some(*index), name)
            }
            Key::OneSided(which, work, role) => {
                let who = &self.labels[usize::from(*which == Which::Second)];
                let name = format!("{} of {who} only, {}", work.label(), role.place());
                (CauseKind::OneSided, None, name)
            }
            Key::Communication => (CauseKind::Communication, None, "communication".to_owned()),
            Key::Copies => (CauseKind::Copies, None, "copies of the runtime".to_owned()),
            Key::Fills => (CauseKind::Fills, None, "fills of the runtime".to_owned()),
            Key::Class(class) => (CauseKind::Class, None, class.name().to_owned()),
            Key::OutsideSteps => {
                (CauseKind::OutsideSteps, None, "outside of all marked steps".to_owned())
            }
            Key::Idle => (CauseKind::Idle, None, "idle".to_owned()),
            Key::PhaseMix => (CauseKind::PhaseMix, None, "mix of phases".to_owned()),
        }
    }

    /// What to say about a cause, apart from its share of the gap.
    fn sentence(&self, explanation: &Explanation, key: &Key, part: &Part) -> String {
        let slower = &self.labels[usize::from(part.gap_ns < 0.0)];
        let by = time(part.gap_ns.abs());
        let (longer, shorter) =
            (part.first_ns.max(part.second_ns), part.first_ns.min(part.second_ns));
        let both = format!("{} against {}", time(longer), time(shorter));
        match key {
            Key::Fusion(index) => {
                let Fusion { fused_by, operation, separate, .. } = &explanation.fusions[*index];
                let side = usize::from(*fused_by == Which::Second);
                let (who, other) = (&self.labels[side], &self.labels[1 - side]);
                let place = explanation.fusions[*index].role.place();
                format!(
                    "{who} runs {operation} as one kernel {place} and {other} as {}: {slower} takes {by} \
                     longer for it ({both})",
                    list(separate)
                )
            }
            Key::Implementation(index) => explanation.implementation[*index].sentence.clone(),
            Key::OneSided(_, work, role) => {
                format!("only {slower} has {} {}: {by}", work.label(), role.place())
            }
            Key::Communication => {
                format!("communication that nothing hides takes {slower} {by} longer ({both})")
            }
            Key::Copies => {
                format!(
                    "copies of the runtime that nothing hides take {slower} {by} longer ({both})"
                )
            }
            Key::Fills => {
                format!(
                    "fills of the runtime that nothing hides take {slower} {by} longer ({both})"
                )
            }
            Key::Class(class) => format!("{class} takes {slower} {by} longer ({both})"),
            Key::OutsideSteps => {
                format!("{slower} has {by} more outside of all marked steps ({both})")
            }
            Key::Idle => format!(
                "the device of {slower} waits {by} longer for the host or another device ({both})"
            ),
            Key::PhaseMix => format!(
                "the recordings have their phases in different shares, which makes a {} of \
                 {slower} {by} longer",
                self.steps.basis.noun()
            ),
        }
    }

    /// What a part is of the whole gap.
    fn of_gap(&self, part_ns: f64) -> String {
        let share = part_ns / self.gap_ns;
        if !share.is_finite() || part_ns.abs() < NO_GAP_NS {
            String::new()
        } else if share >= 0.0 {
            format!(", {} of the gap", percent(share))
        } else {
            ", which makes the gap smaller".to_owned()
        }
    }
}

/// The cause of what is at a place of a layer.
fn key_of_place(place: &Place<'_>, explained: Explained) -> Key {
    if let Some(fusion) = explained.fusion {
        return Key::Fusion(fusion);
    }
    // Both sides have a class of their own where they do not do the same; the earlier one names it.
    let main = place.works.iter().flatten().map(|work| work.main).min();
    let main = main.unwrap_or(Class::Unclassified);
    if main == Class::Comm {
        return Key::Communication;
    }
    if let Some(difference) = explained.implementation {
        return Key::Implementation(difference);
    }
    if place.sums.is_of_runtime() {
        return of_runtime(main);
    }
    for side in [0, 1] {
        if place.is_only_of(side)
            && let Some(work) = place.works[side]
        {
            return Key::OneSided(Which::of(side), work, place.role);
        }
    }
    Key::Class(main)
}

/// The cause of what is outside of layers. `sum` is all that both sides have of it.
fn key_outside(key: &OutsideKey, sum: &Both) -> Key {
    if key.work.main == Class::Comm {
        return Key::Communication;
    }
    if key.of_runtime {
        return of_runtime(key.work.main);
    }
    for side in [0, 1] {
        if sum.is_one_sided() && sum.0[side].count > 0 {
            return Key::OneSided(Which::of(side), key.work, Role::Outside);
        }
    }
    Key::Class(key.work.main)
}

fn of_runtime(class: Class) -> Key {
    if class == Class::Fill { Key::Fills } else { Key::Copies }
}
