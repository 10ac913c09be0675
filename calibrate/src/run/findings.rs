//! What a run says of the machine, over all of its problems.

use fusion_cost_model::calibration::{MeasuredCeilings, NoiseFloor};
use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{Clock, DType};

use super::ceilings;
use super::outcome::{Measured, State};
use super::settings::RunSettings;
use crate::digits::rounded;
use crate::measure::{States, log_ratios, pooled_correlation};
use crate::worker::{CeilingsReport, ProcessReport};

/// The ceilings as they were measured before a pass.
pub(super) struct PassCeilings {
    pub(super) dtype: DType,
    pub(super) clock: Clock,
    pub(super) pass: u32,
    pub(super) report: CeilingsReport,
}

/// The states that the machine was in around all processes.
pub(super) fn states(measured: &[Measured], ceilings: &[PassCeilings]) -> States {
    let mut surroundings: Vec<_> = measured.iter().flat_map(Measured::surroundings).collect();
    surroundings.extend(ceilings.iter().map(|pass| pass.report.surroundings));
    States::find(&surroundings)
}

/// The correlation of successive processes over all problems.
pub(super) fn correlation(measured: &[Measured]) -> f64 {
    let log_ratios = measured.iter().map(|one| {
        let samples: Vec<_> = one.processes.iter().map(|report| &report.samples).collect();
        log_ratios(&samples)
    });
    pooled_correlation(&log_ratios.collect::<Vec<_>>())
}

/// What the A/A runs say: nothing of those that failed.
pub(super) fn noise(controls: &[Measured], settings: &RunSettings) -> Vec<NoiseFloor> {
    let RunSettings { backend, threads, .. } = *settings;
    let usable = |control: &Measured| {
        let wrong = |report: &ProcessReport| report.wrong_after.is_some();
        matches!(control.state, State::Unfinished) && !control.processes.iter().any(wrong)
    };
    let of = |control: &Measured| {
        let estimate = control.estimate.as_ref().filter(|_| usable(control))?;
        Some(NoiseFloor {
            problem: control.subject.problem,
            backend,
            threads,
            clock: control.subject.clock,
            own_tensors: control.subject.comparison.has_copy(),
            ratio: rounded(estimate.ratio),
            ratio_low: rounded(estimate.low),
            ratio_high: rounded(estimate.high),
            // Of one process there is none; nothing is known then of what the floor is for.
            standard_error: rounded(Some(estimate.standard_error).filter(|one| one.is_finite())?),
            processes: u32::try_from(estimate.processes).unwrap_or(u32::MAX),
            disturbed: estimate.mostly_disturbed,
        })
    };
    controls.iter().filter_map(of).collect()
}

/// The ceilings of every kind in every state of the machine.
pub(super) fn ceilings_by_state(
    seen: &[PassCeilings],
    kinds: &[(DType, Clock)],
    machine: &States,
    settings: &RunSettings,
) -> Vec<MeasuredCeilings> {
    let RunSettings { backend, threads, .. } = *settings;
    let state_of = |pass: &PassCeilings| machine.of(&pass.report.surroundings);
    let mut states: Vec<Option<u32>> = seen.iter().map(state_of).collect();
    states.sort_unstable();
    states.dedup();
    let kinds = kinds.iter().flat_map(|kind| states.iter().map(move |state| (*kind, *state)));
    let measured = kinds.filter_map(|((dtype, clock), state)| {
        let passes = seen.iter().filter(|pass| (pass.dtype, pass.clock) == (dtype, clock));
        let in_state = passes.filter(|pass| state_of(pass) == state);
        let all: Vec<&Ceilings> = in_state.map(|pass| &pass.report.ceilings).collect();
        let (ceilings, spread) = ceilings::summary(&all)?;
        Some(MeasuredCeilings { backend, dtype, threads, clock, state, ceilings, spread })
    });
    measured.collect()
}
