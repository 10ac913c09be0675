//! What is really there: the machine as the system reports it.

use fused_kernels::cpu::observed_caches;
use fusion_cost_model::calibration::Fingerprint;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// Observes the machine.
#[must_use]
pub fn observe() -> Fingerprint {
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
        physical_cores: System::physical_core_count().and_then(|count| u32::try_from(count).ok()),
        logical_cores: u32::try_from(available_threads()).unwrap_or(u32::MAX),
        features: features(),
        caches: observed_caches(),
        memory_bytes: system.total_memory(),
        os: text(System::long_os_version().as_deref()),
        kernel: System::kernel_version(),
        virtualized: virtualized(),
    }
}

/// Hardware threads that this process may use.
fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The threads that kernels use unless told otherwise: one per physical core, as far as this
/// process may use them.
#[must_use]
pub fn default_threads() -> usize {
    System::physical_core_count()
        .map_or_else(available_threads, |cores| cores.clamp(1, available_threads()))
}

/// Bytes that could be allocated now, the limits of a container included.
#[must_use]
pub fn available_memory() -> u64 {
    let what = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(what);
    let limit = system.cgroup_limits().map(|limits| limits.free_memory);
    limit.unwrap_or(u64::MAX).min(system.available_memory())
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
        detected.iter().filter(|(_, there)| *there).map(|(name, _)| (*name).to_owned()).collect()
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

/// Whether the processor says that a hypervisor runs below; only Linux on x86 tells.
fn virtualized() -> Option<bool> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let flags = text.lines().find(|line| line.starts_with("flags"))?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}
