//! What must be true of the ceilings.

use std::collections::HashMap;

use super::contradiction::{Checked, check_target, fail};
use super::gpu::check_cores;
use super::limits::{RATE, SHORT_TIME_US};
use crate::calibration::{CeilingsSpread, HardwareCalibration, MeasuredCeilings};
use crate::cost::{BandwidthPoint, Ceilings};
use crate::error::Error;
use crate::place::{Place, Section};
use crate::vocabulary::{Backend, CacheState, Clock, DType};

pub(super) fn check(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    let mut kinds = Kinds::of(&calibration.ceilings);
    let runs = 1 + calibration.additions.len();
    for (index, measured) in calibration.ceilings.iter().enumerate() {
        check_target(calibration, measured.backend, measured.clock, measured.threads)
            .and_then(|()| check_state(measured, calibration.states.len()))
            .and_then(|()| check_rates(&measured.ceilings))
            .and_then(|()| check_curve(&measured.ceilings.bandwidth, calibration))
            .and_then(|()| check_spread(measured, calibration))
            .and_then(|()| kinds.check(measured, runs))
            .and_then(|()| check_core(measured))
            .map_err(|wrong| wrong.within(Section::nth("ceilings", index), text))?;
    }
    Ok(())
}

/// Only a GPU has cores to choose.
fn check_core(measured: &MeasuredCeilings) -> Checked {
    let MeasuredCeilings { backend, core, failed_cores, .. } = measured;
    if *backend == Backend::Cpu && (core.is_some() || !failed_cores.is_empty()) {
        return fail(Place::of("core"), "a CPU has none");
    }
    check_cores(failed_cores, *core, "failed_core")
}

fn check_state(measured: &MeasuredCeilings, states: usize) -> Checked {
    match measured.state.filter(|id| *id == 0 || *id as usize > states) {
        None => Ok(()),
        Some(state) => {
            let why = format!("state {state} is named, and there are {states} states");
            fail(Place::of("state"), why)
        }
    }
}

fn check_rates(ceilings: &Ceilings) -> Checked {
    RATE.check(Place::of("peak_gflops"), ceilings.peak_gflops)?;
    SHORT_TIME_US.check(Place::of("launch_us"), ceilings.launch_us)?;
    for (index, point) in ceilings.bandwidth.iter().enumerate() {
        for (key, rate) in [
            ("gb_per_s", Some(point.gb_per_s)),
            ("nontemporal_gb_per_s", point.nontemporal_gb_per_s),
            ("read_gb_per_s", point.read_gb_per_s),
        ] {
            if let Some(rate) = rate {
                RATE.check(Place::of_nth("bandwidth", index, key), rate)?;
            }
        }
    }
    Ok(())
}

fn check_curve(bandwidth: &[BandwidthPoint], calibration: &HardwareCalibration) -> Checked {
    let memory_bytes = calibration.memory_bytes();
    for (index, point) in bandwidth.iter().enumerate() {
        let bytes = point.working_set_bytes;
        let place = Place::of_nth("bandwidth", index, "working_set_bytes");
        let before = index.checked_sub(1).map_or(0, |before| bandwidth[before].working_set_bytes);
        if before >= bytes {
            return fail(place, format!("it is {bytes}; the working sets must increase from 1"));
        }
        if bytes > memory_bytes {
            let why = format!("it is {bytes}, and the memory of the fingerprint {memory_bytes}");
            return fail(place, why);
        }
    }
    Ok(())
}

/// The worst of several measurements; the ceilings are their best.
fn check_spread(measured: &MeasuredCeilings, calibration: &HardwareCalibration) -> Checked {
    let Some(spread) = measured.spread else { return Ok(()) };
    let best = &measured.ceilings;
    let CeilingsSpread { measurements, lowest_peak_gflops, highest_launch_us, .. } = spread;
    let place = |key| Place::within("spread", key);
    if measurements < 2 {
        return fail(place("measurements"), "a spread is that of several measurements");
    }
    // They are made before the first pass, and at most once after each.
    let passes = calibration.settings.most_processes;
    if calibration.is_of_one_run() && measurements > passes.saturating_add(1) {
        let why = format!("it is {measurements}, and settings.most_processes {passes}");
        return fail(place("measurements"), why);
    }
    RATE.check(place("lowest_peak_gflops"), lowest_peak_gflops)?;
    if lowest_peak_gflops > best.peak_gflops {
        return fail(place("lowest_peak_gflops"), "it is above peak_gflops");
    }
    SHORT_TIME_US.check(place("highest_launch_us"), highest_launch_us)?;
    if highest_launch_us < best.launch_us {
        return fail(place("highest_launch_us"), "it is below launch_us");
    }
    let memory = place("lowest_memory_gb_per_s");
    match (spread.lowest_memory_gb_per_s, best.bandwidth.last()) {
        (None, None) => Ok(()),
        (Some(lowest), Some(last)) => {
            RATE.check(memory, lowest)?;
            if lowest > last.gb_per_s {
                return fail(memory, "it is above the bandwidth of the largest working set");
            }
            Ok(())
        }
        (Some(_), None) => fail(memory, "there is no bandwidth that it could be of"),
        (None, Some(_)) => fail(memory, "it is missing, and there is a bandwidth"),
    }
}

/// The key of ceilings: a run has one of each.
#[derive(PartialEq, Eq, Hash)]
struct Kind {
    backend: Backend,
    dtype: DType,
    threads: u32,
    clock: Clock,
    cache_state: CacheState,
    state: Option<u32>,
}

impl Kind {
    fn of(measured: &MeasuredCeilings) -> Self {
        let MeasuredCeilings { backend, dtype, threads, clock, cache_state, state, .. } = *measured;
        Self { backend, dtype, threads, clock, cache_state, state }
    }
}

/// All ceilings by their kind.
struct Kinds {
    /// How many there were so far.
    times: HashMap<Kind, usize>,
    /// What those with warm caches say of memory alone.
    in_memory: HashMap<Kind, Vec<Ceilings>>,
}

impl Kinds {
    fn of(all: &[MeasuredCeilings]) -> Self {
        let mut in_memory: HashMap<Kind, Vec<Ceilings>> = HashMap::new();
        for measured in all.iter().filter(|one| one.cache_state == CacheState::Warm) {
            in_memory.entry(Kind::of(measured)).or_default().push(measured.ceilings.in_memory());
        }
        Self { times: HashMap::new(), in_memory }
    }

    /// Each run has one of a kind, and states of its own. Those with cold caches are what warm ones
    /// say of memory alone.
    fn check(&mut self, measured: &MeasuredCeilings, runs: usize) -> Checked {
        let times = self.times.entry(Kind::of(measured)).or_default();
        *times += 1;
        let runs = if measured.state.is_some() { 1 } else { runs };
        if *times > runs {
            let why = format!("there are {times} of its kind, and {runs} at most can be");
            return fail(Place::of("backend"), why);
        }
        if measured.cache_state == CacheState::Warm {
            return Ok(());
        }
        let warm = Kind { cache_state: CacheState::Warm, ..Kind::of(measured) };
        if self.in_memory.get(&warm).is_some_and(|warm| warm.contains(&measured.ceilings)) {
            return Ok(());
        }
        let why = "it is cold, and no [[ceilings]] of the same with warm caches say that of memory";
        fail(Place::of("cache_state"), why)
    }
}
