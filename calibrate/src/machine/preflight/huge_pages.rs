//! Whether large buffers can be backed with huge pages.

use fusion_cost_model::calibration::Check;

use super::outcome::{NOT_REPORTED, pass, warn};

const NAME: &str = "huge pages";

/// Judges the system's setting. The kernels ask for huge pages, since with small ones the
/// addresses of large buffers cost a varying part of the time.
pub(super) fn judge(setting: Option<&str>) -> Check {
    match setting {
        None => pass(NAME, NOT_REPORTED),
        Some("never") => warn(
            NAME,
            "never",
            "run `echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled`",
        ),
        Some(setting) => pass(NAME, setting),
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::CheckStatus::{Pass, Warn};

    use super::*;

    #[test]
    fn only_never_is_warned_of() {
        for (setting, expected) in
            [(None, Pass), (Some("always"), Pass), (Some("madvise"), Pass), (Some("never"), Warn)]
        {
            assert_eq!(judge(setting).status, expected, "{setting:?}");
        }
    }
}
