//! A calibration, and what follows from it for each of its targets.

use std::cmp::Reverse;
use std::hash::BuildHasher;
use std::path::Path;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::known::Known;
use super::observation::is_usable;
use super::older::Older;
use super::target::{Target, View};
use crate::calibration::{FusionRecord, HardwareCalibration, MachineState, MeasuredCeilings};
use crate::cost::Ceilings;
use crate::error::{Error, ErrorKind};
use crate::vocabulary::DType;

/// Answers questions about fusion from a calibration.
///
/// What was measured comes back as it was measured. Everything else is estimated from it, with an
/// interval: [`Estimate::evidence`](super::Estimate::evidence) says from what. All that takes time is
/// done when the model is made. From then on it is immutable, `Send` and `Sync`, reads no files and
/// allocates nothing per answer. Records whose verdict is INVALID are ignored, and so are those with
/// a time or a speedup that is no positive number, which no file has.
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
/// let policy = Policy::new(WhenUnknown::Conservative);
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
    by_view: FxHashMap<View, Known>,
    targets: Vec<Target>,
    between_states: f64,
    older: Option<Box<Older>>,
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
        let mut indices: FxHashMap<View, Vec<usize>> = FxHashMap::default();
        let order = in_order(&calibration.records);
        for &index in &order {
            let record = &calibration.records[index];
            let of_view = indices.entry(View::of(record)).or_default();
            if is_usable(record) {
                of_view.push(index);
            }
        }
        let known = |(view, indices): (View, Vec<usize>)| {
            let ceilings = |dtype| ceilings_of(&calibration, &view.target, dtype, None);
            (view, Known::of(&calibration.records, &indices, ceilings))
        };
        let by_view: FxHashMap<View, Known> = indices.into_iter().map(known).collect();
        let mut targets: Vec<Target> = by_view.keys().map(|view| view.target).collect();
        targets.sort_unstable();
        targets.dedup();
        let in_order = order.iter().map(|&index| &calibration.records[index]);
        let between_states = between_states(in_order);
        Self { calibration, by_view, targets, between_states, older: None }
    }

    /// The same model with an older calibration of the same machine as a prior, such as one that was
    /// made with another version of the kernels or the compiler.
    ///
    /// What was measured anew comes back as it is. Of all else, the older calibration is asked, and how
    /// far the newer records are off its answers is interpolated: thirty of them are enough where they
    /// would say little by themselves. Such answers have the evidence [`Evidence::Prior`], and intervals
    /// of their own. Where the older calibration does not reach, or nothing at all was measured anew on
    /// a target, it answers nothing.
    ///
    /// ```
    /// # fn main() -> Result<(), fusion_cost_model::Error> {
    /// # let text = include_str!("../../tests/data/example.toml");
    /// # let older = fusion_cost_model::calibration::HardwareCalibration::from_toml(text)?;
    /// # let mut newer = older.clone();
    /// # newer.records.truncate(1);
    /// use fusion_cost_model::{Evidence, FusionCostModel, Target};
    ///
    /// // The newer calibration has a record of another problem.
    /// let model = FusionCostModel::new(newer).with_prior(older)?;
    /// let estimate = model.on(Target::cpu(2)).estimate(&"add_relu/f32/m4096.n1024".parse()?);
    /// assert_eq!(estimate.evidence(), Evidence::Prior);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When the older calibration is of another machine: [`Error::is_hardware_mismatch`]. What another
    /// machine takes says nothing.
    ///
    /// [`Evidence::Prior`]: super::Evidence::Prior
    pub fn with_prior(mut self, older: HardwareCalibration) -> Result<Self, Error> {
        let (own, other) = (&self.calibration, &older);
        let is_same = own.fingerprint.is_same_machine(&other.fingerprint);
        if own.hardware.id != other.hardware.id || !is_same {
            let [expected, found] = [own, other].map(HardwareCalibration::machine);
            return Err(ErrorKind::HardwareMismatch { expected, found }.into());
        }
        let Self { calibration, by_view, .. } = Self::new(older);
        self.older =
            Some(Box::new(Older::of(calibration.records, by_view, &self.calibration.records)));
        Ok(self)
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

    /// What is known of the ops as they are written, or of what a rewrite makes of them.
    pub(super) fn known(&self, view: &View) -> Option<&Known> {
        self.by_view.get(view)
    }

    /// The older calibration, if there is one.
    pub(super) fn older(&self) -> Option<&Older> {
        self.older.as_deref()
    }

    /// The states that the machine was in.
    pub(super) fn states(&self) -> &[MachineState] {
        &self.calibration.states
    }

    /// How far from one state of the machine to another a speedup is off, in the logarithm.
    pub(super) const fn between_states(&self) -> f64 {
        self.between_states
    }

    pub(super) fn records(&self) -> &[FusionRecord] {
        &self.calibration.records
    }

    pub(super) fn ceilings(
        &self,
        target: &Target,
        dtype: DType,
        state: Option<u32>,
    ) -> Option<&Ceilings> {
        ceilings_of(&self.calibration, target, dtype, state)
    }
}

