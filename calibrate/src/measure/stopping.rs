//! When enough processes have been made.

use super::estimate::Estimate;

/// An interval is narrow enough, whatever it says, when half its width is at most this share of the
/// margin of SAME: more processes would only tell how much half a margin is.
const NARROW: f64 = 0.5;

/// Whether a problem needs no more processes. Asked after each of the numbers of processes in `looks`
/// ([`Procedure::looks`](super::Procedure::looks)), and never in between: looking again and again
/// until the result pleases would make the interval a lie.
///
/// A problem gets more processes only while its interval neither lies within the margin of SAME nor
/// beyond the noise floor on one side, and is not narrow. All in the logarithm.
#[must_use]
pub fn enough(estimate: &Estimate, looks: &[u32], floor: f64, margin: f64) -> bool {
    let processes = u32::try_from(estimate.processes).unwrap_or(u32::MAX);
    if looks.last().is_none_or(|last| processes >= *last) {
        return true;
    }
    if !looks.contains(&processes) {
        return false;
    }
    let [low, high] = [estimate.low.ln(), estimate.high.ln()];
    let same = low > -margin && high < margin;
    let narrow = estimate.half_width() <= NARROW * margin;
    let decided = low > floor || high < -floor;
    same || narrow || decided
}

#[cfg(test)]
mod tests {
    use super::super::{Quartiles, Unit, VariantTime};
    use super::*;
    use fusion_cost_model::calibration::Disturbed;

    fn is_enough(processes: usize, interval: [f64; 2], floor: f64) -> bool {
        is_enough_at(&[10, 20], processes, interval, floor)
    }

    fn is_enough_at(looks: &[u32], processes: usize, [low, high]: [f64; 2], floor: f64) -> bool {
        let samples = Quartiles { q1: 1.0, median: 1.0, q3: 1.0 };
        let estimate = Estimate {
            ratio: (low * high).sqrt(),
            low,
            high,
            standard_error: 0.0,
            unit: Unit::Processes,
            correlation: 0.0,
            changes_slowly: false,
            states: Vec::new(),
            by_state: Vec::new(),
            times: [VariantTime { seconds: 1.0, low: 1.0, high: 1.0, samples }; 2],
            by_process: vec![[1.0; 2]; processes],
            processes,
            rounds: 8 * processes,
            pairs: 64,
            pairs_kept: 64,
            mostly_disturbed: false,
            ticks: 5000,
            order_sensitivity: None,
            is_order_sensitive: false,
            change_within: None,
            disturbed: Disturbed::default(),
            clock_changes: [0; 2],
        };
        enough(&estimate, looks, floor, floor.max(0.02))
    }

    #[test]
    fn only_after_the_planned_processes_and_after_the_most() {
        assert!(!is_enough(9, [1.0, 1.001], 0.01));
        assert!(is_enough(10, [1.0, 1.001], 0.01));
        assert!(!is_enough(10, [0.7, 1.4], 0.01));
        // No look in between, however good it is.
        assert!(!is_enough(15, [1.0, 1.001], 0.01));
        assert!(is_enough(20, [0.7, 1.4], 0.01));
    }

    #[test]
    fn a_third_look_is_one_more() {
        let (looks, wide) = ([10, 20, 40], [0.98, 1.05]);
        let enough = [10, 20, 40].map(|count| is_enough_at(&looks, count, wide, 0.01));
        assert_eq!(enough, [false, false, true]);
        assert!(!is_enough_at(&looks, 30, [1.0, 1.001], 0.01), "no look in between");
        assert!(is_enough_at(&looks, 20, [1.0, 1.001], 0.01));
    }

    #[test]
    fn same_narrow_or_decided_is_enough() {
        // Within the margin of SAME, though not narrow.
        assert!(is_enough(10, [0.985, 1.015], 0.01));
        // As wide, but partly beyond the margin.
        assert!(!is_enough(10, [0.995, 1.025], 0.01));
        // Narrow, though neither within the margin nor beyond the floor.
        assert!(is_enough(10, [1.005, 1.024], 0.01));
        assert!(!is_enough(10, [1.0, 1.06], 0.01));
        // Within the noise of the machine.
        assert!(is_enough(10, [1.0, 1.035], 0.04));
        // Wide, but far from 1 on either side.
        assert!(is_enough(10, [1.5, 2.0], 0.01));
        assert!(is_enough(10, [0.5, 0.7], 0.01));
        // The interval reaches into the floor.
        assert!(!is_enough(10, [1.005, 1.30], 0.01));
    }
}
