//! What is known on one target: the measured problems, and what follows for all others.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::answer::Evidence;
use super::at_sizes::{self, AtSizes};
use super::cloud::{Cloud, LeftOut};
use super::features::{CloudKey, Features};
use super::kriging::Field;
use super::observation::Observation;
use super::on_paper::OnPaper;
use super::prediction::{Prediction, SLACK_OCTAVES, Uncertain};
use super::shorter;
use super::spread::Spread;
use crate::calibration::FusionRecord;
use crate::cost::Ceilings;
use crate::vocabulary::{Chain, DType, Family, Op, Problem, Sizes};

/// What is known on one target. Records are named by their indices in the calibration.
#[derive(Debug, Default)]
pub(super) struct Known {
    indices: Vec<usize>,
    pub(super) by_chain: FxHashMap<(Chain, DType), Vec<usize>>,
    pub(super) on_paper: OnPaper,
    /// The least that fusing was measured to gain, by family.
    least_gain: FxHashMap<Family, f64>,
    pub(super) clouds: FxHashMap<CloudKey, Arc<Cloud>>,
    at_sizes: FxHashMap<Sizes, AtSizes>,
    /// The same at any sizes.
    pub(super) at_all: FxHashMap<(Op, DType), Vec<Chain>>,
    /// Estimates of each observation by the others of its cloud.
    left_out: Vec<LeftOut>,
    spreads: Spreads,
    /// How much of what ops hide by themselves fused kernels show.
    pub(super) shown: Uncertain,
}

/// How far estimates of the fused time and of the speedup are off, by how they are made.
#[derive(Debug, Clone, Copy)]
struct Spreads {
    interpolated: [Spread; 2],
    extrapolated: [Spread; 2],
    composed: [Spread; 2],
}

impl Default for Spreads {
    fn default() -> Self {
        Self::from(&[], &[])
    }
}

impl Spreads {
    fn from(of_clouds: &[LeftOut], composed: &[LeftOut]) -> Self {
        let of = |left_out: &[LeftOut], is_beyond: Option<bool>| {
            let is_meant = |one: &&LeftOut| {
                is_beyond.is_none_or(|beyond| beyond == (one.octaves > SLACK_OCTAVES))
            };
            let left_out = || left_out.iter().filter(is_meant);
            let times = left_out().filter_map(|one| one.time);
            [Spread::of(times), Spread::of(left_out().filter_map(|one| one.speedup))]
        };
        let interpolated = of(of_clouds, Some(false));
        let [time, speedup] = of(of_clouds, Some(true));
        // Few records lie at the edge, and what is beyond it is not more certain.
        let extrapolated = [time.or_wider(interpolated[0]), speedup.or_wider(interpolated[1])];
        Self { interpolated, extrapolated, composed: of(composed, None) }
    }

    const fn of(&self, evidence: Evidence) -> &[Spread; 2] {
        match evidence {
            Evidence::ComposedAtSize | Evidence::ComposedBetween => &self.composed,
            Evidence::Extrapolated => &self.extrapolated,
            _ => &self.interpolated,
        }
    }

    /// Of sums that have a part beyond what was measured.
    fn composed_beyond(&self) -> [Spread; 2] {
        [0, 1].map(|of| self.composed[of].or_wider(self.extrapolated[of]))
    }
}

/// An answer that was not measured: the evidence, the logarithms, and halves of the intervals of the
/// fused time and of the speedup.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Answer {
    pub(super) evidence: Evidence,
    pub(super) prediction: Prediction,
    pub(super) half_widths: [f64; 2],
}

impl Answer {
    /// The same with the mean of its speedup and that of another answer, which rests on other records,
    /// weighted by how certain the two are. The interval is as wide as if both were off in the same
    /// direction; that of this one must have a width.
    ///
    /// A speedup is paired, so how a process or a layout was cancels in it, and sizes change it little:
    /// the chain's own records at other sizes say as much about it as other chains at this size. Of a
    /// time they say less, so that stays.
    fn weighing_speedup_of(self, other: &Self) -> Self {
        let [[_, own_width], [_, other_width]] = [self, *other].map(|one| one.half_widths);
        let [own, others] = [self, *other].map(|one| one.prediction.ln_speedup.value);
        let squares = [own_width, other_width].map(|width| width * width);
        let share = squares[0] / (squares[0] + squares[1]);
        let between = |own: f64, others: f64| own + share * (others - own);
        let value = between(own, others);
        let ln_speedup = Uncertain { value, ..self.prediction.ln_speedup };
        Self {
            prediction: Prediction { ln_speedup, ..self.prediction },
            half_widths: [self.half_widths[0], between(own_width, other_width)],
            ..self
        }
    }
}

