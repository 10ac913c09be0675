//! Times that the ceilings of the machine do not allow.

use fused_kernels::Variant;
use fusion_cost_model::calibration::{FusionRecord, MeasuredCeilings};
use fusion_cost_model::cost::LeastTime;

use super::Reason;
use crate::measure::{Estimate, VariantTime};
use crate::plan::Subject;

/// The least time that the ceilings allow in any of the states of the machine in which a subject was
/// measured; `None` where there are no ceilings of its kind.
#[must_use]
pub fn least_time(
    subject: &Subject,
    estimate: &Estimate,
    ceilings: &[MeasuredCeilings],
) -> Option<LeastTime> {
    let Subject { problem, clock, .. } = subject;
    let met = MeasuredCeilings::that_bound(ceilings, problem.dtype(), *clock, &estimate.states);
    met.filter_map(|ceilings| ceilings.least_time(problem)).reduce(LeastTime::or_less)
}

/// The variants whose times are below it by more than the ceilings can be off.
pub(super) fn faster_than(
    least: &LeastTime,
    variants: [Variant; 2],
    times: &[VariantTime; 2],
) -> impl Iterator<Item = Reason> {
    variants.into_iter().zip(times).filter_map(move |(variant, time)| {
        let least_us = match variant {
            Variant::Unfused => least.unfused_us,
            Variant::Fused => least.fused_us,
        };
        let median_us = time.samples.median * 1e6;
        (median_us * FusionRecord::LEAST_TIME_MARGIN < least_us)
            .then(|| Reason::FasterThanTheMachine { variant: variant.name(), median_us, least_us })
    })
}

/// Whether a variant of a subject took less time than the ceilings allow. Either it does not do its work,
/// or the ceilings were measured while something held the machine up.
#[must_use]
pub fn beats_ceilings(
    subject: &Subject,
    estimate: &Estimate,
    ceilings: &[MeasuredCeilings],
) -> bool {
    least_time(subject, estimate, ceilings).is_some_and(|least| {
        faster_than(&least, subject.comparison.variants(), &estimate.times).next().is_some()
    })
}
