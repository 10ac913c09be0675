//! The questions that a partitioner asks, on one target.

use super::answer::{Estimate, SpeedupRange, StateAsked};
use super::known::Known;
use super::lookup::FusionCostModel;
use super::on_paper::OnPaper;
use super::policy::{Decision, Policy};
use super::target::Target;
use crate::calibration::FusionRecord;
use crate::cost::Ceilings;
use crate::error::{Error, ErrorKind};
use crate::vocabulary::{Chain, DType, Problem};

/// What a [`FusionCostModel`] knows about one [`Target`]: a view of it, as cheap to copy as a
/// reference.
///
/// ```
/// # fn main() -> Result<(), fusion_cost_model::Error> {
/// # let text = include_str!("../../tests/data/example.toml");
/// # let calibration = fusion_cost_model::calibration::HardwareCalibration::from_toml(text)?;
/// # let model = fusion_cost_model::FusionCostModel::new(calibration);
/// use fusion_cost_model::{Policy, Problem, Target, WhenUnknown};
///
/// let on_cpu = model.on(Target::cpu(2));
/// let policy = Policy::new(WhenUnknown::Conservative);
/// let add: Problem = "add/f32/m4096.n1024".parse()?;
/// let relu: Problem = "relu/f32/m4096.n1024".parse()?;
/// assert!(on_cpu.should_fuse(&add, &relu, &policy)?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct OnTarget<'m> {
    model: &'m FusionCostModel,
    target: Target,
    known: Option<&'m Known>,
    state: Option<StateAsked>,
}

impl FusionCostModel {
    /// The model's answers for one target. It costs one lookup, so bind a target once and ask it
    /// everything. A target that nothing is known about has a view too, which answers "unknown".
    #[must_use]
    pub fn on(&self, target: Target) -> OnTarget<'_> {
        OnTarget { model: self, target, known: self.known(&target), state: None }
    }
}

impl<'m> OnTarget<'m> {
    /// The target.
    #[must_use]
    pub const fn target(&self) -> Target {
        self.target
    }

    /// The same in one state of the machine, by its number in
    /// [`HardwareCalibration::states`](crate::calibration::HardwareCalibration::states).
    ///
    /// A problem that was measured in that state is answered by what was measured there. One that was
    /// not keeps its speedup, with an interval that is wider by what speedups differ between states
    /// in this file.
    #[must_use]
    pub fn in_state(self, state: u32) -> Self {
        let between_states = self.model.between_states();
        Self { state: Some(StateAsked { id: state, between_states }), ..self }
    }

