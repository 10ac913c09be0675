//! Whether the clock follows the load only slowly.

use fusion_cost_model::calibration::Check;

use super::outcome::{NOT_REPORTED, pass, warn};

const NAME: &str = "governor";

/// Governors with which a short burst of work is over before the clock has risen, or which never
/// let it rise.
const SLOW: [&str; 4] = ["conservative", "ondemand", "powersave", "schedutil"];

/// Drivers that leave the clock to the processor. Their `powersave` is the normal setting, rises
/// within milliseconds and reaches the full rate; it shares only its name with the governor that
/// holds the lowest rate.
const LEAVE_IT_TO_THE_PROCESSOR: [&str; 2] = ["amd-pstate-epp", "intel_pstate"];

/// Judges the governor under its driver; both as [`clock`](crate::machine::fingerprint::clock) tells them,
/// with several words joined by `+`.
pub(super) fn judge(governor: Option<&str>, driver: Option<&str>) -> Check {
    let Some(governor) = governor else {
        return pass(NAME, NOT_REPORTED);
    };
    let found = match driver {
        Some(driver) => format!("{governor} ({driver})"),
        None => governor.to_owned(),
    };
    let processor_decides = driver
        .is_some_and(|driver| driver.split('+').all(|d| LEAVE_IT_TO_THE_PROCESSOR.contains(&d)));
    if processor_decides || !governor.split('+').any(|word| SLOW.contains(&word)) {
        return pass(NAME, found);
    }
    warn(
        NAME,
        found,
        "the clock lags behind the load; run `echo performance | sudo tee \
         /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`",
    )
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::CheckStatus::{Pass, Warn};

    use super::*;

    #[test]
    fn slow_governors_are_warned_of_unless_the_processor_decides() {
        for (governor, driver, expected) in [
            (None, None, Pass),
            (Some("performance"), Some("acpi-cpufreq"), Pass),
            (Some("userspace"), None, Pass),
            (Some("powersave"), Some("intel_pstate"), Pass),
            (Some("powersave"), Some("amd-pstate-epp"), Pass),
            // The same drivers in their passive modes have names of their own.
            (Some("schedutil"), Some("intel_cpufreq"), Warn),
            (Some("schedutil"), Some("amd-pstate"), Warn),
            (Some("powersave"), Some("acpi-cpufreq"), Warn),
            (Some("powersave"), Some("acpi-cpufreq+intel_pstate"), Warn),
            (Some("powersave"), None, Warn),
            (Some("ondemand"), None, Warn),
            (Some("conservative"), None, Warn),
            (Some("performance+schedutil"), Some("acpi-cpufreq"), Warn),
        ] {
            assert_eq!(judge(governor, driver).status, expected, "{governor:?} {driver:?}");
        }
    }

    #[test]
    fn the_driver_is_named() {
        let check = judge(Some("ondemand"), Some("acpi-cpufreq"));
        assert_eq!(check.found, "ondemand (acpi-cpufreq)");
        assert!(check.advice.unwrap().contains("echo performance | sudo tee /sys/"));
    }
}
