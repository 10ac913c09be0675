//! The gap of a step, and its parts by class, by role, and by what overlaps computation.

use rustc_hash::FxHashMap;

use super::basis::{PHASES, Steps};
use super::kinds::Kinds;
use super::ledger::{COMMUNICATION, COPIES, FILLS, Ledger};
use super::places::places;
use super::result::{Cause, ClassPart, Gap, OverlapPart, Part, RolePart};
use super::roles::Role;
use super::tally::{Both, Tally};
use super::work::Work;

/// The time of a step of each side, from end to end.
pub(super) fn step_ns(steps: &Steps, ledger: &Ledger) -> [f64; 2] {
    [0, 1].map(|side| {
        let passed: f64 = ledger.phases[side].iter().map(Tally::passed_ns).sum();
        if steps.counts[side] == 0.0 { 0.0 } else { passed / steps.counts[side] }
    })
}

/// The gap with its parts.
pub(super) fn gap(steps: &Steps, kinds: &Kinds, ledger: &Ledger, causes: Vec<Cause>) -> Gap {
    let [first_ns, second_ns] = step_ns(steps, ledger);
    let gap_ns = first_ns - second_ns;
    let classes = classes(steps, ledger);
    let roles = roles(steps, kinds, ledger);
    let sums = [
        causes.iter().map(|cause| cause.part.gap_ns).sum::<f64>(),
        classes.iter().map(|class| class.part.gap_ns).sum(),
        roles.iter().map(|role| role.part.gap_ns).sum::<f64>()
            + without_role(&classes).iter().map(|part| part.gap_ns).sum::<f64>(),
    ];
    let rounding_ns = sums.into_iter().map(|sum| (sum - gap_ns).abs()).fold(0.0, f64::max);
    Gap {
        first_ns,
        second_ns,
        gap_ns,
        ratio: (second_ns > 0.0).then(|| first_ns / second_ns),
        causes,
        roles,
        phases: steps.phases(&ledger.phases),
        communication: overlap(steps, &ledger.beside[COMMUNICATION]),
        copies: overlap(steps, &ledger.beside[COPIES]),
        fills: overlap(steps, &ledger.beside[FILLS]),
        classes,
        rounding_ns,
    }
}

/// What has a class and no role: the time in which nothing runs, and the mix of phases.
const IDLE: &str = "IDLE";
const PHASE_MIX: &str = "PHASE_MIX";

fn without_role(classes: &[ClassPart]) -> Vec<Part> {
    let has_none = |class: &&ClassPart| class.class == IDLE || class.class == PHASE_MIX;
    classes.iter().filter(has_none).map(|class| class.part).collect()
}

fn classes(steps: &Steps, ledger: &Ledger) -> Vec<ClassPart> {
    let mut sums: FxHashMap<Work, (Part, Both)> = FxHashMap::default();
    let mut idle = Part::default();
    let mut entries: Vec<_> = ledger.works.iter().collect();
    // Sums of floating-point numbers depend on the order.
    entries.sort_by_key(|((work, phase), _)| (work.main, work.label(), *phase));
    for ((work, phase), both) in entries {
        let (part, all) = sums.entry(*work).or_default();
        part.add(&both.part(steps, *phase));
        all.0.iter_mut().zip(&both.0).for_each(|(all, tally)| all.merge(tally));
        idle.add(&both.waiting(steps, *phase));
    }
    let class = |(work, (part, both)): (Work, (Part, Both))| ClassPart {
        class: work.label(),
        part,
        ratio: both.ratio().map(|ratio| ratio.value),
    };
    let mut classes: Vec<ClassPart> = sums.into_iter().map(class).collect();
    let [first_ns, second_ns] = steps.mix_ns(&ledger.phases);
    let mix = Part { first_ns, second_ns, gap_ns: first_ns - second_ns, ..Part::default() };
    for (name, part) in [(IDLE, idle), (PHASE_MIX, mix)] {
        if part.first_ns != 0.0 || part.second_ns != 0.0 {
            classes.push(ClassPart { class: name.to_owned(), part, ratio: None });
        }
    }
    classes.sort_by(|a, b| {
        let by_gap = b.part.gap_ns.abs().total_cmp(&a.part.gap_ns.abs());
        by_gap.then_with(|| a.class.cmp(&b.class))
    });
    classes
}

fn roles(steps: &Steps, kinds: &Kinds, ledger: &Ledger) -> Vec<RolePart> {
    let mut sums: Vec<Part> = vec![Part::default(); Role::ALL.len()];
    let place = |role: Role| Role::ALL.iter().position(|other| *other == role).unwrap_or(0);
    for (kind, slots) in kinds.list.iter().zip(&ledger.slots) {
        let phase = steps.place(kind.key.phase);
        for slot in places(kind, slots) {
            sums[place(slot.role)].add(&slot.sums.both.part(steps, phase));
        }
    }
    let mut outside: Vec<_> = ledger.outside.iter().collect();
    outside.sort_by_key(|(key, _)| {
        (key.phase, key.work.main, key.work.label(), key.of_runtime, key.is_outside_steps)
    });
    for (key, both) in outside {
        sums[place(Role::Outside)].add(&both.part(steps, key.phase));
    }
    let parts = Role::ALL.into_iter().zip(sums);
    let is_there = |part: &Part| part.first_amount.count > 0 || part.second_amount.count > 0;
    parts.filter(|(_, part)| is_there(part)).map(|(role, part)| RolePart { role, part }).collect()
}

fn overlap(steps: &Steps, phases: &[Both; PHASES]) -> OverlapPart {
    let mut sums = [[0.0; 2]; 2];
    for (phase, both) in phases.iter().enumerate() {
        for (side, tally) in both.0.iter().enumerate() {
            let weight = steps.weight(side, phase);
            let hidden = tally.total_ns.saturating_sub(tally.own_ns);
            #[expect(clippy::cast_precision_loss, reason = "exact for 104 days")]
            let times = [tally.own_ns as f64, hidden as f64];
            sums[side][0] += times[0] * weight;
            sums[side][1] += times[1] * weight;
        }
    }
    let [[first_exposed_ns, first_overlapped_ns], [second_exposed_ns, second_overlapped_ns]] = sums;
    OverlapPart { first_exposed_ns, first_overlapped_ns, second_exposed_ns, second_overlapped_ns }
}
