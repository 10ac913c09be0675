//! The words of a question as numbers. None is 0, so that a struct of zeros is refused.

use std::ffi::{CStr, c_char};

use fusion_cost_model as fcm;

use crate::error::{Error, FCM_BUG};

/// The type of a tensor's elements: one of `FCM_DTYPE_*`.
pub type DType = u32;
/// IEEE 754 binary64.
pub const FCM_DTYPE_F64: DType = 1;
/// IEEE 754 binary32.
pub const FCM_DTYPE_F32: DType = 2;
/// NVIDIA's 19-bit format inside matrix cores; tensors are stored as f32.
pub const FCM_DTYPE_TF32: DType = 3;
/// The upper half of an f32.
pub const FCM_DTYPE_BF16: DType = 4;
/// IEEE 754 binary16.
pub const FCM_DTYPE_F16: DType = 5;
/// Eight-bit floating point (e4m3 or e5m2).
pub const FCM_DTYPE_F8: DType = 6;
/// Eight-bit integers.
pub const FCM_DTYPE_I8: DType = 7;

/// What runs a problem: one of `FCM_BACKEND_*`.
pub type Backend = u32;
/// The host's processor.
pub const FCM_BACKEND_CPU: Backend = 1;
/// An NVIDIA GPU.
pub const FCM_BACKEND_CUDA: Backend = 2;
/// An AMD GPU.
pub const FCM_BACKEND_HIP: Backend = 3;

/// The clock of a time: one of `FCM_CLOCK_*`.
pub type Clock = u32;
/// The clock of the processor that the kernels run on: from the call to its return.
pub const FCM_CLOCK_HOST: Clock = 1;
/// The clock of a GPU: from the first kernel's start to the last one's end, with the queue full.
pub const FCM_CLOCK_DEVICE: Clock = 2;
/// The host's clock around a GPU's work: from handing it to an idle GPU to its end.
pub const FCM_CLOCK_LAUNCH_INCLUSIVE: Clock = 3;

/// What the caches hold when a problem begins: one of `FCM_CACHES_*`.
pub type CacheState = u32;
/// Its own tensors: it has just run.
pub const FCM_CACHES_WARM: CacheState = 1;
/// None of its inputs.
pub const FCM_CACHES_COLD: CacheState = 2;

/// Whose kernels run: one of `FCM_IMPLEMENTATION_*`.
pub type Implementation = u32;
/// The project's own, with the same core in both variants.
pub const FCM_IMPLEMENTATION_NATIVE: Implementation = 1;
/// Those of a vendor's library.
pub const FCM_IMPLEMENTATION_VENDOR: Implementation = 2;

/// What to assume about a problem that nothing is known about: one of `FCM_WHEN_UNKNOWN_*`.
pub type WhenUnknown = u32;
/// Keep the kernels apart.
pub const FCM_WHEN_UNKNOWN_CONSERVATIVE: WhenUnknown = 1;
/// Fuse.
pub const FCM_WHEN_UNKNOWN_OPTIMISTIC: WhenUnknown = 2;
/// Decide by the roofline on the measured ceilings, and by what fusion gained of it elsewhere; keep
/// where no ceilings were measured.
pub const FCM_WHEN_UNKNOWN_ROOFLINE: WhenUnknown = 3;
/// Answer with an error, `FCM_UNDECIDED`.
pub const FCM_WHEN_UNKNOWN_ERROR: WhenUnknown = 4;

/// Where an answer comes from: one of `FCM_EVIDENCE_*`, the most trusted first.
pub type Evidence = u32;
/// The problem itself was measured.
pub const FCM_EVIDENCE_MEASURED: Evidence = 1;
/// A chain that differs in some ops was measured at this very size.
pub const FCM_EVIDENCE_COMPOSED_AT_SIZE: Evidence = 2;
/// The chain was measured at sizes around this one.
pub const FCM_EVIDENCE_INTERPOLATED: Evidence = 3;
/// A chain that differs in some ops was measured at sizes around this one.
pub const FCM_EVIDENCE_COMPOSED_BETWEEN: Evidence = 4;
/// The nearest measured sizes are `octaves_beyond` away.
pub const FCM_EVIDENCE_EXTRAPOLATED: Evidence = 5;
/// Only the ceilings of the machine were measured.
pub const FCM_EVIDENCE_ROOFLINE: Evidence = 6;
/// Nothing is known.
pub const FCM_EVIDENCE_UNKNOWN: Evidence = 7;

/// The reason for a decision: one of `FCM_REASON_*`.
pub type Reason = u32;
/// The whole interval of the speedup is at or above the threshold: fuse.
pub const FCM_REASON_FASTER: Reason = 1;
/// The whole interval is below the threshold: keep the kernels apart.
pub const FCM_REASON_SLOWER: Reason = 2;
/// The threshold lies inside the interval. The value decides, for either choice costs little.
pub const FCM_REASON_TOO_CLOSE: Reason = 3;
/// Nothing is known that the policy decides by, so it assumes something.
pub const FCM_REASON_UNKNOWN: Reason = 4;

pub(crate) const DTYPES: &[(u32, fcm::DType)] = &[
    (FCM_DTYPE_F64, fcm::DType::F64),
    (FCM_DTYPE_F32, fcm::DType::F32),
    (FCM_DTYPE_TF32, fcm::DType::Tf32),
    (FCM_DTYPE_BF16, fcm::DType::Bf16),
    (FCM_DTYPE_F16, fcm::DType::F16),
    (FCM_DTYPE_F8, fcm::DType::F8),
    (FCM_DTYPE_I8, fcm::DType::I8),
];