/// The indices of records in an order that their problems and targets alone decide: sums are rounded, and
/// an answer must not depend on the order of a file. It is by a hash: a fit that looks at a part of the
/// records steps through them evenly, which in a sorted grid could meet the same sizes again and again.
/// Several records of one problem and target, which a file cannot have, stay as they are.
pub(super) fn in_order(records: &[FusionRecord]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..records.len()).collect();
    indices.sort_by_cached_key(|&index| {
        let (text, view) = (records[index].problem.to_string(), View::of(&records[index]));
        (FxBuildHasher.hash_one(&text), text, view)
    });
    indices
}

/// The ceilings in a state that was asked for, else in the one that most processes met; of several, the
/// first one. Those of cold caches are not measured.
fn ceilings_of<'c>(
    calibration: &'c HardwareCalibration,
    target: &Target,
    dtype: DType,
    asked: Option<u32>,
) -> Option<&'c Ceilings> {
    let Target { backend, threads, cache_state, clock, .. } = *target;
    let HardwareCalibration { ceilings, states, .. } = calibration;
    let of_target = ceilings.iter().filter(|measured| {
        (measured.backend, measured.threads, measured.cache_state, measured.clock)
            == (backend, threads, cache_state, clock)
            && measured.dtype == dtype
    });
    let rank = |measured: &&MeasuredCeilings| {
        let state = states.iter().find(|state| Some(state.id) == measured.state);
        let is_asked = asked.is_some() && asked == measured.state;
        (is_asked, state.map_or(0, |state| state.processes), Reverse(measured.state))
    };
    Some(&of_target.max_by_key(rank)?.ceilings)
}

/// How far the speedup in a state that was not met may be from what was measured, in the logarithm:
/// 95 % of a normal distribution with the root mean square of what the states of those records differ
/// by that met several, as if there were a few more that differ by the usual. With none, the usual is
/// all that is known.
fn between_states<'r>(records: impl Iterator<Item = &'r FusionRecord>) -> f64 {
    /// What states usually change a speedup by.
    const USUAL: f64 = 0.05;
    const AS_IF: f64 = 3.0;
    let met_several = records.filter(|record| record.states.len() > 1);
    let (mut count, mut squares) = (AS_IF, AS_IF * USUAL * USUAL);
    for record in met_several {
        let speedups = || record.by_state.iter().map(|one| one.speedup_factor.ln());
        let differ = speedups().reduce(f64::max).zip(speedups().reduce(f64::min));
        let differ = differ.map_or(0.0, |(high, low)| high - low);
        count += 1.0;
        squares += differ * differ;
    }
    /// The 97.5 % quantile of the normal distribution.
    const NORMAL_97_5: f64 = 1.959_964;
    NORMAL_97_5 * (squares / count).sqrt()
}
