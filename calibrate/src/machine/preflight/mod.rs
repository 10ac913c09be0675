//! Before measuring: is this machine in a state in which measurements are worth something?
//!
//! Each check is a function of what was observed, in a file of its own. [`check`] observes and
//! runs all of them; what they find is stored in the calibration file.

mod address_randomisation;
mod battery;
mod build;
mod governor;
mod gpu;
mod huge_pages;
mod load;
mod memory;
mod outcome;
mod processes;
mod report;
mod swap;
mod temperature;
mod threads;
mod turbo;
mod virtual_machine;
mod window;

use std::time::Duration;

use cli_support::memory as system_memory;
use fusion_cost_model::calibration::Check;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

pub use report::{go_on_with, has_failed, report};

use self::processes::Processes;
use self::window::Reading;
use crate::machine::fingerprint::processor::Processor;
use crate::machine::fingerprint::{self, clock, pages};
use crate::machine::system_files::SystemFiles;

/// How long the machine is watched: 20 ticks of the clock that Linux counts work in, so that a
/// share of one processor is known to 5 %.
const WATCHED: Duration = Duration::from_millis(200);

/// What the run will ask of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Threads that kernels use.
    pub threads: usize,
    /// Bytes that the largest problem needs.
    pub memory_bytes: u64,
    /// What the run will ask of a GPU, where kernels run on one.
    pub gpu: Option<GpuNeeds>,
}

/// What the run will ask of a GPU, and what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuNeeds {
    /// Bytes of its memory that the largest problem needs.
    pub needed: u64,
    /// Unused bytes.
    pub free: u64,
    /// All of them.
    pub total: u64,
}

/// Checks the machine, which takes about a quarter of a second. Call it while this process has
/// nothing else to do.
#[must_use]
pub fn check(needs: &Needs) -> Vec<Check> {
    check_with(&SystemFiles::of_this_machine(), needs)
}

/// Checks the machine, and reads below `files` what only Linux reports.
fn check_with(files: &SystemFiles, needs: &Needs) -> Vec<Check> {
    let mut processes = Processes::watch();
    let before = Reading::take(files);
    std::thread::sleep(WATCHED);
    let window = Reading::take(files).since(&before);
    let others = load::of_others(window.busy, processes.own_work(), window.processor_time);

    let (governor, driver) = (clock::governor(files), clock::driver(files));
    let is_debug = cfg!(debug_assertions);
    let (available, cores) = (system_memory::available_bytes(), System::physical_core_count());
    let checks = vec![
        build::judge(&crate::build_info::build(), is_debug, crate::build_info::OPT_LEVEL),
        governor::judge(governor.as_deref(), driver.as_deref()),
        turbo::judge(clock::turbo(files)),
        load::judge(others, || processes.busiest_others()),
        temperature::judge(temperature::observe(files)),
        memory::judge(needs.memory_bytes, available),
        threads::judge(needs.threads, fingerprint::available_threads(), cores),
        swap::judge(swap_seen(window.swapped_pages)),
        virtual_machine::judge(Processor::observe(files).virtualized, window.stolen),
        battery::judge(battery::observe(files)),
        huge_pages::judge(pages::huge_pages(files).as_deref()),
        address_randomisation::judge(address_randomisation::observe(files)),
    ];
    match needs.gpu {
        None => checks,
        Some(gpu_needs) => gpu::instead(checks, gpu_needs),
    }
}

fn swap_seen(swapped_pages: Option<u64>) -> swap::Seen {
    let what = RefreshKind::nothing().with_memory(MemoryRefreshKind::everything());
    let system = System::new_with_specifics(what);
    swap::Seen {
        swap: system.total_swap(),
        swap_used: system.used_swap(),
        memory: system.total_memory(),
        memory_available: system.available_memory(),
        swapped_pages,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use fusion_cost_model::calibration::CheckStatus::{self, Fail, Pass, Warn};

    use super::*;
    use crate::machine::system_files::tests::made_up;

    const SMALL: Needs = Needs { threads: 1, memory_bytes: 1, gpu: None };

    fn status(checks: &[Check], name: &str) -> CheckStatus {
        checks.iter().find(|check| check.name == name).unwrap().status
    }

    #[test]
    fn a_machine_in_a_bad_state() {
        let (_folder, files) = made_up(&[
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "acpi-cpufreq\n"),
            ("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n"),
            ("sys/class/thermal/thermal_zone0/temp", "97000\n"),
            ("sys/class/power_supply/BAT0/type", "Battery\n"),
            ("sys/class/power_supply/BAT0/status", "Discharging\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"),
            ("proc/sys/kernel/randomize_va_space", "0\n"),
        ]);
        let checks =
            check_with(&files, &Needs { threads: 1 << 20, memory_bytes: u64::MAX, gpu: None });
        for name in ["temperature", "memory", "threads"] {
            assert_eq!(status(&checks, name), Fail, "{name}");
        }
        for name in ["governor", "battery", "huge pages", "address randomisation"] {
            assert_eq!(status(&checks, name), Warn, "{name}");
        }
        assert!(has_failed(&checks));
        let not_passed = checks.iter().filter(|check| check.status != Pass);
        assert_eq!(report(&checks, false).lines().count(), not_passed.clone().count());
        assert!(not_passed.into_iter().all(|check| check.advice.is_some()));
    }

    #[test]
    fn a_machine_that_tells_nothing_passes() {
        let (_folder, nothing) = made_up(&[]);
        let checks = check_with(&nothing, &SMALL);
        for name in
            ["governor", "turbo", "load", "temperature", "virtual machine", "battery", "huge pages"]
        {
            assert_eq!(status(&checks, name), Pass, "{name}");
        }
    }

    #[test]
    fn this_machine_is_checked_quickly_and_each_thing_once() {
        let start = Instant::now();
        let checks = check(&SMALL);
        // It takes far less, but other tests run at the same time.
        assert!(start.elapsed() < Duration::from_secs(5));
        let names: std::collections::HashSet<_> = checks.iter().map(|check| &check.name).collect();
        assert_eq!((checks.len(), names.len()), (12, 12));
        for check in checks {
            assert_eq!(check.advice.is_some(), check.status != Pass, "{check:?}");
            assert!(!check.found.is_empty());
        }
    }
}
