//! Calibrations against each other: on which machine does fusion gain more, and did it change?
//!
//! Records are joined on the problem and the state of the caches. A pair's ratio is the second
//! side's speedup over the first one's. The machine's own speed cancels in each of them: what is
//! compared is what fusion gains.
//!
//! A ratio's interval follows from those of both records, and its chance from Student's t. With 85
//! pairs some intervals exclude 1 by chance, so that a difference counts only if its chance survives
//! the method of Holm over all pairs of the comparison: two calibrations of an unchanged machine give
//! a false alarm in at most one of twenty comparisons. What is undecided says how large a difference
//! it leaves room for ([`Pair::could_hide`]).
//!
//! The same machine twice is a check for regressions. The paired speedups are judged. Absolute times
//! are told apart from them: what all records changed by together is [`Comparison::common`], and
//! [`Pair::moved`] is what a record changed by beyond that, in both variants alike.
//!
//! ```
//! # fn main() -> Result<(), fusion_cost_model::Error> {
//! # let text = include_str!("../../tests/data/example.toml");
//! # let [monday, tuesday] = [(); 2].map(|()| text);
//! use fusion_cost_model::calibration::HardwareCalibration;
//! use fusion_cost_model::compare::{CompareOptions, Comparison, Side, SideTarget};
//!
//! let monday = HardwareCalibration::from_toml(monday)?;
//! let tuesday = HardwareCalibration::from_toml(tuesday)?;
//! let (target, _) = SideTarget::all_of(&monday)[0];
//! let first = Side::of("A", "monday.toml", &monday, target);
//! let second = Side::of("B", "tuesday.toml", &tuesday, target);
//!
//! let comparison = Comparison::of(&first, &[second], &CompareOptions::default());
//! for pair in comparison.pairs.iter().filter(|pair| pair.verdict.differs()) {
//!     println!("{}: {:?} {:.3}", pair.problem, pair.verdict, pair.ratio.value);
//! }
//! assert!(comparison.regressions(0.05).next().is_none());
//! # Ok(())
//! # }
//! ```

mod conclude;
mod figure;
mod group;
mod holm;
mod join;
mod machine;
mod pair;
mod side;
mod student;
mod target;
mod times;

use serde::Serialize;

pub use figure::Figure;
pub use group::Group;
pub use join::{NotCompared, WhyNot};
pub use machine::Relation;
pub use pair::{Choice, Pair, PairVerdict};
pub use side::{Measured, OtherTarget, Side, SideCeilings, SideFacts};
pub use target::{SideTarget, TargetParts};
pub use times::{CommonChange, SingleOp};

use crate::model::Policy;
use crate::vocabulary::{Family, Problem};

/// How to compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompareOptions {
    /// The speedup from which fusing is worth it.
    pub threshold: f64,
    /// Whether problems that differ in nothing but their dtype are the same.
    pub across_dtypes: bool,
}

/// A threshold of [`Policy::THRESHOLD`], and no problem of another dtype.
impl Default for CompareOptions {
    fn default() -> Self {
        Self { threshold: Policy::THRESHOLD, across_dtypes: false }
    }
}

/// Several sides against the first of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The speedup from which fusing is worth it.
    pub threshold: f64,
    /// All sides; the first is the one that the others are compared with.
    pub sides: Vec<ComparedSide>,
    /// Each family with problems on two sides, for each side.
    pub families: Vec<Group>,
    /// Each pattern likewise.
    pub patterns: Vec<Group>,
    /// Problems that were measured on two sides, in the order of the first one's file.
    pub pairs: Vec<Pair>,
    /// Single ops, which have times and nothing to fuse.
    pub single_ops: Vec<SingleOp>,
    /// What the times of a machine changed by together; none of other machines.
    pub common: Vec<CommonChange>,
    /// What is not compared, and why.
    pub not_compared: Vec<NotCompared>,
}

/// A side with what it has to do with the first one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedSide {
    /// What there is to know about it.
    #[serde(flatten)]
    pub facts: SideFacts,
    /// What its machine has to do with that of the first side.
    pub relation: Relation,
    /// What changed on the same machine, a phrase each.
    pub changes: Vec<String>,
    /// What makes it another machine, or another target of it, or may do so since it is unknown, a
    /// phrase each; empty for the same.
    pub differences: Vec<String>,
}

impl Comparison {
    /// Compares sides with the first one.
    #[must_use]
    pub fn of(first: &Side, others: &[Side], options: &CompareOptions) -> Self {
        let mut sides = vec![ComparedSide {
            facts: first.facts.clone(),
            relation: Relation::Same,
            changes: Vec::new(),
            differences: Vec::new(),
        }];
        let (mut pairs, mut single_ops) = (Vec::new(), Vec::new());
        let (mut not_compared, mut common) = (Vec::new(), Vec::new());
        for (index, other) in (1..).zip(others) {
            let compared = compared_side(first, other);
            let mut joined = join::join(index, [first, other], options);
            if compared.relation == Relation::Same {
                common.extend(joined.tell_times_apart(index));
            }
            pairs.append(&mut joined.pairs);
            single_ops.append(&mut joined.single_ops);
            not_compared.append(&mut joined.not_compared);
            sides.push(compared);
        }
        judge(&mut pairs);
        let families = families(&sides, &pairs, &not_compared, options.threshold);
        let patterns = patterns(&sides, &pairs, &not_compared);
        Self {
            threshold: options.threshold,
            sides,
            families,
            patterns,
            pairs: pairs.into_iter().map(|(pair, _)| pair).collect(),
            single_ops,
            common,
            not_compared,
        }
    }

