//! Whether a hypervisor takes the processors away.

use fusion_cost_model::calibration::Check;

use super::outcome::{NOT_REPORTED, pass, warn};
use super::window::Stolen;
use crate::units::percent;

const NAME: &str = "virtual machine";

/// Share of the time that may be stolen. A virtual machine as such is no reason to warn: pairs in
/// which time was stolen are left out.
const WARN_ABOVE: f64 = 0.02;

/// A single tick is more than that share where there are few processors, and one tick is what even
/// the shortest pause may be counted as.
const NOT_BY_CHANCE: u64 = 2;

/// Judges what the hypervisor took away.
pub(super) fn judge(virtualized: Option<bool>, stolen: Option<Stolen>) -> Check {
    match stolen {
        Some(Stolen { share, ticks }) if share > WARN_ABOVE && ticks >= NOT_BY_CHANCE => warn(
            NAME,
            format!("yes; the hypervisor took {} of the time away", percent(share)),
            "use a machine of your own or dedicated processors, or wait",
        ),
        _ => pass(
            NAME,
            match virtualized {
                None => NOT_REPORTED,
                Some(false) => "no",
                Some(true) => "yes; steal time is watched",
            },
        ),
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::CheckStatus::{Pass, Warn};

    use super::*;

    #[test]
    fn only_stolen_time_is_warned_of() {
        let stolen = |share, ticks| Some(Stolen { share, ticks });
        for (virtualized, stolen, expected) in [
            (None, None, Pass),
            (Some(false), stolen(0.0, 0), Pass),
            (Some(true), stolen(0.0, 0), Pass),
            (Some(true), None, Pass),
            (Some(true), stolen(0.02, 8), Pass),
            (Some(true), stolen(0.021, 8), Warn),
            (Some(true), stolen(0.05, 1), Pass),
            (Some(true), stolen(0.05, 2), Warn),
            // Not every hypervisor lets itself be seen.
            (None, stolen(0.3, 12), Warn),
        ] {
            assert_eq!(judge(virtualized, stolen).status, expected, "{virtualized:?} {stolen:?}");
        }
        assert_eq!(judge(Some(true), None).found, "yes; steal time is watched");
    }
}
