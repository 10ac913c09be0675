//! What decides the processor's clock. Its rate is not asked for: it changes all the time.

use std::collections::BTreeSet;

use crate::machine::system_files::SystemFiles;

const PROCESSORS: &str = "sys/devices/system/cpu";

/// What chooses the clock of each processor, each word once, joined with `+`.
pub(crate) fn governor(files: &SystemFiles) -> Option<String> {
    of_all_processors(files, "scaling_governor")
}

/// The driver that sets the clock, each word once, joined with `+`.
pub(crate) fn driver(files: &SystemFiles) -> Option<String> {
    of_all_processors(files, "scaling_driver")
}

/// Whether the clock may rise above its guaranteed rate.
pub(crate) fn turbo(files: &SystemFiles) -> Option<bool> {
    let switch = |path: &str| match files.number(&format!("{PROCESSORS}/{path}")) {
        Some(0) => Some(false),
        Some(1) => Some(true),
        _ => None,
    };
    switch("intel_pstate/no_turbo").map(|off| !off).or_else(|| switch("cpufreq/boost"))
}

fn of_all_processors(files: &SystemFiles, what: &str) -> Option<String> {
    let is_processor = |path: &String| {
        let number = path.strip_prefix(PROCESSORS).and_then(|name| name.strip_prefix("/cpu"));
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let processors = files.entries(PROCESSORS).into_iter().filter(is_processor);
    let word = |processor| files.word(&format!("{processor}/cpufreq/{what}"));
    let words: BTreeSet<String> = processors.filter_map(word).collect();
    (!words.is_empty()).then(|| Vec::from_iter(words).join("+"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::system_files::tests::made_up;

    #[test]
    fn an_intel_laptop() {
        let (_folder, files) = made_up(&[
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_driver", "intel_pstate\n"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
        ]);
        assert_eq!(governor(&files).as_deref(), Some("powersave"));
        assert_eq!(driver(&files).as_deref(), Some("intel_pstate"));
        assert_eq!(turbo(&files), Some(true));
    }

    #[test]
    fn an_amd_server_with_one_odd_processor() {
        let (_folder, files) = made_up(&[
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil\n"),
            ("sys/devices/system/cpu/cpu10/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "schedutil\n"),
            // Folders that look like processors and are none.
            ("sys/devices/system/cpu/cpufreq/cpufreq/scaling_governor", "no\n"),
            ("sys/devices/system/cpu/cpu/cpufreq/scaling_governor", "no\n"),
            ("sys/devices/system/cpu/cpufreq/boost", "0\n"),
        ]);
        assert_eq!(governor(&files).as_deref(), Some("performance+schedutil"));
        assert_eq!(turbo(&files), Some(false));
    }

    #[test]
    fn turbo_that_is_switched_off() {
        let (_folder, files) = made_up(&[("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n")]);
        assert_eq!(turbo(&files), Some(false));
    }

    #[test]
    fn a_virtual_machine_and_garbage_tell_nothing() {
        let nothing = made_up(&[("sys/devices/system/cpu/cpu0/topology/core_id", "0\n")]);
        let garbage = made_up(&[
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "<unknown> \u{7}\n"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "2\n"),
            ("sys/devices/system/cpu/cpufreq/boost", "yes\n"),
        ]);
        for (_folder, files) in [nothing, garbage] {
            assert_eq!((governor(&files), driver(&files), turbo(&files)), (None, None, None));
        }
    }
}
