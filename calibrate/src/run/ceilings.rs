//! The ceilings of the machine from several measurements, by the state that it was in.

use fusion_cost_model::calibration::CeilingsSpread;
use fusion_cost_model::cost::{BandwidthPoint, Ceilings};

use crate::digits::rounded as digits;

/// The best of several measurements of the same ceilings in one state of the machine, and how far
/// they lie apart; `None` without any.
///
/// Nothing makes a loop faster than the machine, so the best of one state is closest to the truth. The
/// best over several states would be a machine that never was.
pub(super) fn summary(measured: &[&Ceilings]) -> Option<(Ceilings, Option<CeilingsSpread>)> {
    let all = measured.iter().copied();
    let best = rounded(all.clone().cloned().reduce(best)?);
    let lowest = |of: fn(&Ceilings) -> f64| all.clone().map(of).fold(f64::INFINITY, f64::min);
    let memory = |one: &Ceilings| one.bandwidth.last().map_or(f64::INFINITY, |at| at.gb_per_s);
    let spread = CeilingsSpread {
        measurements: u32::try_from(measured.len()).unwrap_or(u32::MAX),
        lowest_peak_gflops: digits(lowest(|one| one.peak_gflops)),
        highest_launch_us: digits(all.clone().map(|one| one.launch_us).fold(0.0, f64::max)),
        lowest_memory_gb_per_s: Some(lowest(memory)).filter(|rate| rate.is_finite()).map(digits),
    };
    Some((best, (measured.len() > 1).then_some(spread)))
}

/// The best of two measurements. Their largest working sets can differ with the free memory.
fn best(mut one: Ceilings, other: Ceilings) -> Ceilings {
    one.peak_gflops = one.peak_gflops.max(other.peak_gflops);
    one.launch_us = one.launch_us.min(other.launch_us);
    for point in other.bandwidth {
        let same = |known: &&mut BandwidthPoint| known.working_set_bytes == point.working_set_bytes;
        let Some(known) = one.bandwidth.iter_mut().find(same) else {
            one.bandwidth.push(point);
            continue;
        };
        let larger = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
        known.gb_per_s = known.gb_per_s.max(point.gb_per_s);
        known.nontemporal_gb_per_s = larger(known.nontemporal_gb_per_s, point.nontemporal_gb_per_s);
        known.read_gb_per_s = larger(known.read_gb_per_s, point.read_gb_per_s);
    }
    one.bandwidth.sort_by_key(|point| point.working_set_bytes);
    one
}

/// The ceilings with as many digits as they deserve.
fn rounded(mut ceilings: Ceilings) -> Ceilings {
    ceilings.peak_gflops = digits(ceilings.peak_gflops);
    ceilings.launch_us = digits(ceilings.launch_us);
    for point in &mut ceilings.bandwidth {
        point.gb_per_s = digits(point.gb_per_s);
        point.nontemporal_gb_per_s = point.nontemporal_gb_per_s.map(digits);
        point.read_gb_per_s = point.read_gb_per_s.map(digits);
    }
    ceilings
}
