//! What a run says of the machine, over all of its problems.

use fusion_cost_model::calibration::{MeasuredCeilings, NoiseFloor};
use fusion_cost_model::cost::Ceilings;
use fusion_cost_model::{CacheState, Clock, DType};

use super::ceilings;
use super::outcome::{Measured, State};
use super::settings::RunSettings;
use crate::judge;
use crate::measure::{States, log_ratios, pooled_correlation};
use crate::worker::CeilingsReport;

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

/// What the A/A runs say, those that every run begins with and the single ops that were asked for:
/// nothing of those that failed.
pub(super) fn noise<'a>(
    controls: impl Iterator<Item = &'a Measured>,
    settings: &RunSettings,
) -> Vec<NoiseFloor> {
    let RunSettings { backend, threads, .. } = *settings;
    let usable = |control: &Measured| {
        matches!(control.state, State::Unfinished | State::Finished)
            && control.wrong_after().is_none()
    };
    let of = |control: &Measured| {
        let estimate = control.estimate.as_ref().filter(|_| usable(control))?;
        judge::control(&control.subject, estimate, backend, threads)
    };
    controls.filter_map(of).collect()
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
    // In the order of what a reader looks for first: what was measured.
    let cache_states = match settings.cache {
        CacheState::Warm => &[CacheState::Warm][..],
        CacheState::Cold => &[CacheState::Warm, CacheState::Cold],
    };
    let kinds = kinds.flat_map(|kind| cache_states.iter().map(move |cache| (kind, *cache)));
    let measured = kinds.filter_map(|(((dtype, clock), state), cache_state)| {
        let passes = seen.iter().filter(|pass| (pass.dtype, pass.clock) == (dtype, clock));
        let in_state = passes.filter(|pass| state_of(pass) == state);
        let reports: Vec<&CeilingsReport> = in_state.map(|pass| &pass.report).collect();
        // Whatever failed first: the last measurement knows of it, and those on the core that failed
        // count for nothing.
        let ladder = &reports.last()?.ladder;
        let on_core = reports.iter().filter(|report| report.ladder.core == ladder.core);
        let all: Vec<&Ceilings> = on_core.map(|report| &report.ceilings).collect();
        let (ceilings, spread) = ceilings::summary(&all)?;
        let ceilings = match cache_state {
            CacheState::Warm => ceilings,
            CacheState::Cold => ceilings.in_memory(),
        };
        Some(MeasuredCeilings {
            backend,
            dtype,
            threads,
            cache_state,
            clock,
            state,
            ceilings,
            spread,
            core: ladder.core,
            failed_cores: ladder.failed.clone(),
        })
    });
    measured.collect()
}
