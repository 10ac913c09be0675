//! What the figures of a data sheet can be.

use super::HardwareSpec;
use crate::place::Place;
use crate::range::Range;

const CORES: Range = Range::new(1.0..=1e6, "cores");
const THREADS: Range = Range::new(1.0..=1e7, "threads");
const CLOCK: Range = Range::new(10.0..=20_000.0, "MHz");
const BANDWIDTH: Range = Range::new(0.01..=1e6, "GB/s");
const CAPACITY: Range = Range::new(0.01..=1e6, "GiB");
const LEVEL: Range = Range::new(1.0..=9.0, "");
const BYTES: Range = Range::new(256.0..=1e12, "bytes");
const INSTANCES: Range = Range::new(1.0..=1e6, "");
const PEAK: Range = Range::new(0.01..=1e9, "GFLOP/s");

type Checked = Result<(), (Place, String)>;

/// Checks the figures.
pub(super) fn check(spec: &HardwareSpec) -> Checked {
    let HardwareSpec { cores, memory, caches, peaks, .. } = spec;
    let of_cores = |key| Place::within("cores", key);
    for (range, key, figure) in [
        (CORES, "count", Some(cores.count)),
        (THREADS, "threads", cores.threads),
        (CLOCK, "base_clock_mhz", cores.base_clock_mhz),
        (CLOCK, "boost_clock_mhz", cores.boost_clock_mhz),
    ] {
        figure.map_or(Ok(()), |figure| range.check(of_cores(key), f64::from(figure)))?;
    }
    if cores.threads.is_some_and(|threads| threads < cores.count) {
        return Err((of_cores("threads"), "there are fewer than cores".to_owned()));
    }
    if cores.base_clock_mhz.zip(cores.boost_clock_mhz).is_some_and(|(base, boost)| base > boost) {
        return Err((of_cores("base_clock_mhz"), "it is above boost_clock_mhz".to_owned()));
    }
    let of_memory = |key| Place::within("memory", key);
    if !memory.is_unmeasured() {
        BANDWIDTH.check(of_memory("bandwidth_gb_per_s"), memory.bandwidth_gb_per_s)?;
    }
    if let Some(capacity) = memory.capacity_gib {
        CAPACITY.check(of_memory("capacity_gib"), capacity)?;
    }
    for (index, cache) in caches.iter().enumerate() {
        let of_cache = |key| Place::of_nth("cache", index, key);
        LEVEL.check(of_cache("level"), f64::from(cache.level))?;
        #[expect(clippy::cast_precision_loss, reason = "far from the ends of the range")]
        BYTES.check(of_cache("bytes"), cache.bytes as f64)?;
        INSTANCES.check(of_cache("instances"), f64::from(cache.instances))?;
        let threads = cores.threads.unwrap_or(cores.count);
        if cache.instances > threads {
            let why = format!("it is {}, and there are {threads} threads", cache.instances);
            return Err((of_cache("instances"), why));
        }
    }
    for (index, peak) in peaks.iter().enumerate() {
        PEAK.check(Place::of_nth("peak", index, "gflops"), peak.gflops)?;
    }
    Ok(())
}

/// Checks what a data sheet has and a machine that was only observed need not: a bandwidth, and names.
/// A blank would be a part of the name of every machine. What a system calls itself is taken as it is.
pub(super) fn check_sheet(spec: &HardwareSpec) -> Checked {
    let bandwidth = Place::within("memory", "bandwidth_gb_per_s");
    BANDWIDTH.check(bandwidth, spec.memory.bandwidth_gb_per_s)?;
    let HardwareSpec { name, vendor, aliases, detect, detect_except, detect_if_named, .. } = spec;
    for (key, names) in [
        ("name", std::slice::from_ref(name)),
        ("vendor", std::slice::from_ref(vendor)),
        ("aliases", aliases),
        ("detect", detect),
        ("detect_except", detect_except),
        ("detect_if_named", detect_if_named),
    ] {
        if names.iter().any(|name| name.trim().is_empty()) {
            let why = "it is empty; write the name, or leave it out";
            return Err((Place::of(key), why.to_owned()));
        }
        if names.iter().any(|name| name.chars().any(char::is_control)) {
            return Err((Place::of(key), "it has a control character".to_owned()));
        }
    }
    Ok(())
}
