//! Looking up what was measured.

use std::path::Path;

use rustc_hash::FxHashMap;
use thiserror::Error;

use super::answer::{Estimate, Interval};
use super::policy::{Decision, Policy, Undecided};
use crate::calibration::{CalibrationError, FusionRecord, HardwareCalibration, Verdict};
use crate::vocabulary::{
    Backend, CacheState, Chain, Clock, DType, Implementation, Problem, VocabularyError,
};

/// Where a problem would run, and what its time would be. All of it must match: a question about a
/// GPU is never answered from a CPU's measurements, nor one about 16 threads from those of one, nor
/// one about a captured graph ([`Clock::Device`]) from what eager execution pays for its launches
/// ([`Clock::LaunchInclusive`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// What runs it.
    pub backend: Backend,
    /// On how many threads; 1 on a GPU.
    pub threads: u32,
    /// What the caches hold when it begins.
    pub cache_state: CacheState,
    /// What its time begins and ends with.
    pub clock: Clock,
    /// Whose kernels run.
    pub implementation: Implementation,
}

impl Target {
    /// The CPU with so many threads and warm caches.
    #[must_use]
    pub const fn cpu(threads: u32) -> Self {
        Self {
            backend: Backend::Cpu,
            threads,
            cache_state: CacheState::Warm,
            clock: Clock::Host,
            implementation: Implementation::Native,
        }
    }

    /// A GPU with warm caches and the project's own kernels, by one of its clocks.
    #[must_use]
    pub const fn gpu(backend: Backend, clock: Clock) -> Self {
        Self { backend, clock, ..Self::cpu(1) }
    }

    fn of(record: &FusionRecord) -> Self {
        let FusionRecord { backend, threads, cache_state, clock, implementation, .. } = *record;
        Self { backend, threads, cache_state, clock, implementation }
    }
}

/// The calibration is of another machine than the one that was expected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the calibration is of {found}, not of {expected}; calibrate on that machine, or load its file"
)]
pub struct HardwareMismatch {
    /// The machine that was expected.
    pub expected: String,
    /// The machine that the calibration describes.
    pub found: String,
}

/// Answers questions about fusion from a calibration.
///
/// It is immutable after loading, `Send` and `Sync`, reads no files and allocates nothing per
/// query. Records whose verdict is INVALID are ignored.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("machine.toml");
/// # std::fs::write(&path, include_str!("../../tests/data/example.toml"))?;
/// use fusion_cost_model::model::{Action, FusionCostModel, Policy, Target, WhenUnknown};
///
/// let model = FusionCostModel::load(&path)?;
/// let target = Target::cpu(2);
/// let policy = Policy::new(WhenUnknown::Conservative).with_threshold(1.05);
///
/// let decision = model.decide(&"Add_ReLU/fp32/m4096.n1024".parse()?, target, &policy);
/// assert_eq!(decision.action, Action::Fuse);
/// let speedup = decision.estimate.speedup().ok_or("measured")?;
/// println!("fuse: {:.2}x ({:.2} to {:.2})", speedup.value, speedup.low, speedup.high);
///
/// let unknown = model.decide(&"conv_bn/f32/n1.c3.h8.w8.k4.r3.s3".parse()?, target, &policy);
/// assert_eq!((unknown.action, unknown.fuse), (Action::Unknown, Some(false)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FusionCostModel {
    calibration: HardwareCalibration,
    by_problem: FxHashMap<(Problem, Target), usize>,
    by_chain: FxHashMap<(Chain, DType, Target), Vec<usize>>,
}

