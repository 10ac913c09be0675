//! The ceilings of the machine from several measurements.

use fusion_cost_model::cost::{BandwidthPoint, Ceilings};

use crate::digits::rounded as digits;

/// The best of two measurements of the same ceilings: nothing makes a loop faster than the machine.
/// Their largest working sets can differ with the free memory.
pub(crate) fn best(mut one: Ceilings, other: Ceilings) -> Ceilings {
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
pub(crate) fn rounded(mut ceilings: Ceilings) -> Ceilings {
    ceilings.peak_gflops = digits(ceilings.peak_gflops);
    ceilings.launch_us = digits(ceilings.launch_us);
    for point in &mut ceilings.bandwidth {
        point.gb_per_s = digits(point.gb_per_s);
        point.nontemporal_gb_per_s = point.nontemporal_gb_per_s.map(digits);
        point.read_gb_per_s = point.read_gb_per_s.map(digits);
    }
    ceilings
}
