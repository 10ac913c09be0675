//! What an older calibration of the same machine says, as far as a newer one bears it out.
//!
//! Between two versions of the software, times and speedups differ by a factor that most problems of
//! a family have in common, and by less that depends on the chain and the sizes. So the older file's
//! answer is the mean, and how far the newer records are off it is interpolated.

use rustc_hash::FxHashMap;

use super::answer::Evidence;
use super::cloud::padded;
use super::covariance::{Place, Prior, Sample};
use super::features::{CloudKey, Features};
use super::known::{Answer, Known};
use super::kriging::Field;
use super::lookup::in_order;
use super::observation::{Observation, is_usable};
use super::prediction::{Prediction, Uncertain};
use super::spread::Spread;
use super::target::View;
use crate::calibration::FusionRecord;
use crate::vocabulary::{Family, Problem};

/// What is believed of the drift of a chain's times, apart from that of its family.
const OF_TIMES: Prior = Prior { mean_sd: 0.1, slope_sd: 0.0, amplitude: 0.05 };

/// And of its speedups, which drift less: what changes a machine changes both variants.
pub(super) const OF_SPEEDUPS: Prior = Prior { mean_sd: 0.05, slope_sd: 0.0, amplitude: 0.03 };

/// Fewer records than this say nothing of a family by themselves.
const FEWEST_OF_A_FAMILY: usize = 3;

/// An older calibration, and how far a newer one is off it.
#[derive(Debug)]
pub(super) struct Older {
    records: Vec<FusionRecord>,
    by_view: FxHashMap<View, (Known, Drift)>,
}

impl Older {
    /// From the records of the older calibration with what is known by them, and the newer records.
    pub(super) fn of(
        records: Vec<FusionRecord>,
        known: FxHashMap<View, Known>,
        newer: &[FusionRecord],
    ) -> Self {
        let newer: Vec<&FusionRecord> =
            in_order(newer).into_iter().map(|index| &newer[index]).collect();
        let mut by_view = FxHashMap::default();
        for (view, known) in known {
            let is_of_view = |record: &&FusionRecord| View::of(record) == view && is_usable(record);
            let newer = newer.iter().copied().filter(is_of_view);
            if let Some(drift) = Drift::of(&known, &records, newer) {
                by_view.insert(view, (known, drift));
            }
        }
        Self { records, by_view }
    }

    /// The answer about a problem within the range of the older calibration, with the records that it
    /// names; `None` where the older one does not reach, or nothing newer was measured.
    pub(super) fn answer(
        &self,
        view: &View,
        problem: &Problem,
    ) -> Option<(Answer, &[FusionRecord])> {
        let (known, drift) = self.by_view.get(view)?;
        let before = before(known, &self.records, problem)?;
        Some((drift.applied_to(before, problem), &self.records))
    }

    /// How the speedups of a cloud drifted, where newer records of it were measured.
    pub(super) fn speedups(&self, view: &View, key: &CloudKey) -> Option<&Field> {
        self.by_view.get(view)?.1.by_key.get(key)?.speedups.as_ref()
    }
}

/// What the older calibration says of a problem, within its range.
fn before(known: &Known, records: &[FusionRecord], problem: &Problem) -> Option<Prediction> {
    let at_sizes = known.at_sizes(problem);
    if let Some(index) = at_sizes.record(problem) {
        return Some(Observation::of(index, &records[index]).prediction());
    }
    let answer = known.estimate(records, problem, at_sizes)?;
    let Answer { evidence, prediction, half_widths } = answer;
    match evidence {
        Evidence::Extrapolated => None,
        // How far sums of ops are off, the newer records of other chains do not say.
        Evidence::ComposedAtSize | Evidence::ComposedBetween => {
            let [time, speedup] = half_widths.map(Spread::sd_of);
            let at_least = |one: Uncertain, sd: f64| Uncertain { sd: one.sd.max(sd), ..one };
            Some(Prediction {
                ln_fused: at_least(prediction.ln_fused, time),
                ln_speedup: at_least(prediction.ln_speedup, speedup),
                ..prediction
            })
        }
        _ => Some(prediction),
    }
}

/// How far newer records are off an older calibration.
#[derive(Debug)]
struct Drift {
    /// Of the logarithms of the times and the speedups of a family: what most have in common, and how
    /// far they are off that.
    by_family: FxHashMap<Family, [Uncertain; 2]>,
    /// The same of all families.
    all: [Uncertain; 2],
    by_key: FxHashMap<CloudKey, OfCloud>,
    /// Of chains with newer records.
    spreads: [Spread; 2],
    /// Of chains without.
    spreads_of_others: [Spread; 2],
}

