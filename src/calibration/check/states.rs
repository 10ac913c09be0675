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
    let HardwareCalibration { states, earlier_states, ceilings, fingerprint, .. } = calibration;
    if fingerprint.gpu.is_some() && !states.is_empty() {
        let why = "the fingerprint has a GPU, and only processors are looked at";
        return fail(Place::of("id"), why)
            .map_err(|wrong| wrong.within(Section::nth("state", 0), text));
    }
    if states.is_empty() && !earlier_states.is_empty() {
        let why = "there is no [[state]]; a run that met none knows of no other";
        return fail(Place::of("seen_at"), why)
            .map_err(|wrong| wrong.within(Section::nth("earlier_state", 0), text));
    }
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

/// What one run says of the states together. Records that somebody has taken out may have met them.
pub(super) fn check_of_one_run(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    if !calibration.is_of_one_run() {
        return Ok(());
    }
    let states = &calibration.states;
    for (index, state) in states.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| states[before].processes);
        check_order(state, before)
            .and_then(|()| check_handoff(state, calibration))
            .map_err(|wrong| wrong.within(Section::nth("state", index), text))?;
    }
    Ok(())
}

/// The state that most processes met is the first one.
fn check_order(state: &MachineState, before: Option<u32>) -> Checked {
    let processes = state.processes;
    match before.filter(|before| *before < processes) {
        None => Ok(()),
        Some(before) => {
            let why = format!("it is {processes}, and the state before it has only {before}");
            fail(Place::of("processes"), why)
        }
    }
}

/// Only several threads hand something over.
fn check_handoff(state: &MachineState, calibration: &HardwareCalibration) -> Checked {
    let HardwareCalibration { ceilings, noise, records, .. } = calibration;
    let of_ceilings = ceilings.first().map(|one| one.threads);
    let of_noise = noise.first().map(|one| one.threads);
    let of_records = records.first().map(|one| one.threads);
    let Some(threads) = of_ceilings.or(of_noise).or(of_records) else { return Ok(()) };
    let why = match (state.handoff_us, threads) {
        (Some(us), 1) => format!("it is {us}, and a single thread hands nothing over"),
        (None, 2..) => format!("it is missing, and there are {threads} threads"),
        _ => return Ok(()),
    };
    fail(Place::of("handoff_us"), why)
}
