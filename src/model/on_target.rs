//! The questions that a partitioner asks, on one target.

use super::answer::{Estimate, Evidence, SpeedupRange, StateAsked};
use super::covariance::{Covariance, Place};
use super::features::CloudKey;
use super::known::Known;
use super::lookup::FusionCostModel;
use super::observation::is_usable;
use super::older::Older;
use super::on_paper::OnPaper;
use super::policy::{Decision, Policy};
use super::target::{Target, View};
use super::{cloud, older};
use crate::calibration::FusionRecord;
use crate::cost::Ceilings;
use crate::error::{Error, ErrorKind};
use crate::vocabulary::{Chain, DType, Problem, Rewrite};

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
    view: View,
    known: Option<&'m Known>,
    state: Option<StateAsked>,
}

impl FusionCostModel {
    /// The model's answers for one target. It costs one lookup, so bind a target once and ask it
    /// everything. A target that nothing is known about has a view too, which answers "unknown".
    #[must_use]
    pub fn on(&self, target: Target) -> OnTarget<'_> {
        let view = View { target, rewrite: None };
        OnTarget { model: self, view, known: self.known(&view), state: None }
    }
}

impl<'m> OnTarget<'m> {
    /// The target.
    #[must_use]
    pub const fn target(&self) -> Target {
        self.view.target
    }

    /// The same in one state of the machine, by its number in
    /// [`HardwareCalibration::states`](crate::calibration::HardwareCalibration::states).
    ///
    /// A problem that was measured in that state is answered by what was measured there. One that was
    /// not keeps its speedup, with an interval that is wider by what speedups differ between states:
    /// in this file, and where few of its records met several, by about 10 %.
    ///
    /// # Errors
    ///
    /// When the calibration has no such state: [`Error::is_invalid_question`].
    pub fn in_state(self, state: u32) -> Result<Self, Error> {
        let states = self.model.states();
        if !states.iter().any(|known| known.id == state) {
            let known = states.iter().map(|known| known.id).collect();
            return Err(ErrorKind::UnknownState { state, known }.into());
        }
        let between_states = self.model.between_states();
        Ok(Self { state: Some(StateAsked { id: state, between_states }), ..self })
    }