pub(crate) const BACKENDS: &[(u32, fcm::Backend)] = &[
    (FCM_BACKEND_CPU, fcm::Backend::Cpu),
    (FCM_BACKEND_CUDA, fcm::Backend::Cuda),
    (FCM_BACKEND_HIP, fcm::Backend::Hip),
];

pub(crate) const CLOCKS: &[(u32, fcm::Clock)] = &[
    (FCM_CLOCK_HOST, fcm::Clock::Host),
    (FCM_CLOCK_DEVICE, fcm::Clock::Device),
    (FCM_CLOCK_LAUNCH_INCLUSIVE, fcm::Clock::LaunchInclusive),
];

pub(crate) const CACHE_STATES: &[(u32, fcm::CacheState)] =
    &[(FCM_CACHES_WARM, fcm::CacheState::Warm), (FCM_CACHES_COLD, fcm::CacheState::Cold)];

pub(crate) const IMPLEMENTATIONS: &[(u32, fcm::Implementation)] = &[
    (FCM_IMPLEMENTATION_NATIVE, fcm::Implementation::Native),
    (FCM_IMPLEMENTATION_VENDOR, fcm::Implementation::Vendor),
];

pub(crate) const WHEN_UNKNOWN: &[(u32, fcm::WhenUnknown)] = &[
    (FCM_WHEN_UNKNOWN_CONSERVATIVE, fcm::WhenUnknown::Conservative),
    (FCM_WHEN_UNKNOWN_OPTIMISTIC, fcm::WhenUnknown::Optimistic),
    (FCM_WHEN_UNKNOWN_ROOFLINE, fcm::WhenUnknown::Roofline),
    (FCM_WHEN_UNKNOWN_ERROR, fcm::WhenUnknown::Error),
];

pub(crate) const EVIDENCE: &[(u32, fcm::Evidence)] = &[
    (FCM_EVIDENCE_MEASURED, fcm::Evidence::Measured),
    (FCM_EVIDENCE_COMPOSED_AT_SIZE, fcm::Evidence::ComposedAtSize),
    (FCM_EVIDENCE_INTERPOLATED, fcm::Evidence::Interpolated),
    (FCM_EVIDENCE_COMPOSED_BETWEEN, fcm::Evidence::ComposedBetween),
    (FCM_EVIDENCE_EXTRAPOLATED, fcm::Evidence::Extrapolated),
    (FCM_EVIDENCE_ROOFLINE, fcm::Evidence::Roofline),
    (FCM_EVIDENCE_UNKNOWN, fcm::Evidence::Unknown),
];

/// What a caller's number stands for.
pub(crate) fn meaning<T: Copy>(
    table: &[(u32, T)],
    number: u32,
    what: &str,
    constants: &str,
) -> Result<T, Error> {
    let found = table.iter().find(|(known, _)| *known == number);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        Error::argument(format!("{what} is {number}; use one of the constants {constants}_*"))
    })
}

/// The number of something; all that the cost model knows has one.
pub(crate) fn number<T: Copy + PartialEq + std::fmt::Debug>(
    table: &[(u32, T)],
    meaning: T,
) -> Result<u32, Error> {
    let found = table.iter().find(|(_, known)| *known == meaning);
    found
        .map(|(number, _)| *number)
        .ok_or_else(|| Error::new(FCM_BUG, format!("{meaning:?} has no number")))
}

/// The words for some evidence in reports, such as `composed at size`; empty of another number.
#[unsafe(no_mangle)]
pub extern "C" fn fcm_evidence_name(evidence: Evidence) -> *const c_char {
    let name: &'static CStr = match evidence {
        FCM_EVIDENCE_MEASURED => c"measured",
        FCM_EVIDENCE_COMPOSED_AT_SIZE => c"composed at size",
        FCM_EVIDENCE_INTERPOLATED => c"interpolated",
        FCM_EVIDENCE_COMPOSED_BETWEEN => c"composed between sizes",
        FCM_EVIDENCE_EXTRAPOLATED => c"extrapolated",
        FCM_EVIDENCE_ROOFLINE => c"roofline",
        FCM_EVIDENCE_UNKNOWN => c"unknown",
        _ => c"",
    };
    name.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::read;

    /// Numbers from 1 on, for each of `all`.
    fn assert_whole<T: Copy + PartialEq + std::fmt::Debug>(table: &[(u32, T)], all: &[T]) {
        let numbers: Vec<u32> = table.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (1..=all.len() as u32).collect::<Vec<_>>());
        let meanings: Vec<T> = table.iter().map(|(_, meaning)| *meaning).collect();
        assert_eq!(meanings, all);
    }

    #[test]
    fn each_word_has_a_number() {
        assert_whole(DTYPES, &fcm::DType::ALL);
        assert_whole(BACKENDS, &fcm::Backend::ALL);
        assert_whole(CLOCKS, &fcm::Clock::ALL);
        assert_whole(IMPLEMENTATIONS, &fcm::Implementation::BUILT_IN);
    }

    #[test]
    fn evidence_is_numbered_by_trust_and_has_its_name() {
        assert!(EVIDENCE.is_sorted());
        for &(number, evidence) in EVIDENCE {
            assert_eq!(read(fcm_evidence_name(number)), evidence.name());
        }
        assert_eq!(read(fcm_evidence_name(0)), "");
    }

    #[test]
    fn other_numbers_are_refused() {
        for bad in [0, 8] {
            assert!(meaning(DTYPES, bad, "dtype", "FCM_DTYPE").is_err());
        }
        assert_eq!(meaning(DTYPES, 2, "dtype", "FCM_DTYPE").unwrap(), fcm::DType::F32);
    }
}