    /// What is known about a problem, from the most trusted evidence that there is, see
    /// [`Evidence`](super::Evidence). Measured points come back as they were measured.
    #[must_use]
    pub fn estimate(&self, problem: &Problem) -> Estimate<'m> {
        self.estimate_from(self.known, problem)
    }

    /// The same from what is known of some of the target's records.
    pub(super) fn estimate_from(&self, known: Option<&Known>, problem: &Problem) -> Estimate<'m> {
        let records = self.records();
        if let Some(known) = known {
            if let Some(&index) = known.by_problem.get(problem) {
                return Estimate::measured(&records[index], self.state);
            }
            if let Some(answer) = known.estimate(records, problem) {
                return Estimate::of_kernels(answer, records, self.state);
            }
        }
        let on_paper = known.map_or_else(OnPaper::default, |known| known.on_paper);
        let ceilings = self.ceilings(problem.dtype());
        let estimate = ceilings.and_then(|ceilings| on_paper.estimate(ceilings, problem));
        estimate.map_or(Estimate::UNKNOWN, Estimate::of_roofline)
    }

    /// Whether to make one kernel of a problem.
    ///
    /// # Errors
    ///
    /// Only when nothing is known but perhaps a roofline, and the policy is [`WhenUnknown::Error`]:
    /// [`Error::is_undecided`].
    ///
    /// [`WhenUnknown::Error`]: super::WhenUnknown::Error
    pub fn decide(&self, problem: &Problem, policy: &Policy) -> Result<Decision<'m>, Error> {
        self.decided(self.estimate(problem), problem, policy)
    }

    pub(super) fn decided(
        &self,
        estimate: Estimate<'m>,
        problem: &Problem,
        policy: &Policy,
    ) -> Result<Decision<'m>, Error> {
        let decision = policy.decide(estimate);
        decision.ok_or_else(|| undecided(format!("{problem} on {}", self.target)))
    }

    /// Whether to make one kernel of two neighbours, where the second reads what the first
    /// writes: [`Self::decide`] about [`Problem::join`].
    ///
    /// # Errors
    ///
    /// When the two cannot be one kernel ([`Error::is_not_one_kernel`]), and as
    /// [`Self::decide`].
    pub fn should_fuse(
        &self,
        first: &Problem,
        second: &Problem,
        policy: &Policy,
    ) -> Result<bool, Error> {
        Ok(self.decide(&first.join(second)?, policy)?.should_fuse())
    }

    /// The speedup that the roofline on the measured ceilings allows, if saved bytes and launches were
    /// all; `None` where no ceilings were measured. What fusion gained of it elsewhere is in an
    /// [`estimate`](Self::estimate) with that evidence.
    #[must_use]
    pub fn roofline_speedup(&self, problem: &Problem) -> Option<f64> {
        Some(self.ceilings(problem.dtype())?.roofline(problem)?.speedup())
    }

    /// The speedups of a chain over all sizes at which it was measured; `None` when it was not.
    ///
    /// A convenience: sizes matter, so ask [`Self::estimate`] where they are known.
    ///
    /// # Errors
    ///
    /// When the name is not that of a chain.
    pub fn fusion_benefit(&self, chain: &str, dtype: DType) -> Result<Option<SpeedupRange>, Error> {
        Ok(self.benefit(&chain.parse()?, dtype))
    }

    /// Whether to fuse two neighbouring ops or chains, whatever their sizes, by the mean of
    /// [`Self::fusion_benefit`]. Without sizes there is no roofline, so
    /// [`WhenUnknown::Roofline`](super::WhenUnknown::Roofline) keeps them apart.
    ///
    /// A convenience: sizes matter, so ask [`Self::should_fuse`] where they are known.
    ///
    /// # Errors
    ///
    /// When a name is unknown, the two cannot be one kernel, or nothing is known and the policy is
    /// not to guess.
    pub fn should_fuse_by_name(
        &self,
        first: &str,
        second: &str,
        dtype: DType,
        policy: &Policy,
    ) -> Result<bool, Error> {
        let chain: Chain = format!("{first}+{second}").parse()?;
        let fuse = match self.benefit(&chain, dtype) {
            Some(speedups) => Some(speedups.mean >= policy.threshold),
            None => policy.assume(),
        };
        fuse.ok_or_else(|| undecided(format!("{} on {}", chain.name(), self.target)))
    }

    fn benefit(&self, chain: &Chain, dtype: DType) -> Option<SpeedupRange> {
        let indices = self.known?.by_chain.get(&(*chain, dtype))?;
        let mut log_sum = 0.0;
        let mut least = f64::INFINITY;
        let mut largest = 0.0_f64;
        for &index in indices {
            let speedup = self.records()[index].speedup_factor;
            log_sum += speedup.ln();
            least = least.min(speedup);
            largest = largest.max(speedup);
        }
        let sizes = indices.len();
        #[expect(clippy::cast_precision_loss, reason = "a count of records")]
        let mean = (log_sum / sizes as f64).exp();
        Some(SpeedupRange { mean, least, largest, sizes })
    }

    pub(super) const fn known(&self) -> Option<&'m Known> {
        self.known
    }

    pub(super) fn records(&self) -> &'m [FusionRecord] {
        self.model.records()
    }

    pub(super) fn ceilings(&self, dtype: DType) -> Option<&'m Ceilings> {
        self.model.ceilings(&self.target, dtype, self.state.map(|asked| asked.id))
    }
}

fn undecided(question: String) -> Error {
    ErrorKind::Undecided { question }.into()
}
