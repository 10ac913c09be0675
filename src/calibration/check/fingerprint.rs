//! What must be true of the machine: of what was observed, and of a specification that was written
//! from it.

use std::collections::HashSet;
use std::fmt::Display;

use super::contradiction::{Checked, check_text, fail, follows};
use super::limits::{CACHE_BYTES, CACHE_LEVEL, CLOCK_MHZ, MEMORY, PROCESSORS};
use crate::calibration::{
    Fingerprint, HardwareCalibration, MeasuredCeilings, ObservedCache, ObservedGpu,
};
use crate::error::Error;
use crate::hardware::{
    Cache, CacheKind, Cores, HardwareSpec, Memory, OBSERVED, PeakUnit, Processor,
};
use crate::place::{Place, Section};
use crate::vocabulary::{CacheState, Clock, DType};

pub(super) fn check(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    let HardwareCalibration { fingerprint, hardware, .. } = calibration;
    check_fingerprint(fingerprint)
        .map_err(|wrong| wrong.within(Section::only("fingerprint"), text))?;
    check_hardware(hardware, fingerprint)
        .map_err(|wrong| wrong.within(Section::only("hardware"), text))
}

/// Checks what the hardware has from the ceilings.
pub(super) fn check_measured(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    check_rates(calibration).map_err(|wrong| wrong.within(Section::only("hardware"), text))
}

fn check_fingerprint(fingerprint: &Fingerprint) -> Checked {
    let Fingerprint { cpu_model, cpu_vendor, os, logical_cores, physical_cores, .. } = fingerprint;
    for (key, text) in [("cpu_model", cpu_model), ("cpu_vendor", cpu_vendor), ("os", os)] {
        check_text(Place::of(key), text)?;
    }
    let features = &fingerprint.features;
    if let Some(twice) = (1..features.len()).find(|at| features[..*at].contains(&features[*at])) {
        return fail(Place::of("features"), format!("{:?} stands there twice", features[twice]));
    }
    PROCESSORS.check(Place::of("logical_cores"), f64::from(*logical_cores))?;
    if let Some(cores) = physical_cores {
        PROCESSORS.check(Place::of("physical_cores"), f64::from(*cores))?;
    }
    check_memory(Place::of("memory_bytes"), fingerprint.memory_bytes)?;
    for (index, cache) in fingerprint.caches.iter().enumerate() {
        let place = |key| Place::of_nth("cache", index, key);
        CACHE_LEVEL.check(place("level"), f64::from(cache.level))?;
        #[expect(clippy::cast_precision_loss, reason = "far from the ends of the range")]
        CACHE_BYTES.check(place("bytes"), cache.bytes as f64)?;
        PROCESSORS.check(place("shared_by"), f64::from(cache.shared_by))?;
    }
    fingerprint.gpu.as_ref().map_or(Ok(()), check_gpu)
}

fn check_gpu(gpu: &ObservedGpu) -> Checked {
    let place = |key| Place::within("gpu", key);
    check_text(place("architecture"), &gpu.architecture)?;
    PROCESSORS.check(place("processors"), f64::from(gpu.processors))?;
    check_memory(place("memory_bytes"), gpu.memory_bytes)?;
    if gpu.l2_bytes > gpu.memory_bytes {
        return fail(place("l2_bytes"), "it is more than memory_bytes");
    }
    // A driver that does not know it says 0.
    Ok(CLOCK_MHZ.check(place("clock_mhz"), f64::from(gpu.clock_mhz))?)
}

fn check_memory(place: Place, bytes: u64) -> Checked {
    #[expect(clippy::cast_precision_loss, reason = "far from the ends of the range")]
    Ok(MEMORY.check(place, bytes as f64)?)
}

/// The hardware is that of the fingerprint: by its name where there is a data sheet, and in all that
/// was observed where there is none.
fn check_hardware(hardware: &HardwareSpec, fingerprint: &Fingerprint) -> Checked {
    hardware.check()?;
    let (processor, name) = match &fingerprint.gpu {
        None => (Processor::Cpu, &fingerprint.cpu_model),
        Some(gpu) if gpu.name.is_empty() => (Processor::Gpu, &gpu.architecture),
        Some(gpu) => (Processor::Gpu, &gpu.name),
    };
    if hardware.processor != processor {
        let why = format!("it is {}, and the fingerprint is of a {processor}", hardware.processor);
        return fail(Place::of("processor"), why);
    }
    if !hardware.can_be(name) {
        let why = format!("the machine of the fingerprint, {name:?}, is not detected as this one");
        return fail(Place::of("detect"), why);
    }
    if hardware.cores.source == OBSERVED {
        return check_observed(hardware, fingerprint, name);
    }
    Ok(())
}