/// The drift of one cloud, apart from that of its family.
#[derive(Debug)]
struct OfCloud {
    times: Field,
    /// `None` for a single op.
    speedups: Option<Field>,
    /// How uncertain the older calibration is of the newer records: the mean variance of the logarithms
    /// of times and of speedups. Fields hold it as what a measurement is off by.
    of_older: [f64; 2],
}

/// How far a newer record is off.
struct Off {
    problem: Problem,
    /// Of the logarithms of the time and, unless there is a single op, of the speedup.
    time: Uncertain,
    speedup: Option<Uncertain>,
    /// The variances of what the older calibration says of the two.
    of_older: [f64; 2],
}

impl Off {
    fn of(record: &FusionRecord, before: &Prediction) -> Self {
        let now = Observation::of(0, record).prediction();
        let off = |now: Uncertain, before: Uncertain| Uncertain {
            value: now.value - before.value,
            sd: now.sd.hypot(before.sd),
        };
        let is_single = record.problem.chain().is_single();
        Self {
            problem: record.problem,
            time: off(now.ln_fused, before.ln_fused),
            speedup: (!is_single).then(|| off(now.ln_speedup, before.ln_speedup)),
            of_older: [before.ln_fused, before.ln_speedup].map(|one| one.sd * one.sd),
        }
    }

    fn family(&self) -> Family {
        Family::of(self.problem.chain().form())
    }
}

impl Drift {
    /// `None` without a newer record that the older calibration says something of.
    fn of<'r>(
        known: &Known,
        records: &[FusionRecord],
        newer: impl Iterator<Item = &'r FusionRecord>,
    ) -> Option<Self> {
        let off = |record: &FusionRecord| {
            let before = before(known, records, &record.problem)?;
            Some(Off::of(record, &before))
        };
        let found: Vec<Off> = newer.filter_map(off).collect();
        if found.is_empty() {
            return None;
        }
        let all = common(found.iter());
        let of_family = |family: Family| {
            let own = || found.iter().filter(move |off| off.family() == family);
            (own().count() >= FEWEST_OF_A_FAMILY).then(|| (family, common(own())))
        };
        let mut drift = Self {
            by_family: Family::ALL.into_iter().filter_map(of_family).collect(),
            all,
            by_key: FxHashMap::default(),
            spreads: [Spread::of([]); 2],
            spreads_of_others: [Spread::of([]); 2],
        };
        drift.fit(&found);
        Some(drift)
    }

    /// Interpolates what is left when the drift of each family is taken away, and finds out how far
    /// off such answers are.
    fn fit(&mut self, found: &[Off]) {
        let mut by_key: FxHashMap<CloudKey, Vec<&Off>> = FxHashMap::default();
        for off in found {
            by_key.entry(CloudKey::of(&off.problem)).or_default().push(off);
        }
        let (mut of_times, mut of_speedups) = (Vec::new(), Vec::new());
        for (key, of_key) in by_key {
            let [time, speedup] = self.of_family(&of_key[0].problem);
            let sample = |off: &Off, value: Uncertain, common: Uncertain| {
                let at = padded(&Features::of(&off.problem));
                let place = Place { at, proportion: 0.0 };
                Sample { place, value: value.value - common.value, variance: value.sd * value.sd }
            };
            let dimensions = Features::of(&of_key[0].problem).coordinates().len();
            let times = of_key.iter().map(|off| sample(off, off.time, time)).collect();
            let speedups = of_key.iter().filter_map(|off| Some(sample(off, off.speedup?, speedup)));
            let speedups = Field::fit(speedups.collect(), dimensions, OF_SPEEDUPS);
            let Some(times) = Field::fit(times, dimensions, OF_TIMES) else { continue };
            let off = |(_, off): (usize, [f64; 2])| off;
            of_times.extend(times.left_out().into_iter().map(off));
            of_speedups.extend(speedups.iter().flat_map(Field::left_out).map(off));
            #[expect(clippy::cast_precision_loss, reason = "a count of records")]
            let count = of_key.len() as f64;
            let of_older =
                [0, 1].map(|of| of_key.iter().map(|off| off.of_older[of]).sum::<f64>() / count);
            self.by_key.insert(key, OfCloud { times, speedups, of_older });
        }
        self.spreads = [Spread::of(of_times), Spread::of(of_speedups)];
        let times = found.iter().map(|off| {
            let common = self.of_family(&off.problem)[0];
            [off.time.value - common.value, off.time.sd.hypot(common.sd)]
        });
        let speedups = found.iter().filter_map(|off| {
            let (own, common) = (off.speedup?, self.of_family(&off.problem)[1]);
            Some([own.value - common.value, own.sd.hypot(common.sd)])
        });
        self.spreads_of_others = [Spread::of(times), Spread::of(speedups)];
    }

    fn of_family(&self, problem: &Problem) -> [Uncertain; 2] {
        let family = Family::of(problem.chain().form());
        self.by_family.get(&family).copied().unwrap_or(self.all)
    }

    fn applied_to(&self, before: Prediction, problem: &Problem) -> Answer {
        let [time, speedup] = self.of_family(problem);
        let of_cloud = self.by_key.get(&CloudKey::of(problem));
        let place = Place { at: padded(&Features::of(problem)), proportion: 0.0 };
        let in_cloud = |field: Option<&Field>, of_older: f64, common: Uncertain| match field {
            Some(field) => {
                let guess = field.at(&place);
                // What the older calibration says of this problem has an uncertainty of its own.
                let variance = (guess.sd * guess.sd - of_older).max(0.0);
                Uncertain { value: common.value + guess.mean, sd: variance.sqrt() }
            }
            None => common,
        };
        let of_older = of_cloud.map_or([0.0; 2], |of| of.of_older);
        let time = in_cloud(of_cloud.map(|of| &of.times), of_older[0], time);
        let of_speedups = of_cloud.and_then(|of| of.speedups.as_ref());
        let speedup = in_cloud(of_speedups, of_older[1], speedup);
        let with = |before: Uncertain, drift: Uncertain| Uncertain {
            value: before.value + drift.value,
            sd: before.sd.hypot(drift.sd),
        };
        let is_single = problem.chain().is_single();
        let ln_fused = with(before.ln_fused, time);
        let ln_speedup =
            if is_single { Uncertain::NOTHING } else { with(before.ln_speedup, speedup) };
        let spreads = if of_cloud.is_some() { &self.spreads } else { &self.spreads_of_others };
        let half_widths =
            [spreads[0].half_width(ln_fused.sd), spreads[1].half_width(ln_speedup.sd)];
        let prediction = Prediction { ln_fused, ln_speedup, octaves: 0.0, ..before };
        Answer { evidence: Evidence::Prior, prediction, half_widths }
    }
}

