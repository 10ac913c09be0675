//! What must be true of the states of the machine.

use super::contradiction::{Checked, check_threads, fail};
use super::limits::{HANDOFF_US, RATE};
use super::timestamp;
use crate::calibration::{EarlierState, HardwareCalibration, MachineState};
use crate::cost::BandwidthPoint;
use crate::error::Error;
use crate::place::{Place, Section};
use crate::vocabulary::Backend;

/// Memory is not faster than the caches, even where the looks at the machine met a better moment than
/// the ceilings.
const MOST_OVER_CEILINGS: f64 = 10.0;

pub(super) fn check(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    let HardwareCalibration { states, earlier_states, ceilings, .. } = calibration;
    let curves = ceilings.iter().flat_map(|measured| &measured.ceilings.bandwidth);
    let fastest = curves.map(BandwidthPoint::fastest_gb_per_s).reduce(f64::max);
    for (index, state) in states.iter().enumerate() {
        check_state(state, index, fastest)
            .map_err(|wrong| wrong.within(Section::nth("state", index), text))?;
    }
    for (index, state) in earlier_states.iter().enumerate() {
        check_earlier(state, calibration)
            .map_err(|wrong| wrong.within(Section::nth("earlier_state", index), text))?;
    }
    Ok(())
}

/// States are numbered from 1 in order.
fn check_state(state: &MachineState, index: usize, fastest: Option<f64>) -> Checked {
    let MachineState { id, handoff_us, triad_gb_per_s, triad_range, processes, .. } = *state;
    if id as usize != index + 1 {
        let why =
            format!("it is {id}; states are numbered from 1, so that it must be {}", index + 1);
        return fail(Place::of("id"), why);
    }
    check_look(handoff_us, triad_gb_per_s)?;
    let [lowest, highest] = triad_range;
    for end in triad_range {
        RATE.check(Place::of("triad_range"), end)?;
    }
    if lowest > highest {
        return fail(Place::of("triad_range"), "the lower one must be the first");
    }
    if !(lowest <= triad_gb_per_s && triad_gb_per_s <= highest) {
        return fail(Place::of("triad_gb_per_s"), "it is outside triad_range");
    }
    if let Some(fastest) = fastest.filter(|fastest| highest > MOST_OVER_CEILINGS * fastest) {
        let why = format!("it reaches {highest}, and no bandwidth of [[ceilings]] {fastest}");
        return fail(Place::of("triad_range"), why);
    }
    if processes == 0 {
        return fail(Place::of("processes"), "a state is that of at least 1");
    }
    Ok(())
}

fn check_earlier(state: &EarlierState, calibration: &HardwareCalibration) -> Checked {
    timestamp::check(Place::of("seen_at"), &state.seen_at)?;
    check_look(state.handoff_us, state.triad_gb_per_s)?;
    // Only processors are looked at.
    check_threads(calibration, Backend::Cpu, state.threads)
}

/// What a look at the machine sees.
fn check_look(handoff_us: Option<f64>, triad_gb_per_s: f64) -> Checked {
    if let Some(handoff_us) = handoff_us {
        HANDOFF_US.check(Place::of("handoff_us"), handoff_us)?;
    }
    Ok(RATE.check(Place::of("triad_gb_per_s"), triad_gb_per_s)?)
}
