//! Who made the processor: what the same instructions cost differs between makers, and a calibration
//! names kernels, which must not depend on how busy a machine was when something was timed.

/// Whether it is one of Intel's. Asked once: in a virtual machine an answer takes as long as a small
/// kernel.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) fn is_intel() -> bool {
    use std::arch::x86_64::__cpuid;
    use std::sync::LazyLock;

    static IS_INTEL: LazyLock<bool> = LazyLock::new(|| {
        let vendor = __cpuid(0);
        let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
        name.as_flattened() == b"GenuineIntel"
    });
    *IS_INTEL
}

/// Intel makes none of these.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) const fn is_intel() -> bool {
    false
}
