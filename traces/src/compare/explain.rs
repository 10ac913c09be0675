//! The gap put down to what it comes from: each kernel, each wait, and the mix of phases once.

use rustc_hash::FxHashMap;

use super::basis::Steps;
use super::ends::{At, at_ends};
use super::fusion::{self, Found};
use super::implementation;
use super::kinds::Kinds;
use super::ledger::{Ledger, OutsideKey};
use super::places::{Place, places};
use super::result::{
    Cause, CauseKind, Fusion, FusionEvidence, ImplementationDifference, ImplementationKind, Part,
    Which,
};
use super::roles::Role;
use super::side::Chosen;
use super::tally::Both;
use super::text::{list, number, time};
use super::work::Work;
use crate::classify::{Class, ClassSet};

/// What a place of a layer is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Explained {
    pub(super) fusion: Option<usize>,
    pub(super) implementation: Option<usize>,
}

/// What was found.
pub(super) struct Explanation {
    pub(super) causes: Vec<Cause>,
    pub(super) fusions: Vec<Fusion>,
    pub(super) implementation: Vec<ImplementationDifference>,
    /// For each kind and column what it is a part of.
    pub(super) slots: Vec<Vec<Explained>>,
}

/// What a cause is, while its parts are added up.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Fusion(usize),
    Implementation(usize),
    OneSided(Which, String, Option<Role>),
    Communication,
    Copies,
    Fills,
    Class(Class),
    OutsideSteps,
    Idle,
    PhaseMix,
}

/// Something is done as often in a step, but for parts of steps at the ends of the recordings.
const SAME_OFTEN: f64 = 0.5;

/// What the explanation is made from.
pub(super) struct Evidence<'e, 't> {
    pub(super) sides: &'e [Chosen<'t>; 2],
    pub(super) labels: &'e [String; 2],
    pub(super) steps: &'e Steps,
    pub(super) kinds: &'e Kinds,
    pub(super) ledger: &'e Ledger,
    /// First less second, for one step.
    pub(super) gap_ns: f64,
}

impl Evidence<'_, '_> {
    pub(super) fn explain(&self) -> Explanation {
        let all: Vec<Vec<Place<'_>>> = self
            .kinds
            .list
            .iter()
            .zip(&self.ledger.slots)
            .map(|(kind, slots)| places(kind, slots))
            .collect();
        let missing = fusion::missing_classes(all.iter().flatten());
        let mut explanation = Explanation {
            causes: Vec::new(),
            fusions: Vec::new(),
            implementation: Vec::new(),
            slots: all.iter().map(|places| vec![Explained::default(); places.len()]).collect(),
        };
        self.add_fusions(&mut explanation, &all, missing);
        let mut known = FxHashMap::default();
        for (kind, places) in all.iter().enumerate() {
            if self.kinds.list[kind].variants.iter().any(Vec::is_empty) {
                continue;
            }
            for at in 0..places.len() {
                if explanation.slots[kind][at].fusion.is_none() {
                    self.add_implementation(&mut explanation, &mut known, kind, places, at);
                }
            }
        }
        self.sort_findings(&mut explanation);
        self.describe(&mut explanation);
        explanation.causes = self.causes(&explanation, &all);
        explanation
    }

    fn add_fusions(
        &self,
        explanation: &mut Explanation,
        all: &[Vec<Place<'_>>],
        missing: [ClassSet; 2],
    ) {
        let mut found: Vec<(usize, Found)> = Vec::new();
        for (number, (kind, places)) in self.kinds.list.iter().zip(all).enumerate() {
            // A fusion is between layers that both sides have.
            if kind.variants.iter().all(|side| !side.is_empty()) {
                let of_kind = fusion::find(places, missing, !kind.key.is_outside);
                found.extend(of_kind.into_iter().map(|found| (number, found)));
            }
        }
        let (partial, whole): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(_, found)| found.is_partial);
        let mut known = FxHashMap::default();
        let whole: Vec<(usize, Found, usize)> = whole
            .into_iter()
            .map(|(kind, found)| {
                let index = self.add_fusion(explanation, &mut known, kind, &all[kind], &found);
                (kind, found, index)
            })
            .collect();
        // What few layers show is believed if others show it.
        let (absent, partial): (Vec<_>, Vec<_>) =
            partial.into_iter().partition(|(_, found)| found.by == FusionEvidence::Absence);
        for (kind, found) in absent {
            // Without the missing kernel a role may be taken for another one.
            let (side, operation, separate, _) = self.key(&all[kind], &found);
            let same = known.iter().filter(|((of, what, parts, _), _)| {
                *of == side && *what == operation && *parts == separate
            });
            if let Some(index) = same.map(|(_, index)| *index).min() {
                for at in found.places() {
                    self.add_place(explanation, index, kind, &all[kind], at, side);
                }
            }
        }
        for (kind, found, index) in &whole {
            let is_free = |(kind, at): At| explanation.slots[kind][at].fusion.is_none();
            let more = at_ends(&self.kinds.list, all, self.steps, (*kind, found), is_free);
            for (kind, at) in more {
                self.add_place(explanation, *index, kind, &all[kind], at, found.side);
            }
        }
        for (kind, found) in partial {
            if explanation.slots[kind][found.fused].fusion.is_none() {
                self.add_fusion(explanation, &mut known, kind, &all[kind], &found);
            }
        }
    }

