//! Why the clock of a GPU is lower than it could be, in words.

use fusion_cost_model::Backend;

/// The bits of NVML, `nvmlClocksEventReason...` of `nvml.h`, which were called
/// `nvmlClocksThrottleReason...` before.
const NVML: [(u64, &str); 9] = [
    (0x1, "idle"),
    (0x2, "application-clocks"),
    (0x4, "sw-power-cap"),
    (0x8, "hw-slowdown"),
    (0x10, "sync-boost"),
    (0x20, "sw-thermal-slowdown"),
    (0x40, "hw-thermal-slowdown"),
    (0x80, "hw-power-brake"),
    (0x100, "display-clocks"),
];

/// Reasons that are none of the machine's state: a GPU is idle between two samples, and somebody
/// chose the clocks.
const NO_COMPLAINT: u64 = 0x1 | 0x2 | 0x100;

/// The names of the bits of a backend's management library. A bit without a name, and every bit of
/// AMD's, whose meaning differs between its libraries, is given as a number.
#[must_use]
pub fn names(backend: Backend, reasons: u64) -> Vec<String> {
    let name = |bit: u64| {
        let known = NVML.iter().find(|(known, _)| backend == Backend::Cuda && *known == bit);
        known.map_or_else(|| format!("{bit:#x}"), |(_, name)| (*name).to_owned())
    };
    (0..u64::BITS).map(|shift| 1 << shift).filter(|bit| reasons & bit != 0).map(name).collect()
}

/// Those of them that a reader of the times should know.
#[must_use]
pub fn complaints(backend: Backend, reasons: u64) -> Vec<String> {
    let harmless = if backend == Backend::Cuda { NO_COMPLAINT } else { 0 };
    names(backend, reasons & !harmless)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_names_where_they_are_known() {
        assert_eq!(names(Backend::Cuda, 0x5), ["idle", "sw-power-cap"]);
        assert_eq!(complaints(Backend::Cuda, 0x5), ["sw-power-cap"]);
        assert_eq!(names(Backend::Cuda, 1 << 40), ["0x10000000000"]);
        assert_eq!(names(Backend::Hip, 0x5), ["0x1", "0x4"]);
        assert_eq!(complaints(Backend::Hip, 0x1), ["0x1"]);
        assert!(names(Backend::Cuda, 0).is_empty());
        assert_eq!(names(Backend::Cuda, u64::MAX).len(), 64);
    }
}