/// What most have in common: the median, and how far they are off it.
fn common<'o>(found: impl Iterator<Item = &'o Off> + Clone) -> [Uncertain; 2] {
    let times = found.clone().map(|off| off.time.value).collect();
    let speedups = found.filter_map(|off| Some(off.speedup?.value)).collect();
    [middle(times, OF_TIMES.mean_sd), middle(speedups, OF_SPEEDUPS.mean_sd)]
}

/// The median of some values and their standard deviation from it, as if there were a few more that
/// are off by the usual.
fn middle(mut values: Vec<f64>, usual_sd: f64) -> Uncertain {
    const AS_IF: f64 = 3.0;
    values.sort_unstable_by(f64::total_cmp);
    let upper = values.get(values.len() / 2).copied().unwrap_or(0.0);
    let lower = values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0.0);
    let value = 0.5 * (lower + upper);
    let squares: f64 = values.iter().map(|one| (one - value) * (one - value)).sum();
    #[expect(clippy::cast_precision_loss, reason = "a count of records")]
    let count = values.len() as f64;
    let variance = (squares + AS_IF * usual_sd * usual_sd) / (count + AS_IF);
    Uncertain { value, sd: variance.sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_few_is_as_uncertain_as_it_was_and_of_many_as_they_are() {
        assert_eq!(middle(vec![], 0.1), Uncertain { value: 0.0, sd: 0.1 });
        let one = middle(vec![0.3], 0.1);
        assert!(one.value == 0.3 && (one.sd - 0.1 * 0.75_f64.sqrt()).abs() < 1e-12);
        let middle_of_four = middle(vec![0.1, 0.4, 0.2, 9.0], 0.1).value;
        assert!((middle_of_four - 0.3).abs() < 1e-12);
        let many = (0..1000).map(|index| if index % 2 == 0 { 0.01 } else { -0.01 }).collect();
        assert!((middle(many, 0.1).sd - 0.01).abs() < 0.002);
    }
}
