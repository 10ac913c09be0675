//! What must be true of the machine: of how it was measured, of what it is, of its states and of its
//! ceilings.

use super::contradiction::{Checked, check_threads, fail, is_positive};
use crate::calibration::{
    CeilingsSpread, EarlierState, Fingerprint, HardwareCalibration, MachineState, MeasuredCeilings,
    Settings,
};
use crate::cost::{BandwidthPoint, Ceilings};
use crate::error::Error;
use crate::hardware::{HardwareSpec, OBSERVED, Processor};
use crate::place::{Place, Section};

/// The `--hardware` that any machine meets.
const ANY: &str = "auto";

pub(super) fn check(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    let HardwareCalibration { settings, hardware, fingerprint, states, ceilings, .. } = calibration;
    check_settings(settings, hardware)
        .map_err(|wrong| wrong.within(Section::only("settings"), text))?;
    check_hardware(hardware, fingerprint)
        .map_err(|wrong| wrong.within(Section::only("hardware"), text))?;
    for (index, state) in states.iter().enumerate() {
        check_state(state, index)
            .map_err(|wrong| wrong.within(Section::nth("state", index), text))?;
    }
    for (index, state) in calibration.earlier_states.iter().enumerate() {
        check_earlier_state(state)
            .map_err(|wrong| wrong.within(Section::nth("earlier_state", index), text))?;
    }
    for (index, measured) in ceilings.iter().enumerate() {
        check_threads(calibration, measured.backend, measured.threads)
            .and_then(|()| check_ceilings(measured, states.len()))
            .map_err(|wrong| wrong.within(Section::nth("ceilings", index), text))?;
    }
    Ok(())
}

fn check_settings(settings: &Settings, hardware: &HardwareSpec) -> Checked {
    let Settings { processes, most_processes, rounds, spread_s, time_budget_s, .. } = *settings;
    for (key, count) in [("processes", processes), ("rounds", rounds)] {
        if count == 0 {
            return fail(Place::of(key), "it must be at least 1");
        }
    }
    if most_processes < processes {
        let why = format!("it is {most_processes}, and processes {processes}");
        return fail(Place::of("most_processes"), why);
    }
    for (key, seconds) in [("spread_s", Some(spread_s)), ("time_budget_s", time_budget_s)] {
        if seconds.is_some_and(|seconds| !(seconds.is_finite() && seconds >= 0.0)) {
            return fail(Place::of(key), "it must be a number of at least 0");
        }
    }
    let Settings { requested_hardware: requested, hardware_matches: matches, .. } = settings;
    if !matches && (requested == ANY || hardware.is_called(requested)) {
        let why = format!("it is false, and {requested} was asked for, which this machine is");
        return fail(Place::of("hardware_matches"), why);
    }
    Ok(())
}

/// The hardware is that of the fingerprint: by its name where there is a data sheet, and in all that
/// was observed where there is none.
fn check_hardware(hardware: &HardwareSpec, fingerprint: &Fingerprint) -> Checked {
    hardware.check().or_else(|(place, why)| fail(place, why))?;
    let (processor, name) = match &fingerprint.gpu {
        None => (Processor::Cpu, &fingerprint.cpu_model),
        Some(gpu) if gpu.name.is_empty() => (Processor::Gpu, &gpu.architecture),
        Some(gpu) => (Processor::Gpu, &gpu.name),
    };
    if hardware.processor != processor {
        let why = format!("it is {}, and the fingerprint is of a {processor}", hardware.processor);
        return fail(Place::of("processor"), why);
    }
    if !hardware.is_detected_as(name) {
        let why = format!("the machine of the fingerprint, {name:?}, is not detected as this one");
        return fail(Place::of("detect"), why);
    }
    if hardware.cores.source == OBSERVED {
        check_observed(hardware, fingerprint, name)
    } else {
        Ok(())
    }
}

/// What was written from the fingerprint.
fn check_observed(hardware: &HardwareSpec, fingerprint: &Fingerprint, name: &str) -> Checked {
    let Fingerprint { physical_cores, logical_cores, caches, .. } = fingerprint;
    if hardware.name != name {
        return fail(Place::of("name"), format!("the fingerprint says {name:?}"));
    }
    let (cores, threads) = match &fingerprint.gpu {
        Some(gpu) => (gpu.processors, None),
        None => (physical_cores.unwrap_or(*logical_cores), Some(*logical_cores)),
    };
    for (key, given, expected) in [
        ("count", Some(hardware.cores.count), Some(cores)),
        ("threads", hardware.cores.threads, threads),
    ] {
        if let Some((given, expected)) = given.zip(expected).filter(|(one, other)| one != other) {
            let why = format!("it is {given}, and the fingerprint says {expected}");
            return fail(Place::within("cores", key), why);
        }
    }
    let caches: Vec<(u8, u64)> = match &fingerprint.gpu {
        Some(gpu) => vec![(2, gpu.l2_bytes)],
        None => caches.iter().map(|cache| (cache.level, cache.bytes)).collect(),
    };
    for (index, &(level, bytes)) in caches.iter().enumerate() {
        let given = hardware.caches.get(index).map(|cache| (cache.level, cache.bytes));
        if given != Some((level, bytes)) {
            let key =
                if given.is_some_and(|(given, _)| given != level) { "level" } else { "bytes" };
            let why = format!("the fingerprint has {bytes} bytes at level {level}");
            return fail(Place::of_nth("cache", index, key), why);
        }
    }
    Ok(())
}