impl Known {
    /// From the records of a target, by index, and the ceilings of each dtype.
    pub(super) fn of<'c>(
        records: &[FusionRecord],
        indices: &[usize],
        ceilings: impl Fn(DType) -> Option<&'c Ceilings>,
    ) -> Self {
        let (mut known, by_key) = Self::sorted(records, indices.to_vec());
        for (key, of_key) in by_key {
            let ceilings = ceilings(key.dtype);
            if let Some(cloud) = Cloud::fit(ceilings, &of_key) {
                known.left_out.extend(cloud.left_out(ceilings, &of_key));
                known.clouds.insert(key, Arc::new(cloud));
            }
        }
        known.compare(records, ceilings);
        known
    }

    /// What would be known if some of the records had not been measured. Only their clouds are
    /// fitted anew; how far others are off was found with them.
    pub(super) fn without<'c>(
        &self,
        records: &[FusionRecord],
        left_out: &[usize],
        ceilings: impl Fn(DType) -> Option<&'c Ceilings>,
    ) -> Self {
        let is_kept = |index: &usize| !left_out.contains(index);
        let kept = self.indices.iter().copied().filter(is_kept).collect();
        let (mut known, by_key) = Self::sorted(records, kept);
        // A record is in the cloud of its chain, and in those of shorter ones.
        let keys = |&index: &usize| {
            let of_others = shorter::observations(index, &records[index]);
            let own = std::iter::once(CloudKey::of(&records[index].problem));
            own.chain(of_others.map(|one| CloudKey::of(&one.problem)))
        };
        let changed: FxHashSet<CloudKey> = left_out.iter().flat_map(keys).collect();
        for (key, of_key) in by_key {
            let cloud = if changed.contains(&key) {
                Cloud::fit(ceilings(key.dtype), &of_key).map(Arc::new)
            } else {
                self.clouds.get(&key).cloned()
            };
            known.clouds.extend(cloud.map(|cloud| (key, cloud)));
        }
        let is_kept = |one: &&LeftOut| !left_out.contains(&one.record);
        known.left_out = self.left_out.iter().filter(is_kept).copied().collect();
        known.compare(records, ceilings);
        known
    }

    /// The records of the target.
    pub(super) fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// Records by all that they are found by, and those of each cloud.
    fn sorted(
        records: &[FusionRecord],
        indices: Vec<usize>,
    ) -> (Self, FxHashMap<CloudKey, Vec<Observation>>) {
        let mut known = Self::default();
        let mut by_key: FxHashMap<CloudKey, Vec<Observation>> = FxHashMap::default();
        let mut of_others = Vec::new();
        for &index in &indices {
            let record = &records[index];
            let problem = record.problem;
            let (chain, dtype, first) = (*problem.chain(), problem.dtype(), problem.chain()[0]);
            let of_chain = known.by_chain.entry((chain, dtype)).or_default();
            if of_chain.is_empty() {
                known.at_all.entry((first, dtype)).or_default().push(chain);
            }
            of_chain.push(index);
            known.at_sizes.entry(*problem.sizes()).or_default().measured(problem, index);
            for one in shorter::observations(index, record) {
                known.at_sizes.entry(*one.problem.sizes()).or_default().observed(one);
                of_others.push(one);
            }
            by_key.entry(CloudKey::of(&problem)).or_default().push(Observation::of(index, record));
            if !chain.is_single() {
                let family = Family::of(chain.form());
                let least = known.least_gain.entry(family).or_insert(record.speedup_factor);
                *least = least.min(record.speedup_factor);
            }
        }
        // In the order of the records, which that of a map is not.
        for one in of_others {
            let at_sizes = known.at_sizes(&one.problem);
            // What was measured by itself is not observed twice.
            let counts = at_sizes.shorter(&one.problem) == Some(&one);
            if counts && at_sizes.record(&one.problem).is_none() {
                by_key.entry(CloudKey::of(&one.problem)).or_default().push(one);
            }
        }
        known.indices = indices;
        (known, by_key)
    }

    /// What was measured at the sizes of a problem.
    pub(super) fn at_sizes(&self, problem: &Problem) -> &AtSizes {
        self.at_sizes.get(problem.sizes()).unwrap_or(&at_sizes::NOTHING)
    }

    /// The record of a problem.
    pub(super) fn record(&self, problem: &Problem) -> Option<usize> {
        self.at_sizes(problem).record(problem)
    }

    /// The least speedup that was measured in the family of a problem, if any was.
    pub(super) fn least_gain(&self, problem: &Problem) -> Option<f64> {
        self.least_gain.get(&Family::of(problem.chain().form())).copied()
    }

    /// Finds out how far estimates are off.
    fn compare<'c>(
        &mut self,
        records: &[FusionRecord],
        ceilings: impl Fn(DType) -> Option<&'c Ceilings>,
    ) {
        self.learn_what_is_shown(records);
        let composed = self.composed_left_out(records);
        self.spreads = Spreads::from(&self.left_out, &composed);
        let of_target = self.indices.iter().map(|&index| &records[index]);
        self.on_paper = OnPaper::of(of_target, ceilings);
    }

    /// The times of a problem that was not measured, from the most trusted evidence that there is
    /// apart from a roofline; with what was measured [at its sizes](Self::at_sizes).
    pub(super) fn estimate(
        &self,
        records: &[FusionRecord],
        problem: &Problem,
        at_sizes: &AtSizes,
    ) -> Option<Answer> {
        let own = || {
            let cloud = self.clouds.get(&CloudKey::of(problem))?;
            let found = cloud.at(&Features::of(problem));
            let evidence =
                if found.is_within() { Evidence::Interpolated } else { Evidence::Extrapolated };
            Some(self.answer(evidence, found))
        };
        if let Some(shorter) = at_sizes.shorter(problem) {
            let shorter = self.answer(Evidence::ComposedAtSize, shorter.prediction());
            // Where the longer chain's record is vague, those of the chain itself at other sizes say more.
            let is_certain = |own: &Answer| 2.0 * own.half_widths[1] < shorter.half_widths[1];
            let own = if problem.chain().is_single() { None } else { own().filter(is_certain) };
            let own = own.filter(|own| own.evidence == Evidence::Interpolated);
            return Some(own.unwrap_or(shorter));
        }
        let at_size = self.composed_at_size(records, problem, at_sizes).map(|sum| sum.prediction);
        if let Some(found) = at_size.filter(Prediction::is_within) {
            let composed = self.answer(Evidence::ComposedAtSize, found);
            // The speedup of a single op is certain: none is asked for.
            let own = if composed.half_widths[1] > 0.0 { own() } else { None };
            return Some(own.map_or(composed, |own| composed.weighing_speedup_of(&own)));
        }
        let own = own();
        if let Some(own) = own.filter(|own| own.evidence == Evidence::Interpolated) {
            return Some(own);
        }
        let between = self.composed_between(records, problem).map(|sum| sum.prediction);
        if let Some(found) = between.filter(Prediction::is_within) {
            return Some(self.answer(Evidence::ComposedBetween, found));
        }
        own.or_else(|| {
            let found = at_size.or(between)?;
            Some(Self::with(&self.spreads.composed_beyond(), Evidence::Extrapolated, found))
        })
    }

    /// With the intervals that leaving records out asks for.
    fn answer(&self, evidence: Evidence, found: Prediction) -> Answer {
        Self::with(self.spreads.of(evidence), evidence, found)
    }

    fn with([time, speedup]: &[Spread; 2], evidence: Evidence, found: Prediction) -> Answer {
        let half_widths =
            [time.half_width(found.ln_fused.sd), speedup.half_width(found.ln_speedup.sd)];
        Answer { evidence, prediction: found, half_widths }
    }

    /// The speedups of a cloud, if it has records.
    pub(super) fn speedups(&self, key: &CloudKey) -> Option<&Field> {
        self.clouds.get(key)?.speedups()
    }
}
