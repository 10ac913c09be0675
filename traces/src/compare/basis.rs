//! What a step is, how many each side has, and what a nanosecond of a recording is in a step.
//!
//! Recordings differ in how many steps they have, and in which phases these are. Everything is
//! compared for one step of the same mix of phases on both sides: the mean of the two mixes. The
//! parts of steps of training are in every step, and so are not a mix.

use super::result::{Basis, PhasePart};
use super::side::Chosen;
use super::tally::Tally;
use crate::segment::Phase;

/// The phases in the order of reports, and after them what is of no phase.
pub(super) const PHASES: usize = Phase::ALL.len() + 1;

/// From this share of the durations on, the parts of steps are known where no mark tells them.
const ENOUGH_KNOWN: f64 = 0.9;

/// The place of a phase in a table.
pub(super) fn place(phase: Option<Phase>) -> usize {
    let found = phase.and_then(|phase| Phase::ALL.iter().position(|other| *other == phase));
    found.unwrap_or(PHASES - 1)
}

/// Numbers of passes beside those of training that differ by less are the same.
const SAME_PASSES: f64 = 0.1;

/// Shares that differ by less are the same.
const SAME_SHARE: f64 = 1e-9;

/// The steps of both sides.
pub(super) struct Steps {
    pub(super) basis: Basis,
    /// Whether phases are distinguished.
    pub(super) by_phase: bool,
    /// How many steps each side has.
    pub(super) counts: [f64; 2],
    /// The only phase that is compared, if one was asked for.
    wanted: Option<Phase>,
    /// How many steps of each phase each side has.
    pub(super) of_phase: [[f64; PHASES]; 2],
    /// How many passes a step of training has that are not part of it, as those of an evaluation.
    pub(super) beside_training: [f64; 2],
}

impl Steps {
    /// Counts the steps of both sides, by their layers if those are compared.
    pub(super) fn of(sides: &[Chosen<'_>; 2], has_layers: bool, phase: Option<Phase>) -> Self {
        let have_phases = sides.iter().all(tells_phases);
        let has_parts = |side: &Chosen<'_>| {
            let mut findings = side.side.segments.steps.findings.iter();
            findings.any(|found| found.phase.is_part_of_step())
        };
        // Layers of other phases, or that run backward alone, say nothing of how many steps there are.
        let has_steps = |steps: &[[f64; PHASES]; 2]| steps.iter().all(|steps| sum(steps) > 0.0);
        let passes = has_layers.then(|| sides.each_ref().map(|side| passes(side, phase)));
        let marked = sides.each_ref().map(marked_steps);
        let (basis, mut of_phase) = if let Some(passes) = passes.filter(has_steps) {
            (Basis::Layers, passes)
        } else if has_steps(&marked) {
            (Basis::MarkedSteps, marked)
        } else {
            let mut one = [0.0; PHASES];
            one[PHASES - 1] = 1.0;
            (Basis::Recording, [one; 2])
        };
        // Recordings without a phase in common are compared as they are.
        let are_common =
            (0..PHASES - 1).any(|phase| of_phase.iter().all(|steps| steps[phase] > 0.0));
        let are_common = are_common || sides.iter().all(has_parts);
        let by_phase = have_phases && are_common || phase.is_some();
        for steps in &mut of_phase {
            // All of them are of the only phase that is compared, or of phases that are not known.
            if phase.is_some() || !by_phase {
                let all = sum(steps);
                *steps = [0.0; PHASES];
                steps[place_of_step(phase)] = all;
            }
        }
        let counts = of_phase.each_ref().map(sum);
        let beside_training = match basis {
            Basis::Layers => sides.each_ref().map(passes_beside_training),
            Basis::MarkedSteps | Basis::Recording => [0.0; 2],
        };
        let beside_training = [0, 1].map(|side| ratio(beside_training[side], counts[side]));
        Self { basis, by_phase, wanted: phase, counts, of_phase, beside_training }
    }

    /// Whether the sides have as many passes a step beside those of training: recordings may cut one.
    pub(super) fn are_alike_beside_training(&self) -> bool {
        (self.beside_training[0] - self.beside_training[1]).abs() <= SAME_PASSES
    }

