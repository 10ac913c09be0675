//! Whether the program was optimised.

use fusion_cost_model::calibration::Check;

use super::outcome::{pass, warn};

const NAME: &str = "build";

/// Judges the build by its optimisation; `build` describes it in the report.
pub(super) fn judge(build: &str, has_debug_assertions: bool, opt_level: &str) -> Check {
    let optimised = matches!(opt_level, "2" | "3") && !has_debug_assertions;
    if optimised {
        return pass(NAME, build);
    }
    warn(NAME, build, "the harness around the kernels is slow; run `cargo run --release`")
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::CheckStatus::{Pass, Warn};

    use super::*;

    #[test]
    fn only_an_optimised_build_without_debug_assertions_passes() {
        for (debug, opt_level, expected) in [
            (false, "3", Pass),
            (false, "2", Pass),
            (false, "1", Warn),
            (false, "0", Warn),
            (false, "s", Warn),
            (true, "3", Warn),
            (true, "1", Warn),
        ] {
            assert_eq!(judge("a build", debug, opt_level).status, expected, "{debug} {opt_level}");
        }
    }
}
