//! What is really there: the machine as the system reports it.
//!
//! A journal is continued only on the machine that began it, identified by its fingerprint. So a
//! fingerprint holds nothing that changes by itself: no load, no temperature, no current clock, no
//! free memory. Those belong in [`preflight`](crate::machine::preflight).

pub(crate) mod clock;
pub(crate) mod pages;
pub(crate) mod processor;

use fused_kernels::cpu::{Cpu, observed_caches};
use fusion_cost_model::DType;
use fusion_cost_model::calibration::Fingerprint;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use self::processor::Processor;
use crate::machine::system_files::SystemFiles;

/// Observes the machine.
#[must_use]
pub fn observe() -> Fingerprint {
    observe_with(&SystemFiles::of_this_machine())
}

/// Observes the machine, and reads below `files` what only Linux reports.
fn observe_with(files: &SystemFiles) -> Fingerprint {
    let processor = Processor::observe(files);
    let what = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing())
        .with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(what);
    let first = system.cpus().first();
    let text = |value: Option<&str>| match value.map(str::trim) {
        None | Some("") => "unknown".to_owned(),
        Some(value) => value.to_owned(),
    };
    Fingerprint {
        cpu_model: text(first.map(sysinfo::Cpu::brand)),
        cpu_vendor: text(first.map(sysinfo::Cpu::vendor_id)),
        physical_cores: physical_cores(),
        logical_cores: u32::try_from(available_threads()).unwrap_or(u32::MAX),
        features: features(),
        caches: observed_caches(),
        memory_bytes: system.total_memory(),
        os: text(System::long_os_version().as_deref()),
        kernel: System::kernel_version(),
        virtualized: processor.virtualized,
        cpu_family_model_stepping: processor.family_model_stepping,
        microcode: processor.microcode,
        governor: clock::governor(files),
        turbo: clock::turbo(files),
        huge_pages: pages::huge_pages(files),
        gpu: None,
    }
}

/// Physical cores. What has none that the system can tell apart is counted as 0 by some.
fn physical_cores() -> Option<u32> {
    let count = System::physical_core_count().and_then(|count| u32::try_from(count).ok());
    count.filter(|count| *count > 0)
}

/// Hardware threads that this process may use.
#[must_use]
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The threads that kernels use by default: one per physical core, as far as this
/// process may use them.
#[must_use]
pub fn default_threads() -> usize {
    System::physical_core_count()
        .map_or_else(available_threads, |cores| cores.clamp(1, available_threads()))
}

/// The instruction sets that the kernels may use.
fn features() -> Vec<String> {
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! detect {
            ($($feature:tt),*) => {
                [$(($feature, std::is_x86_feature_detected!($feature))),*]
            };
        }
        let detected = detect!(
            "avx",
            "avx2",
            "fma",
            "f16c",
            "avx512f",
            "avx512dq",
            "avx512vl",
            "avx512bw",
            "avx512bf16"
        );
        let there = detected.iter().filter(|(_, there)| *there).map(|(name, _)| *name);
        let units = [(Fingerprint::AMX, DType::Bf16), (Fingerprint::AMX_FP16, DType::F16)];
        let units = units.into_iter().filter(|(_, dtype)| Cpu::has_matrix_unit_for(*dtype));
        there.chain(units.map(|(name, _)| name)).map(str::to_owned).collect()
    }
    #[cfg(target_arch = "aarch64")]
    {
        vec!["neon".to_owned()]
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::system_files::tests::made_up;

    #[test]
    fn the_files_of_the_machine_are_in_its_fingerprint() {
        let (_folder, files) = made_up(&[
            (
                "proc/cpuinfo",
                "processor\t: 0\ncpu family\t: 25\nmodel\t: 17\nstepping\t: 1\n\
                 microcode\t: 0xa101148\nflags\t: fpu avx2\n",
            ),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "ondemand\n"),
            ("sys/devices/system/cpu/cpufreq/boost", "1\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ]);
        let seen = observe_with(&files);
        assert_eq!(seen.cpu_family_model_stepping.as_deref(), Some("25/17/1"));
        assert_eq!(seen.microcode.as_deref(), Some("0xa101148"));
        assert_eq!(seen.virtualized, Some(false));
        assert_eq!(seen.governor.as_deref(), Some("ondemand"));
        assert_eq!(seen.turbo, Some(true));
        assert_eq!(seen.huge_pages.as_deref(), Some("madvise"));
    }

    #[test]
    fn a_machine_that_tells_nothing_still_has_a_fingerprint() {
        let (_folder, nothing) = made_up(&[]);
        let seen = observe_with(&nothing);
        assert_eq!((seen.cpu_family_model_stepping, seen.microcode), (None, None));
        assert_eq!((seen.governor, seen.turbo, seen.huge_pages), (None, None, None));
        assert_eq!(seen.virtualized, None);
        assert!(seen.logical_cores > 0 && seen.memory_bytes > 0);
    }

    #[test]
    fn the_fingerprint_stays_the_same() {
        let first = observe();
        // Memory comes into use, which must not show.
        let memory = vec![1_u64; 1 << 22];
        assert_eq!(observe(), first);
        assert_eq!(memory.iter().sum::<u64>(), 1 << 22);
    }
}