    /// Whether kernels outside of all marks are outside of what a step is.
    pub(super) fn needs_marks(&self) -> bool {
        self.basis == Basis::MarkedSteps
    }

    /// Whether a phase is compared.
    pub(super) fn compares(&self, phase: Option<Phase>) -> bool {
        self.wanted.is_none_or(|wanted| phase == Some(wanted))
    }

    /// The place of a kernel's phase in tables; parts of steps are of no phase in all of them but
    /// that of phases.
    pub(super) fn place(&self, phase: Option<Phase>) -> usize {
        place(self.of_steps(phase))
    }

    /// The place of a kernel's phase in the table of phases.
    pub(super) fn place_with_parts(&self, phase: Option<Phase>) -> usize {
        place(phase.filter(|_| self.by_phase))
    }

    /// The phase that layers must have in common to be compared.
    pub(super) fn of_steps(&self, phase: Option<Phase>) -> Option<Phase> {
        phase.filter(|phase| self.by_phase && !phase.is_part_of_step())
    }

    /// What a nanosecond of a phase of a side is in the step that is compared.
    pub(super) fn weight(&self, side: usize, phase: usize) -> f64 {
        if phase == PHASES - 1 || Phase::ALL.get(phase).is_some_and(|one| one.is_part_of_step()) {
            // What is of no phase is of all steps, and so are their parts.
            return ratio(1.0, self.counts[side]);
        }
        if self.of_phase.iter().any(|steps| steps[phase] == 0.0) {
            return 0.0;
        }
        let common = f64::midpoint(self.share(0, phase), self.share(1, phase));
        ratio(common, self.of_phase[side][phase])
    }

    /// Whether the sides have their phases in different shares.
    pub(super) fn have_different_mixes(&self) -> bool {
        (0..PHASES).any(|phase| (self.share(0, phase) - self.share(1, phase)).abs() > SAME_SHARE)
    }

    /// Whether the different shares make more of a difference than a share of a step's time.
    pub(super) fn mix_matters(&self, phases: &[PhasePart], step_ns: [f64; 2], share: f64) -> bool {
        let times = |part: &PhasePart| [part.first_ns, part.second_ns];
        [0, 1].into_iter().any(|side| {
            let added = phases.iter().filter(|part| !part.phase.is_part_of_step()).map(|part| {
                let place = place(Some(part.phase));
                times(part)[side].unwrap_or(0.0) * (self.share(0, place) - self.share(1, place))
            });
            added.sum::<f64>().abs() > share * step_ns[side]
        })
    }

    /// The share of a phase in the steps of a side.
    fn share(&self, side: usize, phase: usize) -> f64 {
        ratio(self.of_phase[side][phase], self.counts[side])
    }

    /// What the different mixes of phases add to a step: the time of each phase's kernels.
    pub(super) fn mix_ns(&self, of_phase: &[[Tally; PHASES]; 2]) -> [f64; 2] {
        [0, 1].map(|side| {
            let parts = of_phase[side].iter().enumerate().map(|(phase, tally)| {
                let weight = ratio(1.0, self.counts[side]) - self.weight(side, phase);
                tally.passed_ns() * weight
            });
            parts.sum()
        })
    }

    /// The phases that either side has.
    pub(super) fn phases(&self, of_phase: &[[Tally; PHASES]; 2]) -> Vec<PhasePart> {
        if !self.by_phase {
            return Vec::new();
        }
        let part = |(place, phase): (usize, Phase)| {
            let is_part = phase.is_part_of_step();
            let steps = |side: usize| match of_phase[side][place].count {
                0 if is_part => 0.0,
                _ if is_part => self.counts[side],
                _ => self.of_phase[side][place],
            };
            let time = |side: usize| {
                (steps(side) > 0.0).then(|| of_phase[side][place].passed_ns() / steps(side))
            };
            (steps(0) > 0.0 || steps(1) > 0.0).then(|| PhasePart {
                phase,
                first_steps: steps(0),
                second_steps: steps(1),
                first_ns: time(0),
                second_ns: time(1),
            })
        };
        Phase::ALL.into_iter().enumerate().filter_map(part).collect()
    }
}