/// States are numbered from 1 in order.
fn check_state(state: &MachineState, index: usize) -> Checked {
    let MachineState { id, handoff_us, triad_gb_per_s, triad_range, processes, .. } = *state;
    if id as usize != index + 1 {
        let why =
            format!("it is {id}; states are numbered from 1, so that it must be {}", index + 1);
        return fail(Place::of("id"), why);
    }
    for (key, rate) in [("handoff_us", handoff_us), ("triad_gb_per_s", Some(triad_gb_per_s))] {
        if rate.is_some_and(|rate| !is_positive(rate)) {
            return fail(Place::of(key), "it must be a positive number");
        }
    }
    if !(triad_range.into_iter().all(is_positive) && triad_range.is_sorted()) {
        return fail(
            Place::of("triad_range"),
            "both must be positive numbers, the lower one first",
        );
    }
    let [lowest, highest] = triad_range;
    if !(lowest <= triad_gb_per_s && triad_gb_per_s <= highest) {
        return fail(Place::of("triad_gb_per_s"), "it is outside triad_range");
    }
    if processes == 0 {
        return fail(Place::of("processes"), "a state is that of at least 1");
    }
    Ok(())
}

fn check_earlier_state(state: &EarlierState) -> Checked {
    let EarlierState { handoff_us, triad_gb_per_s, .. } = *state;
    for (key, rate) in [("handoff_us", handoff_us), ("triad_gb_per_s", Some(triad_gb_per_s))] {
        if rate.is_some_and(|rate| !is_positive(rate)) {
            return fail(Place::of(key), "it must be a positive number");
        }
    }
    Ok(())
}

/// What is said of another one.
const RATE: &str = "a rate must be a positive number, and one that a machine can have";

/// Whether a rate is one in GFLOP/s or GB/s: a factor of a hundred above everything that was built.
fn is_rate(rate: f64) -> bool {
    is_positive(rate) && rate <= 1e9
}

fn check_ceilings(measured: &MeasuredCeilings, states: usize) -> Checked {
    let Ceilings { peak_gflops, launch_us, ref bandwidth } = measured.ceilings;
    if let Some(state) = measured.state.filter(|id| *id == 0 || *id as usize > states) {
        let why = format!("state {state} is named, and there are {states} states");
        return fail(Place::of("state"), why);
    }
    if !is_rate(peak_gflops) {
        return fail(Place::of("peak_gflops"), RATE);
    }
    if !(launch_us.is_finite() && launch_us >= 0.0) {
        return fail(Place::of("launch_us"), "it must be a number of at least 0");
    }
    for (index, point) in bandwidth.iter().enumerate() {
        let BandwidthPoint { working_set_bytes, gb_per_s, .. } = *point;
        for (key, rate) in [
            ("gb_per_s", Some(gb_per_s)),
            ("nontemporal_gb_per_s", point.nontemporal_gb_per_s),
            ("read_gb_per_s", point.read_gb_per_s),
        ] {
            if rate.is_some_and(|rate| !is_rate(rate)) {
                return fail(Place::of_nth("bandwidth", index, key), RATE);
            }
        }
        let before = index.checked_sub(1).map(|before| bandwidth[before].working_set_bytes);
        if before.is_some_and(|before| before >= working_set_bytes) {
            let place = Place::of_nth("bandwidth", index, "working_set_bytes");
            return fail(place, "the working sets must increase");
        }
    }
    measured.spread.map_or(Ok(()), |spread| check_spread(&spread, &measured.ceilings))
}

/// The worst of several measurements; the ceilings are their best.
fn check_spread(spread: &CeilingsSpread, best: &Ceilings) -> Checked {
    let CeilingsSpread { measurements, lowest_peak_gflops, highest_launch_us, .. } = *spread;
    let place = |key| Place::within("spread", key);
    if measurements < 2 {
        return fail(place("measurements"), "a spread is that of several measurements");
    }
    if !(is_positive(lowest_peak_gflops) && lowest_peak_gflops <= best.peak_gflops) {
        return fail(place("lowest_peak_gflops"), "it is not between 0 and peak_gflops");
    }
    if !(highest_launch_us.is_finite() && highest_launch_us >= best.launch_us) {
        return fail(place("highest_launch_us"), "it is below launch_us");
    }
    let in_memory = best.bandwidth.last().map(|point| point.gb_per_s);
    let is_good = |lowest| is_positive(lowest) && in_memory.is_some_and(|most| lowest <= most);
    if !spread.lowest_memory_gb_per_s.is_none_or(is_good) {
        let why = "it is not between 0 and the bandwidth of the largest working set";
        return fail(place("lowest_memory_gb_per_s"), why);
    }
    Ok(())
}
