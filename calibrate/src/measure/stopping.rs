//! When enough processes have been made.

use super::estimate::Estimate;
use super::procedure::Procedure;

/// Whether a problem needs no more processes. Asked only between processes, since looking at every
/// sample until the result pleases would make the interval a lie.
///
/// After the planned processes a problem gets more only while its interval is too wide to be called
/// SAME even if its centre is as far from 1 as it is wide (half its width exceeds half of `margin`),
/// and its 99 % interval does not yet lie beyond the noise floor on one side. All in the logarithm.
#[must_use]
pub fn enough(estimate: &Estimate, procedure: &Procedure, floor: f64, margin: f64) -> bool {
    let processes = u32::try_from(estimate.processes).unwrap_or(u32::MAX);
    if processes < procedure.processes {
        return false;
    }
    let narrow = estimate.half_width() <= 0.5 * margin;
    let [low, high] = estimate.wide.map(f64::ln);
    let decided = low > floor || high < -floor;
    narrow || decided || processes >= procedure.most_processes
}

#[cfg(test)]
mod tests {
    use super::super::{Quartiles, Unit};
    use super::*;
    use fusion_cost_model::calibration::Disturbed;

    fn is_enough(processes: usize, [low, high]: [f64; 2], floor: f64) -> bool {
        let quartiles = Quartiles { q1: 1.0, median: 1.0, q3: 1.0 };
        let stretch = 1.5;
        let centre = (low * high).sqrt();
        let estimate = Estimate {
            ratio: centre,
            low,
            high,
            wide: [centre * (low / centre).powf(stretch), centre * (high / centre).powf(stretch)],
            unit: Unit::Processes,
            seconds: [quartiles; 2],
            processes,
            rounds: 8 * processes,
            pairs: 64,
            pairs_kept: 64,
            mostly_disturbed: false,
            ticks: 5000,
            order_sensitivity: None,
            is_order_sensitive: false,
            disturbed: Disturbed::default(),
        };
        enough(&estimate, &Procedure::STANDARD, floor, floor.max(0.02))
    }

    #[test]
    fn never_before_the_planned_processes_nor_after_the_most() {
        assert!(!is_enough(4, [1.0, 1.001], 0.01));
        assert!(is_enough(5, [1.0, 1.001], 0.01));
        assert!(!is_enough(9, [0.7, 1.4], 0.01));
        assert!(is_enough(10, [0.7, 1.4], 0.01));
    }

    #[test]
    fn narrow_or_decided_is_enough() {
        assert!(is_enough(5, [1.1, 1.12], 0.0));
        assert!(!is_enough(5, [1.0, 1.06], 0.01));
        // Half as wide as the noise of the machine.
        assert!(is_enough(5, [1.0, 1.06], 0.06));
        assert!(!is_enough(5, [1.0, 1.06], 0.05));
        // Wide, but far from 1 on either side.
        assert!(is_enough(5, [1.5, 2.0], 0.01));
        assert!(is_enough(5, [0.5, 0.7], 0.01));
        // The 99 % interval reaches into the floor.
        assert!(!is_enough(5, [1.05, 1.30], 0.01));
    }
}