/// What was written from the fingerprint.
fn check_observed(hardware: &HardwareSpec, fingerprint: &Fingerprint, name: &str) -> Checked {
    let Fingerprint { physical_cores, logical_cores, .. } = fingerprint;
    let (cores, threads, what_else) = match &fingerprint.gpu {
        Some(gpu) => (gpu.processors, None, ("architecture", &gpu.architecture)),
        None => {
            // Of all cores, a process may be allowed to use a few.
            let cores = physical_cores.unwrap_or(*logical_cores).min(*logical_cores);
            (cores, Some(*logical_cores), ("vendor", &fingerprint.cpu_vendor))
        }
    };
    let (key, expected) = what_else;
    let given = if key == "vendor" { &hardware.vendor } else { &hardware.architecture };
    for (key, given, expected) in
        [("name", hardware.name.as_str(), name), (key, given.as_str(), expected.as_str())]
    {
        if given != expected {
            let why = format!("it is {given:?}, and the fingerprint says {expected:?}");
            return fail(Place::of(key), why);
        }
    }
    for (key, given, expected) in [
        ("count", Some(hardware.cores.count), Some(cores)),
        ("threads", hardware.cores.threads, threads),
    ] {
        if given != expected {
            return fail(Place::within("cores", key), differs(given, expected));
        }
    }
    check_clock_and_memory(hardware, fingerprint)?;
    check_caches(&hardware.caches, fingerprint)
}

/// Of a CPU nothing says the clock, or how much memory is installed.
fn check_clock_and_memory(hardware: &HardwareSpec, fingerprint: &Fingerprint) -> Checked {
    let gpu = fingerprint.gpu.as_ref();
    // A driver that does not know it says 0.
    let boost = gpu.map(|gpu| gpu.clock_mhz).filter(|mhz| *mhz > 0);
    let Cores { base_clock_mhz, boost_clock_mhz, .. } = hardware.cores;
    for (key, given, expected) in
        [("base_clock_mhz", base_clock_mhz, None), ("boost_clock_mhz", boost_clock_mhz, boost)]
    {
        if given != expected {
            return fail(Place::within("cores", key), differs(given, expected));
        }
    }
    let Memory { capacity_gib: given, ref source, .. } = hardware.memory;
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let expected = gpu.map(|gpu| gpu.memory_bytes as f64 / f64::from(1 << 30));
    let is_it = given.zip(expected).map_or(given == expected, |(a, b)| follows(a, b, 0.0));
    if source == OBSERVED && !is_it {
        return fail(Place::within("memory", "capacity_gib"), differs(given, expected));
    }
    Ok(())
}

fn differs<T: Display>(given: Option<T>, expected: Option<T>) -> String {
    let [given, expected] =
        [given, expected].map(|one| one.map_or_else(|| "nothing".to_owned(), |n| n.to_string()));
    format!("it is {given}, and the fingerprint says {expected}")
}

/// The caches, each as the fingerprint has it.
fn check_caches(caches: &[Cache], fingerprint: &Fingerprint) -> Checked {
    let unified = CacheKind::Unified;
    let expected: Vec<(u8, u64, CacheKind, u32)> = match &fingerprint.gpu {
        // A driver that does not know it says 0.
        Some(gpu) if gpu.l2_bytes == 0 => Vec::new(),
        Some(gpu) => vec![(2, gpu.l2_bytes, unified, 1)],
        None => {
            let of = |cache: &ObservedCache| {
                let kind = if cache.level == 1 { CacheKind::Data } else { unified };
                // The processors that this process may use are not all that share it.
                let instances = (fingerprint.logical_cores / cache.shared_by).max(1);
                (cache.level, cache.bytes, kind, instances)
            };
            fingerprint.caches.iter().map(of).collect()
        }
    };
    for (index, expected) in expected.iter().enumerate() {
        let (level, bytes, kind, instances) = *expected;
        let Some(cache) = caches.get(index) else {
            let why = format!("there is no cache with {bytes} bytes at level {level}");
            return fail(Place::of_nth("cache", index, "level"), why);
        };
        for (key, is_it) in [
            ("level", cache.level == level),
            ("bytes", cache.bytes == bytes),
            ("kind", cache.kind == kind),
            ("instances", cache.instances == instances),
        ] {
            if !is_it {
                let why = format!(
                    "the fingerprint has {bytes} bytes at level {level}, in {instances} {}",
                    if instances == 1 { "instance" } else { "instances" }
                );
                return fail(Place::of_nth("cache", index, key), why);
            }
        }
    }
    if caches.len() > expected.len() {
        let place = Place::of_nth("cache", expected.len(), "level");
        return fail(place, format!("the fingerprint has {} caches", expected.len()));
    }
    Ok(())
}

