//! What is known of a list of problems, and what to measure next.
//!
//! `regret` is what a decision is expected to lose, `chosen` the fewest points that make every
//! decision safe, and `refresh` the points that show best whether a calibration has drifted.

mod chosen;
mod refresh;
mod regret;

use rustc_hash::FxHashMap;

use super::answer::{Estimate, Evidence};
use super::on_target::OnTarget;
use super::policy::Policy;
use crate::vocabulary::Problem;
use chosen::{Question, choose};
use regret::Belief;

/// What is known of one problem.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Covered<'m> {
    /// The problem.
    pub problem: Problem,
    /// How often it was asked about.
    pub count: u32,
    /// What is known.
    pub estimate: Estimate<'m>,
    /// The time that deciding by this estimate is expected to lose, in milliseconds, over all its
    /// occurrences: 0 for a single op, about which nothing is decided, and `None` where nothing is
    /// known.
    pub expected_regret_ms: Option<f64>,
    /// Whether the policy decides by such evidence, and the decision is expected to lose at most
    /// [`Coverage::SAFE`] of the fused time.
    pub is_safe: bool,
}

/// A problem to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct NextPoint {
    /// The problem.
    pub problem: Problem,
    /// By how many milliseconds it lowers the expected regret of all decisions, when those before it
    /// are measured. Where nothing is known of a problem's time it is a guess from its bytes.
    pub lowers_regret_by_ms: f64,
}

/// What is known of a list of problems, and what to measure next.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Coverage<'m> {
    /// Each problem once, in the order in which they were first asked about.
    pub questions: Vec<Covered<'m>>,
    /// The fewest of them that, when they are measured, let every decision be safe that can be: first
    /// what lowers the expected regret most.
    pub to_measure: Vec<NextPoint>,
}

impl Coverage<'_> {
    /// The share of a problem's fused time that a safe decision is expected to lose at most.
    pub const SAFE: f64 = 0.005;

    /// How many of the problems are answered by measured kernels, and not by a roofline or not at all.
    #[must_use]
    pub fn known(&self) -> usize {
        self.count(|covered| covered.estimate.evidence().is_from_kernels())
    }

    /// How many are more than a single op, so that there is something to decide.
    #[must_use]
    pub fn decisions(&self) -> usize {
        self.count(|covered| !covered.problem.chain().is_single())
    }

    /// How many of the decisions are safe.
    #[must_use]
    pub fn safe_decisions(&self) -> usize {
        self.count(|covered| covered.is_safe && !covered.problem.chain().is_single())
    }

    /// How many are answered with some evidence.
    #[must_use]
    pub fn with_evidence(&self, evidence: Evidence) -> usize {
        self.count(|covered| covered.estimate.evidence() == evidence)
    }

    /// The expected regret of all decisions together, in milliseconds, as far as it is known.
    #[must_use]
    pub fn expected_regret_ms(&self) -> f64 {
        let known = self.questions.iter().filter_map(|covered| covered.expected_regret_ms);
        // `sum` makes -0 of nothing, which is printed with its sign.
        known.fold(0.0, |total, ms| total + ms)
    }

    fn count(&self, is_meant: impl Fn(&Covered<'_>) -> bool) -> usize {
        self.questions.iter().filter(|covered| is_meant(covered)).count()
    }
}

impl<'m> OnTarget<'m> {
    /// What is known of some problems, which decisions about them are unsafe, and the fewest points
    /// to measure that make them safe. A problem that is asked about several times, as those of a
    /// model's layers are, counts as often.
    ///
    /// Points are chosen one after the other by how much each is expected to lower the regret of all
    /// decisions, given how alike their speedups are by the distance of their sizes. What a point says
    /// of other chains is not counted, so that a second look, after measuring, may find fewer left.
    ///
    /// ```
    /// # fn main() -> Result<(), fusion_cost_model::Error> {
    /// # let text = include_str!("../../../tests/data/example.toml");
    /// # let calibration = fusion_cost_model::calibration::HardwareCalibration::from_toml(text)?;
    /// # let model = fusion_cost_model::FusionCostModel::new(calibration);
    /// use fusion_cost_model::{Policy, Problem, Target, WhenUnknown};
    ///
    /// let known: Problem = "add_relu/f32/m4096.n1024".parse()?;
    /// let unknown: Problem = "sigmoid_mul/f32/m4096.n1024".parse()?;
    /// let policy = Policy::new(WhenUnknown::Conservative);
    /// let coverage = model.on(Target::cpu(2)).coverage(&[known, unknown], &policy);
    /// assert_eq!((coverage.known(), coverage.safe_decisions()), (1, 1));
    /// assert_eq!(coverage.to_measure[0].problem, unknown);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn coverage(&self, problems: &[Problem], policy: &Policy) -> Coverage<'m> {
        let mut places: FxHashMap<Problem, usize> = FxHashMap::default();
        let mut questions: Vec<Covered<'m>> = Vec::new();
        for problem in problems {
            let place = *places.entry(*problem).or_insert(questions.len());
            if let Some(known) = questions.get_mut(place) {
                known.count = known.count.saturating_add(1);
                continue;
            }
            let estimate = self.estimate(problem);
            questions.push(Covered {
                problem: *problem,
                count: 1,
                estimate,
                expected_regret_ms: None,
                is_safe: false,
            });
        }
        let mut asked = Vec::with_capacity(questions.len());
        for covered in &mut questions {
            let decision =
                self.decide_from(self.known(), covered.estimate, &covered.problem, policy);
            // Where a policy refuses to decide, kernels stay as they are.
            let fuses = decision.is_ok_and(|decision| decision.should_fuse());
            let belief = Belief::of(&covered.problem, &covered.estimate, policy, fuses);
            let times = f64::from(covered.count);
            covered.expected_regret_ms = belief.regret_ms().map(|regret| times * regret);
            covered.is_safe = belief.is_safe();
            asked.push(Question {
                problem: covered.problem,
                weight_ms: times * belief.weight_ms,
                is_measured: covered.estimate.evidence() == Evidence::Measured,
                belief,
            });
        }
        let to_measure =
            choose(&asked, |key, dimensions, places| self.covariance(key, dimensions, places));
        Coverage { questions, to_measure }
    }
}
