//! Whether the largest problem fits into memory.

use fusion_cost_model::calibration::Check;

use super::outcome::{fail, pass, warn};
use crate::units::gibibytes;

const NAME: &str = "memory";

/// Judges the bytes that could be allocated against those that the largest problem needs.
pub(super) fn judge(needed: u64, available: u64) -> Check {
    let found = format!(
        "{} available, {} needed by the largest problem",
        gibibytes(available),
        gibibytes(needed)
    );
    if available < needed {
        fail(NAME, found, "close other programs, or measure smaller problems")
    } else if available < needed.saturating_add(needed / 2) {
        warn(NAME, found, "close other programs; the system may have to swap")
    } else {
        pass(NAME, found)
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::CheckStatus::{Fail, Pass, Warn};

    use super::*;

    #[test]
    fn the_thresholds() {
        for (needed, available, expected) in [
            (1000, 999, Fail),
            (1000, 1000, Warn),
            (1000, 1499, Warn),
            (1000, 1500, Pass),
            (0, 0, Pass),
            (u64::MAX, u64::MAX - 1, Fail),
            (u64::MAX, u64::MAX, Pass),
        ] {
            assert_eq!(judge(needed, available).status, expected, "{needed} of {available}");
        }
    }

    #[test]
    fn both_amounts_are_told() {
        let check = judge(3 << 30, 2 << 30);
        assert_eq!(check.found, "2.0 GiB available, 3.0 GiB needed by the largest problem");
    }
}