impl FusionCostModel {
    /// Loads a calibration file.
    ///
    /// # Errors
    ///
    /// [`CalibrationError`] when the file cannot be read or is damaged.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, CalibrationError> {
        Ok(Self::new(HardwareCalibration::load(path)?))
    }

    /// A model of a calibration that is already in memory.
    #[must_use]
    pub fn new(calibration: HardwareCalibration) -> Self {
        let mut by_problem = FxHashMap::default();
        for (index, record) in calibration.records.iter().enumerate() {
            if record.verdict != Verdict::Invalid {
                by_problem.insert((record.problem, Target::of(record)), index);
            }
        }
        let mut by_chain: FxHashMap<_, Vec<usize>> = FxHashMap::default();
        for (&(problem, target), &index) in &by_problem {
            by_chain.entry((*problem.chain(), problem.dtype(), target)).or_default().push(index);
        }
        Self { calibration, by_problem, by_chain }
    }

    /// The same model, if the calibration describes the machine with this id, name or alias.
    ///
    /// # Errors
    ///
    /// [`HardwareMismatch`] when it describes another one.
    pub fn expecting_hardware(self, name: &str) -> Result<Self, HardwareMismatch> {
        if self.calibration.hardware.is_called(name) {
            Ok(self)
        } else {
            Err(HardwareMismatch {
                expected: name.to_owned(),
                found: self.calibration.hardware.name,
            })
        }
    }

    /// The calibration.
    #[must_use]
    pub const fn calibration(&self) -> &HardwareCalibration {
        &self.calibration
    }

    /// What is known about a problem on a target. Measured points come back as they were
    /// measured.
    #[must_use]
    pub fn estimate(&self, problem: &Problem, target: Target) -> Estimate<'_> {
        self.by_problem.get(&(*problem, target)).map_or(Estimate::UNKNOWN, |&index| {
            Estimate::measured(&self.calibration.records[index])
        })
    }

    /// Whether to fuse a problem on a target.
    #[must_use]
    pub fn decide(&self, problem: &Problem, target: Target, policy: &Policy) -> Decision<'_> {
        let estimate = self.estimate(problem, target);
        let speedup = estimate.speedup();
        Decision {
            action: policy.action(speedup),
            estimate,
            fuse: policy.resolve(speedup, || self.roofline_speedup(problem, target)),
        }
    }

    /// The speedup that the roofline on the measured ceilings allows.
    #[must_use]
    pub fn roofline_speedup(&self, problem: &Problem, target: Target) -> Option<f64> {
        let ceilings = self.calibration.ceilings.iter().find(|ceilings| {
            ceilings.backend == target.backend
                && ceilings.threads == target.threads
                && ceilings.clock == target.clock
                && ceilings.dtype == problem.dtype()
        })?;
        Some(ceilings.limits.roofline(problem)?.speedup())
    }

    /// Whether to fuse two neighbouring ops or chains, whatever their sizes: the question that a
    /// partitioner asks before it knows shapes. Decided by [`Self::fusion_benefit`].
    ///
    /// # Errors
    ///
    /// [`SizelessError`] when a name is unknown, the two cannot be one kernel, or nothing is
    /// known and the policy is not to guess. Without sizes there is no roofline, so
    /// [`WhenUnknown::Roofline`](super::WhenUnknown::Roofline) keeps them apart.
    pub fn should_fuse(
        &self,
        first: &str,
        second: &str,
        dtype: DType,
        target: Target,
        policy: &Policy,
    ) -> Result<bool, SizelessError> {
        let question = format!("{first}+{second}");
        let benefit = self.fusion_benefit(&question, dtype, target)?;
        let fuse = policy.resolve(benefit, || None);
        Ok(fuse.ok_or(Undecided { question })?)
    }

    /// The speedup of a chain over all sizes at which it was measured on a target: the geometric
    /// mean, and the least and the largest of them. `None` when it was not measured.
    ///
    /// A convenience: sizes matter, so ask [`Self::estimate`] where they are known.
    ///
    /// # Errors
    ///
    /// [`VocabularyError`] when the name is not that of a chain.
    pub fn fusion_benefit(
        &self,
        pattern: &str,
        dtype: DType,
        target: Target,
    ) -> Result<Option<Interval>, VocabularyError> {
        let chain: Chain = pattern.parse()?;
        let Some(indices) = self.by_chain.get(&(chain, dtype, target)) else {
            return Ok(None);
        };
        let mut log_sum = 0.0;
        let mut low = f64::INFINITY;
        let mut high = 0.0_f64;
        for &index in indices {
            let speedup = self.calibration.records[index].speedup_factor;
            log_sum += speedup.ln();
            low = low.min(speedup);
            high = high.max(speedup);
        }
        #[expect(clippy::cast_precision_loss, reason = "a count of records")]
        let value = (log_sum / indices.len() as f64).exp();
        Ok(Some(Interval { value, low, high }))
    }
}

/// A question without sizes that has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SizelessError {
    /// A name is unknown, or the ops cannot be one kernel.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    /// Nothing is known, and the policy is not to guess.
    #[error(transparent)]
    Undecided(#[from] Undecided),
}
