//! The time of each kernel of the unfused variant.

use fusion_cost_model::Problem;
use fusion_cost_model::calibration::{FusionRecord, StepTime};
use fusion_cost_model::cost::LeastTime;

use crate::digits::rounded;
use crate::measure::{median, median_interval};
use crate::worker::ProcessReport;

/// The median of each step over the processes that timed it, one step for each op; nothing where
/// they did not.
pub(super) fn of(problem: &Problem, processes: &[ProcessReport]) -> Vec<StepTime> {
    let ops = problem.chain().ops();
    let timed: Vec<&[f64]> = processes
        .iter()
        .map(|report| &report.steps[..])
        .filter(|steps| steps.len() == ops.len())
        .collect();
    if timed.is_empty() {
        return Vec::new();
    }
    let step = |(index, op): (usize, &fusion_cost_model::Op)| {
        let milliseconds: Vec<f64> = timed.iter().map(|steps| steps[index] * 1e3).collect();
        let ends = median_interval(&milliseconds).map(|ends| ends.map(rounded));
        StepTime {
            op: op.name().to_owned(),
            ms: rounded(median(&milliseconds)),
            low_ms: ends.map(|[low, _]| low),
            high_ms: ends.map(|[_, high]| high),
        }
    };
    let steps: Vec<StepTime> = ops.iter().enumerate().map(step).collect();
    // A clock that did not move says nothing about a kernel.
    let is_seen = |step: &StepTime| step.ms > 0.0 && step.low_ms.is_none_or(|low| low > 0.0);
    if steps.iter().all(is_seen) { steps } else { Vec::new() }
}

/// The steps, unless one is far below the least time of its kernel: then the clock, or how the steps
/// were told apart, was wrong, and none of them says anything.
pub(super) fn that_can_be(steps: Vec<StepTime>, least: Option<&LeastTime>) -> Vec<StepTime> {
    let can_be = |(step, least_us): (&StepTime, &f64)| {
        FusionRecord::LEAST_STEP_MARGIN * step.ms * 1e3 >= *least_us
    };
    let least = least.map(|least| &least.steps_us[..]).unwrap_or_default();
    if steps.iter().zip(least).all(can_be) { steps } else { Vec::new() }
}

/// The share of the unfused time that is in none of the steps.
pub(super) fn share_outside(steps: &[StepTime], unfused_ms: f64) -> Option<f64> {
    let sum: f64 = steps.iter().map(|step| step.ms).sum();
    (!steps.is_empty()).then(|| rounded(1.0 - sum / unfused_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(us: [f64; 2]) -> Vec<StepTime> {
        let step = |(op, us): (&str, f64)| StepTime {
            op: op.to_owned(),
            ms: us / 1e3,
            low_ms: None,
            high_ms: None,
        };
        ["linear", "bias"].into_iter().zip(us).map(step).collect()
    }

    #[test]
    fn steps_below_half_of_their_least_time_are_left_out() {
        let least = LeastTime { steps_us: vec![100.0, 10.0], unfused_us: 110.0, fused_us: 105.0 };
        let kept = |us| !that_can_be(steps(us), Some(&least)).is_empty();
        // One may find what the one before it left in a nearer cache.
        assert!(kept([120.0, 10.0]) && kept([50.0, 5.0]));
        // One in the time of the other.
        assert!(!kept([10.0, 120.0]) && !kept([120.0, 4.9]));
        assert_eq!(that_can_be(steps([0.1, 0.1]), None).len(), 2, "without ceilings");
    }
}
