//! The checks for kernels that run on a GPU.

use fusion_cost_model::calibration::{Check, CheckStatus};

use super::GpuNeeds;
use super::outcome::{fail, pass, warn};
use crate::units::gibibytes;

/// The checks of the host that say something about a GPU's times. The build is that of what hands
/// over the work.
const OF_THE_HOST: [&str; 6] = ["build", "load", "memory", "swap", "virtual machine", "battery"];

/// A finding that only affects computing on the host does not prevent measuring a GPU.
const NO_REASON_TO_STOP: [&str; 1] = ["load"];

/// What this process itself takes of a GPU's memory by using it, with a margin: some hundred
/// megabytes by the experience of others.
const OWN_SHARE: u64 = 2 << 30;

/// The checks of the host that matter, and those of the GPU.
pub(super) fn instead(checks: Vec<Check>, needs: GpuNeeds) -> Vec<Check> {
    let mut kept: Vec<Check> =
        checks.into_iter().filter(|check| OF_THE_HOST.contains(&check.name.as_str())).collect();
    for check in &mut kept {
        if NO_REASON_TO_STOP.contains(&check.name.as_str()) {
            check.status = check.status.min(CheckStatus::Warn);
        }
    }
    kept.extend([memory(needs), others(needs)]);
    kept
}

/// Whether the largest problem fits into the GPU's memory.
fn memory(GpuNeeds { needed, free, .. }: GpuNeeds) -> Check {
    const NAME: &str = "gpu memory";
    let found =
        format!("{} free, {} needed by the largest problem", gibibytes(free), gibibytes(needed));
    if free < needed {
        fail(NAME, found, "close other programs, or measure smaller problems")
    } else {
        pass(NAME, found)
    }
}

/// Whether another process uses the GPU, judged by its used memory.
fn others(GpuNeeds { free, total, .. }: GpuNeeds) -> Check {
    const NAME: &str = "gpu in use";
    let used = total.saturating_sub(free);
    let found = format!("{} of {} in use", gibibytes(used), gibibytes(total));
    if used > OWN_SHARE {
        warn(NAME, found, "close other programs that use the GPU: they may run kernels too")
    } else {
        pass(NAME, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn statuses(needed: u64, free: u64) -> [CheckStatus; 2] {
        let needs = GpuNeeds { needed, free, total: 80 * GIB };
        [memory(needs).status, others(needs).status]
    }

    #[test]
    fn the_thresholds() {
        use CheckStatus::{Fail, Pass, Warn};
        assert_eq!(statuses(GIB, 79 * GIB), [Pass, Pass]);
        assert_eq!(statuses(GIB, 78 * GIB), [Pass, Pass]);
        assert_eq!(statuses(GIB, 77 * GIB), [Pass, Warn]);
        assert_eq!(statuses(78 * GIB, 77 * GIB), [Fail, Warn]);
    }

    #[test]
    fn what_says_nothing_of_a_gpu_is_left_out_and_the_load_stops_nothing() {
        let checks = vec![
            fail("threads", "", ""),
            fail("load", "", ""),
            warn("huge pages", "", ""),
            fail("memory", "", ""),
        ];
        let kept = instead(checks, GpuNeeds { needed: 1, free: GIB, total: GIB });
        let kept: Vec<_> = kept.iter().map(|check| (check.name.as_str(), check.status)).collect();
        assert_eq!(
            kept,
            [
                ("load", CheckStatus::Warn),
                ("memory", CheckStatus::Fail),
                ("gpu memory", CheckStatus::Pass),
                ("gpu in use", CheckStatus::Pass),
            ]
        );
    }
}