    /// The same about problems that are rewritten before they are fused: the fused variant of an
    /// answer is then the one kernel of what a problem becomes, and the unfused one is that of the ops as
    /// they are written. So the two answers of a problem say what fusing is worth and what the rewrite
    /// is. Nothing is known of a problem that the rewrite does not apply to.
    ///
    /// ```
    /// # fn main() -> Result<(), fusion_cost_model::Error> {
    /// # let text = include_str!("../../tests/data/example.toml");
    /// # let calibration = fusion_cost_model::calibration::HardwareCalibration::from_toml(text)?;
    /// # let model = fusion_cost_model::FusionCostModel::new(calibration);
    /// use fusion_cost_model::{Problem, Rewrite, Target};
    ///
    /// let problem: Problem = "conv_bn_relu/f32/n1.c64.h56.w56.k64.r3.s3.pad1".parse()?;
    /// let on_cpu = model.on(Target::cpu(2));
    /// let fused = on_cpu.estimate(&problem).fused_ms();
    /// let folded = on_cpu.rewritten(Rewrite::BnFolded).estimate(&problem).fused_ms();
    /// if let (Some(fused), Some(folded)) = (fused, folded) {
    ///     println!("fused {:.3} ms, folded {:.3} ms", fused.value, folded.value);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn rewritten(self, rewrite: Rewrite) -> Self {
        let view = View { rewrite: Some(rewrite), ..self.view };
        Self { view, known: self.model.known(&view), ..self }
    }

    /// What is known about a problem, from the most trusted evidence that there is, see
    /// [`Evidence`](super::Evidence). Measured points come back as they were measured.
    #[must_use]
    pub fn estimate(&self, problem: &Problem) -> Estimate<'m> {
        self.estimate_from(self.known, self.model.older(), problem)
    }

    /// The same from what is known of some of the target's records, and from an older calibration.
    pub(super) fn estimate_from(
        &self,
        known: Option<&Known>,
        older: Option<&'m Older>,
        problem: &Problem,
    ) -> Estimate<'m> {
        if self.view.rewrite.is_some_and(|rewrite| !rewrite.applies_to(problem.chain())) {
            return Estimate::UNKNOWN;
        }
        let records = self.records();
        if let Some(known) = known {
            let at_sizes = known.at_sizes(problem);
            if let Some(index) = at_sizes.record(problem) {
                return Estimate::measured(&records[index], self.state);
            }
            let own = known.estimate(records, problem, at_sizes);
            let is_at_size =
                own.as_ref().is_some_and(|own| own.evidence == Evidence::ComposedAtSize);
            let prior = older.filter(|_| !is_at_size);
            let prior = prior.and_then(|older| older.answer(&self.view, problem));
            if let Some((answer, records)) = prior.or_else(|| Some((own?, records))) {
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
        self.decide_from(self.known, self.estimate(problem), problem, policy)
    }

    /// The same from an estimate, and from what is known of some of the target's records.
    pub(super) fn decide_from(
        &self,
        known: Option<&Known>,
        estimate: Estimate<'m>,
        problem: &Problem,
        policy: &Policy,
    ) -> Result<Decision<'m>, Error> {
        let least_gain = known.and_then(|known| known.least_gain(problem));
        let decision = policy.decide(estimate, least_gain);
        decision.ok_or_else(|| undecided(format!("{problem} on {}", self.view.target)))
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
        fuse.ok_or_else(|| undecided(format!("{} on {}", chain.name(), self.view.target)))
    }

    /// What is left of the covariances of the speedups of a cloud at some places, row by row, and the
    /// variance of the noise: of its records, of how they are off an older calibration, or as it is
    /// believed to be before there is a record.
    pub(super) fn covariance(
        &self,
        key: &CloudKey,
        dimensions: usize,
        places: &[Place],
    ) -> (Vec<f64>, f64) {
        let older = self.model.older();
        let drift = older.and_then(|older| older.speedups(&self.view, key));
        let own = || self.known.and_then(|known| known.speedups(key));
        if let Some(left) = drift.or_else(own).and_then(|field| field.left(places)) {
            return left;
        }
        let believed = if older.is_some() { older::OF_SPEEDUPS } else { cloud::OF_SPEEDUPS };
        let usual = Covariance::usual(dimensions, believed);
        // Without a sample it can always be computed.
        (usual.left(&[], places).unwrap_or_default(), usual.noise)
    }

    /// The problems that have records which are valid, in a fixed order. A calibration that a program makes
    /// may have several of one problem.
    pub(super) fn measured_problems(&self) -> Vec<Problem> {
        let of_known = |known: &'m Known| {
            let problem = |&index: &usize| (self.records()[index].problem, index);
            let counts =
                |(problem, index): &(Problem, usize)| known.record(problem) == Some(*index);
            known.indices().iter().map(problem).filter(counts).map(|(problem, _)| problem)
        };
        self.known.into_iter().flat_map(of_known).collect()
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

    /// The record of a problem that no answer uses, since it is INVALID; `None` where there is none.
    /// Looks at each record of the calibration.
    #[must_use]
    pub fn left_out(&self, problem: &Problem) -> Option<&'m FusionRecord> {
        let is_it = |record: &&FusionRecord| {
            record.problem == *problem && View::of(record) == self.view && !is_usable(record)
        };
        self.records().iter().find(is_it)
    }

    pub(super) fn records(&self) -> &'m [FusionRecord] {
        self.model.records()
    }

    /// The measured ceilings: of a state that was asked for, else of the one that most processes met;
    /// `None` where none were measured, such as with cold caches.
    #[must_use]
    pub fn ceilings(&self, dtype: DType) -> Option<&'m Ceilings> {
        self.model.ceilings(&self.view.target, dtype, self.state.map(|asked| asked.id))
    }
}

fn undecided(question: String) -> Error {
    ErrorKind::Undecided { question }.into()
}
