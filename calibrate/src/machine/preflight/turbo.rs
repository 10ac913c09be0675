//! Whether the clock may rise above its guaranteed rate.

use fusion_cost_model::calibration::Check;

use super::outcome::{NOT_REPORTED, pass};

const NAME: &str = "turbo";

/// Reports turbo, which passes either way: both variants of a pair run within a few milliseconds,
/// so the clock cancels out of their ratio.
pub(super) fn judge(turbo: Option<bool>) -> Check {
    pass(
        NAME,
        match turbo {
            None => NOT_REPORTED,
            Some(true) => "on; ratios do not depend on the clock, times do",
            Some(false) => "off; ratios do not depend on the clock, times do",
        },
    )
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::CheckStatus::Pass;

    use super::*;

    #[test]
    fn it_is_reported_and_always_passes() {
        for (turbo, word) in [(None, NOT_REPORTED), (Some(true), "on;"), (Some(false), "off;")] {
            let check = judge(turbo);
            assert_eq!((check.status, check.advice), (Pass, None));
            assert!(check.found.starts_with(word));
        }
    }
}