    /// Adds a fusion, or more of one that is known. Returns its place in the list.
    fn add_fusion(
        &self,
        explanation: &mut Explanation,
        known: &mut FxHashMap<(usize, String, Vec<String>, Role), usize>,
        kind: usize,
        places: &[Place<'_>],
        found: &Found,
    ) -> usize {
        let fused = &places[found.fused];
        let key = self.key(places, found);
        let (_, operation, separate, _) = key.clone();
        let index = *known.entry(key).or_insert_with(|| {
            let names = found.separate.iter();
            let other = 1 - found.side;
            let trace = self.sides[other].side.trace;
            explanation.fusions.push(Fusion {
                fused_by: found.which(),
                operation,
                fused_kernel: fused.name(found.side, self.sides[found.side].side.trace).to_owned(),
                separate,
                separate_kernels: names
                    .map(|at| places[*at].name(other, trace).to_owned())
                    .filter(|name| !name.is_empty())
                    .collect(),
                role: fused.role,
                per_step: 0.0,
                count: 0,
                part: Part::default(),
                confidence: found.confidence,
                by: found.by,
                excess: found.excess,
                evidence: String::new(),
            });
            explanation.fusions.len() - 1
        });
        for at in found.places() {
            self.add_place(explanation, index, kind, places, at, found.side);
        }
        index
    }

    /// What makes findings one: who fuses what, what the other side runs, and for what.
    fn key(&self, places: &[Place<'_>], found: &Found) -> (usize, String, Vec<String>, Role) {
        let fused = &places[found.fused];
        let separate = found.separate.iter();
        let separate =
            separate.filter_map(|at| places[*at].works[1 - found.side].map(Work::label)).collect();
        (found.side, self.operation(found, fused), separate, fused.role)
    }

    /// Adds a place to a fusion.
    fn add_place(
        &self,
        explanation: &mut Explanation,
        index: usize,
        kind: usize,
        places: &[Place<'_>],
        at: usize,
        side: usize,
    ) {
        let phase = self.steps.place(self.kinds.list[kind].key.phase);
        explanation.slots[kind][at].fusion = Some(index);
        let sums = &places[at].sums.both;
        let fusion = &mut explanation.fusions[index];
        fusion.part.add(&sums.part(self.steps, phase));
        // On the side that fuses there is only the fused kernel.
        fusion.count += sums.0[side].count;
        fusion.per_step += ratio(sums.0[side].count, self.steps.counts[side]);
    }

    /// What the fused kernel does; of attention what the other side runs for it.
    fn operation(&self, found: &Found, fused: &Place<'_>) -> String {
        let own = fused.works[found.side].map(Work::label).unwrap_or_default();
        match found.by {
            FusionEvidence::Name => own,
            FusionEvidence::Definition => "GEMM+SOFTMAX+GEMM".to_owned(),
            FusionEvidence::Absence => {
                let main = fused.works[found.side].map_or(Class::Unclassified, |work| work.main);
                Work { main, also: found.parts.without(main) }.label()
            }
        }
    }

    fn add_implementation(
        &self,
        explanation: &mut Explanation,
        known: &mut FxHashMap<(ImplementationKind, usize, String, Role), usize>,
        kind: usize,
        places: &[Place<'_>],
        at: usize,
    ) {
        let place = &places[at];
        let Some((side, what)) = [0, 1]
            .into_iter()
            .find_map(|side| Some((side, implementation::kind(places, at, side)?)))
        else {
            return;
        };
        if place.sums.is_of_runtime()
            && place.works[side].is_some_and(|work| self.is_as_often(work))
        {
            return;
        }
        let phase = self.steps.place(self.kinds.list[kind].key.phase);
        let class = place.works[side].map(Work::label).unwrap_or_default();
        let key = (what, side, class.clone(), place.role);
        let index = *known.entry(key).or_insert_with(|| {
            explanation.implementation.push(ImplementationDifference {
                kind: what,
                run_by: Which::of(side),
                class,
                role: place.role,
                kernel: place.name(side, self.sides[side].side.trace).to_owned(),
                per_step: 0.0,
                part: Part::default(),
                sentence: String::new(),
            });
            explanation.implementation.len() - 1
        });
        let difference = &mut explanation.implementation[index];
        let own = &place.sums.both.0[side];
        difference.per_step += ratio(own.count, self.steps.counts[side]);
        difference.part.add(&place.sums.both.part(self.steps, phase));
        explanation.slots[kind][at].implementation = Some(index);
    }

    /// Whether both sides do this as often in a step. What the runtime does on a stream of its own
    /// may then run beside one layer on one side and beside another on the other.
    fn is_as_often(&self, work: Work) -> bool {
        let [first, second] = [0, 1].map(|side: usize| {
            let of_work = self.ledger.works.iter().filter(|((other, _), _)| *other == work);
            let count: u64 = of_work.map(|(_, both)| both.0[side].count).sum();
            ratio(count, self.steps.counts[side])
        });
        (first - second).abs() < SAME_OFTEN
    }

    /// The largest gaps first.
    fn sort_findings(&self, explanation: &mut Explanation) {
        let order = |gaps: Vec<f64>| {
            let mut order: Vec<usize> = (0..gaps.len()).collect();
            order.sort_by(|a, b| gaps[*b].abs().total_cmp(&gaps[*a].abs()));
            let mut new = vec![0; order.len()];
            for (to, from) in order.iter().enumerate() {
                new[*from] = to;
            }
            (order, new)
        };
        let Explanation { fusions, implementation, slots, .. } = explanation;
        let (fusion_order, new_fusion) =
            order(fusions.iter().map(|fusion| fusion.part.gap_ns).collect());
        *fusions = fusion_order.iter().map(|from| fusions[*from].clone()).collect();
        let (order, new) = order(implementation.iter().map(|one| one.part.gap_ns).collect());
        *implementation = order.iter().map(|from| implementation[*from].clone()).collect();
        for slot in slots.iter_mut().flatten() {
            slot.fusion = slot.fusion.map(|old| new_fusion[old]);
            slot.implementation = slot.implementation.map(|old| new[old]);
        }
    }

    /// Puts the findings into words.
    fn describe(&self, explanation: &mut Explanation) {
        for fusion in &mut explanation.fusions {
            let side = usize::from(fusion.fused_by == Which::Second);
            let (who, other) = (&self.labels[side], &self.labels[1 - side]);
            let separate = list(&fusion.separate);
            fusion.evidence = match fusion.by {
                FusionEvidence::Name => format!(
                    "the kernel of {who} does {} by its name, or by the operator that launched it, \
                     and {other} runs {separate} at this place",
                    fusion.operation
                ),
                FusionEvidence::Definition => format!(
                    "attention in one kernel multiplies, takes the softmax and multiplies again, \
                     and {other} runs {separate} at this place"
                ),
                FusionEvidence::Absence => {
                    format!(
                        "{who} has no such kernel as one of {separate} that {other} runs in every \
                         layer, and its neighbour takes longer by {} of what it would take",
                        percent(fusion.excess.unwrap_or_default())
                    )
                }
            };
        }
        for difference in &mut explanation.implementation {
            let side = usize::from(difference.run_by == Which::Second);
            let (who, other) = (&self.labels[side], &self.labels[1 - side]);
            let what = what_it_is(difference.kind);
            let spent =
                if side == 0 { difference.part.first_ns } else { difference.part.second_ns };
            difference.sentence = format!(
                "{who} runs {} {} of {what} a step in {} ({}) that {other} does not: {}",
                number(difference.per_step),
                if (difference.per_step - 1.0).abs() < 5e-3 { "kernel" } else { "kernels" },
                difference.role.name(),
                difference.class,
                time(spent)
            );
        }
    }

    fn causes(&self, explanation: &Explanation, all: &[Vec<Place<'_>>]) -> Vec<Cause> {
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

    fn cause(&self, explanation: &Explanation, key: &Key, part: Part) -> Cause {
        let [first, second] = self.labels;
        let (kind, index, name) = match key {
            Key::Fusion(index) => {
                let fusion = &explanation.fusions[*index];
                let who = &self.labels[usize::from(fusion.fused_by == Which::Second)];
                let name = format!("{} fused by {who} in {}", fusion.operation, fusion.role.name());
                (CauseKind::Fusion, Some(*index), name)
            }
            Key::Implementation(index) => {
                let one = &explanation.implementation[*index];
                let who = &self.labels[usize::from(one.run_by == Which::Second)];
                let name = format!("{} of {who} in {}", one.class, one.role.name());
                (CauseKind::Implementation, Some(*index), name)
            }
            Key::OneSided(which, class, role) => {
                let who = &self.labels[usize::from(*which == Which::Second)];
                let place = role.map_or("outside of layers", Role::name);
                (CauseKind::OneSided, None, format!("{class} of {who} only, {place}"))
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
        };
        let slower = if part.gap_ns >= 0.0 { first } else { second };
        let by = time(part.gap_ns.abs());
        let longer = part.first_ns.max(part.second_ns);
        let both = format!("{} against {}", time(longer), time(part.first_ns.min(part.second_ns)));
        let of_gap = self.of_gap(part.gap_ns);
        let sentence = match kind {
            CauseKind::Fusion => {
                let fusion = explanation.fusions.get(index.unwrap_or_default());
                let separate = fusion.map(|fusion| list(&fusion.separate)).unwrap_or_default();
                let fused_by =
                    fusion.map_or(0, |fusion| usize::from(fusion.fused_by == Which::Second));
                format!(
                    "{} runs {} as one kernel and {} as {separate}: {slower} takes {by} longer for \
                     it ({both}){of_gap}",
                    self.labels[fused_by],
                    fusion.map_or("", |fusion| &fusion.operation),
                    self.labels[1 - fused_by],
                )
            }
            CauseKind::Implementation => {
                let one = explanation.implementation.get(index.unwrap_or_default());
                let sentence = one.map(|one| one.sentence.clone()).unwrap_or_default();
                format!("{sentence}{of_gap}")
            }
            CauseKind::OneSided => {
                format!("only {slower} has {}: {by}{of_gap}", name_of_class(&name))
            }
            CauseKind::Communication => format!(
                "communication that nothing hides takes {slower} {by} longer ({both}){of_gap}"
            ),
            CauseKind::Copies | CauseKind::Fills => {
                format!("{name} that nothing hides take {slower} {by} longer ({both}){of_gap}")
            }
            CauseKind::Class => format!("{name} takes {slower} {by} longer ({both}){of_gap}"),
            CauseKind::OutsideSteps => {
                format!("{slower} has {by} more outside of all marked steps ({both}){of_gap}")
            }
            CauseKind::Idle => format!(
                "the device of {slower} waits {by} longer for the host or another device \
                 ({both}){of_gap}"
            ),
            CauseKind::PhaseMix => format!(
                "the recordings have their phases in different shares, which makes a step of \
                 {slower} {by} longer{of_gap}"
            ),
        };
        Cause { kind, name, index, part, sentence }
    }

    /// What a part is of the whole gap.
    fn of_gap(&self, part_ns: f64) -> String {
        let share = part_ns / self.gap_ns;
        if !share.is_finite() || part_ns == 0.0 {
            String::new()
        } else if share >= 0.0 {
            format!(", {} of the gap", percent(share))
        } else {
            ", which makes the gap smaller".to_owned()
        }
    }
}

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
        if place.is_only_of(side) {
            let label = place.works[side].map(Work::label).unwrap_or_default();
            return Key::OneSided(Which::of(side), label, Some(place.role));
        }
    }
    Key::Class(main)
}

fn key_outside(key: &OutsideKey, sum: &Both) -> Key {
    if key.work.main == Class::Comm {
        return Key::Communication;
    }
    if key.of_runtime {
        return of_runtime(key.work.main);
    }
    for side in [0, 1] {
        if sum.is_one_sided() && sum.0[side].count > 0 {
            return Key::OneSided(Which::of(side), key.work.label(), None);
        }
    }
    Key::Class(key.work.main)
}

fn of_runtime(class: Class) -> Key {
    if class == Class::Fill { Key::Fills } else { Key::Copies }
}

/// What a cause's name says before the side.
fn name_of_class(name: &str) -> String {
    match name.split_once(" of ") {
        Some((class, rest)) => match rest.rsplit_once(", ") {
            Some((_, place)) if place == "outside of layers" => format!("{class} {place}"),
            Some((_, place)) => format!("{class} in {place}"),
            None => class.to_owned(),
        },
        None => name.to_owned(),
    }
}

fn what_it_is(kind: ImplementationKind) -> &'static str {
    match kind {
        ImplementationKind::SplitProduct => "the tail of a split product",
        ImplementationKind::SplitAttention => "an attention of several kernels",
        ImplementationKind::SeparateProducts => "separate products",
        ImplementationKind::Fill => "filling memory",
        ImplementationKind::Quantisation => "quantisation",
        ImplementationKind::Copy => "copying or casting",
        ImplementationKind::Collective => "a collective",
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of kernels")]
fn ratio(count: u64, steps: f64) -> f64 {
    if steps == 0.0 { 0.0 } else { count as f64 / steps }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
