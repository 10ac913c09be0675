//! Looking up what was measured.

use std::path::Path;

use rustc_hash::FxHashMap;

use super::target::Target;
use crate::calibration::{FusionRecord, HardwareCalibration, Verdict};
use crate::error::{Error, ErrorKind};
use crate::vocabulary::{Chain, DType, Problem};

/// Answers questions about fusion from a calibration.
///
/// It is immutable after loading, `Send` and `Sync`, reads no files and allocates nothing per
/// answer. Records whose verdict is INVALID are ignored.
///
/// Questions are asked on a [`Target`]:
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("machine.toml");
/// # std::fs::write(&path, include_str!("../../tests/data/example.toml"))?;
/// use fusion_cost_model::{Decision, FusionCostModel, Policy, Target, WhenUnknown};
///
/// let model = FusionCostModel::load(&path)?;
/// assert_eq!(model.targets(), [Target::cpu(2)]);
/// let on_cpu = model.on(Target::cpu(2));
/// let policy = Policy::new(WhenUnknown::Conservative).with_threshold(1.05);
///
/// let decision = on_cpu.decide(&"Add_ReLU/fp32/m4096.n1024".parse()?, &policy)?;
/// assert!(matches!(decision, Decision::Fuse(_)) && decision.should_fuse());
/// let speedup = decision.estimate().speedup().ok_or("measured")?;
/// println!("fuse: {:.2}x ({:.2} to {:.2})", speedup.value, speedup.low, speedup.high);
///
/// let unknown = on_cpu.decide(&"conv_bn/f32/n1.c3.h8.w8.k4.r3.s3".parse()?, &policy)?;
/// assert!(matches!(unknown, Decision::Unknown { .. }) && !unknown.should_fuse());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FusionCostModel {
    calibration: HardwareCalibration,
    by_target: FxHashMap<Target, Known>,
    targets: Vec<Target>,
}

/// What is known on one target: the indices of its records.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) by_problem: FxHashMap<Problem, usize>,
    pub(super) by_chain: FxHashMap<(Chain, DType), Vec<usize>>,
}

impl FusionCostModel {
    /// Loads a calibration file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is damaged, or is not a calibration of this version.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(Self::new(HardwareCalibration::load(path)?))
    }

    /// A model of a calibration that is already in memory.
    #[must_use]
    pub fn new(calibration: HardwareCalibration) -> Self {
        let mut by_target: FxHashMap<Target, Known> = FxHashMap::default();
        for (index, record) in calibration.records.iter().enumerate() {
            let known = by_target.entry(Target::of(record)).or_default();
            if record.verdict != Verdict::Invalid {
                known.by_problem.insert(record.problem, index);
            }
        }
        for Known { by_problem, by_chain } in by_target.values_mut() {
            for (problem, &index) in &*by_problem {
                by_chain.entry((*problem.chain(), problem.dtype())).or_default().push(index);
            }
        }
        let mut targets: Vec<Target> = by_target.keys().copied().collect();
        targets.sort_unstable();
        Self { calibration, by_target, targets }
    }

    /// The same model, if the calibration describes the machine with this id, name or alias.
    ///
    /// # Errors
    ///
    /// When it describes another one: [`Error::is_hardware_mismatch`].
    pub fn expecting_hardware(self, name: &str) -> Result<Self, Error> {
        if self.calibration.hardware.is_called(name) {
            return Ok(self);
        }
        let expected = name.to_owned();
        Err(ErrorKind::HardwareMismatch { expected, found: self.calibration.hardware.name }.into())
    }

    /// The targets that the file has records for, in a fixed order.
    #[must_use]
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// The calibration.
    #[must_use]
    pub const fn calibration(&self) -> &HardwareCalibration {
        &self.calibration
    }

    pub(super) fn known(&self, target: &Target) -> Option<&Known> {
        self.by_target.get(target)
    }

    pub(super) fn record(&self, index: usize) -> &FusionRecord {
        &self.calibration.records[index]
    }
}
