//! What is known of a chain from others that were measured: its siblings, which begin with the same op.

use super::at_sizes::AtSizes;
use super::cloud::LeftOut;
use super::compose::{self, Beside, Difference, Part, Sum};
use super::features::{CloudKey, Features};
use super::hidden::{self, Exchanged, Seen};
use super::known::Known;
use super::observation::Observation;
use super::prediction::{Prediction, Uncertain};
use super::shorter;
use crate::calibration::FusionRecord;
use crate::vocabulary::Problem;

impl Known {
    /// From a sibling that was measured at the same size.
    pub(super) fn composed_at_size(
        &self,
        records: &[FusionRecord],
        problem: &Problem,
        at_sizes: &AtSizes,
    ) -> Option<Sum> {
        let begins_alike = |(other, _): &&(Problem, usize)| {
            (other.chain()[0], other.dtype()) == (problem.chain()[0], problem.dtype())
        };
        let siblings = at_sizes.records.iter().filter(begins_alike).copied();
        self.composed(records, problem, siblings, |_, index| {
            Some(Observation::of(index, &records[index]).prediction())
        })
    }

    /// From a sibling that was measured at other sizes.
    pub(super) fn composed_between(
        &self,
        records: &[FusionRecord],
        problem: &Problem,
    ) -> Option<Sum> {
        let key = CloudKey::of(problem);
        let siblings = self.at_all.get(&(problem.chain()[0], problem.dtype()))?.iter();
        let with_cloud = siblings.filter_map(|chain| {
            let sibling = Problem::new(*chain, problem.dtype(), *problem.sizes()).ok()?;
            Some((sibling, self.clouds.get(&key.with_chain(*chain))?))
        });
        self.composed(records, problem, with_cloud, |sibling, cloud| {
            Some(cloud.at(&Features::of(sibling)))
        })
    }

    /// From the sibling that leaves the least uncertainty; of several, the one that differs in the
    /// fewest ops.
    fn composed<T>(
        &self,
        records: &[FusionRecord],
        wanted: &Problem,
        siblings: impl Iterator<Item = (Problem, T)>,
        predict: impl Fn(&Problem, T) -> Option<Prediction>,
    ) -> Option<Sum> {
        let siblings = siblings.filter(|(sibling, _)| sibling.chain() != wanted.chain());
        let sums = siblings.filter_map(|(sibling, source)| {
            let known = predict(&sibling, source)?;
            if wanted.chain().is_single() {
                let others = sibling.slice(1..sibling.chain().len())?;
                let prediction = compose::rest(&known, &self.part(records, &others)?)?;
                return Some(Sum { prediction, ops: sibling.chain().len() - 1, hidden: 0.0 });
            }
            let ways = Difference::between(wanted.chain(), sibling.chain());
            let sums = ways.iter().flatten();
            let sums = sums.filter_map(|way| self.sum(records, wanted, (&sibling, known), way));
            sums.min_by(Sum::by_certainty)
        });
        sums.min_by(Sum::by_certainty)
    }

    /// A chain from another one, in one of the ways from the one to the other.
    fn sum(
        &self,
        records: &[FusionRecord],
        wanted: &Problem,
        (sibling, known): (&Problem, Prediction),
        way: &Difference,
    ) -> Option<Sum> {
        let ms = |part: &Prediction| part.ln_fused.value.exp();
        let new = wanted.slice(way.new.clone())?;
        let of_new = self.part(records, &new)?;
        let old = sibling.slice(way.old.clone());
        let of_old = match &old {
            Some(old) => Some(self.part(records, old)?),
            None => None,
        };
        let flops_per_ms =
            self.clouds.get(&CloudKey::of(sibling)).map(|cloud| cloud.flops_per_ms());
        // Nothing is known of it without a rate of arithmetic.
        let hidden_ms = flops_per_ms.map_or(0.0, |flops_per_ms| {
            let exchanged_for =
                |(problem, part): (_, &Prediction)| Exchanged { problem, ms: ms(part) };
            hidden::ms(
                wanted,
                ms(&known),
                flops_per_ms,
                exchanged_for((&new, &of_new)),
                old.as_ref().zip(of_old.as_ref()).map(exchanged_for),
            )
        });
        let mut beside =
            Beside { ms: self.shown.value * hidden_ms, sd_ms: self.shown.sd * hidden_ms.abs() };
        let is_inserted = of_old.is_none();
        if is_inserted {
            let inserted = &wanted.chain()[way.new.clone()];
            let count = inserted.len() as f64;
            beside.sd_ms = beside.sd_ms.hypot(shorter::SD_OF_TIME * count * ms(&known));
            if inserted.iter().any(shorter::is_bias) {
                beside.sd_ms = beside.sd_ms.hypot(shorter::SD_OF_A_BIAS * ms(&of_new));
            }
        }
        let part = |sign, prediction, is_fused| Part { sign, prediction, is_fused };
        let parts = [part(1.0, known, true), part(1.0, of_new, !is_inserted)];
        let prediction = match of_old {
            None => compose::sum(&parts, beside)?,
            Some(of_old) => compose::sum(&[parts[0], parts[1], part(-1.0, of_old, true)], beside)?,
        };
        Some(Sum { prediction, ops: way.ops(), hidden: hidden_ms / ms(&prediction) })
    }

    /// What is known of a part of a chain by itself.
    fn part(&self, records: &[FusionRecord], part: &Problem) -> Option<Prediction> {
        if let Some(index) = self.record(part) {
            return Some(Observation::of(index, &records[index]).prediction());
        }
        Some(self.clouds.get(&CloudKey::of(part))?.at(&Features::of(part)))
    }

    /// How much of the arithmetic that ops hide by themselves the fused kernels of measured chains show.
    pub(super) fn learn_what_is_shown(&mut self, records: &[FusionRecord]) {
        self.shown = Uncertain::NOTHING;
        let seen = |&index: &usize| {
            let problem = &records[index].problem;
            let sum = self.composed_at_size(records, problem, self.at_sizes(problem))?;
            let Uncertain { value, sd } = sum.prediction.ln_fused;
            let off = Uncertain { value: records[index].fused_latency_ms.ln() - value, sd };
            Some(Seen { hidden: sum.hidden, off })
        };
        let seen: Vec<Seen> = self.indices().iter().filter_map(seen).collect();
        self.shown = hidden::shown(seen);
    }

    /// Measured chains as composed of others.
    pub(super) fn composed_left_out(&self, records: &[FusionRecord]) -> Vec<LeftOut> {
        let composed = |&index: &usize| {
            let record = &records[index];
            let problem = &record.problem;
            let at_sizes = self.at_sizes(problem);
            let shorter = at_sizes.shorter(problem).map(Observation::prediction);
            let sum = || self.composed_at_size(records, problem, at_sizes);
            let found = shorter.or_else(|| Some(sum()?.prediction))?;
            let Prediction { ln_fused: time, ln_speedup: speedup, octaves, .. } = found;
            let is_single = record.problem.chain().len() == 1;
            Some(LeftOut {
                record: index,
                octaves,
                time: Some([record.fused_latency_ms.ln() - time.value, time.sd]),
                speedup: (!is_single)
                    .then(|| [record.speedup_factor.ln() - speedup.value, speedup.sd]),
            })
        };
        self.indices().iter().filter_map(composed).collect()
    }
}
