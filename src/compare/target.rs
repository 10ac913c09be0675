//! Which records of a file a side of a comparison is about.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::calibration::{FusionRecord, HardwareCalibration};
use crate::error::{Error, ErrorKind};
use crate::vocabulary::{Backend, Clock, DType, Implementation};

/// What runs the problems of a side, and how: its text form is `cpu/2/f32/native`, or
/// `cuda/device/bf16/native` of a GPU. A number of threads that nobody knows is `?`.
///
/// Problems are joined on their chain, their sizes and the state of the caches. All else may differ
/// between the sides, and is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SideTarget {
    /// What runs it.
    pub backend: Backend,
    /// On how many threads; 1 on a GPU, and `None` where nobody knows.
    pub threads: Option<u32>,
    /// What its times begin and end with.
    pub clock: Clock,
    /// The dtype of every tensor.
    pub dtype: DType,
    /// Whose kernels run.
    pub implementation: Implementation,
}

impl SideTarget {
    /// That of a record.
    #[must_use]
    pub const fn of(record: &FusionRecord) -> Self {
        let FusionRecord { backend, threads, clock, dtype, implementation, .. } = *record;
        Self { backend, threads: Some(threads), clock, dtype, implementation }
    }

    /// Those of a file, in order, each with the number of its records.
    #[must_use]
    pub fn all_of(calibration: &HardwareCalibration) -> Vec<(Self, usize)> {
        let mut targets: Vec<Self> = calibration.records.iter().map(Self::of).collect();
        targets.sort_unstable();
        let mut counted: Vec<(Self, usize)> = Vec::new();
        for target in targets {
            match counted.last_mut() {
                Some((last, count)) if *last == target => *count += 1,
                _ => counted.push((target, 1)),
            }
        }
        counted
    }
}

impl fmt::Display for SideTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { backend, threads, clock, dtype, implementation } = self;
        let on = match clock {
            Clock::Host => threads.map_or_else(|| "?".to_owned(), |threads| threads.to_string()),
            clock => clock.to_string(),
        };
        f.pad(&format!("{backend}/{on}/{dtype}/{implementation}"))
    }
}

impl Serialize for SideTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Parts of a [`SideTarget`], in any order, joined with slashes: `2`, `cuda/device`, `bf16/native`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TargetParts {
    /// What runs it.
    pub backend: Option<Backend>,
    /// On how many threads.
    pub threads: Option<u32>,
    /// What its times begin and end with.
    pub clock: Option<Clock>,
    /// The dtype.
    pub dtype: Option<DType>,
    /// Whose kernels run.
    pub implementation: Option<Implementation>,
}

impl TargetParts {
    /// Whether a target has all these parts.
    #[must_use]
    pub fn are_of(&self, target: &SideTarget) -> bool {
        self.backend.is_none_or(|backend| backend == target.backend)
            && self.threads.is_none_or(|threads| Some(threads) == target.threads)
            && self.clock.is_none_or(|clock| clock == target.clock)
            && self.dtype.is_none_or(|dtype| dtype == target.dtype)
            && self.implementation.is_none_or(|one| one == target.implementation)
    }
}

/// Fails with an [`Error`] for which [`Error::is_invalid_question`] is true.
impl FromStr for TargetParts {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut parts = Self::default();
        for word in text.split('/').map(str::trim) {
            let is_new = if let Ok(backend) = word.parse() {
                parts.backend.replace(backend).is_none()
            } else if let Ok(threads) = word.parse() {
                parts.threads.replace(threads).is_none()
            } else if let Ok(clock) = word.parse() {
                parts.clock.replace(clock).is_none()
            } else if let Ok(dtype) = word.parse() {
                parts.dtype.replace(dtype).is_none()
            } else if word.contains('@') {
                parts.implementation.replace(word.parse()?).is_none()
            } else if let Ok(implementation) = word.parse() {
                parts.implementation.replace(implementation).is_none()
            } else {
                let backends = Backend::ALL.map(Backend::name);
                let clocks = Clock::ALL.map(Clock::name);
                let dtypes = DType::ALL.map(DType::name);
                let implementations = Implementation::BUILT_IN.each_ref().map(Implementation::name);
                let known = [&backends[..], &clocks, &dtypes, &implementations].concat();
                return Err(Error::unknown_name("part of a target", word, known));
            };
            if !is_new {
                return Err(ErrorKind::TargetText(text.to_owned()).into());
            }
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_in_any_order() {
        let target = SideTarget {
            backend: Backend::Cuda,
            threads: Some(1),
            clock: Clock::Device,
            dtype: DType::Bf16,
            implementation: Implementation::Native,
        };
        assert_eq!(target.to_string(), "cuda/device/bf16/native");
        for text in ["cuda/device/bf16/native", "bf16/cuda", "NATIVE", "device/bfloat16"] {
            assert!(text.parse::<TargetParts>().unwrap().are_of(&target), "{text}");
        }
        for text in ["cpu", "cuda/2", "launch-inclusive", "f32", "vendor"] {
            assert!(!text.parse::<TargetParts>().unwrap().are_of(&target), "{text}");
        }
        let on_cpu =
            SideTarget { backend: Backend::Cpu, threads: Some(12), clock: Clock::Host, ..target };
        assert_eq!(on_cpu.to_string(), "cpu/12/bf16/native");
        let unknown = SideTarget { threads: None, ..on_cpu };
        assert_eq!(unknown.to_string(), "cpu/?/bf16/native");
        assert!("cpu".parse::<TargetParts>().unwrap().are_of(&unknown));
        assert!(!"12".parse::<TargetParts>().unwrap().are_of(&unknown));
        let runtime = SideTarget { implementation: "pytorch@2.9.1".parse().unwrap(), ..on_cpu };
        assert_eq!(runtime.to_string(), "cpu/12/bf16/pytorch@2.9.1");
        assert!("12/pytorch@2.9.1".parse::<TargetParts>().unwrap().are_of(&runtime));
        assert!(!"pytorch@2.10.0".parse::<TargetParts>().unwrap().are_of(&runtime));
        assert!("cpu/pytorch@".parse::<TargetParts>().is_err());
    }

    #[test]
    fn what_is_no_part_is_refused() {
        let message = |text: &str| text.parse::<TargetParts>().unwrap_err().to_string();
        assert_eq!(
            message("cpu/naitve"),
            "unknown part of a target `naitve`; did you mean `native`?"
        );
        assert_eq!(
            message("f32/bf16"),
            "target `f32/bf16`: it has two parts of one kind; write it as cpu/2/f32/native or \
             cuda/device/bf16/vendor, or only some of that"
        );
    }
}
