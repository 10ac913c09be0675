//! Whether the processor is too hot to keep its clock.

use fusion_cost_model::calibration::Check;

use super::outcome::{NOT_REPORTED, fail, pass, warn};
use crate::machine::system_files::SystemFiles;

const NAME: &str = "temperature";

/// The drivers of processors' own sensors.
const SENSORS: [&str; 5] = ["coretemp", "cpu_thermal", "k10temp", "k8temp", "zenpower"];

/// The highest temperature of a processor in degrees Celsius.
pub(super) fn observe(files: &SystemFiles) -> Option<f64> {
    let of_zones = files.entries("sys/class/thermal").into_iter().filter_map(|zone| {
        let kind = files.word(&format!("{zone}/type"))?.to_lowercase();
        let is_processor = kind == "x86_pkg_temp" || kind == "tcpu" || kind.starts_with("cpu");
        if is_processor { degrees(files, &format!("{zone}/temp")) } else { None }
    });
    let of_sensors = files.entries("sys/class/hwmon").into_iter().flat_map(|sensor| {
        let driver = files.word(&format!("{sensor}/name"));
        let is_processor = driver.is_some_and(|driver| SENSORS.contains(&driver.as_str()));
        if is_processor { inputs(files, &sensor) } else { Vec::new() }
    });
    of_zones.chain(of_sensors).reduce(f64::max)
}

/// The temperatures of a sensor.
fn inputs(files: &SystemFiles, sensor: &str) -> Vec<f64> {
    let entries = files.entries(sensor);
    let labelled = entries.iter().filter_map(|path| {
        let input = path.strip_suffix("_input")?;
        let name = input.strip_prefix(sensor)?;
        name.starts_with("/temp").then(|| (files.word(&format!("{input}_label")), path))
    });
    let labelled: Vec<_> = labelled.collect();
    // `Tctl` controls the fan and reads up to 27 degrees above the real value, which is `Tdie`.
    let is = |label: &Option<String>, name: &str| label.as_deref() == Some(name);
    let has_tdie = labelled.iter().any(|(label, _)| is(label, "Tdie"));
    let believed = labelled.iter().filter(|(label, _)| !(has_tdie && is(label, "Tctl")));
    believed.filter_map(|(_, path)| degrees(files, path)).collect()
}

/// A temperature; sensors that are broken or asleep report impossible values.
fn degrees(files: &SystemFiles, path: &str) -> Option<f64> {
    let thousandths = i32::try_from(files.number(path)?).ok()?;
    (1_000..=150_000).contains(&thousandths).then(|| f64::from(thousandths) / 1000.0)
}

/// Judges the temperature in degrees Celsius.
pub(super) fn judge(degrees: Option<f64>) -> Check {
    let Some(degrees) = degrees else {
        return pass(NAME, NOT_REPORTED);
    };
    let found = format!("{degrees:.0} °C");
    let [warn_from, fail_from] = Check::DEGREES_FROM;
    if degrees >= fail_from {
        fail(NAME, found, "let it cool down, and look at the fan; the clock is lowered already")
    } else if degrees >= warn_from {
        warn(NAME, found, "let it cool down; the clock may be lowered")
    } else {
        pass(NAME, found)
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::calibration::CheckStatus::{Fail, Pass, Warn};

    use super::*;
    use crate::machine::system_files::tests::made_up;

    #[test]
    fn the_thresholds() {
        for (degrees, expected) in [
            (None, Pass),
            (Some(45.0), Pass),
            (Some(84.9), Pass),
            (Some(85.0), Warn),
            (Some(94.9), Warn),
            (Some(95.0), Fail),
        ] {
            assert_eq!(judge(degrees).status, expected, "{degrees:?}");
        }
        assert_eq!(judge(Some(52.4)).found, "52 °C");
    }

    #[test]
    fn a_laptop_whose_battery_is_hotter_than_its_processor() {
        let (_folder, files) = made_up(&[
            ("sys/class/thermal/thermal_zone0/type", "BAT0\n"),
            ("sys/class/thermal/thermal_zone0/temp", "99000\n"),
            ("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n"),
            ("sys/class/thermal/thermal_zone1/temp", "61000\n"),
            ("sys/class/thermal/thermal_zone2/type", "cpu-thermal\n"),
            ("sys/class/thermal/thermal_zone2/temp", "58500\n"),
            ("sys/class/thermal/cooling_device0/type", "Processor\n"),
        ]);
        assert_eq!(observe(&files), Some(61.0));
    }

    #[test]
    fn an_amd_server_tells_through_its_sensor() {
        let with_truth = [
            ("sys/class/hwmon/hwmon0/name", "nvme\n"),
            ("sys/class/hwmon/hwmon0/temp1_input", "88000\n"),
            ("sys/class/hwmon/hwmon1/name", "k10temp\n"),
            ("sys/class/hwmon/hwmon1/temp1_input", "77000\n"),
            ("sys/class/hwmon/hwmon1/temp1_label", "Tctl\n"),
            ("sys/class/hwmon/hwmon1/temp2_input", "50000\n"),
            ("sys/class/hwmon/hwmon1/temp2_label", "Tdie\n"),
            ("sys/class/hwmon/hwmon1/fan1_input", "90000\n"),
        ];
        let (_folder, files) = made_up(&with_truth);
        assert_eq!(observe(&files), Some(50.0));
        let (_folder, files) = made_up(&with_truth[..5]);
        assert_eq!(observe(&files), Some(77.0));
    }

    #[test]
    fn impossible_temperatures_and_nothing_tell_nothing() {
        for temp in ["-274000\n", "0\n", "4294967295\n", "hot\n", "", "150001\n"] {
            let (_folder, files) = made_up(&[
                ("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n"),
                ("sys/class/thermal/thermal_zone0/temp", temp),
                ("sys/class/hwmon/hwmon0/name", "coretemp\n"),
                ("sys/class/hwmon/hwmon0/temp1_input", temp),
            ]);
            assert_eq!(observe(&files), None, "{temp}");
        }
        let (_folder, nothing) = made_up(&[]);
        assert_eq!(observe(&nothing), None);
    }
}
