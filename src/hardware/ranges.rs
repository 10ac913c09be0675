//! What the figures of a data sheet can be.
//!
//! The ranges are wide: a factor of a hundred and more around everything that was ever built. What
//! lies outside is a figure in another unit, or a slip of the hand.

use super::HardwareSpec;
use crate::place::Place;

/// What a figure must lie between, and its unit.
struct Range {
    least: f64,
    most: f64,
    unit: &'static str,
}

const CORES: Range = Range { least: 1.0, most: 1e6, unit: "cores" };
const THREADS: Range = Range { least: 1.0, most: 1e7, unit: "threads" };
const CLOCK: Range = Range { least: 10.0, most: 20_000.0, unit: "MHz" };
const BANDWIDTH: Range = Range { least: 0.01, most: 1e6, unit: "GB/s" };
const CAPACITY: Range = Range { least: 0.01, most: 1e6, unit: "GiB" };
const LEVEL: Range = Range { least: 1.0, most: 9.0, unit: "" };
const BYTES: Range = Range { least: 256.0, most: 1e12, unit: "bytes" };
const INSTANCES: Range = Range { least: 1.0, most: 1e6, unit: "" };
const PEAK: Range = Range { least: 0.01, most: 1e9, unit: "GFLOP/s" };

type Checked = Result<(), (Place, String)>;

impl Range {
    fn check(&self, place: Place, figure: f64) -> Checked {
        let Self { least, most, unit } = self;
        // Also a NaN is outside.
        if (*least..=*most).contains(&figure) {
            return Ok(());
        }
        let why = format!("it is {figure}; it must be between {least} and {most} {unit}");
        Err((place, why.trim_end().to_owned()))
    }
}

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
    BANDWIDTH.check(of_memory("bandwidth_gb_per_s"), memory.bandwidth_gb_per_s)?;
    if let Some(capacity) = memory.capacity_gib {
        CAPACITY.check(of_memory("capacity_gib"), capacity)?;
    }
    for (index, cache) in caches.iter().enumerate() {
        let of_cache = |key| Place::of_nth("cache", index, key);
        LEVEL.check(of_cache("level"), f64::from(cache.level))?;
        #[expect(clippy::cast_precision_loss, reason = "far from the ends of the range")]
        BYTES.check(of_cache("bytes"), cache.bytes as f64)?;
        INSTANCES.check(of_cache("instances"), f64::from(cache.instances))?;
    }
    for (index, peak) in peaks.iter().enumerate() {
        PEAK.check(Place::of_nth("peak", index, "gflops"), peak.gflops)?;
    }
    Ok(())
}

/// Checks the names of a data sheet: a blank would be a part of the name of every machine. What a
/// system calls itself is taken as it is.
pub(super) fn check_names(spec: &HardwareSpec) -> Checked {
    let HardwareSpec { name, vendor, aliases, detect, detect_except, .. } = spec;
    for (key, names) in [
        ("name", std::slice::from_ref(name)),
        ("vendor", std::slice::from_ref(vendor)),
        ("aliases", aliases),
        ("detect", detect),
        ("detect_except", detect_except),
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