fn sum(steps: &[f64; PHASES]) -> f64 {
    steps.iter().sum()
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

/// The place of the steps that have a phase: those of training are of none.
fn place_of_step(phase: Option<Phase>) -> usize {
    place(phase.filter(|phase| !phase.is_part_of_step()))
}

/// Whether the phases of a side are known: by marks, or else of all its layers and, of the parts of
/// steps, for most of the time.
fn tells_phases(side: &Chosen<'_>) -> bool {
    let steps = &side.side.segments.steps;
    if !steps.are_derived() {
        return steps.have_phases();
    }
    if !steps.findings.iter().any(|found| found.phase.is_part_of_step()) {
        return side.knows_all_phases();
    }
    let (mut known_ns, mut all_ns) = (0_u64, 0_u64);
    for row in &side.rows {
        let kernel = *row as usize;
        let duration_ns = side.side.trace.kernels.duration_ns.get(kernel).copied().unwrap_or(0);
        all_ns = all_ns.saturating_add(duration_ns);
        if side.phase(kernel).is_some() {
            known_ns = known_ns.saturating_add(duration_ns);
        }
    }
    crate::ratio::ratio(known_ns, all_ns) >= ENOUGH_KNOWN
}

/// The marked steps that kernels of the device belong to, by phase.
pub(super) fn marked_steps(side: &Chosen<'_>) -> [f64; PHASES] {
    let steps = &side.side.segments.steps;
    let mut is_used = vec![false; steps.list.len()];
    for row in &side.rows {
        if let Some(used) = steps.step(*row as usize).and_then(|step| is_used.get_mut(step)) {
            *used = true;
        }
    }
    let mut counts = [0.0; PHASES];
    for (step, _) in steps.list.iter().zip(is_used).filter(|(_, is_used)| *is_used) {
        counts[place(step.phase)] += 1.0;
    }
    counts
}

/// The passes through the model, by phase: its layers that ran, over how many it has. Passes that
/// the recording cuts count as far as they are there. Of training only those forward are counted:
/// what a checkpoint runs once more is a part of the same step. If one phase is asked for, only its
/// passes count.
fn passes(side: &Chosen<'_>, wanted: Option<Phase>) -> [f64; PHASES] {
    let is_training = trains(side);
    let wanted = wanted.filter(|wanted| !wanted.is_part_of_step());
    let is_counted = |phase: Option<Phase>| match wanted {
        Some(_) => phase == wanted,
        None => !is_training || phase == Some(Phase::Forward),
    };
    let phases = forward_layers(side).filter(|phase| is_counted(*phase));
    let mut layers = [0_u32; PHASES];
    phases.for_each(|phase| layers[place_of_step(phase)] += 1);
    let of_model = f64::from(side.side.segments.layers.count);
    layers.map(|layers| ratio(f64::from(layers), of_model))
}

/// The passes of a recording of training that are neither forward nor run once more.
fn passes_beside_training(side: &Chosen<'_>) -> f64 {
    let is_beside = |phase: &Option<Phase>| phase.is_none_or(|phase| !phase.is_part_of_step());
    let layers = match trains(side) {
        true => forward_layers(side).filter(is_beside).count(),
        false => 0,
    };
    #[expect(clippy::cast_precision_loss, reason = "a count of layers")]
    let layers = layers as f64;
    ratio(layers, f64::from(side.side.segments.layers.count))
}

/// Whether the operators of a side show passes forward that gradients are computed of.
pub(super) fn trains(side: &Chosen<'_>) -> bool {
    forward_layers(side).any(|phase| phase == Some(Phase::Forward))
}

/// The phases of the layers of the device that do not run backward.
fn forward_layers(side: &Chosen<'_>) -> impl Iterator<Item = Option<Phase>> {
    let layers = side.layers().filter(|(_, is_backward)| !is_backward);
    layers.map(|(layer, _)| side.layer_phase(layer))
}