/// What was taken from the ceilings of the run that wrote it. Later runs add others behind them, and
/// can be the first that could measure any.
fn check_rates(calibration: &HardwareCalibration) -> Checked {
    let HardwareCalibration { hardware, ceilings, .. } = calibration;
    // Whoever takes all of them out leaves nothing that the rates contradict.
    if ceilings.is_empty() {
        return Ok(());
    }
    if calibration.is_of_one_run() {
        check_rates_of_one_run(calibration)?;
    }
    let memory = &hardware.memory;
    let is_measured = calibration.is_of_one_run() || !memory.is_unmeasured();
    let mut in_memory = ceilings.iter().filter_map(|measured| measured.ceilings.bandwidth.last());
    if memory.source == OBSERVED
        && is_measured
        && in_memory.all(|at| at.gb_per_s != memory.bandwidth_gb_per_s)
    {
        let why = format!("no [[ceilings]] end with {}", memory.bandwidth_gb_per_s);
        return fail(Place::within("memory", "bandwidth_gb_per_s"), why);
    }
    let warm = ceilings.iter().filter(|one| one.cache_state == CacheState::Warm);
    let measured: HashSet<(DType, u64)> =
        warm.map(|one| (one.dtype, one.ceilings.peak_gflops.to_bits())).collect();
    for (index, peak) in hardware.peaks.iter().enumerate() {
        let is_measured = measured.contains(&(peak.dtype, peak.gflops.to_bits()));
        if peak.source == OBSERVED && !is_measured {
            let why = format!("no [[ceilings]] of {} have a peak of {}", peak.dtype, peak.gflops);
            return fail(Place::of_nth("peak", index, "gflops"), why);
        }
    }
    Ok(())
}

/// The only run has the fastest memory of its ceilings, and a peak for each of them.
fn check_rates_of_one_run(calibration: &HardwareCalibration) -> Checked {
    let HardwareCalibration { hardware, ceilings, fingerprint, .. } = calibration;
    let HardwareSpec { memory, peaks, .. } = hardware;
    let in_memory = ceilings.iter().filter_map(|measured| measured.ceilings.bandwidth.last());
    let fastest = in_memory.map(|at| at.gb_per_s).fold(0.0, f64::max);
    let given = memory.bandwidth_gb_per_s;
    if memory.source == OBSERVED && given != fastest {
        let why = format!("it is {given}, and the [[ceilings]] end with {fastest} at most");
        return fail(Place::within("memory", "bandwidth_gb_per_s"), why);
    }
    if hardware.cores.source != OBSERVED {
        return Ok(());
    }
    let is_gpu = fingerprint.gpu.is_some();
    let clock = if is_gpu { Clock::Device } else { Clock::Host };
    let has_peak =
        |one: &&MeasuredCeilings| (one.clock, one.cache_state) == (clock, CacheState::Warm);
    let measured: Vec<&MeasuredCeilings> = ceilings.iter().filter(has_peak).collect();
    for (index, peak) in peaks.iter().enumerate() {
        let place = |key| Place::of_nth("peak", index, key);
        let unit = fingerprint.peak_unit(peak.dtype);
        if peak.unit != unit {
            let unit = if unit == PeakUnit::Matrix { "matrix" } else { "vector" };
            return fail(place("unit"), format!("what is measured is that of {unit} units"));
        }
        let is_it = |one: &&MeasuredCeilings| {
            (one.dtype, one.ceilings.peak_gflops) == (peak.dtype, peak.gflops)
        };
        if !measured.get(index).is_some_and(is_it) {
            let why = "it is not that of the [[ceilings]] in its place";
            return fail(place("gflops"), why);
        }
    }
    if peaks.len() < measured.len() {
        let (peaks, all) = (peaks.len(), measured.len());
        let why = format!("there are {peaks} peaks, and {all} [[ceilings]] with one");
        return fail(Place::of_nth("peak", peaks, "gflops"), why);
    }
    Ok(())
}
