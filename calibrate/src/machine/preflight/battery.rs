//! Whether the machine runs on its battery.

use fusion_cost_model::calibration::Check;

use super::outcome::{NOT_REPORTED, pass, warn};
use crate::machine::system_files::SystemFiles;

const NAME: &str = "battery";

/// Whether a battery is the only source of power; `None` where no source is known.
pub(super) fn observe(files: &SystemFiles) -> Option<bool> {
    let mut seen = None;
    for supply in files.entries("sys/class/power_supply") {
        // Mice and headsets have batteries as well.
        let of_a_device = files.word(&format!("{supply}/scope")).as_deref() == Some("Device");
        if of_a_device {
            continue;
        }
        match files.word(&format!("{supply}/type")).as_deref() {
            Some("Mains" | "USB") => match files.number(&format!("{supply}/online")) {
                // Whatever the battery says: one that is full is discharged a little now and then.
                Some(1..) => return Some(false),
                _ => seen = seen.or(Some(false)),
            },
            Some("Battery") => {
                let status = files.word(&format!("{supply}/status"));
                let discharging = status.as_deref() == Some("Discharging");
                seen = Some(discharging || seen == Some(true));
            }
            _ => {}
        }
    }
    seen
}

/// Judges the source of power.
pub(super) fn judge(on_battery: Option<bool>) -> Check {
    match on_battery {
        None => pass(NAME, NOT_REPORTED),
        Some(false) => pass(NAME, "not in use"),
        Some(true) => warn(NAME, "in use", "connect the power supply; on battery the clock is low"),
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::CheckStatus::{Pass, Warn};

    use super::*;
    use crate::machine::system_files::tests::made_up;

    #[test]
    fn only_the_battery_alone_is_warned_of() {
        assert_eq!(judge(None).status, Pass);
        assert_eq!(judge(Some(false)).status, Pass);
        assert_eq!(judge(Some(true)).status, Warn);
    }

    #[test]
    fn a_laptop_with_and_without_its_cable() {
        for (online, status, expected) in [
            ("1\n", "Charging\n", false),
            ("1\n", "Discharging\n", false),
            ("0\n", "Discharging\n", true),
            ("0\n", "Full\n", false),
            ("?\n", "Discharging\n", true),
        ] {
            for cable in ["AC", "ucsi-1"] {
                let kind = if cable == "AC" { "Mains\n" } else { "USB\n" };
                let (_folder, files) = made_up(&[
                    (&format!("sys/class/power_supply/{cable}/type"), kind),
                    (&format!("sys/class/power_supply/{cable}/online"), online),
                    ("sys/class/power_supply/BAT0/type", "Battery\n"),
                    ("sys/class/power_supply/BAT0/status", status),
                    ("sys/class/power_supply/BAT1/type", "Battery\n"),
                    ("sys/class/power_supply/BAT1/status", "Unknown\n"),
                ]);
                assert_eq!(observe(&files), Some(expected), "{cable} {online} {status}");
            }
        }
    }

    #[test]
    fn a_desktop_with_a_mouse_and_a_server_with_nothing() {
        let (_folder, files) = made_up(&[
            ("sys/class/power_supply/hidpp_battery_0/type", "Battery\n"),
            ("sys/class/power_supply/hidpp_battery_0/scope", "Device\n"),
            ("sys/class/power_supply/hidpp_battery_0/status", "Discharging\n"),
        ]);
        assert_eq!(observe(&files), None);
        let (_folder, nothing) = made_up(&[]);
        assert_eq!(observe(&nothing), None);
    }
}
