//! The fewest points that make every decision safe.
//!
//! Problems of one cloud say something about each other: measured, a point lowers the variance of
//! those around it. That needs no measured value, so that all points can be chosen before one is
//! measured. Problems of several clouds are taken to say nothing about each other.

use rustc_hash::FxHashMap;

use super::NextPoint;
use super::regret::{Belief, MEASURED_SD};
use crate::model::cloud::padded;
use crate::model::covariance::Place;
use crate::model::features::{CloudKey, Features};
use crate::vocabulary::Problem;

/// A problem that is asked about.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) problem: Problem,
    /// Its fused time, as often as it is asked about.
    pub(super) weight_ms: f64,
    pub(super) is_measured: bool,
    pub(super) belief: Belief,
}

/// Chooses points: each time the one that lowers the expected regret most, then those that only make
/// something known.
///
/// `left` gives the covariances at some places of a cloud, with as many coordinates, that what is
/// measured leaves, and the variance of the noise.
pub(super) fn choose(
    questions: &[Question],
    left: impl Fn(&CloudKey, usize, &[Place]) -> (Vec<f64>, f64),
) -> Vec<NextPoint> {
    let mut by_key: FxHashMap<CloudKey, Vec<usize>> = FxHashMap::default();
    let mut keys = Vec::new();
    for (index, question) in questions.iter().enumerate() {
        let key = CloudKey::of(&question.problem);
        let members = by_key.entry(key).or_default();
        if members.is_empty() {
            keys.push(key);
        }
        members.push(index);
    }
    let mut chosen: Vec<NextPoint> = Vec::new();
    for key in keys {
        let members: Vec<&Question> = by_key[&key].iter().map(|&index| &questions[index]).collect();
        let features = members.iter().map(|question| Features::of(&question.problem));
        let dimensions = features.clone().next().map_or(0, |one| one.coordinates().len());
        let place = |features: Features| Place { at: padded(&features), proportion: 0.0 };
        let (left, noise) = left(&key, dimensions, &features.map(place).collect::<Vec<_>>());
        chosen.extend(Group { members, left, noise }.choose());
    }
    // Groups do not depend on each other, so that a stable order over all of them keeps that of each.
    chosen.sort_by(|a, b| b.lowers_regret_by_ms.total_cmp(&a.lowers_regret_by_ms));
    chosen
}

/// The questions of one cloud.
struct Group<'q> {
    members: Vec<&'q Question>,
    left: Vec<f64>,
    noise: f64,
}

/// What is left when some members are measured.
struct After {
    left: Vec<f64>,
    measured: Vec<usize>,
}

/// Up to this much work, points are looked at again for one that is not needed beside the others.
const MOST_WORK: usize = 100_000_000;

impl Group<'_> {
    fn before(&self) -> After {
        After { left: self.left.clone(), measured: Vec::new() }
    }

    fn choose(&self) -> Vec<NextPoint> {
        let mut after = self.before();
        let mut gains = Vec::new();
        while let Some((member, gain)) = self.best(&after) {
            self.measure(&mut after, member);
            gains.push((member, gain));
        }
        if (gains.len() * self.members.len()).pow(2) <= MOST_WORK {
            self.drop_needless(&after, &mut gains);
        }
        let point = |(member, gain): (usize, f64)| NextPoint {
            problem: self.members[member].problem,
            lowers_regret_by_ms: gain,
        };
        let mut points: Vec<NextPoint> = gains.into_iter().map(point).collect();
        // A later one may have been the better one after all.
        points.sort_by(|a, b| b.lowers_regret_by_ms.total_cmp(&a.lowers_regret_by_ms));
        points
    }

    /// Drops what was chosen early and is not needed beside what was chosen later.
    fn drop_needless(&self, after: &After, gains: &mut Vec<(usize, f64)>) {
        let safe = |after: &After| -> Vec<bool> {
            (0..self.members.len()).map(|member| self.is_safe(after, member)).collect()
        };
        let with_all = safe(after);
        for index in (0..gains.len()).rev() {
            let mut without = self.before();
            for (other, (member, _)) in gains.iter().enumerate() {
                if other != index {
                    self.measure(&mut without, *member);
                }
            }
            if safe(&without) == with_all {
                gains.remove(index);
            }
        }
    }

    /// The member whose measurement lowers the regret of unsafe decisions most, or makes most of what
    /// is unsafe safe; `None` when none does either.
    fn best(&self, after: &After) -> Option<(usize, f64)> {
        let n = self.members.len();
        let open: Vec<usize> = (0..n).filter(|&member| !self.is_safe(after, member)).collect();
        let mut best: Option<(usize, (f64, usize))> = None;
        for candidate in 0..n {
            if self.members[candidate].is_measured || after.measured.contains(&candidate) {
                continue;
            }
            let variance = after.left[candidate * n + candidate] + self.noise;
            let (mut lowered, mut made_safe) = (0.0, 0);
            for &member in &open {
                let [before, in_common] =
                    [member, candidate].map(|other| after.left[member * n + other]);
                let question = self.members[member];
                let then = if member == candidate {
                    Some(MEASURED_SD)
                } else {
                    self.left_with(member, before - in_common * in_common / variance)
                };
                let now = question.regret(self.left(after, member));
                lowered += question.weight_ms * (now - question.regret(then));
                made_safe += usize::from(question.is_safe(then));
            }
            let worth = (lowered.max(0.0), made_safe);
            let is_better = |(_, other): &(usize, (f64, usize))| worth > *other;
            if worth > (0.0, 0) && best.as_ref().is_none_or(is_better) {
                best = Some((candidate, worth));
            }
        }
        best.map(|(member, (lowered, _))| (member, lowered))
    }

    fn measure(&self, after: &mut After, member: usize) {
        let n = self.members.len();
        let own = after.left[member * n..][..n].to_vec();
        let variance = own[member] + self.noise;
        for row in 0..n {
            for col in 0..n {
                after.left[row * n + col] -= own[row] * own[col] / variance;
            }
        }
        after.measured.push(member);
    }

    /// The standard deviation that is left of a speedup; `None` where it is as it was.
    fn left(&self, after: &After, member: usize) -> Option<f64> {
        if after.measured.is_empty() {
            None
        } else if after.measured.contains(&member) {
            Some(MEASURED_SD)
        } else {
            self.left_with(member, after.left[member * self.members.len() + member])
        }
    }

    /// The same when others are measured, which leave it some variance.
    fn left_with(&self, member: usize, left: f64) -> Option<f64> {
        let Question { belief, is_measured, .. } = self.members[member];
        if *is_measured {
            return None;
        }
        let before = self.left[member * self.members.len() + member];
        let [before, now] = [before, left].map(|left| left.max(0.0) + self.noise);
        // What is known already is as certain as its interval says, and becomes more so.
        Some(if belief.counts { belief.sd * (now / before).sqrt() } else { now.sqrt() })
    }

    fn is_safe(&self, after: &After, member: usize) -> bool {
        self.members[member].is_safe(self.left(after, member))
    }
}

impl Question {
    /// What deciding about it is expected to lose, as a share of the fused time, when measurements
    /// leave a standard deviation, or with none.
    fn regret(&self, left: Option<f64>) -> f64 {
        left.map_or_else(|| self.belief.regret(), |sd| self.belief.regret_after(sd))
    }

    fn is_safe(&self, left: Option<f64>) -> bool {
        left.map_or_else(|| self.belief.is_safe(), |sd| self.belief.is_safe_after(sd))
    }
}
