//! What the machine around a measurement did to it.

use std::time::Duration;

use fusion_cost_model::calibration::FusionRecord;

use super::Case;
use super::reason::{InState, Reason};
use crate::measure::Surroundings;

/// The processes of a problem lie apart by this time at least, so that they meet more than one state
/// of a machine whose states last minutes.
pub const LEAST_SPAN: Duration = Duration::from_secs(120);

/// Seconds from the first process to the last one; `None` for fewer than two with a time.
#[must_use]
pub fn span(surroundings: &[Surroundings]) -> Option<f64> {
    let began = || surroundings.iter().map(|one| one.began_s).filter(|seconds| *seconds > 0.0);
    let (first, last) = (began().reduce(f64::min)?, began().reduce(f64::max)?);
    (began().count() > 1).then_some(last - first)
}

/// What a reader should know of it.
pub(super) fn remarks(case: &Case<'_>) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let described = |id: u32| case.states.iter().find(|state| state.id == id).cloned();
    let by_state = case.estimate.by_state.iter().filter_map(|one| {
        let state = described(one.state)?;
        Some(InState { state, processes: one.processes, speedup: [one.low, one.ratio, one.high] })
    });
    let by_state: Vec<InState> = by_state.collect();
    if !by_state.is_empty() {
        reasons.push(Reason::StateChanged(by_state));
    }
    let most = FusionRecord::MOST_OTHERS_BUSY;
    if let Some(processors) = others_busy(case.surroundings).filter(|one| *one > most) {
        let triads = case.surroundings.iter().filter_map(Surroundings::reading);
        let triad = triads.map(|one| one.triad_gb_per_s).reduce(f64::min);
        reasons.push(Reason::Neighbour { processors, lowest_triad_gb_per_s: triad });
    }
    let wanted = LEAST_SPAN.as_secs_f64();
    if let Some(seconds) = span(case.surroundings).filter(|span| *span < FusionRecord::SHORT_SPAN_S)
    {
        reasons.push(Reason::ShortSpan { seconds, wanted });
    }
    reasons
}

/// The processors that other programs kept busy, in the mean over the processes; `None` where the
/// system does not report it.
#[must_use]
pub fn others_busy(surroundings: &[Surroundings]) -> Option<f64> {
    let busy: Vec<f64> = surroundings.iter().filter_map(|one| one.others_busy).collect();
    (!busy.is_empty()).then(|| crate::measure::mean(&busy))
}