    /// Pairs of the same machine that gain less than before, by at least this share: a find and not
    /// a chance, see [`PairVerdict`].
    pub fn regressions(&self, share: f64) -> impl Iterator<Item = &Pair> {
        // A speedup of 1.425 after 1.5 is 5 % less, but for the rounding of the quotient.
        let most = (1.0 - share) * (1.0 + 4.0 * f64::EPSILON);
        self.pairs.iter().filter(move |pair| {
            self.sides[pair.side].relation == Relation::Same
                && pair.verdict == PairVerdict::MoreOnFirst
                && pair.ratio.value <= most
        })
    }

    /// How many pairs with a side have a verdict.
    #[must_use]
    pub fn count(&self, side: usize, verdict: PairVerdict) -> usize {
        self.pairs.iter().filter(|pair| (pair.side, pair.verdict) == (side, verdict)).count()
    }

    /// The geometric mean of all ratios with a side; `None` without pairs.
    #[must_use]
    pub fn ratio(&self, side: usize) -> Option<f64> {
        let of_side = self.pairs.iter().filter(|pair| pair.side == side);
        group::geometric_mean(of_side.map(|pair| pair.ratio.value))
    }
}

fn compared_side(first: &Side, other: &Side) -> ComparedSide {
    let mut differences = first.machine.differences(&other.machine);
    let targets = [first.facts.target, other.facts.target];
    // What nobody knows of both may differ.
    if targets[0] != targets[1] || targets[0].threads.is_none() {
        differences.push(format!("target {} and {}", targets[0], targets[1]));
    }
    let is_same = differences.is_empty();
    ComparedSide {
        facts: other.facts.clone(),
        relation: if is_same { Relation::Same } else { Relation::Other },
        changes: if is_same { first.machine.changes(&other.machine) } else { Vec::new() },
        differences,
    }
}

/// Gives all pairs, each with the noise floor that it is judged by, their verdicts.
fn judge(pairs: &mut [(Pair, f64)]) {
    let judged = |(pair, _): &(Pair, f64)| pair.p;
    let chances: Vec<f64> = pairs.iter().filter_map(judged).collect();
    let mut adjusted = holm::adjusted(&chances).into_iter();
    for (pair, noise_floor) in pairs {
        pair.adjusted_p = pair.p.and_then(|_| adjusted.next());
        pair.verdict = PairVerdict::of(&pair.ratio, pair.adjusted_p, *noise_floor);
    }
}

fn families(
    sides: &[ComparedSide],
    pairs: &[(Pair, f64)],
    not_compared: &[NotCompared],
    threshold: f64,
) -> Vec<Group> {
    let mut groups = Vec::new();
    for (side, family) in (1..sides.len()).flat_map(|side| Family::ALL.map(|one| (side, one))) {
        let is_of_it = |pair: &&Pair| (pair.side, pair.family) == (side, family);
        let of_family: Vec<&Pair> = pairs.iter().map(|(pair, _)| pair).filter(is_of_it).collect();
        let is_invalid = |one: &&NotCompared| {
            one.why == WhyNot::Invalid && (one.side, one.family()) == (side, family)
        };
        let invalid = not_compared.iter().filter(is_invalid).count();
        if of_family.is_empty() && invalid == 0 {
            continue;
        }
        let mut group = Group::of(side, family, None, &of_family, invalid);
        group.conclusion = Some(conclude::conclusion(&conclude::Found {
            group: &group,
            pairs: &of_family,
            sides: [&sides[0].facts, &sides[side].facts],
            relation: sides[side].relation,
            threshold,
        }));
        groups.push(group);
    }
    groups
}

/// In the order of the first pair of each; those whose problems are all INVALID follow.
fn patterns(
    sides: &[ComparedSide],
    pairs: &[(Pair, f64)],
    not_compared: &[NotCompared],
) -> Vec<Group> {
    let mut groups = Vec::new();
    for side in 1..sides.len() {
        let of_side: Vec<&Pair> =
            pairs.iter().map(|(pair, _)| pair).filter(|pair| pair.side == side).collect();
        let is_invalid = |one: &&NotCompared| (one.side, one.why) == (side, WhyNot::Invalid);
        let invalid: Vec<&NotCompared> = not_compared.iter().filter(is_invalid).collect();
        let of_pairs = of_side.iter().map(|pair| (pair.problem.chain().name(), pair.family));
        let of_invalid = invalid.iter().map(|one| (one.problem.chain().name(), one.family()));
        let mut names: Vec<(String, Family)> = Vec::new();
        for (name, family) in of_pairs.chain(of_invalid) {
            if !names.iter().any(|(known, _)| *known == name) {
                names.push((name, family));
            }
        }
        groups.extend(names.into_iter().map(|(name, family)| {
            let is_of_it = |problem: &Problem| problem.chain().name() == name;
            let pairs: Vec<&Pair> =
                of_side.iter().copied().filter(|pair| is_of_it(&pair.problem)).collect();
            let invalid = invalid.iter().filter(|one| is_of_it(&one.problem)).count();
            Group::of(side, family, Some(name), &pairs, invalid)
        }));
    }
    groups
}
