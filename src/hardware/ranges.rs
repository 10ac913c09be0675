//! What the figures of a data sheet can be.
//!
//! The ranges are wide: a factor of a hundred and more around everything that was ever built. What
//! lies outside is a figure in another unit, or a slip of the hand.

use super::HardwareSpec;

/// A key with what it must lie between, and its unit.
struct Range {
    key: &'static str,
    least: f64,
    most: f64,
    unit: &'static str,
}

const CORES: Range = Range { key: "cores.count", least: 1.0, most: 1e6, unit: "cores" };
const THREADS: Range = Range { key: "cores.threads", least: 1.0, most: 1e7, unit: "threads" };
const BASE_CLOCK: Range =
    Range { key: "cores.base_clock_mhz", least: 10.0, most: 20_000.0, unit: "MHz" };
const BOOST_CLOCK: Range = Range { key: "cores.boost_clock_mhz", ..BASE_CLOCK };
const BANDWIDTH: Range =
    Range { key: "memory.bandwidth_gb_per_s", least: 0.01, most: 1e6, unit: "GB/s" };
const CAPACITY: Range = Range { key: "memory.capacity_gib", least: 0.01, most: 1e6, unit: "GiB" };
const LEVEL: Range = Range { key: "cache.level", least: 1.0, most: 9.0, unit: "" };
const BYTES: Range = Range { key: "cache.bytes", least: 256.0, most: 1e12, unit: "bytes" };
const INSTANCES: Range = Range { key: "cache.instances", least: 1.0, most: 1e6, unit: "" };
const PEAK: Range = Range { key: "peak.gflops", least: 0.01, most: 1e9, unit: "GFLOP/s" };

impl Range {
    fn check(&self, figure: f64) -> Result<(), String> {
        let Self { key, least, most, unit } = self;
        // Also a NaN is outside.
        if (*least..=*most).contains(&figure) {
            return Ok(());
        }
        Err(format!("`{key}`: it is {figure}; it must be between {least} and {most} {unit}")
            .trim_end()
            .to_owned())
    }
}

/// Checks the figures and names of a data sheet.
pub(super) fn check(spec: &HardwareSpec) -> Result<(), String> {
    let HardwareSpec { cores, memory, caches, peaks, .. } = spec;
    let optional = |range: Range, figure: Option<u32>| {
        figure.map_or(Ok(()), |figure| range.check(f64::from(figure)))
    };
    CORES.check(f64::from(cores.count))?;
    optional(THREADS, cores.threads)?;
    optional(BASE_CLOCK, cores.base_clock_mhz)?;
    optional(BOOST_CLOCK, cores.boost_clock_mhz)?;
    if cores.threads.is_some_and(|threads| threads < cores.count) {
        return Err("`cores.threads`: there are fewer than cores".to_owned());
    }
    if cores.base_clock_mhz.zip(cores.boost_clock_mhz).is_some_and(|(base, boost)| base > boost) {
        return Err("`cores.base_clock_mhz`: it is above boost_clock_mhz".to_owned());
    }
    BANDWIDTH.check(memory.bandwidth_gb_per_s)?;
    memory.capacity_gib.map_or(Ok(()), |capacity| CAPACITY.check(capacity))?;
    for cache in caches {
        LEVEL.check(f64::from(cache.level))?;
        #[expect(clippy::cast_precision_loss, reason = "far from the ends of the range")]
        BYTES.check(cache.bytes as f64)?;
        INSTANCES.check(f64::from(cache.instances))?;
    }
    peaks.iter().try_for_each(|peak| PEAK.check(peak.gflops))?;
    check_names(spec)
}

/// A blank would be a part of the name of every machine.
fn check_names(spec: &HardwareSpec) -> Result<(), String> {
    let HardwareSpec { name, vendor, aliases, detect, detect_except, .. } = spec;
    for (key, names) in [
        ("name", std::slice::from_ref(name)),
        ("vendor", std::slice::from_ref(vendor)),
        ("aliases", aliases),
        ("detect", detect),
        ("detect_except", detect_except),
    ] {
        if names.iter().any(|name| name.trim().is_empty()) {
            return Err(format!("`{key}`: it is empty; write the name, or leave it out"));
        }
        if names.iter().any(|name| name.chars().any(char::is_control)) {
            return Err(format!("`{key}`: it has a control character"));
        }
    }
    Ok(())
}
